/* Wrappers of the CUDA runtime's allocation functions, for attribution only: while one runs, memory is attributed to its caller. The
 * allocations themselves are recorded by the hooks of the driver. A statically linked runtime is not interposed and need not be: memory
 * is attributed to the library that it is linked into.
 *
 * A process may have several runtimes. The one that a call is meant for is found as the loader would find it: among the caller's own
 * symbols, then those of its dependencies.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "caller.h"
#include "driver.h"
#include "quiet.h"

#define MAX_CALLS 1024
#define STEPS 16
#define CUDA_NOT_FOUND 500 /* cudaErrorSymbolNotFound */

struct extent {
	size_t width, height, depth;
};

enum bound {
#define RUNTIME(name, parameters, ...) BOUND_##name,
#include "runtime.h"
#undef RUNTIME
	BOUND
};

/* The functions whose binding an auditor saw. */
static _Atomic(void *) bound[BOUND];

/* call is a call site of a function of the runtime, and the function that is meant there, NULL until it is known. */
struct call {
	_Atomic(void *) place;
	_Atomic(void *) function;
};

/* symbol_of looks up a symbol of a loaded object by the object's name. The object's file may no longer exist. */
static void *symbol_of(const char *object, const char *name)
{
	void *handle = dlopen(object, RTLD_LAZY | RTLD_NOLOAD);
	void *found = handle ? gm_dlsym(handle, name) : NULL;
	if (handle)
		dlclose(handle);
	return found;
}

/* is_runtime copies the name of an object and ends the walk if the object is a runtime, including one that packaging renamed. */
static int is_runtime(struct dl_phdr_info *info, size_t size, void *name)
{
	const char *base = strrchr(info->dlpi_name, '/');
	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, "libcudart", 9) != 0 || strlen(info->dlpi_name) >= PATH_MAX)
		return 0;
	strcpy(name, info->dlpi_name);
	return 1;
}

/* of_runtime looks up a symbol of any runtime. The path is not on the stack, which may be small. */
static void *of_runtime(const char *name)
{
	void *found = NULL;
	char *path = mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (path == MAP_FAILED)
		return NULL;
	if (dl_iterate_phdr(is_runtime, path))
		found = symbol_of(path, name);
	munmap(path, PATH_MAX);
	return found;
}

/* meant finds the function that a caller would have called. A caller without a runtime among its dependencies was loaded by an object that
 * has one; for it, any runtime of the process is taken. */
static void *meant(void *caller, const char *name, void *self)
{
	GM_QUIETLY;
	Dl_info of;
	void *found = NULL;
	if (gm_auditing)
		return NULL;
	if (dladdr(caller, &of) && of.dli_fname)
		found = symbol_of(of.dli_fname, name);
	if (!found || found == self)
		found = gm_dlsym(RTLD_NEXT, name);
	return found ? found : of_runtime(name);
}

static void *function_for(struct call *calls, void *caller, const char *name, void *self)
{
	uint64_t hash = (uint64_t)caller * 0x9e3779b97f4a7c15ULL >> 54;
	for (unsigned i = 0; i < STEPS; i++) {
		struct call *c = &calls[(hash + i) % MAX_CALLS];
		void *place = atomic_load_explicit(&c->place, memory_order_relaxed);
		if (!place && atomic_compare_exchange_strong(&c->place, &place, caller))
			place = caller;
		if (place != caller)
			continue;
		void *function = atomic_load_explicit(&c->function, memory_order_acquire);
		if (!function) {
			function = meant(caller, name, self);
			atomic_store_explicit(&c->function, function, memory_order_release);
		}
		return function;
	}
	return meant(caller, name, self);
}

#define RUNTIME(name, parameters, ...) \
	GM_PUBLIC int name parameters \
	{ \
		typedef int fn parameters; \
		static struct call calls[MAX_CALLS]; \
		void *caller = __builtin_return_address(0); \
		fn *real = (fn *)atomic_load_explicit(&bound[BOUND_##name], memory_order_acquire); \
		if (!real) \
			real = (fn *)function_for(calls, caller, #name, (void *)name); \
		if (!real) \
			return CUDA_NOT_FOUND; \
		uintptr_t outer = gm_runtime_caller; \
		if (!outer) \
			gm_runtime_caller = (uintptr_t)caller; \
		int result = real(__VA_ARGS__); \
		gm_runtime_caller = outer; \
		return result; \
	}
#include "runtime.h"
#undef RUNTIME

void *gm_runtime_wrapper(const char *name, void *real)
{
	static const struct {
		const char *name;
		void *wrapper;
	} wrappers[BOUND] = {
#define RUNTIME(name, parameters, ...) {#name, (void *)name},
#include "runtime.h"
#undef RUNTIME
	};
	for (int i = 0; i < BOUND; i++) {
		void *expected = NULL;
		if (strcmp(wrappers[i].name, name) != 0)
			continue;
		if (atomic_compare_exchange_strong(&bound[i], &expected, real) || expected == real)
			return wrappers[i].wrapper;
	}
	return NULL;
}
