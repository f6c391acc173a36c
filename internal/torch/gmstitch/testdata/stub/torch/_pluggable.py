"""Stands for torch/csrc/cuda/CUDAPluggableAllocator.cpp."""

import ctypes

from . import _missing

MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
INIT = ctypes.CFUNCTYPE(None, ctypes.c_int)
RESET = ctypes.CFUNCTYPE(None)
FRACTION = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_int)
BASE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
RECORD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
BEGIN = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
END = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)


class OutOfMemoryError(RuntimeError):
    pass


class Allocator(object):
    def __init__(self, malloc, free):
        self.functions = {"malloc": MALLOC(malloc), "free": FREE(free)}
        self.blocks = {}
        self.initialized = True  # createCustomAllocator calls init

    name = "pluggable"

    def set_init_fn(self, address):
        self.functions["init"] = INIT(address)

    def set_reset_fn(self, address):
        self.functions["reset"] = RESET(address)

    def set_memory_fraction_fn(self, address):
        self.functions["fraction"] = FRACTION(address)

    def set_base_alloc_fn(self, address):
        self.functions["base"] = BASE(address)

    def set_record_stream_fn(self, address):
        self.functions["record"] = RECORD(address)

    def set_begin_allocate_to_pool(self, address):
        self.functions["begin"] = BEGIN(address)

    def set_end_allocate_to_pool_fn(self, address):
        self.functions["end"] = END(address)

    def set_release_pool(self, address):
        self.functions["release"] = END(address)

    def call(self, name, *args):
        if name in self.functions:
            return self.functions[name](*args)

    def malloc(self, size, device, stream):
        address = self.call("malloc", size, device, stream)
        if size and not address:  # where libgm.so itself throws, from C++
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate %d bytes" % size)
        self.blocks[address] = size, device, stream
        return address

    def free(self, address):
        self.call("free", address, *self.blocks.pop(address))

    def record_stream(self, address, stream):
        self.call("record", address, stream)

    def unsupported(self, what):
        raise RuntimeError("CUDAPluggableAllocator does not yet support %s. If you need it, please file an issue." % what)


_missing.remove_attributes(Allocator)
