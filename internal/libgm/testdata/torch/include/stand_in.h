// Stands in for PyTorch: what its allocators are and use, as the versions 2.6 (TORCH=206) and 2.11 (TORCH=211) declare it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#define C10_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define TORCH_CHECK_WITH(type, condition, ...)                  \
	do {                                                    \
		if (C10_UNLIKELY(!(condition)))                 \
			throw c10::type(c10::text(__VA_ARGS__)); \
	} while (0)
#define TORCH_CHECK(condition, ...) TORCH_CHECK_WITH(Error, condition, ##__VA_ARGS__)
#define C10_CUDA_CHECK(call) TORCH_CHECK((call) == cudaSuccess, #call)

namespace c10 {

template <class... T> std::string text(const T &...parts)
{
	std::ostringstream s;
	(void)(s << ... << parts);
	return s.str();
}

struct Error : std::runtime_error {
	using std::runtime_error::runtime_error;
};
struct OutOfMemoryError : Error {
	using Error::Error;
};

using DeviceIndex = int8_t;
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
struct Device {
	DeviceType type;
	DeviceIndex index;
	Device(DeviceType type, DeviceIndex index) : type(type), index(index) {}
};
struct Stream {
	cudaStream_t handle;
};

using DeleterFnPtr = void (*)(void *);
class DataPtr {
public:
	DataPtr(void *data, void *context, DeleterFnPtr deleter, Device device) : data_(data), context_(context, deleter), device_(device) {}
	void *get() const { return data_; }
	DeleterFnPtr get_deleter() const { return context_.get_deleter(); }
	void *release_context() { return context_.release(); }
	Device device() const { return device_; }

private:
	void *data_;
	std::unique_ptr<void, DeleterFnPtr> context_;
	Device device_;
};

struct Allocator {
	virtual ~Allocator() = default;
	virtual DataPtr allocate(size_t n) = 0;
	virtual DeleterFnPtr raw_deleter() const { return nullptr; }
	virtual void copy_data(void *to, const void *from, size_t n) const = 0;
};
void SetAllocator(DeviceType type, Allocator *allocator, uint8_t priority = 0);
Allocator *GetAllocator(const DeviceType &type);

bool memoryProfilingEnabled();
void reportMemoryUsageToProfiler(void *p, int64_t size, size_t allocated, size_t reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device device);

struct GatheredContext {
	virtual ~GatheredContext() = default;
};

using time_t = int64_t;
using approx_time_t = uint64_t;
approx_time_t getApproximateTime();
struct ApproximateClockToUnixTimeConverter {
	std::function<time_t(approx_time_t)> makeConverter();
};

namespace impl {
struct Interpreter {
	void trace_gpu_memory_allocation(DeviceType type, uintptr_t p) const;
	void trace_gpu_memory_deallocation(DeviceType type, uintptr_t p) const;
};
struct PyInterpreter {
	Interpreter one;
	const Interpreter *operator->() const { return &one; }
};
struct GPUTrace {
	static const PyInterpreter *get_trace();
};
} // namespace impl

struct FreeMemoryCallback {
	virtual ~FreeMemoryCallback() = default;
	virtual bool Execute() = 0;
};
struct CallbackRegistry {
	std::unordered_map<std::string, std::function<std::unique_ptr<FreeMemoryCallback>()>> makers;
	std::vector<std::string> Keys() const;
	std::unique_ptr<FreeMemoryCallback> Create(const std::string &name) { return makers.at(name)(); }
};
CallbackRegistry *FreeCudaMemoryCallbacksRegistry();

using MempoolId_t = std::pair<unsigned long long, unsigned long long>;

namespace CachingDeviceAllocator {
struct Stat {
	void increase(size_t n);
	void decrease(size_t n);
	int64_t current = 0, peak = 0, allocated = 0, freed = 0;
};
using StatArray = std::array<Stat, 3>;
struct DeviceStats {
	StatArray allocation, segment, active, inactive_split;
	StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
	int64_t num_alloc_retries = 0, num_ooms = 0;
	Stat oversize_allocations, oversize_segments;
	int64_t num_sync_all_streams = 0, num_device_alloc = 0, num_device_free = 0, max_split_size = 0;
};
} // namespace CachingDeviceAllocator
} // namespace c10

namespace c10::cuda {

class CUDAStream {
public:
	explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
	explicit CUDAStream(Stream stream) : stream_(stream.handle) {}
	cudaStream_t stream() const { return stream_; }

private:
	cudaStream_t stream_;
};
CUDAStream getCurrentCUDAStream(DeviceIndex device);
DeviceIndex device_count();
cudaError_t GetDevice(DeviceIndex *device);
cudaError_t SetDevice(DeviceIndex device);

namespace CUDACachingAllocator {

using c10::CachingDeviceAllocator::DeviceStats;
class CUDAAllocator;

using CreateContextFn = std::shared_ptr<GatheredContext> (*)();
enum struct RecordContext { NEVER = 0, STATE = 1, ALLOC = 2, ALL = 3 };

struct BlockInfo {
	size_t size = 0, requested_size = 0;
	int32_t gc_counter = 0;
	bool allocated = false, active = false;
	std::shared_ptr<GatheredContext> context_when_allocated;
};

struct SegmentInfo {
	DeviceIndex device = 0;
	size_t address = 0, total_size = 0, requested_size = 0, allocated_size = 0, active_size = 0;
#if TORCH >= 211
	int32_t registration_counter = -1;
	void *stream = nullptr;
#else
	cudaStream_t stream = nullptr;
#endif
	bool is_large = false, is_expandable = false;
	MempoolId_t owner_private_pool_id = {0, 0};
	std::vector<BlockInfo> blocks;
	std::shared_ptr<GatheredContext> context_when_allocated;
};

union trace_time_ {
	time_t t_;
	approx_time_t approx_t_;
};

struct TraceEntry {
	enum Action { ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, SNAPSHOT, OOM };
#if TORCH >= 211
	TraceEntry(Action action, DeviceIndex device, size_t addr, size_t size, void *stream, MempoolId_t pool, approx_time_t time,
		std::shared_ptr<GatheredContext> context = nullptr, std::string compiled = "", std::string metadata = "")
		: action_(action), device_(device), addr_(addr), context_(context), stream_(stream), size_(size), mempool_(pool),
		  compile_context_(compiled), user_metadata_(metadata)
#else
	TraceEntry(Action action, DeviceIndex device, size_t addr, size_t size, cudaStream_t stream, approx_time_t time,
		std::shared_ptr<GatheredContext> context = nullptr)
		: action_(action), device_(device), addr_(addr), context_(context), stream_(stream), size_(size)
#endif
	{
		time_.approx_t_ = time;
	}
	Action action_;
	DeviceIndex device_;
	size_t addr_;
	std::shared_ptr<GatheredContext> context_;
	void *stream_;
	size_t size_;
	MempoolId_t mempool_;
	trace_time_ time_{};
	std::string compile_context_, user_metadata_;
};

struct AnnotationEntry {
	AnnotationEntry(DeviceIndex device, approx_time_t time) : device_(device) { time_.approx_t_ = time; }
	void recordUserMetadata(const std::string &name, std::string value) { metadata_[name] = value; }
	DeviceIndex device_;
	trace_time_ time_{};
	std::unordered_map<std::string, std::string> metadata_;
};

struct AllocatorState {
	virtual ~AllocatorState() = default;
};
struct AllocatorConfigInfo {
	double garbage_collection_threshold;
	std::string last_allocator_settings;
};
struct SnapshotInfo {
	std::vector<SegmentInfo> segments;
	std::vector<std::vector<TraceEntry>> device_traces;
	std::vector<AnnotationEntry> external_annotations;
	AllocatorConfigInfo config_metadata;
};
struct CheckpointDelta {
	std::vector<void *> ptrs_freed;
	std::vector<DataPtr> dataptrs_allocd;
};
using OutOfMemoryObserver = std::function<void(int64_t device, size_t allocated, size_t total, size_t free)>;
using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;
struct ShareableHandle {
	ptrdiff_t offset;
	std::string handle;
};
struct StreamSegmentSize {
	cudaStream_t stream;
	size_t total_size;
};

#if TORCH >= 211
struct DeviceAllocator : Allocator {
	virtual bool initialized() = 0;
	virtual void emptyCache(MempoolId_t id = {0, 0}) = 0;
	virtual void recordStream(const DataPtr &p, Stream stream) = 0;
	virtual DeviceStats getDeviceStats(DeviceIndex device) = 0;
	virtual void resetAccumulatedStats(DeviceIndex device) = 0;
	virtual void resetPeakStats(DeviceIndex device) = 0;
};
#else
using DeviceAllocator = Allocator;
#endif

class CUDAAllocator : public DeviceAllocator {
public:
	virtual void *raw_alloc(size_t n) = 0;
	virtual void *raw_alloc_with_stream(size_t n, cudaStream_t stream) = 0;
	virtual void raw_delete(void *p) = 0;
	virtual void init(int devices) = 0;
	virtual double getMemoryFraction(DeviceIndex device) = 0;
	virtual void setMemoryFraction(double fraction, DeviceIndex device) = 0;
	virtual void enable(bool on) = 0;
	virtual bool isEnabled() const = 0;
	virtual void cacheInfo(DeviceIndex device, size_t *largest) = 0;
	virtual void *getBaseAllocation(void *p, size_t *size) = 0;
	virtual void recordStream(const DataPtr &p, CUDAStream stream) = 0;
#if TORCH >= 211
	void recordStream(const DataPtr &p, Stream stream) override { recordStream(p, CUDAStream(stream)); }
	virtual std::vector<StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex device) = 0;
	virtual SnapshotInfo snapshot(MempoolId_t id = {0, 0}, bool include_traces = true) = 0;
	virtual void createOrIncrefPool(DeviceIndex, MempoolId_t, std::shared_ptr<CUDAAllocator> = nullptr) { throw Error("createOrIncrefPool"); }
	virtual void setUseOnOOM(DeviceIndex, MempoolId_t, bool) { throw Error("setUseOnOOM"); }
	virtual void setNoSplit(DeviceIndex, MempoolId_t) { throw Error("setNoSplit"); }
	virtual void recordHistory(bool enabled, CreateContextFn recorder, size_t entries, RecordContext when, bool clear,
		const std::vector<std::string> &skipped) = 0;
	virtual void pushCompileContext(std::string &) {}
	virtual void popCompileContext() {}
	virtual void setUserMetadata(const std::string &) {}
	virtual std::string getUserMetadata() { return ""; }
#else
	virtual bool initialized() = 0;
	virtual void emptyCache() = 0;
	virtual DeviceStats getDeviceStats(DeviceIndex device) = 0;
	virtual void resetAccumulatedStats(DeviceIndex device) = 0;
	virtual void resetPeakStats(DeviceIndex device) = 0;
	virtual SnapshotInfo snapshot() = 0;
	virtual void ensureExistsAndIncrefPool(DeviceIndex, MempoolId_t) { throw Error("ensureExistsAndIncrefPool"); }
	virtual void recordHistory(bool enabled, CreateContextFn recorder, size_t entries, RecordContext when) = 0;
#endif
	virtual void beginAllocateToPool(DeviceIndex device, MempoolId_t id, std::function<bool(cudaStream_t)> filter) = 0;
	virtual void endAllocateToPool(DeviceIndex device, MempoolId_t id) = 0;
	virtual void releasePool(DeviceIndex device, MempoolId_t id) = 0;
	virtual int getPoolUseCount(DeviceIndex, MempoolId_t) { throw Error("getPoolUseCount"); }
	virtual bool checkPoolLiveAllocations(DeviceIndex, MempoolId_t, const std::unordered_set<void *> &)
	{
		throw Error("checkPoolLiveAllocations");
	}
	virtual ShareableHandle shareIpcHandle(void *p) = 0;
	virtual std::shared_ptr<void> getIpcDevPtr(std::string handle) = 0;
	virtual bool isHistoryEnabled() { throw Error("isHistoryEnabled"); }
	virtual void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &) {}
	virtual void attachOutOfMemoryObserver(OutOfMemoryObserver observer) = 0;
	virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
	virtual void enablePeerAccess(DeviceIndex device, DeviceIndex other) = 0;
	virtual cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t n, cudaStream_t stream,
		bool p2p_enabled) = 0;
	virtual std::shared_ptr<AllocatorState> getCheckpointState(DeviceIndex device, MempoolId_t id) = 0;
	virtual CheckpointDelta setCheckpointPoolState(DeviceIndex device, std::shared_ptr<AllocatorState> state) = 0;
	virtual std::string name() = 0;
};

extern std::atomic<CUDAAllocator *> allocator;

} // namespace CUDACachingAllocator

#if TORCH < 211
struct MemPool {
	MempoolId_t id();
	CUDACachingAllocator::CUDAAllocator *allocator();
};
struct MemPoolContext {
	static MemPool *getActiveMemPool();
};
#endif

} // namespace c10::cuda
