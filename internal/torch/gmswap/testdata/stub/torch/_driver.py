"""The fake CUDA driver, and libgm.so."""

import ctypes
import os
import threading

_local = threading.local()
_contexts = {}


class Cuda(object):
    lib = None

    @classmethod
    def call(cls, name, *args):
        code = getattr(cls.lib, name)(*args)
        if code != 0:
            raise RuntimeError("%s: error %d" % (name, code))


def load():
    """Starts the driver. The functions of libgm.so that allocate are gm."""
    global gm
    Cuda.lib = ctypes.CDLL("libcuda.so.1")
    Cuda.call("cuInit", 0)
    gm = ctypes.CDLL(os.environ["GM_LIB"])
    gm.gm_try_malloc.restype = ctypes.c_void_p
    gm.gm_try_malloc.argtypes = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
    gm.gm_free.argtypes = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p
    gm.gm_free.restype = gm.gm_record_stream.restype = None
    gm.gm_record_stream.argtypes = ctypes.c_void_p, ctypes.c_void_p


def use(index):
    """Makes the primary context of a device the thread's."""
    if getattr(_local, "index", None) == index:
        return
    if index not in _contexts:
        context = ctypes.c_void_p()
        Cuda.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), index)
        _contexts[index] = context
    Cuda.call("cuCtxSetCurrent", _contexts[index])
    _local.index = index
