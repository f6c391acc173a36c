/* libgmpreload.so serves the cudaMalloc and cudaFree of any program that is linked with the shared CUDA runtime from libgm.so. It is
 * preloaded into every process that the program starts, so it is plain C, and does nothing before the first cudaMalloc of one.
 * libgm.so is the one that GM_LIB names, or the one beside this file. A file "started" in the folder GMSTITCH_DIR tells gmstitch that
 * some process was served.
 *
 * A cudaFree first waits for the device, as the CUDA runtime's own does: then memory may be used by any stream at once, whatever
 * streams used it before. So does a cudaFreeAsync, which may be given the memory of a cudaMalloc, too. What libgm.so cannot serve, and
 * what it did not serve, goes to the runtime. So does all of a device after a cudaDeviceReset of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../gm.h"

#define PUBLIC __attribute__((visibility("default")))

typedef int cudaError_t;
PUBLIC cudaError_t cudaMalloc(void **p, size_t size);
PUBLIC cudaError_t cudaFree(void *p);
PUBLIC cudaError_t cudaFreeAsync(void *p, void *stream);
PUBLIC cudaError_t cudaFreeAsync_ptsz(void *p, void *stream);
PUBLIC cudaError_t cudaDeviceReset(void);

enum { OUT_OF_MEMORY = 2, FAILED = 999 }; /* cudaErrorMemoryAllocation, cudaErrorUnknown */

static struct {
	cudaError_t (*malloc)(void **, size_t);
	cudaError_t (*free)(void *);
	cudaError_t (*free_async)(void *, void *), (*free_async_ptsz)(void *, void *);
	cudaError_t (*reset)(void);
	cudaError_t (*get_device)(int *);
	cudaError_t (*set_device)(int);
	cudaError_t (*synchronize)(void);
} runtime;

static struct {
	__typeof__(gm_try_malloc) *malloc;
	__typeof__(gm_free) *free;
	__typeof__(gm_last_error) *last_error;
	__typeof__(gm_device_of) *device_of;
} gm;

static pthread_once_t found = PTHREAD_ONCE_INIT, loaded = PTHREAD_ONCE_INIT;
static bool serving;
enum { DEVICES = 64 };
static atomic_ullong reset; /* a bit for each device whose context, and with it the memory of libgm.so, was destroyed */
static __thread bool started __attribute__((tls_model("initial-exec"))); /* the runtime, in this thread */

static void *runtime_function(const char *name)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"};
	void *function = dlsym(RTLD_NEXT, name);
	for (size_t i = 0; !function && i < sizeof names / sizeof *names; i++) {
		void *library = dlopen(names[i], RTLD_NOLOAD | RTLD_LAZY);
		if (!library)
			continue;
		function = dlsym(library, name);
		dlclose(library);
	}
	return function;
}

static void find(void)
{
	runtime.malloc = runtime_function("cudaMalloc");
	runtime.free = runtime_function("cudaFree");
	runtime.free_async = runtime_function("cudaFreeAsync");
	runtime.free_async_ptsz = runtime_function("cudaFreeAsync_ptsz");
	runtime.reset = runtime_function("cudaDeviceReset");
	runtime.get_device = runtime_function("cudaGetDevice");
	runtime.set_device = runtime_function("cudaSetDevice");
	runtime.synchronize = runtime_function("cudaDeviceSynchronize");
}

/* library_path writes the path of libgm.so. */
static bool library_path(char path[PATH_MAX])
{
	const char *set = getenv("GM_LIB");
	Dl_info self;
	if (set && *set)
		return snprintf(path, PATH_MAX, "%s", set) < PATH_MAX;
	if (!dladdr((void *)cudaMalloc, &self) || !self.dli_fname)
		return false;
	const char *slash = strrchr(self.dli_fname, '/');
	int folder = slash ? (int)(slash + 1 - self.dli_fname) : 0;
	return snprintf(path, PATH_MAX, "%.*slibgm.so", folder, self.dli_fname) < PATH_MAX;
}

/* leave_mark says that a process of the run is served. */
static void leave_mark(void)
{
	char path[PATH_MAX];
	const char *folder = getenv("GMSTITCH_DIR");
	if (!folder || !*folder || snprintf(path, sizeof path, "%s/started", folder) >= PATH_MAX)
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

/* room says whether the process has enough addresses left for libgm.so: its runtime reserves 0.6 GiB when it is loaded, and more for
 * threads and memory, and ends a process that has fewer. */
static bool room(void)
{
	struct rlimit limit;
	unsigned long pages = 0;
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	FILE *f = fopen("/proc/self/statm", "re");
	bool known = f && fscanf(f, "%lu", &pages) == 1;
	if (f)
		fclose(f);
	rlim_t used = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE), needed = (rlim_t)4 << 30;
	return known && used < limit.rlim_cur && limit.rlim_cur - used >= needed;
}

static void load(void)
{
	char path[PATH_MAX];
	if (!library_path(path))
		return;
	if (!room()) {
		fprintf(stderr, "gm: cudaMalloc is not served: a limit of addresses (ulimit -v) leaves less than 4096 MiB\n");
		return;
	}
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "gm: cudaMalloc is not served: %s\n", dlerror());
		return;
	}
	gm.malloc = dlsym(library, "gm_try_malloc");
	gm.free = dlsym(library, "gm_free");
	gm.last_error = dlsym(library, "gm_last_error");
	gm.device_of = dlsym(library, "gm_device_of");
	serving = gm.malloc && gm.free && gm.last_error && gm.device_of && runtime.free && runtime.get_device && runtime.set_device &&
	          runtime.synchronize;
	if (serving)
		leave_mark();
}

/* refused says whether a limit that the runtime does not know refused the request, or a memory server, whose quota is one. Without those the
 * runtime tries, and reports the error. */
static bool refused(void)
{
	if (!getenv("GM_LIMIT") && !getenv("GM_SERVER"))
		return false;
	static const char begin[] = "CUDA out of memory. Tried";
	char text[sizeof begin];
	return gm.last_error(text, sizeof text) >= sizeof begin - 1 && strcmp(text, begin) == 0;
}

static bool was_reset(int device)
{
	return device < DEVICES && reset >> device & 1;
}

cudaError_t cudaMalloc(void **p, size_t size)
{
	int device;
	pthread_once(&found, find);
	pthread_once(&loaded, load);
	if (serving && p && size) {
		if (!started)
			started = runtime.free(NULL) == 0; /* makes the runtime's context, as a cudaMalloc does */
		if (started && runtime.get_device(&device) == 0 && !was_reset(device)) {
			if ((*p = gm.malloc(size, device, NULL)))
				return 0;
			if (refused())
				return OUT_OF_MEMORY;
		}
	}
	return runtime.malloc ? runtime.malloc(p, size) : FAILED;
}

/* wait waits for all work of a device. */
static cudaError_t wait(int device)
{
	int current;
	cudaError_t r = runtime.get_device(&current);
	if (r == 0 && current != device)
		r = runtime.set_device(device);
	if (r)
		return r;
	r = runtime.synchronize();
	cudaError_t back = current != device ? runtime.set_device(current) : 0;
	return r ? r : back;
}

/* device_of returns the device of memory that libgm.so served, -1 for any other. */
static int device_of(void *p)
{
	pthread_once(&found, find);
	return p && gm.device_of ? gm.device_of(p) : -1;
}

static cudaError_t give_back(void *p, int device)
{
	if (was_reset(device))
		return 0; /* it was destroyed with the device's context */
	cudaError_t r = wait(device);
	if (r == 0)
		gm.free(p, 0, device, NULL);
	return r;
}

cudaError_t cudaFree(void *p)
{
	int device = device_of(p);
	if (device >= 0)
		return give_back(p, device);
	return runtime.free ? runtime.free(p) : FAILED;
}

cudaError_t cudaFreeAsync(void *p, void *stream)
{
	int device = device_of(p);
	if (device >= 0)
		return give_back(p, device);
	return runtime.free_async ? runtime.free_async(p, stream) : FAILED;
}

cudaError_t cudaFreeAsync_ptsz(void *p, void *stream)
{
	int device = device_of(p);
	if (device >= 0)
		return give_back(p, device);
	return runtime.free_async_ptsz ? runtime.free_async_ptsz(p, stream) : FAILED;
}

cudaError_t cudaDeviceReset(void)
{
	int device;
	pthread_once(&found, find);
	if (!runtime.reset || !runtime.get_device)
		return FAILED;
	cudaError_t r = runtime.get_device(&device);
	if (r || (r = runtime.reset()))
		return r;
	started = false;
	if (device < DEVICES)
		reset |= 1ull << device;
	return 0;
}
