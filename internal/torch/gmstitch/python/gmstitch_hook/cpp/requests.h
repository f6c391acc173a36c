// A request for memory from its begin to its end: libgm.so serves it, unless its pool has an allocator of its own.
#pragma once

#include "owners.h"
#include "pools.h"
#include "statistics.h"

#include <array>

#include <pthread.h>

namespace gm {

// One object lives as long as the process: what frees a tensor is told nothing but an address.
class Requests {
public:
	explicit Requests(const Library &library) : library(library), pools(history)
	{
		self = this;
		fractions.fill(1);
		pthread_atfork(nullptr, nullptr, [] { self->forked_ = true; });
	}

	const Library library;
	History history;
	BorrowedPools pools;
	std::array<double, 64> fractions; // of the devices' memory that may be used

	bool ok() const { return owners_.ok(); }

	// malloc returns memory, or throws.
	void *malloc(DeviceIndex device, size_t size, cudaStream_t stream)
	{
		void *p;
		if (C10_UNLIKELY((history.watching() || pools.any()) && !forked_)) {
			p = noted_malloc(device, size, stream);
		} else {
			p = library.try_malloc(size, device, stream);
			if (C10_LIKELY(p != nullptr))
				owners_.set(p, owner_of(device));
			else
				p = last_resort(device, size, stream, nullptr, nullptr);
		}
		if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
			profile(p, device, +1);
		return p;
	}

	// free ends a request. It returns false if the address is of none.
	bool free(void *p)
	{
		if (forked_)
			return true;
		uint8_t owner = owner_at(p);
		if (C10_UNLIKELY(owner == Owners::NONE))
			return false;
		DeviceIndex device = device_of(owner);
		if (C10_UNLIKELY(history.concerned()))
			note_free(p, device);
		if (C10_UNLIKELY(c10::memoryProfilingEnabled()))
			profile(p, device, -1);
		if (C10_LIKELY(!(owner & Owners::BORROWED))) {
			library.free(p, 0, device, nullptr);
			return true;
		}
		Block b;
		auto pool = pools.owner(device, p, &b);
		if (pool)
			pool->free(p);
		return pool != nullptr;
	}

	// owns says whether memory that is live was requested here.
	bool owns(void *p) { return owner_at(p) != Owners::NONE; }

	void record_stream(void *p, cudaStream_t stream)
	{
		if (forked_)
			return;
		Block b;
		if (auto pool = borrowed(p, &b))
			pool->record(p, stream);
		else
			library.record_stream(p, stream);
	}

	// base returns the start of the memory that p lies in, and its size.
	void *base(void *p, size_t *size)
	{
		Block b;
		auto pool = borrowed(p, &b);
		return pool ? pool->base(p, size) : library.base_alloc(p, size);
	}

	DeviceStats stats(DeviceIndex device)
	{
		Stats account{};
		if (library.get_stats(device, &account) != 0)
			account = {};
		DeviceStats s = statistics_of(account);
		for (auto &pool : pools.of(device))
			add_other(s, pool->stats());
		return s;
	}

	// restored notes what a checkpoint brought back.
	void restored(DeviceIndex device, void *p, const History::Request &request)
	{
		owners_.set(p, owner_of(device));
		if (history.watching())
			history.allocated(device, p, request);
	}

	void attach(caching::OutOfMemoryObserver observer)
	{
		std::lock_guard<std::mutex> lock(observing_);
		observers_.push_back(std::move(observer));
	}

	// observe has libgm.so tell of memory that comes and goes, as long as anybody listens.
	void observe()
	{
		library.observe_segments(history.watching() ? &segment_changed : nullptr);
	}

	// free_memory is what the driver has free of a device, and the whole.
	static std::pair<size_t, size_t> free_memory(DeviceIndex device)
	{
		On on(device);
		size_t free = 0, total = 0;
		C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
		return {free, total};
	}

	// While a Requester exists, memory that comes and goes does so for its stack, which was gathered before any lock was taken. What a tracker
	// throws then cannot pass through libgm.so, and is kept here.
	class Requester {
	public:
		explicit Requester(const Context &stack) : stack(stack), outer_(requesting) { requesting = this; }
		~Requester() { requesting = outer_; }
		Requester(const Requester &) = delete;

		void rethrow() const
		{
			if (failure)
				std::rethrow_exception(failure);
		}

		const Context &stack;
		std::exception_ptr failure;

	private:
		Requester *outer_;
	};

private:
	static Requests *self;
	static thread_local Requester *requesting; // this thread's

	Owners owners_;
	bool forked_ = false;
	std::mutex observing_;
	std::vector<caching::OutOfMemoryObserver> observers_;

	static uint8_t owner_of(DeviceIndex device) { return static_cast<uint8_t>(device + 1); }
	static DeviceIndex device_of(uint8_t owner) { return static_cast<DeviceIndex>((owner & ~Owners::BORROWED) - 1); }

	uint8_t owner_at(void *p)
	{
		uint8_t owner = owners_.of(p);
		return C10_LIKELY(owner != Owners::MIXED) ? owner : search(p);
	}

	// search asks everybody whose memory p is.
	uint8_t search(void *p)
	{
		int device = library.device_of(p);
		if (device >= 0)
			return owner_of(static_cast<DeviceIndex>(device));
		Block b;
		for (DeviceIndex d = 0; d < static_cast<DeviceIndex>(fractions.size()); d++)
			if (pools.owner(d, p, &b))
				return owner_of(d) | Owners::BORROWED;
		return Owners::NONE;
	}

	void *noted_malloc(DeviceIndex device, size_t size, cudaStream_t stream)
	{
		Context context = history.gather(RecordContext::STATE);
		auto pool = pools.any() ? pools.for_request(device, stream) : nullptr;
		void *p = serve(device, size, stream, context, pool.get());
		if (!p)
			p = last_resort(device, size, stream, context, pool.get());
		if (!history.watching())
			return p;
		Block b{};
		PoolID id = find(device, p, &b) ? PoolID{b.id0, b.id1} : NO_POOL;
		history.allocated(device, p, {size, stream, id, std::move(context)});
		return p;
	}

	// serve meets a request from a pool with other memory, or for nullptr from libgm.so. It returns nullptr where that has none.
	void *serve(DeviceIndex device, size_t size, cudaStream_t stream, const Context &context, Borrowed *pool)
	{
		Requester now(context);
		void *p = pool ? pool->malloc(size, stream, context) : library.try_malloc(size, device, stream);
		if (p)
			owners_.set(p, pool ? owner_of(device) | Owners::BORROWED : owner_of(device));
		if (now.failure && p)
			library.free(p, 0, device, stream);
		now.rethrow();
		return p;
	}

	std::shared_ptr<Borrowed> borrowed(void *p, Block *b)
	{
		uint8_t owner = owner_at(p);
		return owner & Owners::BORROWED ? pools.owner(device_of(owner), p, b) : nullptr;
	}

	// find describes a live request.
	bool find(DeviceIndex device, void *p, Block *b)
	{
		if (owner_at(p) & Owners::BORROWED)
			return pools.owner(device, p, b) != nullptr;
		return library.find(device, p, b) == 0;
	}

	void note_free(void *p, DeviceIndex device)
	{
		if (!history.watching())
			return history.forget(p);
		Context context = history.gather(RecordContext::ALL);
		Block b{};
		if (!find(device, p, &b))
			return;
		auto size = static_cast<size_t>(b.requested);
		history.freed(device, p, {size, reinterpret_cast<cudaStream_t>(b.stream), PoolID{b.id0, b.id1}, nullptr}, std::move(context));
	}

	// profile tells torch.profiler of a request (+1), or of one that is about to end (-1).
	void profile(void *p, DeviceIndex device, int sign)
	{
		Block b{};
		if (!find(device, p, &b))
			return;
		DeviceStats s = stats(device);
		auto allocated = s.allocated_bytes[ALL].current - (sign < 0 ? b.size : 0);
		c10::reportMemoryUsageToProfiler(p, sign * b.size, static_cast<size_t>(allocated), static_cast<size_t>(s.reserved_bytes[ALL].current),
			c10::Device(c10::DeviceType::CUDA, device));
	}

	// last_resort meets a request that could not be met, or throws.
	void *last_resort(DeviceIndex device, size_t size, cudaStream_t stream, const Context &context, Borrowed *pool)
	{
		std::string why = pool && !forked_ ? "CUDA out of memory. The allocator of the memory pool has none." : library.error();
		TORCH_CHECK_WITH(OutOfMemoryError, !forked_, why);
		if (void *p = ask_others(device, size, stream, context, pool))
			return p;
		auto [free, total] = free_memory(device);
		history.note_one(TraceEntry::OOM, device, free, size, stream, NO_POOL, context);
		DeviceStats s = stats(device);
		c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(size), static_cast<size_t>(s.allocated_bytes[ALL].current),
			static_cast<size_t>(s.reserved_bytes[ALL].current), c10::Device(c10::DeviceType::CUDA, device));
		std::vector<caching::OutOfMemoryObserver> observers;
		{
			std::lock_guard<std::mutex> lock(observing_);
			observers = observers_;
		}
		auto allowed = static_cast<size_t>(fractions[static_cast<size_t>(device)] * static_cast<double>(total));
		for (auto &observer : observers)
			observer(device, size, allowed, free);
		TORCH_CHECK_WITH(OutOfMemoryError, false, why);
		return nullptr;
	}

	// ask_others has the program and unused pools with other memory give that back, and looks into those that are meant for this case.
	void *ask_others(DeviceIndex device, size_t size, cudaStream_t stream, const Context &context, Borrowed *pool)
	{
		bool freed = pools.any() && pools.empty(NO_POOL);
		for (auto &name : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
			freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
		if (void *p = freed ? serve(device, size, stream, context, pool) : nullptr)
			return p;
		void *p = pools.any() ? pools.last_resort(device, size, stream) : nullptr;
		if (p)
			owners_.set(p, owner_of(device) | Owners::BORROWED);
		return p;
	}

	// segment_changed is called by libgm.so with the lock of the device held.
	static void segment_changed(int device, int mapped, uint64_t address, uint64_t size, uint64_t stream)
	{
		auto action = mapped ? TraceEntry::SEGMENT_MAP : TraceEntry::SEGMENT_UNMAP;
		try {
			self->history.note_one(action, static_cast<DeviceIndex>(device), address, size, reinterpret_cast<cudaStream_t>(stream), NO_POOL,
				requesting ? requesting->stack : nullptr);
		} catch (...) {
			if (requesting && !requesting->failure)
				requesting->failure = std::current_exception();
		}
	}
};

inline Requests *Requests::self;
inline thread_local Requests::Requester *Requests::requesting;

} // namespace gm
