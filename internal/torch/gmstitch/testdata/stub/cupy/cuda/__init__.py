"""Stands for cupy.cuda: its functions for allocators, devices and streams."""

import contextlib

from . import memory, runtime, stream  # noqa: F401
from .memory import (  # noqa: F401
    MemoryHook, MemoryPointer, MemoryPool, UnownedMemory, alloc, get_allocator, get_device_id, set_allocator,
)
from .stream import Stream, get_current_stream  # noqa: F401


class Device(object):
    def __init__(self, id):
        self.id = id

    def __enter__(self):
        self.before, runtime.current = runtime.current, self.id

    def __exit__(self, *args):
        runtime.current = self.before


@contextlib.contextmanager
def using_allocator(allocator=None):
    before = getattr(memory.local, "allocator", None)
    memory.local.allocator = allocator or memory.raw
    try:
        yield
    finally:
        memory.local.allocator = before
