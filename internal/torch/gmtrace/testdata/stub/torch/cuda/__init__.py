"""Stands for torch.cuda."""

import os

from .. import _C
from .._C import OutOfMemoryError  # noqa: F401
from . import memory  # noqa: F401

_queued_calls = []
_initialized = _initializing = False
_parent = None  # pid of the process that initialised CUDA


def is_initialized():
    return _initialized and _parent == os.getpid()


def device_count():
    return int(os.environ.get("STUB_TORCH_DEVICES", "1"))


def _lazy_call(callable, **kwargs):
    if is_initialized():
        callable()
    else:
        _queued_calls.append(callable)


def _lazy_init():
    global _initialized, _initializing, _parent
    if is_initialized() or _initializing:
        return
    if _initialized:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    _C._cuda_init()
    _initializing, _parent = True, os.getpid()
    try:
        for queued in _queued_calls:
            queued()
    finally:
        _initializing = False
    _initialized = True
