// The stand-in for PyTorch's libraries: its own allocator, and counts of what it was told.
#include "stand_in.h"

#include "told.h"

extern "C" {
#include "cuda_api.h"

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) { return static_cast<cudaError_t>(cuEventCreate(event, flags)); }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return static_cast<cudaError_t>(cuEventRecord(event, stream)); }
cudaError_t cudaEventQuery(cudaEvent_t event) { return static_cast<cudaError_t>(cuEventQuery(event)); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return static_cast<cudaError_t>(cuEventSynchronize(event)); }
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
	CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
	auto err = static_cast<cudaError_t>(cuStreamIsCapturing(stream, &now));
	*status = static_cast<cudaStreamCaptureStatus>(now);
	return err;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
	auto now = static_cast<CUstreamCaptureMode>(*mode);
	auto err = static_cast<cudaError_t>(cuThreadExchangeStreamCaptureMode(&now));
	*mode = static_cast<cudaStreamCaptureMode>(now);
	return err;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return static_cast<cudaError_t>(cuEventDestroy_v2(event)); }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaErrorPeerAccessAlreadyEnabled; }
cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t n, cudaStream_t stream)
{
	told.peer_copies++;
	return cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice, stream);
}
}

Told told;

namespace c10 {

static Allocator *allocators[2];
void SetAllocator(DeviceType type, Allocator *allocator, uint8_t) { allocators[static_cast<int>(type)] = allocator; }
Allocator *GetAllocator(const DeviceType &type) { return allocators[static_cast<int>(type)]; }

bool memoryProfilingEnabled() { return told.profiling; }
void reportMemoryUsageToProfiler(void *, int64_t size, size_t allocated, size_t, Device)
{
	told.profiled.push_back({size, allocated});
}
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device) { told.ooms++; }

approx_time_t getApproximateTime()
{
	static std::atomic<approx_time_t> now{1};
	return now++;
}
std::function<time_t(approx_time_t)> ApproximateClockToUnixTimeConverter::makeConverter()
{
	return [](approx_time_t t) { return static_cast<time_t>(t) * 1000; };
}

void impl::Interpreter::trace_gpu_memory_allocation(DeviceType, uintptr_t) const { told.traced++; }
void impl::Interpreter::trace_gpu_memory_deallocation(DeviceType, uintptr_t) const { told.traced--; }
const impl::PyInterpreter *impl::GPUTrace::get_trace()
{
	static PyInterpreter one;
	return told.tracing ? &one : nullptr;
}

std::vector<std::string> CallbackRegistry::Keys() const
{
	std::vector<std::string> names;
	for (auto &[name, maker] : makers)
		names.push_back(name);
	return names;
}
CallbackRegistry *FreeCudaMemoryCallbacksRegistry()
{
	static CallbackRegistry registry;
	return &registry;
}

void CachingDeviceAllocator::Stat::increase(size_t n)
{
	current += static_cast<int64_t>(n);
	peak = std::max(peak, current);
	allocated += static_cast<int64_t>(n);
}
void CachingDeviceAllocator::Stat::decrease(size_t n)
{
	current -= static_cast<int64_t>(n);
	freed += static_cast<int64_t>(n);
}

namespace cuda {

static thread_local cudaStream_t current_stream;
CUDAStream getCurrentCUDAStream(DeviceIndex) { return CUDAStream(current_stream); }
DeviceIndex device_count()
{
	int n = 0;
	return cudaGetDeviceCount(&n) == cudaSuccess ? static_cast<DeviceIndex>(n) : 0;
}
cudaError_t GetDevice(DeviceIndex *device)
{
	int d = 0;
	cudaError_t err = cudaGetDevice(&d);
	*device = static_cast<DeviceIndex>(d);
	return err;
}
cudaError_t SetDevice(DeviceIndex device) { return cudaSetDevice(device); }

#if TORCH < 211
MempoolId_t MemPool::id() { return {0, 77}; }
CUDACachingAllocator::CUDAAllocator *MemPool::allocator() { return told.pool_allocator; }
MemPool *MemPoolContext::getActiveMemPool()
{
	static MemPool one;
	return told.pool_allocator ? &one : nullptr;
}
#endif

namespace CUDACachingAllocator {
static Plain stock;
std::atomic<CUDAAllocator *> allocator{&stock};
} // namespace CUDACachingAllocator
} // namespace cuda
} // namespace c10
