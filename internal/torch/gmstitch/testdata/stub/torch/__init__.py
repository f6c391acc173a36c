"""As much of PyTorch 2.11's interface as gmstitch changes, with its functions of memory above torch._C as they are there.

Environment variables:
    STUB_TORCH_DEVICES  number of devices, 1 by default
    STUB_TORCH_EARLY    "1" initialises PyTorch's own allocator at the import
    STUB_TORCH_WITHOUT  names that this PyTorch does not have: of torch._C, torch.cuda.memory, and setters; parted by commas
"""

__version__ = "2.11.0+stub"

from . import _C, backends, cuda, storage  # noqa: E402,F401
from .cuda import OutOfMemoryError  # noqa: E402,F401
from .storage import UntypedStorage  # noqa: E402,F401


class version(object):
    cuda = "13.0"
    hip = None


class Bytes(object):
    """Stands for a tensor of bytes on a device."""

    def __init__(self, size, device=0, stream=0):
        self.address = 0
        cuda._lazy_init()
        self.allocator = _C.allocator
        self.address = self.allocator.malloc(size, device, stream)

    def record_stream(self, stream):
        self.allocator.record_stream(self.address, stream)

    def __del__(self):
        if self.address:
            self.allocator.free(self.address)


def empty_bytes(*args):
    return Bytes(*args)
