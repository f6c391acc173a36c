"""Keeps NCCL from registering all memory of PyTorch's allocator, as PyTorch does with expandable segments: a range of mapped pieces may show
other memory later."""

import os

from . import say

# What PyTorch's NCCL backend reads when it is made, which may be before CUDA starts.
NAMES = ("TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK")
# Put before a name, it names the variable that has what the program asked for. The processes that this one starts, as torchrun does, see it.
ASKED = "GMSTITCH_ASKED_"


def asked(name):
    return os.environ.get(ASKED + name, "0") != "0"


def refuse():
    for name in NAMES:
        if os.environ.get(name, "0") != "0":
            os.environ[ASKED + name] = os.environ[name]
            os.environ[name] = "0"


def allow():
    """Undoes refuse, where PyTorch's own allocator stays."""
    for name in filter(asked, NAMES):
        os.environ[name] = os.environ.pop(ASKED + name)


def report():
    for name in filter(asked, NAMES):
        say.once("%s has no effect: gm's memory is mapped in pieces" % name)
