"""Where segments come from."""

import ctypes
import os


class Numbers(object):
    """Hands out addresses that stand for nothing; freed ones come first."""

    def __init__(self, device):
        self.next = 0x7F0000000000 + (device << 40)
        self.free_lists = {}

    def alloc(self, size):
        known = self.free_lists.get(size)
        if known:
            return known.pop()
        addr, self.next = self.next, self.next + (size + (32 << 20) - 1) // (32 << 20) * (32 << 20)
        return addr

    def free(self, addr, size):
        self.free_lists.setdefault(size, []).append(addr)


class Driver(object):
    """Takes memory from the CUDA driver, in the device's primary context."""

    def __init__(self, device):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.check("cuInit", 0)
        ordinal, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuDeviceGet", ctypes.byref(ordinal), device)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), ordinal)

    def check(self, name, *args):
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError("%s: CUDA error %d" % (name, code))

    def alloc(self, size):
        self.check("cuCtxSetCurrent", self.context)
        addr = ctypes.c_uint64()
        code = self.lib.cuMemAlloc_v2(ctypes.byref(addr), ctypes.c_size_t(size))
        return 0 if code else addr.value

    def free(self, addr, size):
        self.check("cuCtxSetCurrent", self.context)
        self.check("cuMemFree_v2", ctypes.c_uint64(addr))


def source(device):
    return Driver(device) if os.environ.get("STUB_TORCH_CUDA") == "1" else Numbers(device)
