"""The memory of libgm.so as a pool of CuPy's: what cupy.cuda.MemoryPool does, for all of the process."""

import ctypes
import functools
import gc
import os

from .library import Library

LIMIT = "CUPY_GPU_MEMORY_LIMIT"
GRAPHS = 0x63757079, 1  # the name of the private pool of what is captured
ERROR_ROOM = 4096


class Memory(object):
    """A limit is kept, and its arguments are checked, by CuPy's own pool, which serves no requests."""

    def __init__(self, cupy, own, path):
        self.cupy, self.own = cupy, own
        cupy.cuda.get_current_stream(cupy.cuda.get_device_id()).ptr  # as it will be called
        cupy.cuda.memory.OutOfMemoryError
        self.library = Library(path)
        lib = self.library.lib
        lib.gm_try_malloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        lib.gm_try_malloc.restype = ctypes.c_void_p
        lib.gm_free.argtypes, lib.gm_free.restype = [ctypes.c_void_p], None  # the others are small: they pass faster undeclared
        lib.gm_reset.argtypes, lib.gm_reset.restype = [], None
        lib.gm_memory_fraction.argtypes, lib.gm_memory_fraction.restype = [ctypes.c_double, ctypes.c_int], None
        lib.gm_last_error.argtypes, lib.gm_last_error.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_size_t
        self.malloc = self.limited(self.allocator()) if os.environ.get(LIMIT) else self.allocator()
        Captures(cupy, lib)

    def allocator(self):
        """Returns the function that CuPy calls. It refers to nothing that is gone when the interpreter ends."""
        cuda = self.cupy.cuda
        try_malloc, gm_free = self.library.lib.gm_try_malloc, self.library.lib.gm_free
        device_id, current_stream, pointer, own_malloc = cuda.get_device_id, cuda.get_current_stream, cuda.MemoryPointer, self.own.malloc
        refused = self.refused

        class LibgmMemory(cuda.UnownedMemory):
            """Memory that libgm.so owns. The garbage collector calls __del__ before it takes anything of a cycle apart, which
            CuPy's PythonFunctionAllocator does not survive: it loses its function, and the memory is never freed."""

            __slots__ = ()

            def __del__(self):
                gm_free(self.ptr, 0, self.device_id, None)

        pointer(LibgmMemory(0, 0, None, device_id()), 0)  # raises where this CuPy has other ones

        def malloc(size):
            if not size:
                return own_malloc(size)
            device = device_id()
            p = try_malloc(size, device, current_stream(device).ptr) or refused(size, device)
            return pointer(LibgmMemory(p, size, None, device), 0)

        return malloc

    def limited(self, malloc):
        """Puts the limit of the environment into force at the first request of each device."""
        known = set()

        def limited_malloc(size):
            device = self.device()
            if device not in known:
                known.add(device)
                self.bound(device)
            return malloc(size)

        return limited_malloc

    def refused(self, size, device):
        """Tries once more without what waits for the garbage collector, as CuPy's pool does."""
        gc.collect()
        lib = self.library.lib
        p = lib.gm_try_malloc(size, device, self.cupy.cuda.get_current_stream(device).ptr)
        if p:
            return p
        text = ctypes.create_string_buffer(ERROR_ROOM)
        lib.gm_last_error(text, ERROR_ROOM)
        error = self.cupy.cuda.memory.OutOfMemoryError(size, self.total_bytes(), self.own.get_limit())
        error.args = ("%s %s" % (error, text.value.decode(errors="replace")),)
        raise error

    def device(self):
        return self.cupy.cuda.get_device_id()

    def free_all_blocks(self, stream=None):
        """Returns free memory to the driver: that of all streams, as libgm.so hands it from one to another."""
        self.library.lib.gm_reset()

    def n_free_blocks(self):
        device = self.device()
        return sum(block["state"] == "inactive" for s in self.library.segments() if s["device"] == device for block in s["blocks"])

    def used_bytes(self):
        return self.library.stats(self.device()).allocated_bytes[0].current

    def total_bytes(self):
        return self.library.stats(self.device()).reserved_bytes[0].current

    def free_bytes(self):
        stats = self.library.stats(self.device())
        return stats.reserved_bytes[0].current - stats.allocated_bytes[0].current

    def set_limit(self, size=None, fraction=None):
        self.own.set_limit(size, fraction)
        self.bound(self.device())

    def get_limit(self):
        return self.own.get_limit()

    def bound(self, device):
        limit, total = self.own.get_limit(), self.cupy.cuda.runtime.memGetInfo()[1]
        self.library.lib.gm_memory_fraction((limit + 0.5) / total if limit else 1.0, device)


class Captures(object):
    """What is allocated while a stream is captured into a graph comes from a private pool, which is not unmapped before the process
    ends, as a graph does not tell when it does."""

    def __init__(self, cupy, lib):
        self.device, self.lib = cupy.cuda.get_device_id, lib
        self.begun = {}  # devices, by stream
        name = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
        lib.gm_retain_pool.argtypes, lib.gm_retain_pool.restype = name, ctypes.c_int
        lib.gm_begin_pool.argtypes, lib.gm_begin_pool.restype = name + [ctypes.c_void_p], None
        lib.gm_end_pool.argtypes, lib.gm_end_pool.restype = name, None
        stream = cupy.cuda.stream._BaseStream
        begin, end, now = stream.begin_capture, stream.end_capture, cupy.cuda.get_current_stream()
        if now.ptr and now.is_capturing():  # as the first request comes
            self.begin(now.ptr)
        stream.begin_capture, stream.end_capture = self.around_begin(begin), self.around_end(end)

    def around_begin(self, real):
        @functools.wraps(real)
        def begin_capture(stream, *args, **kwargs):
            begun = self.begin(stream.ptr)
            try:
                return real(stream, *args, **kwargs)
            except BaseException:
                if begun:
                    self.end(stream.ptr)
                raise

        return begin_capture

    def around_end(self, real):
        @functools.wraps(real)
        def end_capture(stream, *args, **kwargs):
            try:
                return real(stream, *args, **kwargs)
            finally:
                self.end(stream.ptr)

        return end_capture

    def begin(self, stream):
        """Says whether this has begun the pool."""
        device = self.device()
        if stream in self.begun:
            return False
        if self.lib.gm_retain_pool(device, *GRAPHS) != 0:  # then the next would throw
            return False
        self.lib.gm_begin_pool(device, *(GRAPHS + (None,)))
        self.begun[stream] = device
        return True

    def end(self, stream):
        device = self.begun.pop(stream, None)
        if device is not None:
            self.lib.gm_end_pool(device, *GRAPHS)
