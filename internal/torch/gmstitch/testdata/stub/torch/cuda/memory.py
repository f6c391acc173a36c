"""Stands for torch.cuda.memory. Each function calls torch._C as PyTorch 2.11's does."""

import collections
import ctypes
import pickle
import sys

import torch
from torch import _C

from . import _get_device_index, _lazy_init, is_initialized
from .. import _missing

__all__ = [
    "empty_cache", "get_per_process_memory_fraction", "set_per_process_memory_fraction", "memory_stats",
    "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "memory_allocated",
    "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_snapshot", "memory_summary",
    "get_allocator_backend", "CUDAPluggableAllocator", "change_current_allocator",
]


def empty_cache():
    if is_initialized():
        torch._C._cuda_emptyCache()


def set_per_process_memory_fraction(fraction, device=None):
    _lazy_init()
    torch._C._cuda_setMemoryFraction(fraction, _get_device_index(device, optional=True))


def get_per_process_memory_fraction(device=None):
    _lazy_init()
    return torch._C._cuda_getMemoryFraction(_get_device_index(device, optional=True))


def memory_stats(device=None):
    result = []

    def add(prefix, value):
        if isinstance(value, dict):
            for k, v in value.items():
                add(prefix + "." + k if prefix else k, v)
        else:
            result.append((prefix, value))

    add("", memory_stats_as_nested_dict(device=device))
    return collections.OrderedDict(sorted(result))


def memory_stats_as_nested_dict(device=None):
    if not is_initialized():
        return {}
    return torch._C._cuda_memoryStats(_get_device_index(device, optional=True))


def reset_accumulated_memory_stats(device=None):
    return torch._C._cuda_resetAccumulatedMemoryStats(_get_device_index(device, optional=True))


def reset_peak_memory_stats(device=None):
    return torch._C._cuda_resetPeakMemoryStats(_get_device_index(device, optional=True))


def memory_allocated(device=None):
    return memory_stats(device=device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device=None):
    return memory_stats(device=device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device=None):
    return memory_stats(device=device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device=None):
    return memory_stats(device=device).get("reserved_bytes.all.peak", 0)


def memory_snapshot(mempool_id=None, include_traces=True):
    if not is_initialized():
        return []
    return torch._C._cuda_memorySnapshot((mempool_id or (0, 0)) + (include_traces,))["segments"]


def memory_summary(device=None, abbreviated=False):
    stats = memory_stats(device=device)
    lines = ["CUDA OOMs: %d | cudaMalloc retries: %d" % (stats["num_ooms"], stats["num_alloc_retries"])]
    for metric in (
        "allocated_bytes", "active_bytes", "requested_bytes", "reserved_bytes", "inactive_split_bytes", "allocation",
        "active", "segment", "inactive_split",
    ):
        for pool in ("all", "large_pool", "small_pool"):
            lines.append(metric + " " + " ".join(str(stats["%s.%s.%s" % (metric, pool, m)]) for m in METRICS))
    for metric in ("oversize_allocations", "oversize_segments"):
        lines.append(metric + " " + " ".join(str(stats["%s.%s" % (metric, m)]) for m in METRICS))
    return "\n".join(lines)


METRICS = ("current", "peak", "allocated", "freed")


def _record_memory_history_legacy(enabled, *args, **kwargs):
    _C._cuda_record_memory_history_legacy(enabled)


def _record_memory_history(enabled="all", *args, **kwargs):
    if isinstance(enabled, bool):
        return _record_memory_history_legacy(enabled, *args, **kwargs)
    return _record_memory_history_impl(enabled, *args, **kwargs)


def _record_memory_history_impl(enabled="all", context="all", stacks="all", max_entries=sys.maxsize):
    _C._cuda_record_memory_history(enabled, context, stacks, max_entries, False, False, False, [])


def _snapshot(device=None):
    return _C._cuda_memorySnapshot(None)


def _dump_snapshot(filename="dump_snapshot.pickle"):
    with open(filename, "wb") as f:
        pickle.dump(_snapshot(), f)


def get_allocator_backend():
    return torch._C._cuda_getAllocatorBackend()


class _CUDAAllocator(object):
    def __init__(self, allocator):
        self._allocator = allocator

    def allocator(self):
        return self._allocator


class CUDAPluggableAllocator(_CUDAAllocator):
    def __init__(self, path, malloc, free):
        library = ctypes.CDLL(path)
        addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in (malloc, free)]
        self._allocator = torch._C._cuda_customAllocator(*addresses)


def change_current_allocator(allocator):
    torch._C._cuda_changeCurrentAllocator(allocator.allocator())


_missing.remove(globals())
__all__ = [name for name in __all__ if name in globals()]
