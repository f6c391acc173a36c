"""As much of PyTorch's interface as gmtrace's hook uses, over an allocator written in Python.

Environment variables:
    STUB_TORCH_DEVICES  number of devices, 1 by default
    STUB_TORCH_LIMIT    bytes of memory of each
    STUB_TORCH_CUDA     "1" takes the segments from the CUDA driver
    STUB_TORCH_LOG      folder for the file log.PID: a JSON line for each history entry, as it is made
    STUB_TORCH_JITTER   microseconds by which the times of one entry may differ from snapshot to snapshot
    STUB_TORCH_BEHIND   microseconds by which the times of all entries are too early
    STUB_TORCH_API      "2.0" or "2.1": the function that switches the history on is as it was then
    STUB_TORCH_BACKEND  name of the allocator's backend, "native" by default
"""

__version__ = "2.11.0+stub"

from . import _C  # noqa: E402
from . import cuda, optim  # noqa: E402,F401


def empty_bytes(n, device=0, stream=0):
    """Allocates n bytes, until the result is gone."""
    cuda._lazy_init()
    return Bytes(n, device, stream)


class Bytes(object):
    """Stands for a tensor."""

    def __init__(self, n, device, stream):
        self.addr = 0
        self.allocator = _C.allocators[device]
        self.addr = self.allocator.malloc(n, stream)

    def __del__(self):
        if self.addr:
            self.allocator.free(self.addr)
