"""Puts libgm.so in the place of PyTorch's CUDA allocator, when CUDA starts, and of CuPy's memory pool, at its first request."""

from . import compiled, cupy_pool, start


def imported(name, module):
    """Called with each module that was waited for, once it has been imported, and returns what to wait for next."""
    if name == "torch":
        return compiled.MODULES if start.watch(module) else ()
    if name == "cupy":
        cupy_pool.watch(module)
    else:
        compiled.imported(name, module)
    return ()
