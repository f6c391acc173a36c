"""Times cuMemSetAccess while copies run between the device and the host, and while such copies pause for it.

Usage: python3 access.py

Copies are queued one behind the other in a stream of their own. Where they pause, each waits for a word of pinned memory to be 0 (cuStreamWaitValue32), and the
word is 1 during the call. Prints a line for each kind of copies: what they carry when nothing is mapped, and how long access to 1 or 8 handles takes, the
median, the ninth of ten, and the longest, in microseconds; in brackets without a wait between the word and the call.
"""

import ctypes
import threading
import time

import torch

MB = 1 << 20
U64, SIZE = ctypes.c_uint64, ctypes.c_size_t
SECONDS = 0.4
EQUAL = ctypes.c_uint(1)  # CU_STREAM_WAIT_VALUE_EQ
# What is copied, in copies of how many bytes, whether each waits for the word, how long the call waits after it has set it (None: it does not), what to call that.
KINDS = (
    ("none", 32 * MB, False, None, "idle"), ("out", 32 * MB, False, None, "no pause"), ("out", 32 * MB, True, 0, "pause"), ("out", 8 * MB, True, 0, "pause"),
    ("out", 2 * MB, True, 0, "pause"), ("out", 8 * MB, True, 300e-6, "pause+300us"), ("out", 2 * MB, True, 100e-6, "pause+100us"),
    ("out", 8 * MB, True, None, "wait ops, no pause"), ("in", 8 * MB, False, None, "no pause"),
)


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Property(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location), ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


def check(result):
    if result:
        raise RuntimeError("the driver returned %d" % result)


class Driver(object):
    """libcuda.so.1, in PyTorch's context, and the word."""

    def __init__(self):
        torch.zeros(1, device="cuda")
        self.cu, self.context, word = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
        check(self.cu.cuCtxGetCurrent(ctypes.byref(self.context)))
        check(self.cu.cuMemHostAlloc(ctypes.byref(word), SIZE(4096), ctypes.c_uint(0)))
        self.address, self.word = word, ctypes.c_uint32.from_address(word.value)


class Maps(object):
    """Memory of several handles, and addresses for all of it."""

    def __init__(self, cu, n, size):
        self.cu, self.n, self.size, self.handles, self.at = cu, n, size, [], U64()
        what = Property(1, 0, Location(1, 0), None)
        for _ in range(n):
            handle = U64()
            check(cu.cuMemCreate(ctypes.byref(handle), SIZE(size), ctypes.byref(what), U64(0)))
            self.handles.append(handle)
        check(cu.cuMemAddressReserve(ctypes.byref(self.at), SIZE(n * size), SIZE(0), U64(0), U64(0)))

    def once(self, pause):
        """Maps all, and returns how long access takes, with and without the wait before it."""
        for i, handle in enumerate(self.handles):
            check(self.cu.cuMemMap(U64(self.at.value + i * self.size), SIZE(self.size), SIZE(0), handle, U64(0)))
        access = Access(Location(1, 0), 3)
        begin = time.perf_counter()
        pause(1)
        called = time.perf_counter()
        check(self.cu.cuMemSetAccess(self.at, SIZE(self.n * self.size), ctypes.byref(access), SIZE(1)))
        end = time.perf_counter()
        pause(0)
        check(self.cu.cuMemUnmap(self.at, SIZE(self.n * self.size)))
        return end - begin, end - called


class Copies(threading.Thread):
    """Keeps copies queued until it is told to stop, and counts the bytes of those that have ended."""

    AHEAD = 4  # times 32 MB

    def __init__(self, driver, kind, nbytes, waits):
        super().__init__()
        self.driver, self.kind, self.nbytes, self.waits = driver, kind, nbytes, waits
        self.stopped, self.copied, self.queued = False, 0, []

    def run(self):
        cu, stream = self.driver.cu, torch.cuda.Stream()
        raw, device, host = ctypes.c_void_p(stream.cuda_stream), torch.zeros(self.nbytes, device="cuda"), torch.zeros(self.nbytes).pin_memory()
        cu.cuCtxSetCurrent(self.driver.context)
        while not self.stopped:
            for _ in range(max(1, 32 * MB // self.nbytes)):
                if self.waits:
                    check(cu.cuStreamWaitValue32_v2(raw, self.driver.address, ctypes.c_uint32(0), EQUAL))
                if self.kind == "out":
                    check(cu.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(host.data_ptr()), ctypes.c_void_p(device.data_ptr()), SIZE(self.nbytes), raw))
                else:
                    check(cu.cuMemcpyHtoDAsync_v2(ctypes.c_void_p(device.data_ptr()), ctypes.c_void_p(host.data_ptr()), SIZE(self.nbytes), raw))
            event = torch.cuda.Event()
            event.record(stream)
            self.queued.append(event)
            while len(self.queued) > self.AHEAD:
                if self.queued[0].query():
                    self.queued.pop(0)
                    self.copied += max(1, 32 * MB // self.nbytes) * self.nbytes
                else:
                    time.sleep(1e-4)
        stream.synchronize()


def setter(driver, wait):
    """Returns what sets the word, and waits so many seconds behind that."""

    def pause(value):
        if wait is None:
            return
        driver.word.value = value
        end = time.perf_counter() + wait * value
        while time.perf_counter() < end:
            pass

    return pause


def shown(times):
    times = sorted(times)
    return "%5.0f/%5.0f/%5.0f" % tuple(1e6 * t for t in (times[len(times) // 2], times[int(len(times) * 0.9)], times[-1]))


def measured(maps, pause):
    """Returns how long access takes."""
    found, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        found.append(maps.once(pause))
        time.sleep(0.002)
    return "%s (access alone %s)" % tuple(map(shown, zip(*found)))


def main():
    driver = Driver()
    maps = {"%dx%d" % (n, size): Maps(driver.cu, n, size * MB) for n, size in ((1, 64), (8, 64), (8, 2), (1, 512))}
    for kind, nbytes, waits, wait, label in KINDS:
        driver.word.value = 0
        copies = Copies(driver, kind, nbytes, waits) if kind != "none" else None
        if copies:
            copies.start()
            time.sleep(0.3)
        begin, before = time.perf_counter(), copies.copied if copies else 0
        time.sleep(SECONDS)
        rate = ((copies.copied if copies else 0) - before) / (time.perf_counter() - begin) / 1e9
        found = ["%s %s" % (name, measured(m, setter(driver, wait))) for name, m in maps.items()]
        if copies:
            copies.stopped = True
            copies.join()
        print("%-4s %2d MB %-18s %5.1f GB/s; us median/p90/max: %s" % (kind, nbytes // MB, label, rate, ", ".join(found)), flush=True)


main()
