/* Device memory taken by code: when it is loaded or, with lazy loading, when a function is first looked up or launched. */
#include "measure.h"

/* CODE defines the hook of a call that may load code. */
#define CODE(name, parameters, ...) \
	int name parameters \
	{ \
		struct gm_measure m = gm_before(); \
		return gm_after(m, REAL(name, __VA_ARGS__), GM_CODE, CALLER); \
	}

CODE(cuModuleLoad, (void **module, const char *path), module, path)
CODE(cuModuleLoadData, (void **module, const void *image), module, image)
CODE(cuModuleLoadDataEx, (void **module, const void *image, unsigned n, int *options, void **values), module, image, n, options, values)
CODE(cuModuleLoadFatBinary, (void **module, const void *image), module, image)
CODE(cuModuleGetFunction, (void **function, void *module, const char *name), function, module, name)
CODE(cuModuleGetGlobal_v2, (uint64_t *p, size_t *size, void *module, const char *name), p, size, module, name)
CODE(cuLibraryLoadData,
	(void **library, const void *code, void *jit, void **jit_values, unsigned njit, void *opt, void **opt_values, unsigned nopt),
	library, code, jit, jit_values, njit, opt, opt_values, nopt)
CODE(cuLibraryLoadFromFile,
	(void **library, const char *path, void *jit, void **jit_values, unsigned njit, void *opt, void **opt_values, unsigned nopt),
	library, path, jit, jit_values, njit, opt, opt_values, nopt)
CODE(cuLibraryGetModule, (void **module, void *library), module, library)
CODE(cuLibraryGetKernel, (void **kernel, void *library, const char *name), kernel, library, name)
CODE(cuLibraryGetGlobal, (uint64_t *p, size_t *size, void *library, const char *name), p, size, library, name)
CODE(cuKernelGetFunction, (void **function, void *kernel), function, kernel)

/* Functions that were launched before, in a hash table with at most STEPS probes. A function that finds no slot counts as launched
 * before. */
#define LAUNCHED (1 << 14)
#define STEPS 16

static int launched_before(void *function)
{
	static _Atomic(void *) launched[LAUNCHED];
	uint64_t hash = (uint64_t)function * 0x9e3779b97f4a7c15ULL >> 50;
	for (unsigned i = 0; i < STEPS; i++) {
		_Atomic(void *) *place = &launched[(hash + i) % LAUNCHED];
		void *known = atomic_load_explicit(place, memory_order_relaxed);
		if (known == function)
			return 1;
		if (!known && atomic_compare_exchange_strong(place, &known, function))
			return 0;
	}
	return 1;
}

/* LAUNCH defines the hook of a launch. The first launch of each function is measured: it may load code, and allocate the stacks of the
 * threads. */
#define LAUNCH(name, parameters, function, ...) \
	int name parameters \
	{ \
		if (__builtin_expect(!gm_on() || launched_before(function), 1)) \
			return REAL(name, __VA_ARGS__); \
		struct gm_measure m = gm_before(); \
		return gm_after(m, REAL(name, __VA_ARGS__), GM_CODE, CALLER); \
	}

#define SHAPE unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream

LAUNCH(cuLaunchKernel, (void *f, SHAPE, void **parameters, void **extra), f, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
LAUNCH(cuLaunchKernel_ptsz, (void *f, SHAPE, void **parameters, void **extra), f, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
LAUNCH(cuLaunchKernelEx, (const void *config, void *f, void **parameters, void **extra), f, config, f, parameters, extra)
LAUNCH(cuLaunchKernelEx_ptsz, (const void *config, void *f, void **parameters, void **extra), f, config, f, parameters, extra)
LAUNCH(cuLaunchCooperativeKernel, (void *f, SHAPE, void **parameters), f, f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
LAUNCH(cuLaunchCooperativeKernel_ptsz, (void *f, SHAPE, void **parameters), f, f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
