/* Finding the driver's functions, and standing in their place when others look for them.
 *
 * Programs come to the driver in three ways: linked against libcuda.so.1, by dlsym, or by cuGetProcAddress, which the CUDA runtime,
 * shared or static, itself finds by dlsym. The first is interposed by the names that this library exports, the second by the dlsym
 * below, the third by the hooks of cuGetProcAddress. Of a name such as cuMemAlloc the driver hands out the version that fits the
 * caller; which one it is, its address tells, since it is that of an exported symbol (seen with driver 580).
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
#include "hooks.h"
#undef HOOK
};

_Atomic(void *) gm_reals[HOOKS] GM_FOUND;

extern _Atomic(void *) __start_gm_found[], __stop_gm_found[];

void gm_forget(void)
{
	for (_Atomic(void *) *found = __start_gm_found; found < __stop_gm_found; found++)
		atomic_store(found, NULL);
}

/* The first version of the GNU C library, which all later ones still have. That no look-up fails matters: a failure allocates memory, and
 * an allocator may be calling. */
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

/* gm_pick decides what a call of dlsym returns: a wrapper, NULL, or PASS. What comes after the caller only the C library can tell: here it
 * would be what comes after this library, to another one that wraps the driver maybe that one itself. */
__attribute__((used)) void *gm_pick(void *handle, const char *name)
{
	libc_dlsym();
	int hook = gm_hook_named(name);
	if (hook < 0 || handle == RTLD_NEXT)
		return PASS;
	void *found = gm_dlsym(handle, name);
	if (!found)
		return PASS; /* sets dlerror as the caller expects */
	if (found == hooks[hook].wrapper) /* found here, and it is there only if the driver is */
		return gm_real(hook) ? found : gm_dlsym(handle, "(libcuda.so.1 is not loaded)");
	return found == gm_real(hook) ? hooks[hook].wrapper : found;
}

/* dlsym itself. The C library's takes RTLD_NEXT to mean after the object that called, so it must be jumped to, and not called. It may
 * itself be jumped to: endbr64 and hint #34, which is bti c, say so to processors that check. */
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

/* report tells of a version of a hooked function that is not hooked. */
static void report(const char *name)
{
	if (!gm_on())
		return;
	struct gm_record r = {.kind = GM_UNKNOWN, .device = -1};
	gm_push(&r, name, (unsigned)strlen(name));
}

/* replace returns the wrapper of what cuGetProcAddress found under a name. */
static void *replace(const char *name, void *found)
{
	static const char *const suffixes[] = {"", "_v2", "_v3", "_v4", "_ptsz"};
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
