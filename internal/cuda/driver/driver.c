#include "driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRIES = 8 }; /* attempts to restore a thread's context */
enum { CAPTURE_MODE_RELAXED = 2, EVENT_DISABLE_TIMING = 2, STREAM_NON_BLOCKING = 1, HOST_PORTABLE = 1, CAPTURE_UNSUPPORTED = 900 };
enum { WAIT_UNTIL_EQUAL = 1 };
enum { MEMORY_UNIFIED = 4 };
enum { LOOK_UP_LEGACY_STREAM = 1, ALLOCATION_PINNED = 1, HANDLE_FILE_DESCRIPTOR = 1, IPC_LAZY_PEERS = 1 };

/* CUmemAllocationProp */
struct property {
	int type, handle_types, location_type, location_id;
	void *win32;
	unsigned char compression, rdma;
	unsigned short usage;
	unsigned char reserved[4];
};

/* A side of CUDA_MEMCPY2D */
struct side {
	size_t x, y;
	int memory;
	void *host;
	uint64_t device;
	void *array;
	size_t pitch;
};
struct rows {
	struct side from, to;
	size_t width, count;
};
_Static_assert(sizeof(struct property) == 32 && sizeof(struct gm_access) == 12 && sizeof(struct gm_ipc) == 64 && sizeof(struct rows) == 128, "layouts of the driver");

/* Each function: its name, the suffix of its symbol, the CUDA version of this form, and its parameters. A driver may lack the OPTIONAL
 * ones. */
#define FUNCTIONS(NEEDED, OPTIONAL)                                                                                      \
	NEEDED(cuInit, "", 2000, (unsigned flags))                                                                       \
	NEEDED(cuDriverGetVersion, "", 2020, (int *version))                                                             \
	NEEDED(cuGetErrorName, "", 6000, (int code, const char **name))                                                  \
	NEEDED(cuDeviceGetCount, "", 2000, (int *count))                                                                 \
	NEEDED(cuDeviceGet, "", 2000, (int *device, int ordinal))                                                        \
	NEEDED(cuDeviceGetName, "", 2000, (char *name, int size, int device))                                            \
	NEEDED(cuDeviceGetAttribute, "", 2000, (int *value, int attribute, int device))                                  \
	NEEDED(cuDeviceCanAccessPeer, "", 4000, (int *can, int device, int peer))                                        \
	NEEDED(cuDevicePrimaryCtxRetain, "", 7000, (void **context, int device))                                         \
	NEEDED(cuDevicePrimaryCtxRelease, "_v2", 11000, (int device))                                                    \
	NEEDED(cuCtxPushCurrent, "_v2", 4000, (void *context))                                                           \
	NEEDED(cuCtxPopCurrent, "_v2", 4000, (void **context))                                                           \
	NEEDED(cuCtxGetCurrent, "", 4000, (void **context))                                                              \
	NEEDED(cuCtxSynchronize, "", 2000, (void))                                                                       \
	NEEDED(cuMemAlloc, "_v2", 3020, (uint64_t *p, size_t size))                                                      \
	NEEDED(cuMemFree, "_v2", 3020, (uint64_t p))                                                                     \
	NEEDED(cuMemGetInfo, "_v2", 3020, (size_t *free, size_t *total))                                                 \
	NEEDED(cuMemAddressReserve, "", 10020,                                                                           \
	       (uint64_t *p, size_t size, size_t alignment, uint64_t hint, unsigned long long flags))                    \
	NEEDED(cuMemAddressFree, "", 10020, (uint64_t p, size_t size))                                                   \
	NEEDED(cuMemCreate, "", 10020,                                                                                   \
	       (uint64_t *handle, size_t size, const struct property *property, unsigned long long flags))               \
	NEEDED(cuMemRelease, "", 10020, (uint64_t handle))                                                               \
	NEEDED(cuMemMap, "", 10020, (uint64_t p, size_t size, size_t offset, uint64_t handle, unsigned long long flags)) \
	NEEDED(cuMemUnmap, "", 10020, (uint64_t p, size_t size))                                                         \
	NEEDED(cuMemSetAccess, "", 10020, (uint64_t p, size_t size, const struct gm_access *access, size_t n))           \
	NEEDED(cuMemExportToShareableHandle, "", 10020, (int *fd, uint64_t handle, int type, unsigned long long flags))  \
	NEEDED(cuMemImportFromShareableHandle, "", 10020, (uint64_t *handle, void *fd, int type))                        \
	NEEDED(cuIpcGetMemHandle, "", 4010, (struct gm_ipc *handle, uint64_t p))                                         \
	NEEDED(cuIpcOpenMemHandle, "_v2", 11000, (uint64_t *p, struct gm_ipc handle, unsigned flags))                    \
	NEEDED(cuIpcCloseMemHandle, "", 4010, (uint64_t p))                                                              \
	NEEDED(cuEventCreate, "", 2000, (void **event, unsigned flags))                                                  \
	NEEDED(cuEventRecord, "", 2000, (void *event, void *stream))                                                     \
	NEEDED(cuEventQuery, "", 2000, (void *event))                                                                    \
	NEEDED(cuEventSynchronize, "", 2000, (void *event))                                                              \
	NEEDED(cuEventDestroy, "_v2", 4000, (void *event))                                                               \
	NEEDED(cuStreamCreate, "", 2000, (void **stream, unsigned flags))                                                \
	NEEDED(cuStreamDestroy, "_v2", 4000, (void *stream))                                                             \
	NEEDED(cuStreamSynchronize, "", 2000, (void *stream))                                                            \
	NEEDED(cuStreamWaitEvent, "", 3020, (void *stream, void *event, unsigned flags))                                 \
	NEEDED(cuMemsetD32Async, "", 3020, (uint64_t p, unsigned value, size_t n, void *stream))                         \
	NEEDED(cuMemcpyDtoH, "_v2", 3020, (void *dst, uint64_t src, size_t size))                                        \
	NEEDED(cuMemcpyHtoD, "_v2", 3020, (uint64_t dst, const void *src, size_t size))                                  \
	NEEDED(cuMemcpyDtoHAsync, "_v2", 3020, (void *dst, uint64_t src, size_t size, void *stream))                     \
	NEEDED(cuMemcpyHtoDAsync, "_v2", 3020, (uint64_t dst, const void *src, size_t size, void *stream))               \
	NEEDED(cuMemcpyDtoDAsync, "_v2", 3020, (uint64_t dst, uint64_t src, size_t size, void *stream))                  \
	NEEDED(cuMemcpy2DAsync, "_v2", 3020, (const struct rows *rows, void *stream))                                    \
	NEEDED(cuMemHostRegister, "_v2", 6050, (void *p, size_t size, unsigned flags))                                   \
	NEEDED(cuMemHostUnregister, "", 4000, (void *p))                                                                 \
	OPTIONAL(cuMemHostAlloc, "", 2020, (void **p, size_t size, unsigned flags))                                      \
	OPTIONAL(cuMemFreeHost, "", 2000, (void *p))                                                                     \
	OPTIONAL(cuStreamWaitValue32, "_v2", 11070, (void *stream, uint64_t address, unsigned value, unsigned flags))    \
	NEEDED(cuEventElapsedTime, "", 2000, (float *ms, void *begin, void *end))                                        \
	NEEDED(cuDeviceGetPCIBusId, "", 4010, (char *text, int size, int device))                                        \
	OPTIONAL(cuStreamIsCapturing, "", 10000, (void *stream, int *status))                                            \
	OPTIONAL(cuThreadExchangeStreamCaptureMode, "", 10010, (int *mode))

#define MEMBER(name, suffix, since, parameters) int (*name) parameters;
struct gm_library {
	FUNCTIONS(MEMBER, MEMBER)
};

static const struct function {
	const char *name, *symbol;
	int since, optional;
	size_t offset;
} functions[] = {
#define NEEDED(name, suffix, since, parameters) {#name, #name suffix, since, 0, offsetof(struct gm_library, name)},
#define OPTIONAL(name, suffix, since, parameters) {#name, #name suffix, since, 1, offsetof(struct gm_library, name)},
	FUNCTIONS(NEEDED, OPTIONAL)
};

typedef int look_up(const char *name, void **function, int version, uint64_t flags, int *status);

static void *find(void *library, look_up *ask, const struct function *f)
{
	void *found = NULL;
	int status;
	if (ask && ask(f->name, &found, f->since, LOOK_UP_LEGACY_STREAM, &status) == 0 && found)
		return found;
	return dlsym(library, f->symbol);
}

struct gm_library *gm_library_load(char *why, int size)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		snprintf(why, (size_t)size, "%s", dlerror());
		return NULL;
	}
	struct gm_library *l = calloc(1, sizeof *l);
	look_up *ask = (look_up *)dlsym(library, "cuGetProcAddress_v2");
	for (size_t i = 0; l && i < sizeof functions / sizeof *functions; i++) {
		void *found = find(library, ask, &functions[i]);
		if (!found && !functions[i].optional) {
			snprintf(why, (size_t)size, "libcuda.so.1: has no function %s", functions[i].name);
			free(l);
			return NULL;
		}
		*(void **)((char *)l + functions[i].offset) = found;
	}
	if (!l)
		snprintf(why, (size_t)size, "out of host memory");
	return l;
}

const char *gm_error_name(const struct gm_library *l, int code)
{
	const char *name = NULL;
	return l->cuGetErrorName(code, &name) == 0 ? name : NULL;
}

static struct gm_result plain(const char *call, int code, uint64_t value)
{
	return (struct gm_result){.code = code, .call = code ? call : NULL, .value = {value}};
}

struct gm_result gm_driver_init(const struct gm_library *l) { return plain("cuInit", l->cuInit(0), 0); }

struct gm_result gm_driver_version(const struct gm_library *l)
{
	int version = 0, code = l->cuDriverGetVersion(&version);
	return plain("cuDriverGetVersion", code, (uint64_t)version);
}

struct gm_result gm_device_count(const struct gm_library *l)
{
	int count = 0, code = l->cuDeviceGetCount(&count);
	return plain("cuDeviceGetCount", code, (uint64_t)count);
}

struct gm_result gm_device_get(const struct gm_library *l, int ordinal)
{
	int device = 0, code = l->cuDeviceGet(&device, ordinal);
	return plain("cuDeviceGet", code, (uint64_t)device);
}

struct gm_result gm_device_name(const struct gm_library *l, int device, char *name, int size)
{
	return plain("cuDeviceGetName", l->cuDeviceGetName(name, size, device), 0);
}

struct gm_result gm_device_pci_bus_id(const struct gm_library *l, int device, char *text, int size)
{
	return plain("cuDeviceGetPCIBusId", l->cuDeviceGetPCIBusId(text, size, device), 0);
}

struct gm_result gm_device_attribute(const struct gm_library *l, int device, int attribute)
{
	int value = 0, code = l->cuDeviceGetAttribute(&value, attribute, device);
	return plain("cuDeviceGetAttribute", code, (uint64_t)value);
}

struct gm_result gm_device_can_access(const struct gm_library *l, int device, int peer)
{
	int can = 0, code = l->cuDeviceCanAccessPeer(&can, device, peer);
	return plain("cuDeviceCanAccessPeer", code, (uint64_t)can);
}

struct gm_result gm_context_retain(const struct gm_library *l, int device)
{
	void *context = NULL;
	int code = l->cuDevicePrimaryCtxRetain(&context, device);
	return plain("cuDevicePrimaryCtxRetain", code, (uintptr_t)context);
}

struct gm_result gm_context_release(const struct gm_library *l, int device)
{
	return plain("cuDevicePrimaryCtxRelease", l->cuDevicePrimaryCtxRelease(device), 0);
}

/* relax allows the thread calls that are otherwise forbidden while any stream is captured: unrelaxed they would break the capture. */
static void relax(const struct gm_library *l, struct gm_result *r)
{
	if (!l->cuThreadExchangeStreamCaptureMode)
		return;
	r->capture_mode = CAPTURE_MODE_RELAXED;
	r->code = l->cuThreadExchangeStreamCaptureMode(&r->capture_mode);
	for (int again = 0; r->code && again < TRIES; again++)
		r->code = l->cuThreadExchangeStreamCaptureMode(&r->capture_mode);
	r->relaxed = !r->code;
	if (r->code)
		r->call = "cuThreadExchangeStreamCaptureMode";
}

static void unrelax(const struct gm_library *l, struct gm_result *r)
{
	for (int tries = 0; r->relaxed && tries < TRIES; tries++)
		r->relaxed = l->cuThreadExchangeStreamCaptureMode(&r->capture_mode) != 0;
}

/* pop restores the caller's context. A pop may report an error of earlier work and still have popped. */
static void pop(const struct gm_device *d)
{
	void *top;
	for (int tries = 0; tries < TRIES && d->library->cuCtxPopCurrent(&top); tries++) {
		int code = d->library->cuCtxGetCurrent(&top);
		for (int again = 0; code && again < TRIES; again++)
			code = d->library->cuCtxGetCurrent(&top);
		if (code || top != (void *)d->context)
			return;
	}
}

/* enter makes the device's context current, unless it already is. */
static int enter(const struct gm_device *d, struct gm_result *r)
{
	r->code = d->library->cuCtxGetCurrent(&r->before);
	if (r->code)
		r->call = "cuCtxGetCurrent";
	else if (r->before != (void *)d->context && (r->code = d->library->cuCtxPushCurrent((void *)d->context)))
		r->call = "cuCtxPushCurrent";
	if (r->code)
		return 0;
	relax(d->library, r);
	if (r->code && r->before != (void *)d->context)
		pop(d);
	return !r->code;
}

static void leave(const struct gm_device *d, struct gm_result *r, const char *call, int code)
{
	unrelax(d->library, r);
	if (r->before != (void *)d->context)
		pop(d);
	r->code = code;
	if (code)
		r->call = call;
}

/* RUN makes one call; its arguments may point into the result r. */
#define RUN(name, ...)                                                              \
	do {                                                                        \
		if (enter(d, &r))                                                   \
			leave(d, &r, #name, d->library->name(__VA_ARGS__)); \
	} while (0)

/* WRAP defines a function that makes one call. */
#define WRAP(function, parameters, name, ...)      \
	struct gm_result function parameters       \
	{                                          \
		struct gm_result r = {.code = 0};  \
		RUN(name, __VA_ARGS__);            \
		return r;                          \
	}

typedef const struct gm_device *device;

WRAP(gm_mem_alloc, (device d, uint64_t size), cuMemAlloc, &r.value[0], size)
WRAP(gm_mem_free, (device d, uint64_t p), cuMemFree, p)
WRAP(gm_mem_info, (device d), cuMemGetInfo, &r.value[0], &r.value[1])
WRAP(gm_address_reserve, (device d, uint64_t size), cuMemAddressReserve, &r.value[0], size, 0, 0, 0)
WRAP(gm_address_free, (device d, uint64_t p, uint64_t size), cuMemAddressFree, p, size)
WRAP(gm_release, (device d, uint64_t handle), cuMemRelease, handle)
WRAP(gm_map, (device d, uint64_t p, uint64_t size, uint64_t handle), cuMemMap, p, size, 0, handle, 0)
WRAP(gm_unmap, (device d, uint64_t p, uint64_t size), cuMemUnmap, p, size)
WRAP(gm_set_access, (device d, uint64_t p, uint64_t size, const struct gm_access *access, uint64_t n), cuMemSetAccess, p, size, access, n)
WRAP(gm_import, (device d, int fd), cuMemImportFromShareableHandle, &r.value[0], (void *)(intptr_t)fd, HANDLE_FILE_DESCRIPTOR)
WRAP(gm_ipc_get, (device d, uint64_t p, struct gm_ipc *handle), cuIpcGetMemHandle, handle, p)
WRAP(gm_ipc_open, (device d, const struct gm_ipc *handle), cuIpcOpenMemHandle, &r.value[0], *handle, IPC_LAZY_PEERS)
WRAP(gm_ipc_close, (device d, uint64_t p), cuIpcCloseMemHandle, p)
WRAP(gm_event_query, (device d, uintptr_t event), cuEventQuery, (void *)event)
WRAP(gm_event_synchronize, (device d, uintptr_t event), cuEventSynchronize, (void *)event)
WRAP(gm_event_destroy, (device d, uintptr_t event), cuEventDestroy, (void *)event)
WRAP(gm_stream_destroy, (device d, uintptr_t stream), cuStreamDestroy, (void *)stream)
WRAP(gm_stream_synchronize, (device d, uintptr_t stream), cuStreamSynchronize, (void *)stream)
WRAP(gm_stream_wait_event, (device d, uintptr_t stream, uintptr_t event), cuStreamWaitEvent, (void *)stream, (void *)event, 0)
WRAP(gm_memset32, (device d, uint64_t p, uint32_t value, uint64_t words, uintptr_t stream), cuMemsetD32Async, p, value, words, (void *)stream)
WRAP(gm_copy_to_host_async, (device d, void *dst, uint64_t src, uint64_t size, uintptr_t stream), cuMemcpyDtoHAsync, dst, src, size, (void *)stream)
WRAP(gm_copy_to_device_async, (device d, uint64_t dst, const void *src, uint64_t size, uintptr_t stream), cuMemcpyHtoDAsync, dst, src, size, (void *)stream)
WRAP(gm_copy_within_device, (device d, uint64_t dst, uint64_t src, uint64_t size, uintptr_t stream), cuMemcpyDtoDAsync, dst, src, size, (void *)stream)
WRAP(gm_host_register, (device d, void *p, uint64_t size), cuMemHostRegister, p, size, HOST_PORTABLE)
WRAP(gm_host_unregister, (device d, void *p), cuMemHostUnregister, p)
WRAP(gm_copy_to_host, (device d, void *dst, uint64_t src, uint64_t size), cuMemcpyDtoH, dst, src, size)
WRAP(gm_copy_to_device, (device d, uint64_t dst, const void *src, uint64_t size), cuMemcpyHtoD, dst, src, size)

struct gm_result gm_copy_rows(device d, uint64_t dst, uint64_t src, uint64_t pitch, uint64_t width, uint64_t count, uintptr_t stream)
{
	const struct rows rows = {
		.from = {.memory = MEMORY_UNIFIED, .device = src, .pitch = pitch},
		.to = {.memory = MEMORY_UNIFIED, .device = dst, .pitch = width},
		.width = width,
		.count = count,
	};
	struct gm_result r = {.code = 0};
	RUN(cuMemcpy2DAsync, &rows, (void *)stream);
	return r;
}

struct gm_result gm_synchronize(device d)
{
	struct gm_result r = {.code = 0};
	RUN(cuCtxSynchronize);
	return r;
}

struct gm_result gm_create(device d, int of, uint64_t size, enum gm_share share)
{
	const struct property property = {
		.type = ALLOCATION_PINNED,
		.handle_types = share >= GM_SHARE_FILE ? HANDLE_FILE_DESCRIPTOR : 0,
		.location_type = GM_LOCATION_DEVICE,
		.location_id = of,
		.rdma = share >= GM_SHARE_FILE_RDMA,
	};
	struct gm_result r = {.code = 0};
	RUN(cuMemCreate, &r.value[0], size, &property, 0);
	return r;
}

struct gm_result gm_export(device d, uint64_t handle)
{
	int fd = -1;
	struct gm_result r = {.code = 0};
	RUN(cuMemExportToShareableHandle, &fd, handle, HANDLE_FILE_DESCRIPTOR, 0);
	r.value[0] = (uint64_t)fd;
	return r;
}

struct gm_result gm_event_create(device d, int timed)
{
	void *event = NULL;
	struct gm_result r = {.code = 0};
	RUN(cuEventCreate, &event, timed ? 0 : EVENT_DISABLE_TIMING);
	r.value[0] = (uintptr_t)event;
	return r;
}

struct gm_result gm_event_elapsed(device d, uintptr_t begin, uintptr_t end)
{
	float ms = 0;
	struct gm_result r = {.code = 0};
	RUN(cuEventElapsedTime, &ms, (void *)begin, (void *)end);
	r.value[0] = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
	return r;
}

static int record(const struct gm_library *l, void *event, void *stream, uint64_t *recorded)
{
	int code = event ? 0 : l->cuEventCreate(&event, EVENT_DISABLE_TIMING);
	*recorded = (uintptr_t)event;
	return code ? code : l->cuEventRecord(event, stream);
}

struct gm_result gm_event_record(device d, uintptr_t event, uintptr_t stream)
{
	struct gm_result r = {.code = 0};
	if (enter(d, &r))
		leave(d, &r, "cuEventRecord", record(d->library, (void *)event, (void *)stream, &r.value[0]));
	return r;
}

struct gm_result gm_stream_create(device d)
{
	void *stream = NULL;
	struct gm_result r = {.code = 0};
	RUN(cuStreamCreate, &stream, STREAM_NON_BLOCKING);
	r.value[0] = (uintptr_t)stream;
	return r;
}

struct gm_result gm_pause_word(device d)
{
	void *word = NULL;
	struct gm_result r = {.code = 0};
	if (!d->library->cuMemHostAlloc || !d->library->cuMemFreeHost || !d->library->cuStreamWaitValue32)
		return r;
	RUN(cuMemHostAlloc, &word, sizeof(uint32_t), 0);
	if (word)
		*(uint32_t *)word = 0;
	r.value[0] = (uintptr_t)word;
	return r;
}

struct gm_result gm_pause_word_free(device d, uint64_t word)
{
	struct gm_result r = {.code = 0};
	RUN(cuMemFreeHost, (void *)(uintptr_t)word);
	return r;
}

struct gm_result gm_stream_capturing(device d, uintptr_t stream)
{
	int status = 0;
	struct gm_result r = {.code = 0};
	if (d->library->cuStreamIsCapturing)
		RUN(cuStreamIsCapturing, (void *)stream, &status);
	r.value[0] = (uint64_t)status;
	return r;
}

/* STEP makes one of several calls. If it fails, the enclosing function returns. */
#define STEP(name, ...)                           \
	do {                                      \
		int failed = l->name(__VA_ARGS__); \
		if (failed) {                     \
			*call = #name;            \
			return failed;            \
		}                                 \
	} while (0)

/* uncaptured fails if work in a stream would go into a graph: a stream of ours that waits for it would be captured as well. */
static int uncaptured(const struct gm_library *l, uintptr_t stream, const char **call)
{
	int status = 0;
	if (l->cuStreamIsCapturing)
		STEP(cuStreamIsCapturing, (void *)stream, &status);
	if (!status)
		return 0;
	*call = "cuStreamIsCapturing";
	return CAPTURE_UNSUPPORTED;
}

static int follow(const struct gm_library *l, uintptr_t stream, uintptr_t event, const char **call)
{
	int code = uncaptured(l, stream, call);
	if (code)
		return code;
	STEP(cuStreamWaitEvent, (void *)stream, (void *)event, 0);
	return 0;
}

struct gm_result gm_stream_follow(device d, uintptr_t stream, uintptr_t event)
{
	const char *call = NULL;
	struct gm_result r = {.code = 0};
	if (enter(d, &r)) {
		int code = follow(d->library, stream, event, &call);
		leave(d, &r, call, code);
	}
	return r;
}

/* order makes the lane wait for everything that its copy must wait for. */
static int order(const struct gm_library *l, const struct gm_transfer *t, const char **call)
{
	int code = uncaptured(l, t->after, call);
	if (code)
		return code;
	STEP(cuEventRecord, (void *)t->order, (void *)t->after);
	STEP(cuStreamWaitEvent, (void *)t->lane, (void *)t->order, 0);
	if (t->wait)
		STEP(cuStreamWaitEvent, (void *)t->lane, (void *)t->wait, 0);
	return 0;
}

/* part returns how many bytes of a transfer, from at on, are copied at once: within one registered piece, and, where the copy pauses, in four
 * parts or in so many that a pause begins soon. Each takes two places of the stream's queue, which holds some thousand. */
static uint64_t part(const struct gm_transfer *t, uint64_t at)
{
	uint64_t size = t->size - at;
	if (t->piece) {
		uint64_t left = at < t->first ? t->first - at : t->piece - (at - t->first) % t->piece;
		size = left < size ? left : size;
	}
	if (t->pause) {
		uint64_t most = t->size / 4 > GM_PAUSE_PART ? t->size / 4 : GM_PAUSE_PART;
		size = size < most ? size : most;
	}
	return size;
}

static int copy(const struct gm_library *l, const struct gm_transfer *t, const char **call)
{
	if (t->begin)
		STEP(cuEventRecord, (void *)t->begin, (void *)t->lane);
	for (uint64_t at = 0, size; at < t->size; at += size) {
		size = part(t, at);
		if (t->pause) /* where the wait fails the copy is as good without */
			l->cuStreamWaitValue32((void *)t->lane, t->pause, 0, WAIT_UNTIL_EQUAL);
		if (t->in)
			STEP(cuMemcpyHtoDAsync, t->device + at, (void *)(t->host + at), size, (void *)t->lane);
		else
			STEP(cuMemcpyDtoHAsync, (void *)(t->host + at), t->device + at, size, (void *)t->lane);
	}
	if (t->end)
		STEP(cuEventRecord, (void *)t->end, (void *)t->lane);
	STEP(cuEventRecord, (void *)t->done, (void *)t->lane);
	return 0;
}

struct gm_result gm_transfer(device d, struct gm_transfer t)
{
	const char *call = NULL;
	struct gm_result r = {.code = 0};
	if (!enter(d, &r))
		return r;
	int code = order(d->library, &t, &call);
	if (!code) {
		code = copy(d->library, &t, &call);
		for (int tries = 0; code && tries < TRIES; tries++) /* no event marks the end of what was queued of the copy */
			if (!d->library->cuStreamSynchronize((void *)t.lane))
				break;
	}
	leave(d, &r, call, code);
	return r;
}
