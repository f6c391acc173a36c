// What differs between versions of PyTorch, found out by the compiler.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ApproximateClock.h>
#include <c10/util/Exception.h>
#include <c10/util/Registry.h>

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace c10::cuda {
struct MemPoolContext; // up to 2.7: the pool that a thread has made its own
}

namespace gm {

namespace caching = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using PoolID = decltype(caching::SegmentInfo::owner_private_pool_id);
using Context = std::shared_ptr<c10::GatheredContext>;
using caching::CUDAAllocator;
using caching::TraceEntry;

constexpr PoolID NO_POOL{0, 0};

// make_entry makes an entry of the history, with as much as it holds in this version.
template <class Entry = TraceEntry>
Entry make_entry(typename Entry::Action action, DeviceIndex device, size_t address, size_t size, cudaStream_t stream, const PoolID &pool,
	Context context, const std::string &compiled, const std::string &metadata)
{
	using c10::approx_time_t;
	auto time = c10::getApproximateTime();
	using Action = typename Entry::Action;
	if constexpr (std::is_constructible_v<Entry, Action, DeviceIndex, size_t, size_t, cudaStream_t, PoolID, approx_time_t, Context,
			      std::string, std::string>)
		return Entry(action, device, address, size, stream, pool, time, std::move(context), compiled, metadata);
	else if constexpr (std::is_constructible_v<Entry, Action, DeviceIndex, size_t, size_t, cudaStream_t, PoolID, approx_time_t, Context,
				   std::string>)
		return Entry(action, device, address, size, stream, pool, time, std::move(context), compiled);
	else if constexpr (std::is_constructible_v<Entry, Action, DeviceIndex, size_t, size_t, cudaStream_t, PoolID, approx_time_t, Context>)
		return Entry(action, device, address, size, stream, pool, time, std::move(context));
	else if constexpr (std::is_constructible_v<Entry, Action, DeviceIndex, size_t, size_t, cudaStream_t, approx_time_t, Context, std::string>)
		return Entry(action, device, address, size, stream, time, std::move(context), compiled);
	else
		return Entry(action, device, address, size, stream, time, std::move(context));
}

// set_number numbers a segment, in versions that do: NCCL registers those of a pool in this order, which must be the same in all ranks.
template <class Segment, class = void> struct Numbered {
	static void set(Segment &, int) {}
};
template <class Segment> struct Numbered<Segment, std::void_t<decltype(std::declval<Segment &>().registration_counter)>> {
	static void set(Segment &segment, int number) { segment.registration_counter = number; }
};
template <class Segment> void set_number(Segment &segment, int number) { Numbered<Segment>::set(segment, number); }

// ActivePool is the pool that the calling thread has made its own, in versions that have such a thing.
template <class Pools, class = void> struct ActivePool {
	static PoolID id() { return NO_POOL; }
	static CUDAAllocator *allocator() { return nullptr; }
};
template <class Pools> struct ActivePool<Pools, std::void_t<decltype(Pools::getActiveMemPool())>> {
	static PoolID id()
	{
		auto *pool = Pools::getActiveMemPool();
		return pool ? pool->id() : NO_POOL;
	}
	static CUDAAllocator *allocator()
	{
		auto *pool = Pools::getActiveMemPool();
		return pool ? pool->allocator() : nullptr;
	}
};
using Active = ActivePool<c10::cuda::MemPoolContext>;

// Sized is an allocator's base that answers getExpandableSegmentSizes, which newer versions ask: there are none.
template <class Base, class = void> struct Sized : Base {};
template <class Base>
struct Sized<Base, std::void_t<decltype(std::declval<Base &>().getExpandableSegmentSizes(0))>> : Base {
	decltype(std::declval<Base &>().getExpandableSegmentSizes(0)) getExpandableSegmentSizes(DeviceIndex) override { return {}; }
};

// On has the calling thread use a device while it lives.
class On {
public:
	explicit On(DeviceIndex device)
	{
		C10_CUDA_CHECK(c10::cuda::GetDevice(&before_));
		if (before_ != device)
			C10_CUDA_CHECK(c10::cuda::SetDevice(device));
	}
	~On() { (void)c10::cuda::SetDevice(before_); }
	On(const On &) = delete;
	On &operator=(const On &) = delete;

private:
	DeviceIndex before_ = 0;
};

// Relaxed lets the calling thread take memory while a CUDA graph is captured.
class Relaxed {
public:
	Relaxed() { C10_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_)); }
	~Relaxed() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
	Relaxed(const Relaxed &) = delete;
	Relaxed &operator=(const Relaxed &) = delete;

private:
	cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; // then the one before
};

inline DeviceIndex current_device()
{
	DeviceIndex device = 0;
	C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
	return device;
}

} // namespace gm
