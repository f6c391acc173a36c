"""Stands for torch._C."""

import os

from ._allocator import Allocator, OutOfMemoryError  # noqa: F401
from ._ring import Jitter

allocators = []
observers = []


def _cuda_init():
    count = int(os.environ.get("STUB_TORCH_DEVICES", "1"))
    limit = int(os.environ.get("STUB_TORCH_LIMIT", str(80 << 30)))
    allocators.extend(Allocator(device, limit, observers) for device in range(count))


def _cuda_memoryStats(device):
    return allocators[device].stats()


def _cuda_attach_out_of_memory_observer(observer):
    observers.append(observer)


def _cuda_record_memory_history(enabled, context, stacks, max_entries, clear_history):
    if os.environ.get("STUB_TORCH_BACKEND", "native") != "native":
        raise RuntimeError("the allocator does not yet support recordHistory")
    if context not in (None, "state", "alloc", "all") or stacks not in ("python", "all"):
        raise RuntimeError("expected context to be None, state, alloc or all")
    if enabled not in (None, "state", "all"):
        raise RuntimeError("expected enabled to be None, state or all")
    for a in allocators:
        a.record(enabled, context, max_entries, clear_history)


def _cuda_memorySnapshot():
    if os.environ.get("STUB_TORCH_BACKEND", "native") != "native":
        raise RuntimeError("the allocator does not yet support snapshot")
    jitter = Jitter()
    traces, segments = [], []
    for a in allocators:
        segments.extend(a.segment_dicts())
        traces.append(a.trace(jitter))
        a.note_snapshot()  # after the history was copied, as PyTorch 2.11 does
    settings = {"PYTORCH_CUDA_ALLOC_CONF": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "expandable_segments": False}
    return {
        "segments": segments, "device_traces": traces, "allocator_settings": settings, "external_annotations": [],
    }
