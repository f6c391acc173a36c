"""Storages. Their addresses, _cdata, are used again at once, as the allocator of the host does, if there is no weak reference."""

import ctypes
import weakref

from . import _driver, _races, cuda

_free, _high = [], [0x10000]
at = weakref.WeakValueDictionary()  # what storages own, by their addresses


class Cell(object):
    """An address."""

    def __init__(self):
        if not _free:
            _high[0] += 0x100
            _free.append(_high[0])
        self.address = _free.pop()

    def __del__(self):
        _free.append(self.address)


class Memory(object):
    """What a storage owns."""

    def __init__(self, nbytes, place, pinned=False):
        self.cell, self.place, self.pinned = Cell(), place, pinned
        self.tensors = 0  # that hold it
        at[self.cell.address] = self
        self.pointer = self.stream = 0
        self.nbytes = 0
        self.resize(nbytes)

    def resize(self, nbytes):
        self.release()
        self.nbytes = nbytes
        if self.place.type != "cuda":
            self.host = ctypes.create_string_buffer(max(1, nbytes))
            self.pointer = ctypes.addressof(self.host)
        elif nbytes:
            cuda._lazy_init()
            _driver.use(self.place.index)
            self.stream = cuda.current_stream(self.place.index).cuda_stream
            self.pointer = _driver.gm.gm_try_malloc(nbytes, self.place.index, self.stream)
            if not self.pointer:
                raise cuda.OutOfMemoryError("CUDA out of memory: %d bytes" % nbytes)
            cuda._count(nbytes)

    def release(self):
        if self.place.type == "cuda" and self.pointer:
            _driver.gm.gm_free(self.pointer, self.nbytes, self.place.index, self.stream)
            cuda._count(-self.nbytes)
        elif self.pinned and self.pointer and _races.on:
            _races.forget(self.pointer, self.nbytes)
        self.pointer = 0

    def __del__(self):
        if getattr(self, "pointer", 0):
            self.release()


class UntypedStorage(object):
    def __init__(self, memory):
        self.memory = memory

    @classmethod
    def _new_with_weak_ptr(cls, address):
        memory = at.get(address)
        return None if memory is None else cls(memory)

    @property
    def _cdata(self):
        return self.memory.cell.address

    def nbytes(self):
        return self.memory.nbytes

    def data_ptr(self):
        return self.memory.pointer

    def resizable(self):
        return True

    def resize_(self, nbytes):
        self.memory.resize(nbytes)
