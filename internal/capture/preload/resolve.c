/* Finding the driver's functions, and replacing them by wrappers when programs look them up.
 *
 * Programs reach the driver in three ways: linked against libcuda.so.1, by dlsym, or by cuGetProcAddress, which the CUDA runtime, shared
 * or static, itself finds by dlsym. The first way is interposed by the names that this library exports, the second by the dlsym below,
 * the third by the hooks of cuGetProcAddress. For a name such as cuMemAlloc, cuGetProcAddress returns the version that fits the caller.
 * Its address identifies the version, since it is that of an exported symbol (observed with driver 580).
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "quiet.h"
#include "ring.h"

#define PASS ((void *)-1) /* let the C library's dlsym answer */

struct hook {
	const char *name;
	void *wrapper;
};

static const struct hook hooks[HOOKS] = {
#define HOOK(name, parameters) {#name, (void *)name},
#include GM_HOOKS
#undef HOOK
};

_Atomic(void *) gm_reals[HOOKS] GM_FOUND;

extern _Atomic(void *) __start_gm_found[], __stop_gm_found[];

void gm_forget(void)
{
	for (_Atomic(void *) *found = __start_gm_found; found < __stop_gm_found; found++)
		atomic_store(found, NULL);
}

/* The oldest symbol version of the GNU C library, which all later releases still provide. A lookup must not fail: a failure allocates
 * memory, and the caller may be an allocator. */
#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#else
#define FIRST_VERSION "GLIBC_2.17"
#endif

typedef void *dlsym_fn(void *, const char *);
_Atomic(dlsym_fn *) gm_libc_dlsym;

static dlsym_fn *libc_dlsym(void)
{
	dlsym_fn *fn = atomic_load(&gm_libc_dlsym);
	if (!fn) {
		fn = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", FIRST_VERSION);
		atomic_store(&gm_libc_dlsym, fn);
	}
	return fn;
}

void *gm_dlsym(void *handle, const char *name)
{
	return libc_dlsym()(handle, name);
}

int gm_hook_named(const char *name)
{
	if (name[0] != 'c' || name[1] != 'u')
		return -1;
	for (int i = 0; i < HOOKS; i++)
		if (strcmp(hooks[i].name, name) == 0)
			return i;
	return -1;
}

void *gm_wrapper(enum gm_hook hook)
{
	return hooks[hook].wrapper;
}

void *gm_driver(const char *name)
{
	GM_QUIETLY;
	static _Atomic(void *) driver;
	if (gm_auditing)
		return gm_audited_driver(name);
	void *handle = atomic_load(&driver);
	if (!handle) {
		handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
		atomic_store(&driver, handle);
	}
	return handle ? gm_dlsym(handle, name) : NULL;
}

void *gm_resolve(enum gm_hook hook)
{
	void *real = gm_driver(hooks[hook].name);
	atomic_store(&gm_reals[hook], real);
	return real;
}

/* gm_pick decides what a call of dlsym returns: a wrapper, NULL, or PASS. RTLD_NEXT is passed on, since only the C library's own dlsym
 * knows which object called: looked up here it would mean after this library, which for another library that wraps the driver may be
 * itself. */
__attribute__((used)) void *gm_pick(void *handle, const char *name)
{
	libc_dlsym();
	int hook = gm_hook_named(name);
	if (hook < 0 || handle == RTLD_NEXT)
		return PASS;
	void *found = gm_dlsym(handle, name);
	if (!found)
		return PASS; /* it sets dlerror, as the caller expects */
	if (found == hooks[hook].wrapper) /* this library's own wrapper: return it only if the driver has the function */
		return gm_real(hook) ? found : gm_dlsym(handle, "(libcuda.so.1 is not loaded)");
	return found == gm_real(hook) ? hooks[hook].wrapper : found;
}

/* dlsym itself. For RTLD_NEXT the C library's dlsym looks at its return address to find the calling object, so this function must jump to
 * it instead of calling it. endbr64 and hint #34 (bti c) mark this function as a valid target of indirect jumps for processors that
 * check. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call gm_pick\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	cmp $-1, %rax\n"
	"	je 1f\n"
	"	ret\n"
	"1:	jmp *gm_libc_dlsym(%rip)\n"
	"	.cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl gm_pick\n"
	"	mov x16, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 30\n"
	"	.cfi_restore 29\n"
	"	.cfi_def_cfa_offset 0\n"
	"	cmn x16, #1\n"
	"	b.eq 1f\n"
	"	mov x0, x16\n"
	"	ret\n"
	"1:	adrp x16, gm_libc_dlsym\n"
	"	ldr x16, [x16, :lo12:gm_libc_dlsym]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlsym, . - dlsym\n");
#else
#error "gmtrace's preload library knows x86-64 and arm64 only"
#endif

/* report records that a function was looked up in a version that is not hooked. */
static void report(const char *name)
{
	if (!gm_on())
		return;
	struct gm_record r = {.kind = GM_UNKNOWN, .device = -1};
	gm_push(&r, name, (unsigned)strlen(name));
}

/* replace returns the wrapper of the function that cuGetProcAddress found under a name. */
static void *replace(const char *name, void *found)
{
	static const char *const suffixes[] = {"", "_v2", "_v3", "_v4", "_ptsz", "_ptds", "_v2_ptsz", "_v2_ptds"};
	int relative = 0;
	GM_QUIETLY;
	for (unsigned i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		char full[128];
		snprintf(full, sizeof full, "%s%s", name, suffixes[i]);
		int hook = gm_hook_named(full);
		if (hook >= 0 && gm_real(hook) == found)
			return hooks[hook].wrapper;
		relative |= hook >= 0;
	}
	if (relative)
		report(name);
	return found;
}

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	int result = REAL(cuGetProcAddress, name, fn, version, flags);
	if (result == CU_SUCCESS && name && fn && *fn)
		*fn = replace(name, *fn);
	return result;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	int result = REAL(cuGetProcAddress_v2, name, fn, version, flags, status);
	if (result == CU_SUCCESS && name && fn && *fn)
		*fn = replace(name, *fn);
	return result;
}
