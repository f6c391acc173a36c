/* Modules and libraries are code that takes memory: some when it is loaded, more with the first function (lazy loading).
 * Images are ignored, any name is a function, and a launch is queued in its stream and runs nothing. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOAD_BYTES (2 * MIB)
#define FIRST_FUNCTION_BYTES MIB

struct CUfunc_st {
	CUfunction next;
	char name[];
};

struct CUmod_st {
	CUmodule next;
	CUcontext ctx; /* NULL: a library, which no context owns */
	int device;
	bool loaded; /* a function was looked up */
	CUfunction functions;
};

static CUmodule modules;

static CUresult module_new(CUmodule *out, CUcontext ctx)
{
	CUmodule m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->ctx = ctx;
	m->device = current_device();
	lock();
	CUresult r = device_take(m->device, FAKE_MODULE, LOAD_BYTES, LOAD_BYTES);
	if (r == CUDA_SUCCESS) {
		m->next = modules;
		modules = m;
		*out = m;
	}
	unlock();
	if (r != CUDA_SUCCESS)
		free(m);
	return r;
}

static void module_unlink(CUmodule *at)
{
	CUmodule m = *at;
	*at = m->next;
	device_give(m->device, FAKE_MODULE, LOAD_BYTES, LOAD_BYTES);
	if (m->loaded)
		device_give(m->device, FAKE_MODULE, FIRST_FUNCTION_BYTES, FIRST_FUNCTION_BYTES);
	for (CUfunction f = m->functions, next; f; f = next) {
		next = f->next;
		free(f);
	}
	free(m);
}

static CUmodule *module_find(CUmodule module)
{
	CUmodule *at = &modules;
	while (*at && *at != module)
		at = &(*at)->next;
	return at;
}

static CUresult module_unload(CUmodule module)
{
	lock();
	CUmodule *at = module_find(module);
	bool ok = module && *at;
	if (ok)
		module_unlink(at);
	unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void modules_release(CUcontext ctx)
{
	for (CUmodule *at = &modules; *at;) {
		if ((*at)->ctx == ctx)
			module_unlink(at);
		else
			at = &(*at)->next;
	}
}

/* module_load takes the memory of the code when the first function is looked up. */
static CUresult module_load(CUmodule m)
{
	if (m->loaded)
		return CUDA_SUCCESS;
	CUresult r = device_take(m->device, FAKE_MODULE, FIRST_FUNCTION_BYTES, FIRST_FUNCTION_BYTES);
	m->loaded = r == CUDA_SUCCESS;
	return r;
}

static CUresult function_get(CUfunction *out, CUmodule m, const char *name)
{
	for (CUfunction f = m->functions; f; f = f->next)
		if (!strcmp(f->name, name)) {
			*out = f;
			return CUDA_SUCCESS;
		}
	CUresult r = module_load(m);
	if (r != CUDA_SUCCESS)
		return r;
	CUfunction f = malloc(sizeof *f + strlen(name) + 1);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	strcpy(f->name, name);
	f->next = m->functions;
	m->functions = f;
	*out = f;
	return CUDA_SUCCESS;
}

static CUresult function_find(CUfunction *out, CUmodule module, const char *name)
{
	if (!out || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUresult r = module && *module_find(module) ? function_get(out, module, name) : CUDA_ERROR_INVALID_HANDLE;
	unlock();
	return r;
}

static CUresult file_check(const char *path)
{
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	return access(path, R_OK) == 0 ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	ENTER(NEED_CONTEXT);
	CUresult r = file_check(path);
	return r == CUDA_SUCCESS ? module_new(module, context_current()) : r;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	ENTER(NEED_CONTEXT);
	return module && image ? module_new(module, context_current()) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options, void **values)
{
	ENTER(NEED_CONTEXT);
	(void)n, (void)options, (void)values;
	return module && image ? module_new(module, context_current()) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	ENTER(NEED_CONTEXT);
	return module && image ? module_new(module, context_current()) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleUnload(CUmodule module)
{
	ENTER(NEED_CONTEXT);
	return module_unload(module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	ENTER(NEED_CONTEXT);
	return function_find(function, module, name);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jitValues, unsigned nJit,
                           int *options, void **values, unsigned n)
{
	ENTER(NEED_INIT);
	(void)jit, (void)jitValues, (void)nJit, (void)options, (void)values, (void)n;
	return library && code ? module_new((CUmodule *)library, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jitValues, unsigned nJit,
                               int *options, void **values, unsigned n)
{
	ENTER(NEED_INIT);
	(void)jit, (void)jitValues, (void)nJit, (void)options, (void)values, (void)n;
	CUresult r = file_check(path);
	return r == CUDA_SUCCESS ? module_new((CUmodule *)library, NULL) : r;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	ENTER(NEED_INIT);
	return module_unload((CUmodule)library);
}

/* A kernel is its function, and a library its module, of the one device that it was loaded on. */
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	ENTER(NEED_INIT);
	return function_find((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	ENTER(NEED_CONTEXT);
	if (!module || !library)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = CUDA_ERROR_INVALID_HANDLE;
	lock();
	CUmodule m = *module_find((CUmodule)library);
	if (m)
		r = module_load(m);
	unlock();
	if (r == CUDA_SUCCESS)
		*module = m;
	return r;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	ENTER(NEED_CONTEXT);
	if (!function || !kernel)
		return CUDA_ERROR_INVALID_VALUE;
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void **params, void **extra)
{
	ENTER(NEED_CONTEXT);
	(void)shared, (void)params, (void)extra;
	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!gx || !gy || !gz || !bx || !by || !bz)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.kind = OP_NOTHING};
	CUstream s;
	lock();
	CUresult r = stream_find(stream, &s);
	if (r == CUDA_SUCCESS)
		r = queue_op(s, &op);
	unlock();
	return r;
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream ? stream : CU_STREAM_PER_THREAD, params, extra);
}
