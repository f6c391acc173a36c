"""A store of objects by the module of the wheel: objects.py PACKAGE."""

import ctypes
import os
import sys

ctypes.CDLL(os.environ["GM_LIB"], mode=ctypes.RTLD_GLOBAL)  # as gmstitch run loads it
sys.path.insert(0, sys.argv[1])
import gm  # noqa: E402

cuda = ctypes.CDLL("libcuda.so.1")
SIZE = 4 << 20
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0


def write(it, byte):
    assert cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(it.address), bytes([byte]) * SIZE, ctypes.c_size_t(SIZE)) == 0


def read(it):
    got = ctypes.create_string_buffer(SIZE)
    assert cuda.cuMemcpyDtoH_v2(got, ctypes.c_uint64(it.address), ctypes.c_size_t(SIZE)) == 0
    return got.raw


gone = []
with gm.Store(limit=16 << 20, host=1 << 30, policy="latency", server="", evicted=gone.append) as store:
    objects = [store.create(SIZE) for _ in range(4)]
    for i, it in enumerate(objects):
        write(it, i)
        it.put(next=i)
    objects.append(store.create(SIZE))
    assert gone == [objects[3]], gone
    write(objects[4], 4)
    objects[4].put()
    for i, it in enumerate(objects):
        assert it.get(write=False) is it and read(it) == bytes([i]) * SIZE, i
        it.put()
    stats = store.stats()
    assert stats["objects"] == 5 and stats["misses"] == 2 and stats["evicted_bytes"] == 3 * SIZE, stats
    objects[0].free()
    for call, text in ((objects[0].get, "no object"), (lambda: store.create(32 << 20), "no room")):
        try:
            call()
        except gm.StoreError as failure:
            assert text in str(failure), failure
        else:
            raise AssertionError(text)
try:
    gm.Store(policy="best")
except gm.StoreError as failure:
    assert "lru, fifo, size-lru and latency" in str(failure), failure
