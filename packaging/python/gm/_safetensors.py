"""Files of safetensors, in memory that processes share: 8 bytes of length, a header in JSON, and the tensors' bytes."""

import hashlib
import json
import math
import os

from gm import _shared

# The types of the format: bytes of a number, its name in PyTorch, and how __cuda_array_interface__ says it, which knows no bfloat16 or float8.
_TYPES = {
    "BOOL": (1, "bool", "|b1"), "U8": (1, "uint8", "|u1"), "I8": (1, "int8", "|i1"),
    "U16": (2, "uint16", "<u2"), "I16": (2, "int16", "<i2"), "F16": (2, "float16", "<f2"), "BF16": (2, "bfloat16", "<u2"),
    "U32": (4, "uint32", "<u4"), "I32": (4, "int32", "<i4"), "F32": (4, "float32", "<f4"),
    "U64": (8, "uint64", "<u8"), "I64": (8, "int64", "<i8"), "F64": (8, "float64", "<f8"),
    "F8_E4M3": (1, "float8_e4m3fn", "|u1"), "F8_E5M2": (1, "float8_e5m2", "|u1"),
}  # fmt: skip
_MOST = 100 << 20  # bytes of a header
_CHUNK = 64 << 20  # bytes that are read at a time


class Array:
    """A tensor in shared memory, for programs without PyTorch. Numbers that have no type there are unsigned ones; dtype tells which they are."""

    def __init__(self, memory, dtype, shape, begin):
        self.memory, self.dtype, self.shape, self.address = memory, dtype, shape, memory.address + begin

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": _TYPES[self.dtype][2], "data": (self.address, False), "version": 2}


def load_safetensors(path, device=0):
    """Return the tensors of a file by name, on a GPU, in memory that all processes of this user share: only the first reads the file.

    They are tensors of PyTorch where that is installed, without a copy, and else objects with __cuda_array_interface__. They are read-only: a
    kernel that writes to one ends this process's use of the GPU. The memory stays when the processes end, until gmswap ctl drop KEY or until
    others need the room.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        tensors, data, size = read_header(file, path)

        def fill(memory):
            _fill(memory, file, path, data, size)

        memory = _shared.shared(_key(path, file), max(size, 1), fill, device)
    return _tensors(memory, tensors)


def _key(path, file):
    s = os.fstat(file.fileno())
    known = (os.path.realpath(path), s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns)
    name = os.path.basename(path).encode(errors="replace")[:150].decode(errors="ignore")
    return f"{name}:{hashlib.sha256(repr(known).encode()).hexdigest()[:32]}"


def read_header(file, path):
    """Return the tensors of a file as (name, type, shape, begin), where their bytes begin in the file, and how many these are."""
    total = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if total < 8 or length > min(total - 8, _MOST):
        raise ValueError(f"{path} is no file of safetensors: its header has {length} bytes")
    try:
        header = json.loads(file.read(length).decode())
        header.pop("__metadata__", None)
        tensors = [(name, *_tensor(entry, total - 8 - length)) for name, entry in header.items()]
    except (ValueError, TypeError, KeyError, AttributeError) as wrong:
        raise ValueError(f"{path} is no file of safetensors: {wrong}") from wrong
    return tensors, 8 + length, total - 8 - length


def _tensor(entry, size):
    dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if dtype not in _TYPES:
        raise ValueError(f"the type {dtype} is not known")
    width = _TYPES[dtype][0]
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, begin, end)):
        raise ValueError(f"{entry} has numbers that are none")
    if not begin <= end <= size or end - begin != math.prod(shape) * width:
        raise ValueError(f"{entry} does not lie within {size} bytes")
    if begin % width:
        raise ValueError(f"{entry} does not begin at a whole number")
    return dtype, shape, begin


def _fill(memory, file, path, data, size):
    file.seek(data)
    buffer = memoryview(bytearray(min(_CHUNK, size)))
    done = 0
    while done < size:
        n = file.readinto(buffer[: size - done])
        if not n:
            raise ValueError(f"{path} ends early")
        memory.write(done, buffer[:n])
        done += n


def _tensors(memory, tensors):
    try:
        import torch
    except ImportError:
        return {name: Array(memory, dtype, shape, begin) for name, dtype, shape, begin in tensors}
    data = torch.as_tensor(memory, device=f"cuda:{memory.device}")
    if data.data_ptr() != memory.address:
        raise _shared.SharingError("this version of PyTorch copies what it is to use as it is")
    return {name: _view(torch, data, dtype, shape, begin) for name, dtype, shape, begin in tensors}


def _view(torch, data, dtype, shape, begin):
    width, name, _ = _TYPES[dtype]
    return data[begin : begin + math.prod(shape) * width].view(getattr(torch, name)).view(shape)
