"""Memory of a GPU that processes share by a key, through libgm.so and gmswap serve."""

import ctypes
import os
import weakref

from gm._library import last_error, library


class SharingError(RuntimeError):
    """Memory could not be shared, or the shared memory could not be opened. The text says why."""


class _Key(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int64), ("address", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def _failed():
    return SharingError(last_error())


def _check(result):
    if result != 0:
        raise _failed()


def _close(key):
    library().gm_key_close(key)  # of an object that is gone: nobody to tell


class Shared:
    """The memory of a key on a GPU, in bytes, for torch.as_tensor and others that read __cuda_array_interface__.

    Where `address` is None there is none: this process makes it, by make(), write() or work of the GPU, and freeze(), while others that open
    the key wait. After that it is read-only. It is closed once nothing refers to it.
    """

    def __init__(self, key, device=0):
        opened = _Key()
        _check(library().gm_key_open(device, os.fsencode(key), ctypes.byref(opened)))
        self.key, self.device, self.address, self.size, self._id = key, device, opened.address, opened.size, opened.id
        self._finalizer = weakref.finalize(self, _close, opened.id)
        self._finalizer.atexit = False  # the end of the process closes it

    @property
    def __cuda_array_interface__(self):
        # PyTorch takes no interface that says it is read-only.
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address or 0, False), "version": 2}

    def make(self, size):
        """Make at least size bytes."""
        address = library().gm_key_make(self._id, size)
        if not address:
            raise _failed()
        self.address, self.size = address, -(-size // (2 << 20)) * (2 << 20)

    def write(self, offset, data):
        """Copy a writable buffer, such as a bytearray, into the memory from an offset on."""
        view = memoryview(data).cast("B")
        _check(library().gm_key_write(self._id, offset, (ctypes.c_char * len(view)).from_buffer(view), len(view)))

    def freeze(self):
        """Wait for the GPU, make the memory read-only, and let others have it."""
        _check(library().gm_key_freeze(self._id))

    def close(self):
        """Wait for the GPU and unmap the memory, which nothing may use any longer."""
        if self._finalizer.detach():
            self.address, self.size = None, 0
            _check(library().gm_key_close(self._id))


def shared(key, size, fill, device=0):
    """Return the memory of a key: that which another process has filled, or size bytes which fill(memory) fills now."""
    memory = Shared(key, device)
    if memory.address is not None:
        return memory
    try:
        memory.make(size)
        fill(memory)
        memory.freeze()
    except BaseException:
        memory.close()
        raise
    return memory
