"""Stands for torch._C: what depends on the allocator is refused as a pluggable one does."""

import os

from . import _missing, _native, _pluggable

allocator = _native.Allocator()
allocator.initialized = os.environ.get("STUB_TORCH_EARLY") == "1"
_benchmark = False


def _cuda_init():
    if os.environ.get("STUB_TORCH_DEVICES") == "0":
        raise RuntimeError("No CUDA GPUs are available")
    allocator.call("init", int(os.environ.get("STUB_TORCH_DEVICES", "1")))
    allocator.initialized = True


def _cuda_customAllocator(malloc, free):
    return _pluggable.Allocator(malloc, free)


def _cuda_changeCurrentAllocator(changed):
    global allocator
    if allocator.initialized:
        raise RuntimeError("Can't swap an already initialized allocator\nException raised from changeCurrentAllocator")
    allocator = changed


def _cuda_getAllocatorBackend():
    return allocator.name


def _cuda_emptyCache():
    allocator.call("reset")


def _cuda_setMemoryFraction(fraction, device):
    allocator.call("fraction", fraction, device)


def _cuda_beginAllocateToPool(device, pool):
    allocator.call("begin", device, pool[0], pool[1], 1)


def _cuda_endAllocateToPool(device, pool):
    allocator.call("end", device, pool[0], pool[1])


def _cuda_releasePool(device, pool):
    allocator.call("release", device, pool[0], pool[1])


def _cuda_memoryStats(device):
    return allocator.unsupported("getDeviceStats")


def _cuda_resetPeakMemoryStats(device):
    return allocator.unsupported("resetPeakStats")


def _cuda_resetAccumulatedMemoryStats(device):
    return allocator.unsupported("resetAccumulatedStats")


def _cuda_memorySnapshot(pool=None, include_traces=True):
    return allocator.unsupported("snapshot")


def _cuda_getMemoryFraction(device):
    return allocator.unsupported("getMemoryFraction")


def _cuda_record_memory_history(*args):
    return allocator.unsupported("recordHistory")


def _cuda_record_memory_history_legacy(*args):
    return allocator.unsupported("recordHistory")


def _cuda_isHistoryEnabled():
    return allocator.unsupported("recordHistory")


def _cuda_attach_out_of_memory_observer(observer):
    return allocator.unsupported("attachOutOfMemoryObserver")


def _accelerator_getDeviceStats(device):
    return allocator.unsupported("getDeviceStats")


def _accelerator_resetPeakStats(device):
    return allocator.unsupported("resetPeakStats")


def _accelerator_resetAccumulatedStats(device):
    return allocator.unsupported("resetAccumulatedStats")


def _get_cudnn_benchmark():
    return _benchmark


def _set_cudnn_benchmark(on):
    global _benchmark
    if not isinstance(on, bool):
        raise TypeError("set_benchmark_cudnn expects a bool")
    _benchmark = on


class StorageBase(object):
    def _share_cuda_(self):
        return allocator.unsupported("shareIpcHandle")


_missing.remove(globals())
