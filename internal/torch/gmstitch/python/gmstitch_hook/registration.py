"""Keeps NCCL from registering all memory of PyTorch's allocator, as PyTorch does with expandable segments: a range of mapped pieces may show
other memory later."""

import os

from . import say

# What PyTorch's NCCL backend reads when it is made, which may be before CUDA starts.
NAMES = ("TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK")

_asked = {}  # variables and their values


def refuse():
    for name in NAMES:
        if os.environ.get(name, "0") != "0":
            _asked[name] = os.environ[name]
            os.environ[name] = "0"


def allow():
    """Undoes refuse, where PyTorch's own allocator stays."""
    os.environ.update(_asked)


def report():
    for name in _asked:
        say.once("%s has no effect: gm's memory is mapped in pieces" % name)
