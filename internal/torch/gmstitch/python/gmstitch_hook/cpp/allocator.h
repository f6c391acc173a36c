// PyTorch's CUDA allocator, served by libgm.so.
//
// Functions say nothing of what they override: each version of PyTorch declares other ones, and a function that it does not declare is
// one that nobody calls. A version that declares more than there is here makes the class abstract, which the compiler reports.
#pragma once

#include "requests.h"
#include "segments.h"
#include "sharing.h"

#include <cstdlib>
#include <unordered_set>

namespace gm {

class Allocator : public Sized<CUDAAllocator> {
public:
	Allocator(const Library &library, CUDAAllocator &stock) : stock_(stock), late_(stock.initialized()), requests_(library), sharing_(requests_.library, stock)
	{
		self = this;
		if (getenv("PYTORCH_NO_CUDA_MEMORY_CACHING"))
			enabled_ = false;
	}

	bool ok() const { return requests_.ok(); }
	static bool installed() { return self; }

	// Requests.

	c10::DataPtr allocate(size_t size) { return allocate_on(size); }
	c10::DataPtr allocate(size_t size) const { return const_cast<Allocator *>(this)->allocate_on(size); }

	void *raw_alloc(size_t size)
	{
		DeviceIndex device = current_device();
		return request(device, size, c10::cuda::getCurrentCUDAStream(device).stream());
	}

	void *raw_alloc_with_stream(size_t size, cudaStream_t stream) { return request(current_device(), size, stream); }

	void raw_delete(void *p)
	{
		if (!p)
			return;
		trace_free(p);
		if (C10_LIKELY(requests_.free(p)))
			return;
		if (late_)
			return stock_.raw_delete(p);
		TORCH_CHECK(!enabled_, "invalid device pointer: ", p);
		C10_CUDA_CHECK(cudaFree(p));
	}

	c10::DeleterFnPtr raw_deleter() const { return enabled_ ? &release : &release_plain; }

	void copy_data(void *to, const void *from, size_t count) const { C10_CUDA_CHECK(cudaMemcpy(to, from, count, cudaMemcpyDeviceToDevice)); }

	void recordStream(const c10::DataPtr &data, c10::cuda::CUDAStream stream)
	{
		if (data.get() && data.get_deleter() == &release)
			requests_.record_stream(data.get(), stream.stream());
		else if (late_)
			stock_.recordStream(data, stream);
	}
	using CUDAAllocator::recordStream;

	// Devices.

	void init(int devices)
	{
		if (devices <= devices_)
			return;
		requests_.history.resize(static_cast<size_t>(devices));
		library().init(devices);
		devices_ = devices;
	}

	bool initialized() { return devices_ > 0; }

	void enable(bool on) { enabled_ = on; }
	bool isEnabled() const { return enabled_; }

	double getMemoryFraction(DeviceIndex device)
	{
		check(device);
		return requests_.fractions[static_cast<size_t>(device)];
	}

	void setMemoryFraction(double fraction, DeviceIndex device)
	{
		check(device);
		TORCH_CHECK(0 <= fraction && fraction <= 1, "invalid fraction:", fraction, ". Please set within (0, 1).");
		library().memory_fraction(fraction, device);
		requests_.fractions[static_cast<size_t>(device)] = fraction;
	}

	void emptyCache() { emptyCache(Active::id()); }
	void emptyCache(PoolID pool)
	{
		Context context = requests_.history.gather(RecordContext::ALL);
		Requests::Requester now(context);
		for (int device = 0; pool != NO_POOL && device < devices_; device++)
			library().reset_pool(device, pool.first, pool.second);
		if (pool == NO_POOL)
			library().reset();
		if (requests_.pools.any())
			requests_.pools.empty(pool);
		if (late_)
			stock_.emptyCache();
		now.rethrow();
	}

	// cacheInfo raises *largest to the size of the largest request that cached memory can meet: pieces are mapped together. From 0 it
	// begins with what the device has free.
	void cacheInfo(DeviceIndex device, size_t *largest)
	{
		check(device);
		size_t idle = 0;
		Stats s;
		if (library().get_stats(device, &s) == 0)
			idle = static_cast<size_t>(std::max<int64_t>(0, s.reserved_bytes[ALL].current - s.active_bytes[ALL].current));
		*largest = std::max(*largest, idle + (*largest == 0 ? Requests::free_memory(device).first : 0));
	}

	void *getBaseAllocation(void *p, size_t *size)
	{
		size_t room = 0;
		void *base = requests_.base(p, &room);
		if (!base && late_)
			return stock_.getBaseAllocation(p, size);
		TORCH_CHECK(base, "invalid device pointer: ", p);
		if (size)
			*size = room;
		return base;
	}

	void enablePeerAccess(DeviceIndex device, DeviceIndex other)
	{
		On on(device);
		cudaError_t err = cudaDeviceEnablePeerAccess(other, 0);
		if (err == cudaErrorPeerAccessAlreadyEnabled)
			(void)cudaGetLastError();
		else
			C10_CUDA_CHECK(err);
	}

	// memcpyAsync copies between devices in the way that also works for memory that is mapped.
	cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t count, cudaStream_t stream, bool peers)
	{
		if (peers || to_device == from_device)
			return cudaMemcpyAsync(to, from, count, cudaMemcpyDeviceToDevice, stream);
		return cudaMemcpyPeerAsync(to, to_device, from, from_device, count, stream);
	}

	// The name is that of PyTorch's allocator, by which programs know what to expect of it.
	std::string name() { return stock_.name(); }

	// Statistics.

	DeviceStats getDeviceStats(DeviceIndex device)
	{
		check(device);
		DeviceStats s = requests_.stats(device);
		if (late_)
			add_other(s, stock_.getDeviceStats(device));
		return s;
	}

	void resetAccumulatedStats(DeviceIndex device)
	{
		check(device);
		library().reset_accumulated_stats(device);
		if (late_)
			stock_.resetAccumulatedStats(device);
	}

	void resetPeakStats(DeviceIndex device)
	{
		check(device);
		library().reset_peak_stats(device);
		if (late_)
			stock_.resetPeakStats(device);
	}

	caching::SnapshotInfo snapshot() { return snapshot(Active::id(), true); }
	caching::SnapshotInfo snapshot(PoolID pool) { return snapshot(pool, true); }
	caching::SnapshotInfo snapshot(PoolID pool, bool traces)
	{
		caching::SnapshotInfo result;
		try {
			auto own = stock_.snapshot();
			result.config_metadata = own.config_metadata;
			if (pool == NO_POOL)
				result.segments = own.segments; // unless this came late there are none
		} catch (const c10::Error &) {
			result.config_metadata = {}; // cudaMallocAsync has none
		}
		requests_.history.fill(result, traces);
		size_t first = result.segments.size();
		std::map<size_t, int> numbers; // of segments of pools with allocators of their own
		for (int device = 0; device < devices_; device++) {
			auto d = static_cast<DeviceIndex>(device);
			auto blocks = blocks_of(library(), d);
			for (auto &borrowed : requests_.pools.of(d)) {
				borrowed->blocks(blocks);
				borrowed->number(numbers);
			}
			std::sort(blocks.begin(), blocks.end(), [](const Block &a, const Block &b) { return a.address < b.address; });
			size_t active = add_segments(result.segments, blocks, d, pool, requests_.history);
			requests_.history.note_one(TraceEntry::SNAPSHOT, d, 0, active, nullptr, NO_POOL, nullptr);
		}
		for (auto s = result.segments.begin() + static_cast<std::ptrdiff_t>(first); s != result.segments.end(); ++s)
			set_number(*s, numbers.count(s->address) ? numbers[s->address] : 0);
		return result;
	}

	// History.

	bool isHistoryEnabled() { return requests_.history.recording(); }

	void recordHistory(bool on, caching::CreateContextFn recorder, size_t entries, RecordContext when)
	{
		recordHistory(on, recorder, entries, when, true);
	}
	void recordHistory(bool on, caching::CreateContextFn recorder, size_t entries, RecordContext when, bool clear)
	{
		recordHistory(on, recorder, entries, when, clear, {});
	}
	void recordHistory(bool on, caching::CreateContextFn recorder, size_t entries, RecordContext when, bool clear,
		const std::vector<std::string> &skipped)
	{
		requests_.history.record(on, recorder, entries, when, clear, skipped);
		requests_.observe();
	}

	void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &pairs) { requests_.history.annotate(pairs); }
	void pushCompileContext(std::string &name) { History::compiled().push(name); }
	void popCompileContext()
	{
		if (!History::compiled().empty())
			History::compiled().pop();
	}
	void setUserMetadata(const std::string &text) { requests_.history.set_metadata(text); }
	std::string getUserMetadata() { return requests_.history.metadata(); }

	void attachOutOfMemoryObserver(caching::OutOfMemoryObserver observer) { requests_.attach(std::move(observer)); }

	void attachAllocatorTraceTracker(caching::AllocatorTraceTracker tracker)
	{
		requests_.history.track(std::move(tracker));
		requests_.observe();
	}

	// Pools.

	void beginAllocateToPool(DeviceIndex device, PoolID pool, Filter filter)
	{
		check(device);
		auto *own = Active::id() == pool ? Active::allocator() : nullptr;
		if (own && requests_.pools.users(device, pool) < 0)
			hand_over(device, pool, unowned(own));
		if (requests_.pools.use(device, pool)) {
			requests_.pools.set_filter(device, pool, std::move(filter));
			return;
		}
		library().begin_pool(device, pool.first, pool.second, &filter); // throws if it cannot
		requests_.pools.begin(device, pool);
	}

	void endAllocateToPool(DeviceIndex device, PoolID pool)
	{
		check(device);
		if (requests_.pools.set_filter(device, pool, nullptr))
			return;
		library().end_pool(device, pool.first, pool.second);
		requests_.pools.end(device, pool);
	}

	void releasePool(DeviceIndex device, PoolID pool)
	{
		check(device);
		if (!requests_.pools.release(device, pool))
			library().release_pool(device, pool.first, pool.second);
	}

	int getPoolUseCount(DeviceIndex device, PoolID pool)
	{
		check(device);
		int borrowed = requests_.pools.users(device, pool);
		return borrowed >= 0 ? borrowed : std::max(0, library().pool_uses(device, pool.first, pool.second));
	}

	void ensureExistsAndIncrefPool(DeviceIndex device, PoolID pool) { createOrIncrefPool(device, pool, std::shared_ptr<CUDAAllocator>()); }
	void createOrIncrefPool(DeviceIndex device, PoolID pool, CUDAAllocator *source) { createOrIncrefPool(device, pool, unowned(source)); }
	void createOrIncrefPool(DeviceIndex device, PoolID pool, std::shared_ptr<CUDAAllocator> source)
	{
		check(device);
		if (source && requests_.pools.users(device, pool) < 0)
			requests_.pools.make(device, pool, std::move(source));
		if (!requests_.pools.use(device, pool))
			TORCH_CHECK(library().retain_pool(device, pool.first, pool.second) == 0, library().error());
	}

	void setUseOnOOM(DeviceIndex device, PoolID pool) { setUseOnOOM(device, pool, true); }
	void setUseOnOOM(DeviceIndex device, PoolID pool, bool on)
	{
		check(device);
		if (!requests_.pools.set_last_resort(device, pool, on))
			library().pool_use_on_oom(device, pool.first, pool.second, on);
	}

	void setNoSplit(DeviceIndex device, PoolID pool)
	{
		check(device);
		requests_.pools.set_whole(device, pool);
	}

	bool checkPoolLiveAllocations(DeviceIndex device, PoolID pool, const std::unordered_set<void *> &expected)
	{
		auto live = live_in(device, pool);
		for (auto &b : live)
			if (!expected.count(reinterpret_cast<void *>(b.address)))
				return false;
		return live.size() == expected.size();
	}

	std::shared_ptr<caching::AllocatorState> getCheckpointState(DeviceIndex device, PoolID pool)
	{
		auto state = std::make_shared<Checkpoint>();
		state->pool = pool;
		state->live = live_in(device, pool);
		return state;
	}

	// setCheckpointPoolState makes the requests of a checkpoint those that live. All that lived before count as freed, and all that live
	// now as allocated.
	caching::CheckpointDelta setCheckpointPoolState(DeviceIndex device, std::shared_ptr<caching::AllocatorState> state)
	{
		auto *checkpoint = dynamic_cast<Checkpoint *>(state.get());
		TORCH_CHECK(checkpoint, "Expected a checkpoint of this allocator");
		PoolID pool = checkpoint->pool;
		auto before = live_in(device, pool);
		auto context = requests_.history.gather(RecordContext::STATE);
		TORCH_CHECK(library().pool_restore(device, pool.first, pool.second, checkpoint->live.data(), checkpoint->live.size()) == 0,
			"The memory of a checkpoint cannot be restored: ", library().error());
		caching::CheckpointDelta delta;
		for (auto &b : before) {
			auto *p = reinterpret_cast<void *>(b.address);
			delta.ptrs_freed.push_back(p);
			if (requests_.history.concerned())
				requests_.history.freed(device, p, known(b, pool, nullptr), nullptr);
		}
		for (auto &b : checkpoint->live) {
			auto *p = reinterpret_cast<void *>(b.address);
			requests_.restored(device, p, known(b, pool, context));
			delta.dataptrs_allocd.emplace_back(p, p, &release, c10::Device(c10::DeviceType::CUDA, device));
		}
		return delta;
	}

	// Other processes.

	caching::ShareableHandle shareIpcHandle(void *p) { return late_ && !requests_.owns(p) ? stock_.shareIpcHandle(p) : sharing_.share(p); }
	std::shared_ptr<void> getIpcDevPtr(std::string handle) { return sharing_.open(handle, devices_); }

private:
	struct Checkpoint : caching::AllocatorState {
		PoolID pool;
		std::vector<Live> live;
	};

	static Allocator *self; // there is one, which lives as long as the process

	CUDAAllocator &stock_; // PyTorch's own
	const bool late_;      // that may have handed out memory before
	Requests requests_;
	Sharing sharing_;
	int devices_ = 0;
	bool enabled_ = true; // or requests go to the driver

	static void release(void *p) { self->raw_delete(p); }
	static void release_plain(void *p)
	{
		trace_free(p);
		C10_CUDA_CHECK(cudaFree(p));
	}

	static std::shared_ptr<CUDAAllocator> unowned(CUDAAllocator *a)
	{
		return a ? std::shared_ptr<CUDAAllocator>(a, [](CUDAAllocator *) {}) : nullptr;
	}

	static History::Request known(const Live &b, PoolID pool, Context context)
	{
		return {static_cast<size_t>(b.size), reinterpret_cast<cudaStream_t>(b.stream), pool, std::move(context)};
	}

	void check(DeviceIndex device) const
	{
		TORCH_CHECK(0 <= device && device < devices_, "Invalid device argument ", static_cast<int>(device), ": did you call init?");
	}

	static void trace_free(void *p)
	{
		if (const auto *interpreter = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(interpreter != nullptr))
			(*interpreter)->trace_gpu_memory_deallocation(c10::DeviceType::CUDA, reinterpret_cast<uintptr_t>(p));
	}

	static void trace_malloc(void *p)
	{
		if (const auto *interpreter = c10::impl::GPUTrace::get_trace(); C10_UNLIKELY(interpreter != nullptr))
			(*interpreter)->trace_gpu_memory_allocation(c10::DeviceType::CUDA, reinterpret_cast<uintptr_t>(p));
	}

	c10::DataPtr allocate_on(size_t size)
	{
		DeviceIndex device = current_device();
		void *p = request(device, size, c10::cuda::getCurrentCUDAStream(device).stream());
		return {p, p, raw_deleter(), c10::Device(c10::DeviceType::CUDA, device)};
	}

	void *request(DeviceIndex device, size_t size, cudaStream_t stream)
	{
		if (!size)
			return nullptr;
		TORCH_CHECK_WITH(OutOfMemoryError, size < size_t{1} << 60, "CUDA out of memory. Tried to allocate more than 1EB memory.");
		void *p = nullptr;
		if (C10_LIKELY(enabled_)) {
			TORCH_CHECK(device < devices_, "Allocator not initialized for device ", static_cast<int>(device), ": did you call init?");
			p = requests_.malloc(device, size, stream);
		} else {
			C10_CUDA_CHECK(cudaMalloc(&p, size));
		}
		trace_malloc(p);
		return p;
	}

	// hand_over makes a pool one with an allocator of its own, with the users that libgm.so has counted.
	void hand_over(DeviceIndex device, PoolID pool, std::shared_ptr<CUDAAllocator> source)
	{
		int users = library().pool_uses(device, pool.first, pool.second);
		requests_.pools.make(device, pool, std::move(source));
		for (; users > 0; users--) {
			requests_.pools.use(device, pool);
			library().release_pool(device, pool.first, pool.second);
		}
	}

	std::vector<Live> live_in(DeviceIndex device, PoolID pool)
	{
		check(device);
		std::vector<Live> live(64);
		for (;;) {
			int64_t n = library().pool_live(device, pool.first, pool.second, live.data(), live.size());
			TORCH_CHECK(n >= 0, "Could not find pool of id");
			bool all = static_cast<size_t>(n) <= live.size();
			live.resize(static_cast<size_t>(n));
			if (all)
				return live;
		}
	}

	const Library &library() const { return requests_.library; }
};

inline Allocator *Allocator::self;

} // namespace gm
