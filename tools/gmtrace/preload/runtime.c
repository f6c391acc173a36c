/* The CUDA runtime's allocation functions, for attribution only: while one runs, its caller is who asks for memory. What it allocates, the
 * hooks of the driver see. A runtime that is linked statically is not interposed, and need not be: its caller is the library that it is
 * linked into.
 *
 * Which runtime a call was meant for, of maybe several in the process, is what the loader would have found: the caller's own symbols and
 * those of its dependencies, in that order.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "caller.h"
#include "driver.h"

#define MAX_CALLS 64
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

/* The functions that an auditor saw being bound. */
static _Atomic(void *) bound[BOUND];

/* call is a place in the code that calls a function of the runtime, and the function that is meant there. */
struct call {
	_Atomic(void *) place;
	_Atomic(void *) function;
};

/* meant finds the function that a caller would have called. */
static void *meant(void *caller, const char *name, void *self)
{
	char path[PATH_MAX];
	void *found = NULL;
	if (gm_auditing)
		return NULL;
	if (gm_library((uintptr_t)caller, path, sizeof path)) {
		void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
		if (object) {
			found = gm_dlsym(object, name);
			dlclose(object);
		}
	}
	return found && found != self ? found : gm_dlsym(RTLD_NEXT, name);
}

static void remember(struct call *calls, void *caller, void *function)
{
	for (int i = 0; i < MAX_CALLS; i++) {
		void *expected = NULL;
		if (atomic_compare_exchange_strong(&calls[i].function, &expected, function)) {
			atomic_store_explicit(&calls[i].place, caller, memory_order_release);
			return;
		}
	}
}

static void *function_for(struct call *calls, void *caller, const char *name, void *self)
{
	for (int i = 0; i < MAX_CALLS; i++) {
		void *place = atomic_load_explicit(&calls[i].place, memory_order_acquire);
		if (place == caller)
			return atomic_load_explicit(&calls[i].function, memory_order_relaxed);
		if (!place)
			break;
	}
	void *function = meant(caller, name, self);
	if (function)
		remember(calls, caller, function);
	return function;
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
