"""Stands for cupy.cuda.memory."""

import os
import threading

from . import runtime

local = threading.local()
hooks = []
_allocator = None


class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0):
        super(OutOfMemoryError, self).__init__("Out of memory allocating %d bytes (%d so far, limit %d)." % (size, total, limit))


class MemoryHook(object):
    def __enter__(self):
        hooks.append(self)
        return self

    def __exit__(self, *args):
        hooks.remove(self)


class Memory(object):
    """Of a pool."""

    def __init__(self, pool, size):
        self.pool, self.size, self.device_id = pool, size, get_device_id()
        self.ptr = 0x7F0000000000 + pool.used
        pool.used += size

    def __del__(self):
        self.pool.used -= self.size


class UnownedMemory(object):
    __slots__ = ("ptr", "size", "owner", "device_id")

    def __init__(self, ptr, size, owner, device_id):
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class MemoryPointer(object):
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset


class MemoryPool(object):
    def __init__(self, allocator=None):
        self.used, self.limits = 0, {}

    def malloc(self, size):
        for hook in hooks:
            hook.malloc_preprocess(size=size)
        return MemoryPointer(Memory(self, size), 0)

    def free_all_blocks(self, stream=None):
        pass

    def n_free_blocks(self):
        return 0

    def used_bytes(self):
        return self.used

    def free_bytes(self):
        return 0

    def total_bytes(self):
        return self.used

    def set_limit(self, size=None, fraction=None):
        if size is not None and fraction is not None:
            raise ValueError("size and fraction cannot be specified at one time")
        self.limits[get_device_id()] = int(fraction * runtime.memGetInfo()[1]) if fraction is not None else size or 0

    def get_limit(self):
        return self.limits.get(get_device_id(), int(os.environ.get("CUPY_GPU_MEMORY_LIMIT", 0)))


def get_device_id():
    runtime.start()
    return runtime.current


def raw(size):
    return MemoryPool().malloc(size)


def set_allocator(allocator=None):
    global _allocator
    if getattr(local, "allocator", None) is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    _allocator = allocator or raw


def get_allocator():
    return getattr(local, "allocator", None) or _allocator


def alloc(size):
    return get_allocator()(size)
