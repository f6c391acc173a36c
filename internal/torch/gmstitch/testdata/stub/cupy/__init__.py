"""As much of CuPy 13's interface as gmstitch changes, on numbers that stand for addresses.

Environment variables:
    STUB_CUPY_TOTAL    bytes of a device, 1000 by default
    STUB_CUPY_WITHOUT  names that this CuPy does not have: of cupy, cupy.cuda and what the classes there have; parted by commas
"""

import os

from . import cuda  # noqa: F401

__version__ = "13.0.0+stub"

_default_memory_pool = cuda.MemoryPool()
cuda.set_allocator(_default_memory_pool.malloc)


def get_default_memory_pool():
    return _default_memory_pool


class Bytes(object):
    """Stands for an array of bytes."""

    def __init__(self, size):
        self.data = cuda.alloc(size)


def empty_bytes(size):
    return Bytes(size)


for name in os.environ.get("STUB_CUPY_WITHOUT", "").split(","):
    for place in (globals(), vars(cuda)):
        place.pop(name, None)
