"""Tells the fake driver what kernels read and write, where GM_FAKE_RACES has it look for uses of memory that nothing orders. The program
computes by itself, behind what a stream holds, and the driver is not to take it for having waited."""

import ctypes
import functools
import os
import sys

from . import _driver

on = bool(os.environ.get("GM_FAKE_RACES"))
_HERE = os.path.dirname(os.path.abspath(__file__))
_marked = []


def where():
    """Returns who calls, as text."""
    frame, names = sys._getframe(2), []
    while frame is not None and len(names) < 12:
        code = frame.f_code
        if code.co_filename.startswith(_HERE):
            if not names or names[-1] != code.co_name and not code.co_name.startswith("<"):
                names.append(code.co_name)
        else:
            names.append("%s:%d" % (os.path.basename(code.co_filename), frame.f_lineno))
        frame = frame.f_back
    return " < ".join(names).encode()[:500]


def drain(stream):
    _driver.use(stream.device_index)
    _driver.Cuda.lib.fake_drain(ctypes.c_void_p(stream.cuda_stream))
    if not _marked and "gmswap_hook.library" in sys.modules:
        _marked.append(True)
        _mark_calls(sys.modules["gmswap_hook.library"].Lanes)


def touch(address, size, stream, write):
    """Has a stream read or write memory; the host if there is none."""
    lib, at, n = _driver.Cuda.lib, ctypes.c_uint64(address), ctypes.c_size_t(size)
    if stream is None:
        if lib is not None:
            lib.fake_host_touch(at, n, ctypes.c_bool(write), where())
    else:
        _driver.use(stream.device_index)
        lib.fake_touch(ctypes.c_void_p(stream.cuda_stream), at, n, ctypes.c_bool(write), where())


def forget(address, size):
    if _driver.Cuda.lib is not None:
        _driver.Cuda.lib.fake_forget(ctypes.c_uint64(address), ctypes.c_size_t(size))


def _mark_calls(lanes):
    for name in "out", "left", "back", "ready", "drop", "words":
        setattr(lanes, name, _marking(getattr(lanes, name)))


def _marking(call):
    @functools.wraps(call)
    def marking(*args):
        _driver.Cuda.lib.fake_mark(where())
        try:
            return call(*args)
        finally:
            _driver.Cuda.lib.fake_mark(None)

    return marking
