"""CUDA tensors cannot be sent to other processes: CUDA has handles only for memory that is one allocation of its own."""

import functools

from . import say


def explain(torch):
    """Says so in a line, before PyTorch raises what it does."""
    storage = getattr(torch, "UntypedStorage", None)
    real = getattr(storage, "_share_cuda_", None)
    if real is None:
        return

    @functools.wraps(real)
    def _share_cuda_(self, *args, **kwargs):
        say.once("CUDA tensors cannot be sent to other processes on this allocator: send tensors of the host instead")
        return real(self, *args, **kwargs)

    storage._share_cuda_ = _share_cuda_
