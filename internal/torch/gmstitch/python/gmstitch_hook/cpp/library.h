// The functions of libgm.so, as its gm.h declares them, found in the library that this process uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

#include <dlfcn.h>

namespace gm {

struct Counter {
	int64_t current, peak, allocated, freed;
};

enum { ALL, SMALL, LARGE, KINDS };

struct Stats {
	Counter allocation[KINDS];
	Counter allocated_bytes[KINDS];
	Counter requested_bytes[KINDS];
	Counter active_bytes[KINDS];
	Counter reserved_bytes[KINDS];
	Counter segment[KINDS];
	int64_t retries, ooms, stitches, driver_calls, driver_ns;
};

enum State : int32_t { FREE, USED, PENDING };

struct Block {
	uint64_t address, segment;
	int64_t size, requested;
	uint64_t stream, id0, id1;
	int32_t state, small;
};

struct Live {
	uint64_t address;
	int64_t size;
	uint64_t stream;
};

using SegmentObserver = void(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream);

struct Library {
	void *(*try_malloc)(size_t size, int device, void *stream);
	void (*free)(void *p, ssize_t size, int device, void *stream);
	void (*record_stream)(void *p, void *stream);
	void (*init)(int devices);
	void (*reset)();
	void (*memory_fraction)(double fraction, int device);
	void *(*base_alloc)(void *p, size_t *size);
	void (*begin_pool)(int device, uint64_t id0, uint64_t id1, void *filter);
	void (*end_pool)(int device, uint64_t id0, uint64_t id1);
	void (*release_pool)(int device, uint64_t id0, uint64_t id1);
	int (*retain_pool)(int device, uint64_t id0, uint64_t id1);
	int (*pool_uses)(int device, uint64_t id0, uint64_t id1);
	void (*reset_pool)(int device, uint64_t id0, uint64_t id1);
	void (*pool_use_on_oom)(int device, uint64_t id0, uint64_t id1, int on);
	int64_t (*pool_live)(int device, uint64_t id0, uint64_t id1, Live *blocks, size_t room);
	int (*pool_restore)(int device, uint64_t id0, uint64_t id1, const Live *blocks, size_t n);
	size_t (*last_error)(char *text, size_t n);
	int (*get_stats)(int device, Stats *stats);
	void (*reset_peak_stats)(int device);
	void (*reset_accumulated_stats)(int device);
	int (*device_of)(void *p);
	int64_t (*blocks)(int device, Block *blocks, size_t room);
	int (*find)(int device, void *p, Block *block);
	size_t (*share)(void *p, char *handle, size_t room);
	void *(*open_shared)(const char *handle, size_t n, int device);
	void (*close_shared)(void *p);
	void (*observe_segments)(SegmentObserver *f);

	// open finds the functions in the library at path; it returns why that is not possible, or nothing.
	std::string open(const char *path)
	{
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!library)
			return dlerror();
		std::string missing;
		auto find_one = [&](auto &f, const char *name) {
			f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(library, name));
			if (!f && missing.empty())
				missing = std::string(path) + " has no function " + name;
		};
		find_one(try_malloc, "gm_try_malloc");
		find_one(free, "gm_free");
		find_one(record_stream, "gm_record_stream");
		find_one(init, "gm_init");
		find_one(reset, "gm_reset");
		find_one(memory_fraction, "gm_memory_fraction");
		find_one(base_alloc, "gm_base_alloc");
		find_one(begin_pool, "gm_begin_pool");
		find_one(end_pool, "gm_end_pool");
		find_one(release_pool, "gm_release_pool");
		find_one(retain_pool, "gm_retain_pool");
		find_one(pool_uses, "gm_pool_uses");
		find_one(reset_pool, "gm_reset_pool");
		find_one(pool_use_on_oom, "gm_pool_use_on_oom");
		find_one(pool_live, "gm_pool_live");
		find_one(pool_restore, "gm_pool_restore");
		find_one(last_error, "gm_last_error");
		find_one(get_stats, "gm_get_stats");
		find_one(reset_peak_stats, "gm_reset_peak_stats");
		find_one(reset_accumulated_stats, "gm_reset_accumulated_stats");
		find_one(device_of, "gm_device_of");
		find_one(blocks, "gm_blocks");
		find_one(find, "gm_find");
		find_one(share, "gm_share");
		find_one(open_shared, "gm_open_shared");
		find_one(close_shared, "gm_close_shared");
		find_one(observe_segments, "gm_observe_segments");
		return missing;
	}

	// error is the text of this thread's last failure.
	std::string error() const
	{
		std::string text(last_error(nullptr, 0), 0);
		last_error(&text[0], text.size() + 1);
		return text;
	}
};

} // namespace gm
