/* torch.OutOfMemoryError, thrown from C after Go has returned, with nothing of PyTorch at hand but the symbols of its libraries: the
 * layouts are those of the Itanium C++ ABI and of libstdc++. */
#define _GNU_SOURCE
#include "libgm.h"

#include <dlfcn.h>
#include <string.h>

/* c10::SourceLocation */
struct location {
	const char *function, *file;
	uint32_t line;
};

/* std::string has two forms, each with names of its own. That of before C++11, which is a pointer, is what PyTorch's wheels up to 2.6
 * are built with. */
struct string {
	void *word[4];
};
static const struct form {
	const char *construct, *construct_base; /* c10::Error(SourceLocation, std::string) */
	const char *make, *end;                 /* std::string(const char *, const std::allocator<char> &), ~string() */
} forms[] = {
#define ERROR(kind, string) "_ZN3c105Error" kind "ENS_14SourceLocationE" string
#define STRING "St7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
	{ERROR("C1", "N" STRING "E"), ERROR("C2", "N" STRING "E"), "_ZN" STRING "C1EPKcRKS3_", "_ZN" STRING "D1Ev"},
	{ERROR("C1", "Ss"), ERROR("C2", "Ss"), "_ZNSsC1EPKcRKSaIcE", "_ZNSsD1Ev"},
};

/* abi::__si_class_type_info */
struct type {
	void *table;
	const char *name;
	void *base;
};

enum { TABLE_HEAD = 2 }; /* words of a table of virtual functions before the first, which is the destructor */
enum { EXCEPTION_SIZE = 512 }; /* more than c10::Error takes */

typedef void destructor(void *);

/* find looks for a symbol in the libraries of PyTorch and of C++, which are loaded, but maybe not for all to see. */
static void *find(const char *name)
{
	static const char *const libraries[] = {"libc10.so", "libc10_cuda.so", "libtorch_python.so", "libstdc++.so.6"};
	void *found = dlsym(RTLD_DEFAULT, name);
	for (size_t i = 0; !found && i < sizeof libraries / sizeof *libraries; i++) {
		void *library = dlopen(libraries[i], RTLD_NOLOAD | RTLD_LAZY);
		if (!library)
			continue;
		found = dlsym(library, name);
		dlclose(library);
	}
	return found;
}

static void throw(void *object, void *type, destructor *end)
{
	void (*cxa_throw)(void *, void *, destructor *) = find("__cxa_throw");
	cxa_throw(object, type, end);
}

static void *allocate(size_t size)
{
	void *(*cxa_allocate)(size_t) = find("__cxa_allocate_exception");
	void *object = cxa_allocate ? cxa_allocate(size) : NULL;
	return object ? memset(object, 0, size) : NULL;
}

/* throw_torch throws a c10::OutOfMemoryError: a c10::Error to which that class adds nothing but its name. What the compiler made
 * for it is not exported as a whole, so its type is made here; types are the same when their names are. */
static void throw_torch(const struct form *f, const char *text)
{
	static struct type oom = {.name = "N3c1016OutOfMemoryErrorE"};
	void (*construct)(void *, struct location, struct string *) = find(f->construct);
	if (!construct)
		construct = find(f->construct_base);
	void (*make)(struct string *, const char *, const char *) = find(f->make);
	destructor *end = find(f->end);
	void **table = find("_ZTVN3c105ErrorE");
	void **single_base = find("_ZTVN10__cxxabiv120__si_class_type_infoE");
	oom.base = find("_ZTIN3c105ErrorE");
	void *object = construct && make && end && table && single_base && oom.base ? allocate(EXCEPTION_SIZE) : NULL;
	if (!object)
		return;
	struct string message;
	make(&message, text, ""); /* an allocator has no state: any address will do */
	oom.table = single_base + TABLE_HEAD;
	construct(object, (struct location){"gm_malloc", "libgm.so", 0}, &message);
	end(&message);
	throw(object, &oom, (destructor *)table[TABLE_HEAD]);
}

/* c10::Error, a RuntimeError in Python. */
static void throw_error(const char *text)
{
	void (*fail)(const char *, const char *, uint32_t, const char *) = find("_ZN3c106detail14torchCheckFailEPKcS2_jS2_");
	if (fail)
		fail("gm_malloc", "libgm.so", 0, text);
}

static void throw_standard(const char *text)
{
	void (*construct)(void *, const char *) = find("_ZNSt13runtime_errorC1EPKc");
	void *type = find("_ZTISt13runtime_error");
	destructor *end = find("_ZNSt13runtime_errorD1Ev");
	void *object = construct && type && end ? allocate(64) : NULL;
	if (!object)
		return;
	construct(object, text);
	throw(object, type, end);
}

/* gm_throw_oom returns only where there is no PyTorch. */
void gm_throw_oom(const char *text)
{
	if (!find("_ZTIN3c105ErrorE"))
		return;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		throw_torch(&forms[i], text);
	throw_error(text);
	throw_standard(text);
}
