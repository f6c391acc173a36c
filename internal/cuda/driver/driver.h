/* The functions of libcuda.so.1 that this package calls. Each is a single cgo call. */
#ifndef GM_CUDA_DRIVER_H
#define GM_CUDA_DRIVER_H

#include <stdint.h>

struct gm_result {
	int code;          /* CUresult */
	void *before;      /* the thread's current context before the call, to restore */
	int capture_mode;  /* the thread's capture mode before the call, to restore if it was relaxed */
	int relaxed;
	const char *call;  /* the call that failed, NULL if none did */
	uint64_t value[2]; /* what the call returns */
};

struct gm_library;

struct gm_device {
	const struct gm_library *library;
	uintptr_t context; /* the primary one */
	int device;
};

/* CUmemAccessDesc */
struct gm_access {
	int location_type, location_id, flags;
};
enum { GM_LOCATION_DEVICE = 1, GM_ACCESS_READ = 1, GM_ACCESS_READWRITE = 3 };

/* CUipcMemHandle */
struct gm_ipc {
	unsigned char bytes[64];
};

/* cuda.Transfer, and the events that it uses; begin and end are 0 unless it is timed. */
struct gm_transfer {
	uintptr_t lane, after, wait;
	uintptr_t order; /* recorded in after; free for another transfer once this one is queued */
	uintptr_t begin, end, done;
	uint64_t device, size, first, piece;
	uint64_t pause; /* a copy to the host waits before each part until the word at this address is 0; 0 for none */
	uintptr_t host;
	int in;
};

enum { GM_PAUSE_PART = 32 << 20 }; /* the least bytes between two points at which a copy pauses */

/* Uses of physical memory beyond this process. Each includes those before it. */
enum gm_share { GM_SHARE_NONE, GM_SHARE_FILE, GM_SHARE_FILE_RDMA };

enum { GM_ATTRIBUTE_HOST_POINTER = 91, GM_ATTRIBUTE_FILE_DESCRIPTOR = 103, GM_ATTRIBUTE_RDMA = 110 }; /* CUdevice_attribute */

/* gm_library_load returns NULL if there is no driver, or if it is too old, and writes the reason to why. */
struct gm_library *gm_library_load(char *why, int size);
const char *gm_error_name(const struct gm_library *l, int code); /* NULL for a code that the driver does not know */

/* These need no context. */
struct gm_result gm_driver_init(const struct gm_library *l);
struct gm_result gm_driver_version(const struct gm_library *l);
struct gm_result gm_device_count(const struct gm_library *l);
struct gm_result gm_device_get(const struct gm_library *l, int ordinal);
struct gm_result gm_device_name(const struct gm_library *l, int device, char *name, int size);
struct gm_result gm_device_pci_bus_id(const struct gm_library *l, int device, char *text, int size);
struct gm_result gm_device_attribute(const struct gm_library *l, int device, int attribute);
struct gm_result gm_device_can_access(const struct gm_library *l, int device, int peer);
struct gm_result gm_context_retain(const struct gm_library *l, int device);
struct gm_result gm_context_release(const struct gm_library *l, int device);

/* These run in the device's context, and restore the caller's. */
struct gm_result gm_synchronize(const struct gm_device *d);
struct gm_result gm_mem_alloc(const struct gm_device *d, uint64_t size);
struct gm_result gm_mem_free(const struct gm_device *d, uint64_t p);
struct gm_result gm_mem_info(const struct gm_device *d);
struct gm_result gm_address_reserve(const struct gm_device *d, uint64_t size);
struct gm_result gm_address_free(const struct gm_device *d, uint64_t p, uint64_t size);
/* gm_create makes memory of a GPU, this device or another. */
struct gm_result gm_create(const struct gm_device *d, int of, uint64_t size, enum gm_share share);
struct gm_result gm_release(const struct gm_device *d, uint64_t handle);
struct gm_result gm_map(const struct gm_device *d, uint64_t p, uint64_t size, uint64_t handle);
struct gm_result gm_unmap(const struct gm_device *d, uint64_t p, uint64_t size);
struct gm_result gm_set_access(const struct gm_device *d, uint64_t p, uint64_t size, const struct gm_access *access, uint64_t n);
/* gm_export's value is a file descriptor of the caller's. */
struct gm_result gm_export(const struct gm_device *d, uint64_t handle);
struct gm_result gm_import(const struct gm_device *d, int fd);
struct gm_result gm_ipc_get(const struct gm_device *d, uint64_t p, struct gm_ipc *handle);
struct gm_result gm_ipc_open(const struct gm_device *d, const struct gm_ipc *handle);
struct gm_result gm_ipc_close(const struct gm_device *d, uint64_t p);
/* gm_event_record creates an event if it is given none. Its value is the event, even if recording failed. */
struct gm_result gm_event_record(const struct gm_device *d, uintptr_t event, uintptr_t stream);
struct gm_result gm_event_query(const struct gm_device *d, uintptr_t event);
struct gm_result gm_event_synchronize(const struct gm_device *d, uintptr_t event);
struct gm_result gm_event_create(const struct gm_device *d, int timed);
/* gm_event_elapsed's value is in nanoseconds. */
struct gm_result gm_event_elapsed(const struct gm_device *d, uintptr_t begin, uintptr_t end);
struct gm_result gm_event_destroy(const struct gm_device *d, uintptr_t event);
struct gm_result gm_stream_create(const struct gm_device *d);
struct gm_result gm_stream_destroy(const struct gm_device *d, uintptr_t stream);
struct gm_result gm_stream_synchronize(const struct gm_device *d, uintptr_t stream);
struct gm_result gm_stream_wait_event(const struct gm_device *d, uintptr_t stream, uintptr_t event);
/* gm_pause_word's value is the address of a word of pinned memory that is 0, or 0 where streams cannot wait for one. */
struct gm_result gm_pause_word(const struct gm_device *d);
struct gm_result gm_pause_word_free(const struct gm_device *d, uint64_t word);
/* gm_stream_capturing's value is the CUstreamCaptureStatus, 0 for none. */
struct gm_result gm_stream_capturing(const struct gm_device *d, uintptr_t stream);
struct gm_result gm_memset32(const struct gm_device *d, uint64_t p, uint32_t value, uint64_t words, uintptr_t stream);
struct gm_result gm_copy_to_host(const struct gm_device *d, void *dst, uint64_t src, uint64_t size);
struct gm_result gm_copy_to_device(const struct gm_device *d, uint64_t dst, const void *src, uint64_t size);
struct gm_result gm_copy_to_host_async(const struct gm_device *d, void *dst, uint64_t src, uint64_t size, uintptr_t stream);
struct gm_result gm_copy_to_device_async(const struct gm_device *d, uint64_t dst, const void *src, uint64_t size, uintptr_t stream);
struct gm_result gm_copy_within_device(const struct gm_device *d, uint64_t dst, uint64_t src, uint64_t size, uintptr_t stream);
/* gm_copy_rows copies rows that lie pitch bytes apart to one behind the other. */
struct gm_result gm_copy_rows(const struct gm_device *d, uint64_t dst, uint64_t src, uint64_t pitch, uint64_t width, uint64_t count, uintptr_t stream);
struct gm_result gm_host_register(const struct gm_device *d, void *p, uint64_t size);
struct gm_result gm_host_unregister(const struct gm_device *d, void *p);
/* gm_stream_follow makes a stream wait for an event. It fails if the stream is being captured. */
struct gm_result gm_stream_follow(const struct gm_device *d, uintptr_t stream, uintptr_t event);
/* gm_transfer queues a copy (cuda.Transfer). After a failure nothing of it runs. */
struct gm_result gm_transfer(const struct gm_device *d, struct gm_transfer t);

#endif
