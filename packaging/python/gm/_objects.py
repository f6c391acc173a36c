"""Objects that leave a GPU when others need the room, and come back at their addresses, through libgm.so."""

import ctypes
import os
import sys
import weakref

from gm._library import last_error, library

_UNKNOWN = 2**63 - 1


class StoreError(RuntimeError):
    """A call of a store failed. The text says why."""


class _Options(ctypes.Structure):
    _fields_ = [
        ("limit", ctypes.c_size_t), ("host", ctypes.c_size_t), ("policy", ctypes.c_char_p), ("folder", ctypes.c_char_p),
        ("server", ctypes.c_char_p), ("name", ctypes.c_char_p), ("evicted", ctypes.c_void_p), ("user", ctypes.c_void_p),
        ("peers", ctypes.c_char_p), ("peer_limit", ctypes.c_size_t),
    ]


class _Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in (
        "objects", "card_bytes", "unused_bytes", "host_bytes", "pinned_bytes", "file_bytes", "gets", "misses", "evictions", "clean",
        "evicted_bytes", "fetches", "ahead", "fetched_bytes", "spilled_bytes", "restored_bytes", "peer_bytes", "evicting_ns",
    )]


_Evicted = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def _check(result):
    if not result:
        raise StoreError(last_error())
    return result


def _text(value):
    return None if value is None else os.fsencode(value)


def _close(number, _told):
    library().gm_store_close(number)  # of a store that is gone: nobody to tell


class Store:
    """Objects of this process on a GPU, of which only those that are in use have to be there.

    limit is how many bytes of the GPU it may take, host how many of pinned memory; 0 is no limit but the GPU's, and a quarter of the machine's
    memory. policy says which objects leave first: lru, fifo, size-lru or latency, the one that is needed last. folder is for a file with
    what the host has no room for. peers are other GPUs, such as [1], that objects go to rather than to the host, and peer_limit how many bytes
    of them the store may take. server is the socket of gmswap serve, "" for none. evicted(object) is told of each object that left.
    All work is in the current stream of PyTorch, if the program uses that, or else the default one.
    """

    def __init__(self, device=0, limit=0, host=0, policy="lru", folder=None, server=None, name=None, evicted=None,
                 peers=(), peer_limit=0):
        self.device, self._objects, self._id = device, {}, 0
        objects = self._objects
        told = _Evicted(lambda _, number: evicted(objects.get(number))) if evicted else _Evicted()
        options = _Options(limit, host, _text(policy), _text(folder), _text(server), _text(name),
                           ctypes.cast(told, ctypes.c_void_p), None, ",".join(map(str, peers)).encode(), peer_limit)
        self._id = _check(library().gm_store_open(device, ctypes.byref(options)))
        self._finalizer = weakref.finalize(self, _close, self._id, told)

    def create(self, size):
        """Return a new object of size bytes, which is in use until it is put."""
        address = ctypes.c_void_p()
        stream = self._stream()
        number = _check(library().gm_store_create(self._id, size, stream, ctypes.byref(address)))
        made = self._objects[number] = Object(self, number, address.value, size)
        return made

    def put(self, tensor, next=None):
        """Return an object with the contents of a tensor of PyTorch, which is put: its get() is a tensor of this kind."""
        made = self.create(max(tensor.nbytes, 1))
        made._like = (tensor.dtype, tuple(tensor.shape))
        made.tensor().copy_(tensor)
        made.put(next)
        return made

    def stats(self):
        """Return what the store has, and has done, by name (struct gm_store_stats in gm.h)."""
        stats = _Stats()
        _check(library().gm_store_get_stats(self._id, ctypes.byref(stats)) == 0)
        return {name: getattr(stats, name) for name, _ in _Stats._fields_}

    def close(self):
        """Wait for the GPU and give up all objects."""
        if self._finalizer.detach():
            number, self._id = self._id, 0
            _check(library().gm_store_close(number) == 0)
            self._objects.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _stream(self):
        torch = sys.modules.get("torch")
        return torch.cuda.current_stream(self.device).cuda_stream if torch else None


class Object:
    """An object of a store: size bytes at address, on the GPU while it is in use, for torch.as_tensor and others that read
    __cuda_array_interface__. What still has that must not use it after put() or free().
    """

    def __init__(self, store, number, address, size):
        self.store, self.address, self.size, self._number, self._like = store, address, size, number, None

    @property
    def __cuda_array_interface__(self):
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 2}

    def get(self, write=True):
        """Bring the object to the GPU and keep it there until put(). Returns its tensor if it was made from one, or else the object.

        Contents that are not to be written (write=False) leave the GPU without a copy if the host has one.
        """
        _check(library().gm_store_get(self.store._id, self._number, int(write), self.store._stream()))
        return self.tensor() if self._like else self

    def put(self, next=None):
        """Let the object leave the GPU. Of two objects the one with the lesser next is needed earlier; None is not known."""
        next = _UNKNOWN if next is None else next
        _check(library().gm_store_put(self.store._id, self._number, next, self.store._stream()) == 0)

    def free(self):
        """End the object."""
        _check(library().gm_store_free(self.store._id, self._number, self.store._stream()) == 0)
        del self.store._objects[self._number]

    def tensor(self, dtype=None, shape=None):
        """Return a tensor of PyTorch of the object's memory while it is in use: its bytes, or those of a dtype and shape."""
        import torch

        whole = torch.as_tensor(self, device=f"cuda:{self.store.device}")
        dtype, shape = (dtype, shape) if dtype else self._like or (torch.uint8, (self.size,))
        count = 1
        for n in shape:
            count *= n
        return whole[: count * dtype.itemsize].view(dtype).view(shape)
