"""Uses libgm.so as PyTorch's CUDAPluggableAllocator does: loaded by ctypes, called by address."""
import ctypes
import gc
import json
import os
import sys
import threading

gm = ctypes.CDLL(os.environ["GM_LIB"])
gm.gm_malloc.restype = ctypes.c_void_p
gm.gm_malloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
gm.gm_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
gm.gm_snapshot.restype = ctypes.c_size_t
gm.gm_snapshot.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
gm.gm_last_error.restype = ctypes.c_size_t
gm.gm_last_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def snapshot():
    text = ctypes.create_string_buffer(gm.gm_snapshot(None, 0) + 1)
    gm.gm_snapshot(text, len(text))
    return json.loads(text.value)


class Tensor:
    def __init__(self, size):
        self.size = size
        self.p = gm.gm_malloc(size, 0, None)

    def __del__(self):
        gm.gm_free(self.p, self.size, 0, None)


def check_segments(live):
    segments = snapshot()
    used = {}
    for s in segments:
        at = s["address"]
        assert s["segment_type"] in ("small", "large") and s["device"] == 0
        for b in s["blocks"]:
            assert b["address"] == at, (s, b)
            at += b["size"]
            if b["state"] == "active_allocated":
                used[b["address"]] = b
        assert at == s["address"] + s["total_size"]
        assert s["requested_size"] <= s["allocated_size"] <= s["active_size"] <= s["total_size"]
    assert sorted(used) == sorted(t.p for t in live), (used, live)
    assert all(used[t.p]["requested_size"] == t.size for t in live)


def work(n):
    for i in range(n):
        Tensor(1000 + i * 777 % 5000000)


def child():
    pid = os.fork()
    if pid == 0:
        ok = gm.gm_malloc(1000, 0, None) is None
        work(10)
        gc.collect()
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0


live = [Tensor(100 * 3 ** i) for i in range(14)]
check_segments(live)
del live[3:9]
check_segments(live)
threads = [threading.Thread(target=work, args=(2000,)) for _ in range(4)]
for t in threads:
    t.start()
for _ in range(10):
    child()
for t in threads:
    t.join()
check_segments(live)
gm.gm_reset()
check_segments(live)
assert gm.gm_malloc(1 << 60, 0, None) is None
text = ctypes.create_string_buffer(1000)
gm.gm_last_error(text, len(text))
assert text.value.startswith(b"CUDA out of memory. Tried to allocate 1073741824.00 GiB. GPU 0 has a total capacity"), text.value
if len(sys.argv) > 1:
    print(os.getpid(), flush=True)
    sys.stdin.read()
# live is freed when the interpreter ends, or never.
