"""A program of CuPy's on libgm.so, by gmstitch's hook and a stand-in for CuPy: its pool, limits, captures, threads, children, and the end."""
import ctypes
import gc
import os
import threading

import cupy

MB = 1 << 20
pool = cupy.get_default_memory_pool()
cuda = ctypes.CDLL("libcuda.so.1")


def child(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def use():
    """CUDA has not started before."""
    held = cupy.empty_bytes(3 * MB)
    assert pool.used_bytes() == 3 * MB and held.data.ptr


def late():
    try:
        cupy.empty_bytes(1000)
        os._exit(1)
    except RuntimeError:
        pass
    gc.collect()


def start():
    """As CUDA's runtime does, which CuPy calls."""
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0


def stream():
    handle = ctypes.c_void_p()
    assert cuda.cuStreamCreate(ctypes.byref(handle), 1) == 0
    return cupy.cuda.Stream(handle.value)


child(use)
start()
kept = cupy.empty_bytes(1000)
assert type(kept.data.mem).__name__ == "LibgmMemory"
held = [cupy.empty_bytes(n * MB) for n in (1, 3, 10, 40)]
assert len({h.data.ptr for h in held}) == 4
assert 54 * MB <= pool.used_bytes() <= pool.total_bytes() and pool.free_bytes() == pool.total_bytes() - pool.used_bytes()
del held
assert pool.used_bytes() == 1024 and pool.total_bytes() > 50 * MB
assert pool.n_free_blocks() > 0 or os.environ["GM_ALLOC"] == "gmlake"  # which lists none
pool.free_all_blocks()
assert pool.total_bytes() < 10 * MB

pool.set_limit(size=64 * MB)
held = cupy.empty_bytes(40 * MB)
try:
    cupy.empty_bytes(40 * MB)
    raise AssertionError("there is no limit")
except cupy.cuda.memory.OutOfMemoryError as e:
    assert "limit %d" % (64 * MB) in str(e) and "CUDA out of memory. Tried to allocate 40.00 MiB" in str(e), e
del held
pool.set_limit()
held = cupy.empty_bytes(100 * MB)
del held

side = stream()
with side:
    side.begin_capture()
    graph = [cupy.empty_bytes(8 * MB) for _ in range(2)]
    side.end_capture()
captured = [g.data.ptr for g in graph]
del graph
pool.free_all_blocks()
assert pool.total_bytes() >= 16 * MB
other = [cupy.empty_bytes(8 * MB) for _ in range(4)]
assert not set(captured) & {o.data.ptr for o in other}
del other


def work(n):
    for i in range(n):
        cupy.empty_bytes(1000 + i * 777 % 5000000)


threads = [threading.Thread(target=work, args=(500,)) for _ in range(4)]
for t in threads:
    t.start()
for _ in range(3):
    child(late)
for t in threads:
    t.join()


class Cycle(object):
    pass


gc.collect()
before = pool.used_bytes()
for _ in range(5):
    c = Cycle()
    c.itself, c.held = c, cupy.empty_bytes(5 * MB)
del c
gc.collect()
assert pool.used_bytes() == before == 1024, (before, pool.used_bytes())
# kept is freed when the interpreter ends, or never.
