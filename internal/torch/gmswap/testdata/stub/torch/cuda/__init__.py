"""Streams, events and counters of the fake driver."""

import ctypes
import threading

from .. import _C, _driver, _races
from .._dtypes import device as Device
from .._driver import Cuda

_initialized = False
_local = threading.local()
_lock = threading.Lock()
_memory = {"now": 0, "peak": 0}


class OutOfMemoryError(RuntimeError):
    pass


def _lazy_init():
    global _initialized
    if not _initialized:
        _initialized = True
        _C._cuda_init()


init = _lazy_init


def is_available():
    return True


def current_device():
    return getattr(_local, "device", 0)


def set_device(index):
    _local.device = index


class Stream(object):
    def __init__(self, device=None):
        _lazy_init()
        self.device_index = current_device() if device is None else index_of(device)
        _driver.use(self.device_index)
        stream = ctypes.c_void_p()
        Cuda.call("cuStreamCreate", ctypes.byref(stream), 1)
        self.cuda_stream = stream.value

    def synchronize(self):
        _driver.use(self.device_index)
        Cuda.call("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))

    def wait_stream(self, other):
        event = Event()
        event.record(other)
        _driver.use(self.device_index)
        Cuda.call("cuStreamWaitEvent", ctypes.c_void_p(self.cuda_stream), event.event, 0)


class ExternalStream(Stream):
    def __init__(self, address, device=None):
        self.device_index, self.cuda_stream = index_of(device), address


def index_of(device):
    return device.index if isinstance(device, Device) else device or 0


def default_stream(device=None):
    return ExternalStream(0, device)


def current_stream(device=None):
    index = current_device() if device is None else index_of(device)
    return getattr(_local, "streams", {}).get(index) or default_stream(index)


class stream(object):
    """A context in which a stream is the current one."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        self.before = dict(getattr(_local, "streams", {}))
        _local.streams = dict(self.before)
        _local.streams[self.stream.device_index] = self.stream

    def __exit__(self, *reason):
        _local.streams = self.before


class Event(object):
    def __init__(self, enable_timing=False):
        self.event, self.flags = ctypes.c_void_p(), 0 if enable_timing else 2

    def record(self, stream=None):
        stream = stream or current_stream()
        _driver.use(stream.device_index)
        if not self.event:
            Cuda.call("cuEventCreate", ctypes.byref(self.event), self.flags)
        Cuda.call("cuEventRecord", self.event, ctypes.c_void_p(stream.cuda_stream))

    def query(self):
        return Cuda.lib.cuEventQuery(self.event) == 0

    def synchronize(self):
        Cuda.call("cuEventSynchronize", self.event)

    def elapsed_time(self, end):
        ms = ctypes.c_float()
        Cuda.call("cuEventElapsedTime", ctypes.byref(ms), self.event, end.event)
        return ms.value

    def __del__(self):
        if self.event:
            Cuda.lib.cuEventDestroy_v2(self.event)


def synchronize(device=None):
    _driver.use(current_device() if device is None else index_of(device))
    Cuda.call("cuCtxSynchronize")


def is_current_stream_capturing():
    status = ctypes.c_int()
    _driver.use(current_device())
    Cuda.call("cuStreamIsCapturing", ctypes.c_void_p(current_stream().cuda_stream), ctypes.byref(status))
    return status.value != 0


def get_device_name(device=None):
    return "fake"


class Properties(object):
    total_memory = 1 << 30


def get_device_properties(device=None):
    return Properties


def mem_get_info(device=None):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _driver.use(current_device() if device is None else index_of(device))
    Cuda.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def max_memory_allocated(device=None):
    return _memory["peak"]


def memory_allocated(device=None):
    return _memory["now"]


def memory_stats_as_nested_dict(device=None):
    return {"allocated_bytes": {"all": {"current": _memory["now"]}}}


def reset_peak_memory_stats(device=None):
    _C._cuda_resetPeakMemoryStats(device)


def empty_cache():
    _driver.gm.gm_reset()


def _count(nbytes):
    with _lock:
        _memory["now"] += nbytes
        _memory["peak"] = max(_memory["peak"], _memory["now"])


def _wait(place):
    """Waits for the current stream, before the program computes in its order."""
    if place.type == "cuda":
        if _races.on:
            _races.drain(current_stream(place))
        else:
            current_stream(place).synchronize()
