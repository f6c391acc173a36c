// What PyTorch was told by an allocator, and PyTorch's own one.
#pragma once

#include "stand_in.h"

struct Told {
	bool profiling = false, tracing = false;
	std::vector<std::pair<int64_t, size_t>> profiled;
	int ooms = 0, traced = 0, peer_copies = 0;
	c10::cuda::CUDACachingAllocator::CUDAAllocator *pool_allocator = nullptr; // of the pool that this thread has made its own
};
extern Told told;

namespace c10::cuda::CUDACachingAllocator {

// Plain passes all requests to the driver, and counts them.
class Plain : public CUDAAllocator {
public:
	int live = 0, devices = 0;
	std::vector<std::string> opened;

	DataPtr allocate(size_t) override { throw Error("allocate"); }
	void copy_data(void *, const void *, size_t) const override {}
	void *raw_alloc(size_t n) override { return raw_alloc_with_stream(n, nullptr); }
	void *raw_alloc_with_stream(size_t n, cudaStream_t) override
	{
		void *p = nullptr;
		if (cudaMalloc(&p, n) != cudaSuccess)
			return nullptr;
		live++;
		return p;
	}
	void raw_delete(void *p) override
	{
		live--;
		cudaFree(p);
	}
	void init(int n) override { devices = n; }
	bool initialized() override { return devices > 0; }
	double getMemoryFraction(DeviceIndex) override { return 1; }
	void setMemoryFraction(double, DeviceIndex) override {}
	void enable(bool) override {}
	bool isEnabled() const override { return true; }
	void cacheInfo(DeviceIndex, size_t *) override {}
	void *getBaseAllocation(void *p, size_t *) override { return p; }
	void recordStream(const DataPtr &, CUDAStream) override {}
	DeviceStats getDeviceStats(DeviceIndex) override
	{
		DeviceStats s;
		s.allocation[0].current = live;
		return s;
	}
	void resetAccumulatedStats(DeviceIndex) override {}
	void resetPeakStats(DeviceIndex) override {}
#if TORCH >= 211
	void emptyCache(MempoolId_t) override {}
	std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { return {}; }
	SnapshotInfo snapshot(MempoolId_t, bool) override { return info(); }
	void recordHistory(bool, CreateContextFn, size_t, RecordContext, bool, const std::vector<std::string> &) override {}
#else
	void emptyCache() override {}
	SnapshotInfo snapshot() override { return info(); }
	void recordHistory(bool, CreateContextFn, size_t, RecordContext) override {}
#endif
	void beginAllocateToPool(DeviceIndex, MempoolId_t, std::function<bool(cudaStream_t)>) override {}
	void endAllocateToPool(DeviceIndex, MempoolId_t) override {}
	void releasePool(DeviceIndex, MempoolId_t) override {}
	ShareableHandle shareIpcHandle(void *) override { return {0, "stock"}; }
	std::shared_ptr<void> getIpcDevPtr(std::string handle) override
	{
		opened.push_back(handle);
		return std::shared_ptr<void>(&live, [](void *) {});
	}
	void attachOutOfMemoryObserver(OutOfMemoryObserver) override {}
	void attachAllocatorTraceTracker(AllocatorTraceTracker) override {}
	void enablePeerAccess(DeviceIndex, DeviceIndex) override {}
	cudaError_t memcpyAsync(void *, int, const void *, int, size_t, cudaStream_t, bool) override { return cudaSuccess; }
	std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) override { return nullptr; }
	CheckpointDelta setCheckpointPoolState(DeviceIndex, std::shared_ptr<AllocatorState>) override { return {}; }
	std::string name() override { return "native"; }

private:
	static SnapshotInfo info()
	{
		SnapshotInfo s{};
		s.config_metadata.last_allocator_settings = "settings";
		return s;
	}
};

} // namespace c10::cuda::CUDACachingAllocator
