"""Tensors."""

import collections
import ctypes
import operator

from . import _dtypes, _races, _storage, cuda
from ._contents import made
from ._dtypes import Size


def word(number):
    """Returns the bytes of the last 64 bits of a number."""
    return (number % (1 << 64)).to_bytes(8, "little")


def strides(size):
    result, step = [], 1
    for n in reversed(size):
        result.append(step)
        step *= n
    return tuple(reversed(result))


def product(size):
    result = 1
    for n in size:
        result *= n
    return result


class Gradient(object):
    """Property grad of tensors, as C has it."""

    def __get__(self, tensor, owner=None):
        return self if tensor is None else tensor._grad

    def __set__(self, tensor, gradient):
        tensor._grad = gradient


class Tensor(object):
    grad = Gradient()
    _post_accumulate_grad_hooks = _base = None

    def __init__(self, storage, dtype, size, stride=None, offset=0, counter=None):
        self._storage, self.dtype = storage, dtype
        storage.memory.tensors += 1
        self._size, self._stride, self._offset = Size(size), strides(size) if stride is None else tuple(stride), offset
        self._counter = counter or [0]  # shared with views
        self._grad = self.grad_fn = None
        self.requires_grad = False

    def __del__(self):
        self._storage.memory.tensors -= 1

    device = property(lambda self: self._storage.memory.place)
    is_cuda = property(lambda self: self.device.type == "cuda")
    layout = _dtypes.strided
    shape = property(lambda self: self._size)
    _version = property(lambda self: self._counter[0])
    is_leaf = property(lambda self: self.grad_fn is None)

    def is_inference(self):
        return False

    def _use_count(self):
        return 1

    def untyped_storage(self):
        return _storage.UntypedStorage(self._storage.memory)

    def size(self):
        return self._size

    def stride(self):
        return self._stride

    def storage_offset(self):
        return self._offset

    def dim(self):
        return len(self._size)

    def numel(self):
        return product(self._size)

    def element_size(self):
        return self.dtype.size

    def is_contiguous(self):
        return self._stride == strides(self._size)

    def is_conj(self):
        return False

    is_neg = is_conj
    is_nested = False

    def data_ptr(self):
        return self._address()

    def _address(self):
        return self._storage.data_ptr() + self._offset * self.dtype.size

    def record_stream(self, stream):
        from . import _driver

        _driver.gm.gm_record_stream(self._storage.data_ptr(), stream.cuda_stream)

    # Views.

    def alias(self, size, stride, offset, dtype=None):
        return Tensor(self._storage, dtype or self.dtype, size, stride, offset, self._counter)

    def detach(self):
        return self.alias(self._size, self._stride, self._offset)

    def set_(self, storage, offset, size, stride):
        need = offset + 1 + sum((n - 1) * s for n, s in zip(size, stride)) if product(size) else 0
        if need * self.dtype.size > storage.nbytes():
            raise RuntimeError("set_ would resize a storage of %d bytes" % storage.nbytes())
        self._storage.memory.tensors -= 1
        storage.memory.tensors += 1
        self._storage, self._offset, self._size, self._stride = storage, offset, Size(size), tuple(stride)
        self._counter[0] += 1
        return self

    def exchange(self, other):
        """Takes the memory of another tensor, which no version tells of."""
        self.set_(other._storage, other._offset, other._size, other._stride)
        self._counter[0] -= 1

    data = property(lambda self: self.detach(), exchange)

    def as_strided(self, size, stride, offset):
        return self.alias(Size(size), tuple(stride), offset)

    def reshape(self, *size):
        assert self.is_contiguous()
        known = -product(size)
        size = [self.numel() // known if n == -1 else n for n in size]
        return self.alias(size, strides(size), self._offset)

    def flatten(self):
        return self.reshape(-1)

    def view(self, dtype):
        assert self.is_contiguous() and self.dim() == 1
        return self.alias((self.numel() * self.dtype.size // dtype.size,), (1,), self._offset * self.dtype.size // dtype.size, dtype)

    def __getitem__(self, rows):
        first, last, _ = rows.indices(self._size[0])
        return self.alias((last - first,) + self._size[1:], self._stride, self._offset + first * self._stride[0])

    # Contents.

    def read(self):
        """Returns the bytes, in the order of the current stream."""
        cuda._wait(self.device)
        self._note(False)
        if self.is_contiguous():
            return ctypes.string_at(self._address(), self.numel() * self.dtype.size)
        assert self.dim() == 1
        n, step = self.dtype.size, self._stride[0] * self.dtype.size
        return b"".join(ctypes.string_at(self._address() + i * step, n) for i in range(self._size[0]))

    def write(self, data):
        assert self.is_contiguous() and len(data) == self.numel() * self.dtype.size, (self._size, len(data))
        cuda._wait(self.device)
        self._note(True)
        ctypes.memmove(self._address(), data, len(data))
        return self

    def _note(self, write, stream=None):
        """Has the driver know that the current stream reads or writes this, and of pinned memory the host, unless a stream does."""
        if not _races.on or not self.numel() or not (self.is_cuda or self._storage.memory.pinned):
            return
        if self.is_cuda:
            stream = cuda.current_stream(self.device)
        if self.is_contiguous():
            _races.touch(self._address(), self.numel() * self.dtype.size, stream, write)
            return
        for i in range(self._size[0]):
            _races.touch(self._address() + i * self._stride[0] * self.dtype.size, self.dtype.size, stream, write)

    def _fetch(self):
        """Returns the bytes once the host has waited for the current stream, as it does for what it computes with."""
        data = self.read()
        if _races.on and self.is_cuda:
            cuda.current_stream(self.device).synchronize()
        return data

    def clone(self):
        return empty(*self._size, dtype=self.dtype, device=self.device).write(self.read())

    def copy_(self, other, non_blocking=False):
        self._counter[0] += 1
        if _races.on and other.is_cuda and not self.is_cuda:
            return self._copy_out(other, non_blocking)
        return self.write(other.read())

    def _copy_out(self, other, non_blocking):
        if not non_blocking or not self._storage.memory.pinned:
            return self.write(other._fetch())
        data = other.read()
        self._note(True, cuda.current_stream(other.device))
        ctypes.memmove(self._address(), data, len(data))
        return self

    def logical_or_(self, other):
        return self.write(bytes(a | b for a, b in zip(self.read(), other.read())))

    def __ne__(self, other):
        a, b = (memoryview(t.read()).cast({1: "B", 2: "H", 4: "I", 8: "Q"}[self.dtype.size]) for t in (self, other))
        data = bytes(map(operator.ne, a, b))
        return empty(len(data), dtype=_dtypes.bool, device=self.device).write(data)

    __hash__ = object.__hash__

    def any(self):
        return empty(dtype=_dtypes.bool, device=self.device).write(bytes((any(self.read()),)))

    def cpu(self):
        return empty(*self._size, dtype=self.dtype).write(self._fetch())

    def sum(self, dim):
        assert dim == 0 and self.dtype is _dtypes.int64 and self.dim() == 2
        words, n = memoryview(self.read()).cast("Q"), self._size[1]
        return empty(n, dtype=self.dtype, device=self.device).write(b"".join(word(sum(words[i::n])) for i in range(n)))

    def add_(self, other):
        a, b = memoryview(self.read()).cast("Q"), memoryview(other.read()).cast({1: "B", 8: "Q"}[other.dtype.size])
        return self.write(b"".join(word(x + y) for x, y in zip(a, b)))

    def tolist(self):
        assert self.dtype is _dtypes.bool
        return [bool(byte) for byte in self._fetch()]

    def item(self):
        return int.from_bytes(self._fetch(), "little")

    def is_floating_point(self):
        return self.dtype is _dtypes.float32

    def register_post_accumulate_grad_hook(self, hook):
        from .nn.modules.module import register

        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._post_accumulate_grad_hooks is None:
            self._post_accumulate_grad_hooks = collections.OrderedDict()
        return register(self._post_accumulate_grad_hooks, hook)

    def backward(self, retain_graph=False, create_graph=False):
        from . import autograd

        autograd.backward(self, retain_graph=retain_graph)


def empty(*size, dtype=_dtypes.float32, device=None, pin_memory=False):
    if len(size) == 1 and isinstance(size[0], tuple):
        size = size[0]
    memory = _storage.Memory(product(size) * dtype.size, device or _dtypes.device("cpu"), pin_memory)
    return Tensor(_storage.UntypedStorage(memory), dtype, size)


def empty_like(tensor):
    return empty(*tensor._size, dtype=tensor.dtype, device=tensor.device)


def zeros(*size, dtype=_dtypes.float32, device=None):
    t = empty(*size, dtype=dtype, device=device)
    return t.write(bytes(t.numel() * dtype.size))


def full(size, byte, device=None):
    """Returns a tensor of bytes that follow from one."""
    t = empty(*size, device=device)
    return t.write(made(t.numel() * t.dtype.size, byte & 255))


def stack(tensors):
    first, data = tensors[0], b"".join(t.read() for t in tensors)
    return empty(len(tensors), *first._size, dtype=first.dtype, device=first.device).write(data)


def equal(a, b):
    return a._size == b._size and a._fetch() == b._fetch()
