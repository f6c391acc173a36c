"""Puts libgm.so in the place of PyTorch's CUDA allocator, when CUDA starts."""

from . import compiled, start


def imported(name, module):
    """Called with each module that was waited for, once it has been imported, and returns what to wait for next."""
    if name == "torch":
        return compiled.MODULES if start.watch(module) else ()
    compiled.imported(name, module)
    return ()
