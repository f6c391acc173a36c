/* The CUDA driver as the hooks see it: its types, and how its functions are found. The layouts are those of cuda.h 13.0; only what is
 * needed is declared. */
#ifndef GM_DRIVER_H
#define GM_DRIVER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The functions that are hooked: another library that is built with resolve.c names a file of its own. */
#ifndef GM_HOOKS
#define GM_HOOKS "hooks.h"
#endif

#define GM_PUBLIC __attribute__((visibility("default")))

enum { CU_SUCCESS = 0, CU_OUT_OF_MEMORY = 2, CU_NOT_INITIALIZED = 3, CU_UNAVAILABLE = 46, CU_NOT_FOUND = 500 };
enum { CU_LOCATION_DEVICE = 1 };
enum { CU_POOL_RESERVED = 5 };

struct cu_allocation_prop {
	int type, handle_types;
	struct {
		int type, id;
	} location;
};

struct cu_array {
	size_t width, height;
	int format;
	unsigned channels;
};

struct cu_array_3d {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
};

#define HOOK(name, parameters) \
	typedef int name##_fn parameters; \
	GM_PUBLIC name##_fn name;
#include GM_HOOKS
#undef HOOK

enum gm_hook {
#define HOOK(name, parameters) HOOK_##name,
#include GM_HOOKS
#undef HOOK
	HOOKS
};

/* gm_real returns the driver's function that a hook wraps; NULL if the driver has none. */
extern _Atomic(void *) gm_reals[HOOKS];
void *gm_resolve(enum gm_hook hook);

static inline void *gm_real(enum gm_hook hook)
{
	void *real = atomic_load_explicit(&gm_reals[hook], memory_order_relaxed);
	return __builtin_expect(real != NULL, 1) ? real : gm_resolve(hook);
}

/* GM_FOUND marks variables that cache functions of the driver, gm_reals among them. gm_forget sets them all to NULL. */
#define GM_FOUND __attribute__((section("gm_found")))
void gm_forget(void);

/* gm_driver returns any function of the driver by its exported name; NULL if there is none. */
void *gm_driver(const char *name);

/* gm_hook_named returns the hook of an exported name, -1 if there is none; gm_wrapper returns the wrapper of a hook. */
int gm_hook_named(const char *name);
void *gm_wrapper(enum gm_hook hook);

/* gm_auditing is set in an auditor, which must not load or look up libraries, since it lives in a linker namespace of its own. */
extern int gm_auditing;

/* gm_audited_driver is gm_driver for an auditor. */
void *gm_audited_driver(const char *name);

/* gm_runtime_wrapper returns the wrapper of a function of the CUDA runtime; NULL if there is none, or if it already wraps that of another
 * runtime. */
void *gm_runtime_wrapper(const char *name, void *real);

/* gm_dlsym is the dlsym of the C library. */
void *gm_dlsym(void *handle, const char *name);

/* REAL calls the driver's function behind a hook. */
#define REAL(name, ...) \
	({ \
		void *real_ = gm_real(HOOK_##name); \
		real_ ? ((name##_fn *)real_)(__VA_ARGS__) : CU_NOT_FOUND; \
	})

#endif
