"""Stands for torch.cuda.memory."""

import os
import pickle
import sys

from .. import _C


def get_allocator_backend():
    return os.environ.get("STUB_TORCH_BACKEND", "native")


def _snapshot(device=None):
    return _C._cuda_memorySnapshot()


def _dump_snapshot(filename="dump_snapshot.pickle"):
    with open(filename, "wb") as f:
        pickle.dump(_snapshot(), f)


def _record_memory_history_impl(
    enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False,
    compile_context=False, global_record_annotations=False, skip_actions=None,
):
    _C._cuda_record_memory_history(enabled, context, stacks, max_entries, clear_history)


def _record_memory_history_legacy(
    enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, device=None,
    record_context_cpp=False,
):
    context = "all" if trace_alloc_record_context else "state" if record_context else None
    _C._cuda_record_memory_history("all" if enabled else None, context, "python", trace_alloc_max_entries, True)


def _record_memory_history(enabled="all", *args, **kwargs):
    if isinstance(enabled, bool):
        return _record_memory_history_legacy(enabled, *args, **kwargs)
    return _record_memory_history_impl(enabled, *args, **kwargs)


if os.environ.get("STUB_TORCH_API") == "2.0":
    _record_memory_history = _record_memory_history_legacy
    del _record_memory_history_impl

if os.environ.get("STUB_TORCH_API") == "2.1":

    def _record_memory_history_impl(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None):
        _C._cuda_record_memory_history(enabled, context, stacks, max_entries, True)
