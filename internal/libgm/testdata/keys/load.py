"""Loads files of safetensors into shared memory, twice, and reads what is there: load.py PACKAGE FOLDER."""

import ctypes
import json
import os
import random
import struct
import sys

ctypes.CDLL(os.environ["GM_LIB"], mode=ctypes.RTLD_GLOBAL)  # as gmstitch run loads it
sys.path.insert(0, sys.argv[1])
import gm  # noqa: E402
from gm._safetensors import read_header  # noqa: E402

path = os.path.join(sys.argv[2], "model.safetensors")


def write(header, data):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(array, n):
    got = ctypes.create_string_buffer(n)
    assert ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2(got, ctypes.c_uint64(array.address), ctypes.c_size_t(n)) == 0
    return got.raw


def refused(header, data, text):
    write(header, data)
    try:
        gm.load_safetensors(path)
    except ValueError as failure:
        assert text in str(failure) and path in str(failure), failure
        return
    raise AssertionError(f"{header} was loaded")


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


refused(b"[]", b"", "no file of safetensors")
refused(b"{", b"", "no file of safetensors")
refused({"a": tensor("F32", [2], 0, 8)}, b"1234567", "does not lie within 7 bytes")
refused({"a": tensor("F32", [2], 0, 4)}, b"12345678", "does not lie within")
refused({"a": tensor("F32", [1], 2, 6)}, b"12345678", "does not begin at a whole number")
refused({"a": tensor("F32", [-1], 4, 0)}, b"12345678", "numbers that are none")
refused({"a": tensor("C64", [1], 0, 8)}, b"12345678", "the type C64 is not known")
refused({"a": {"dtype": "U8"}}, b"", "no file of safetensors")
refused(b"", b"", "no file of safetensors")
with open(path, "wb") as file:
    file.write(struct.pack("<Q", 1 << 62))
for shortened in (0, 3, 8):
    os.truncate(path, shortened)
    with open(path, "rb") as file:
        try:
            read_header(file, path)
            raise AssertionError("a short file was read")
        except ValueError:
            pass

ctypes.CDLL("libcuda.so.1").cuInit(0)
context = ctypes.c_void_p()
assert ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert ctypes.CDLL("libcuda.so.1").cuCtxSetCurrent(context) == 0
data = random.Random(1).randbytes(3 << 20)
write({"__metadata__": {"format": "pt"}, "w": tensor("BF16", [512, 1024], 0, 1 << 20), "b": tensor("F32", [1 << 19], 1 << 20, 3 << 20)}, data)
first, second = gm.load_safetensors(path), gm.load_safetensors(path)
for tensors in (first, second):
    assert read(tensors["w"], 1 << 20) == data[: 1 << 20] and read(tensors["b"], 2 << 20) == data[1 << 20 :]
    assert tensors["w"].__cuda_array_interface__["shape"] == (512, 1024) and tensors["w"].dtype == "BF16"
assert first["w"].memory.key == second["w"].memory.key and first["w"].memory.key.startswith("model.safetensors:")
assert first["w"].address != second["w"].address, "each open has a mapping of its own"
write({"e": tensor("F32", [0], 0, 0)}, b"")
assert gm.load_safetensors(path)["e"].shape == (0,)


def fails(memory):
    raise KeyError("fill")


try:
    gm.shared("k", 5, fails)
    raise AssertionError("a failure was lost")
except KeyError:
    pass
memory = gm.shared("k", 5, lambda m: m.write(0, bytearray(b"12345")))
assert memory.size == 2 << 20 and memory.__cuda_array_interface__["data"] == (memory.address, False)
memory.close()
memory.close()
again = gm.shared("k", 5, fails)
got = ctypes.create_string_buffer(5)
assert ctypes.CDLL("libcuda.so.1").cuMemcpyDtoH_v2(got, ctypes.c_uint64(again.address), ctypes.c_size_t(5)) == 0 and got.raw == b"12345"
try:
    again.write(0, bytearray(1))
    raise AssertionError("frozen memory was written")
except gm.SharingError as failure:
    assert "frozen" in str(failure), failure
