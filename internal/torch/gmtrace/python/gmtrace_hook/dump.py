"""Two ways to write a snapshot of the allocator, with its history, to a file."""

import ctypes
import os
import pickle


LOCAL = 16  # bytes: a shorter string is held in the object itself, and a snapshot is longer


class String(ctypes.Structure):
    """libstdc++'s std::string."""

    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t), ("local", ctypes.c_char * LOCAL)]


class CppDump(object):
    """Calls the function by which PyTorch itself dumps a snapshot on running out of memory, without the GIL.

    It must not throw: whoever uses this has seen that the allocator can make snapshots.
    """

    name = "c++"
    symbol = "_ZN5torch4cuda24_memory_snapshot_pickledB5cxx11Ev"

    def __init__(self, torch):
        lib = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cuda.so"))
        self.snapshot = getattr(lib, self.symbol)
        self.snapshot.argtypes = []
        self.snapshot.restype = String
        self.delete = lib._ZdlPv
        self.delete.argtypes = [ctypes.c_void_p]
        self.delete.restype = None

    def write(self, path):
        text = self.snapshot()
        if text.size < LOCAL:
            raise OSError("the snapshot is empty")
        try:
            with open(path, "wb", buffering=0) as f:
                rest = memoryview((ctypes.c_char * text.size).from_address(text.data)).cast("B")
                while rest:
                    rest = rest[f.write(rest):]
        finally:
            self.delete(text.data)


class PythonDump(object):
    """Makes the snapshot as a Python object first, under the GIL."""

    name = "python"

    def __init__(self, torch):
        self.memory = torch.cuda.memory

    def write(self, path):
        snapshot = self.memory._snapshot()
        with open(path, "wb") as f:
            pickle.dump(snapshot, f, protocol=4)


def best(torch):
    try:
        return CppDump(torch)
    except (OSError, AttributeError):
        return PythonDump(torch)
