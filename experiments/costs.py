"""Measures what the CUDA driver's calls on memory cost, in microseconds: medians of 30 calls, by size.

It talks to libcuda.so.1 through ctypes and needs nothing else. The figures are those of gm's simulated device.
"""

import ctypes
import statistics
import time

cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
u64, size_t, byref = ctypes.c_uint64, ctypes.c_size_t, ctypes.byref


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int), ("location", Location),
                ("win32", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class AccessDesc(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def call(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        raise RuntimeError(f"{name}: CUDA error {code}")


def timed(times, key, name, *args):
    start = time.perf_counter_ns()
    call(name, *args)
    times.setdefault(key, []).append((time.perf_counter_ns() - start) / 1e3)


def main():
    call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", byref(device), 0)
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    prop = AllocationProp(1, 0, Location(1, 0))
    access = AccessDesc(Location(1, 0), 3)
    times = {}
    for mib in (2, 8, 20, 128, 512, 1024, 2048, 8192):
        size = mib * MIB
        for _ in range(30):
            p, handle = u64(), u64()
            timed(times, ("cuMemAlloc", mib), "cuMemAlloc_v2", byref(p), size_t(size))
            timed(times, ("cuMemFree", mib), "cuMemFree_v2", p)
            timed(times, ("cuMemAddressReserve", mib), "cuMemAddressReserve", byref(p), size_t(size), size_t(0), u64(0), u64(0))
            timed(times, ("cuMemCreate", mib), "cuMemCreate", byref(handle), size_t(size), byref(prop), u64(0))
            timed(times, ("cuMemMap", mib), "cuMemMap", p, size_t(size), size_t(0), handle, u64(0))
            timed(times, ("cuMemSetAccess", mib), "cuMemSetAccess", p, size_t(size), byref(access), size_t(1))
            timed(times, ("cuMemUnmap", mib), "cuMemUnmap", p, size_t(size))
            timed(times, ("cuMemRelease", mib), "cuMemRelease", handle)
            timed(times, ("cuMemAddressFree", mib), "cuMemAddressFree", p, size_t(size))
    print("# " + name.value.decode())
    print("call,mib,median_us")
    for (what, mib), values in sorted(times.items()):
        print(f"{what},{mib},{statistics.median(values):.2f}")


if __name__ == "__main__":
    main()
