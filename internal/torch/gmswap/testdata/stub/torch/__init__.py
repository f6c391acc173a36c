"""As much of PyTorch as gmswap's hook uses: tensors of the CPU and of the fake CUDA driver, whose memory libgm.so allocates, and an
autograd that saves what it needs as PyTorch's does.

What is computed is bytes: each operator writes some function of the bytes of its arguments, and each gradient is another one of those
of the gradient that came and of what was saved. The program's thread waits for the current stream and computes by itself, at once, so that
memory which a copy of another stream still reads or writes is seen to be wrong.

Environment variables:
    STUB_TORCH_WITHOUT  names that this PyTorch does not have, as torch._C._current_graph_task_id, parted by commas; always_call is the
                        argument of that name
    STUB_TORCH_ADDRESSES  bounds the addresses of the process, in MiB
"""

import os
import resource

if "STUB_TORCH_ADDRESSES" in os.environ:
    resource.setrlimit(resource.RLIMIT_AS, (int(os.environ["STUB_TORCH_ADDRESSES"]) << 20,) * 2)

__version__ = "2.11.0+stub"

from ._dtypes import Size, bool, device, float32, int32, int64, strided, uint8  # noqa: E402,F401
from ._storage import UntypedStorage  # noqa: E402,F401
from ._tensor import Tensor, empty, empty_like, equal, stack, zeros  # noqa: E402,F401
from . import _C, _ops as ops, autograd, compiler, cuda, nn, optim, utils  # noqa: E402,F401
from ._ops import full  # noqa: E402,F401
from .autograd import enable_grad, is_grad_enabled, no_grad  # noqa: E402,F401
from .cuda import OutOfMemoryError  # noqa: E402,F401


def are_deterministic_algorithms_enabled():
    return True


def is_autocast_enabled(device_type):
    return False


class autocast(object):
    def __init__(self, device_type, enabled=True):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        pass


def _remove(names):
    import sys

    for name in filter(None, names.split(",")):
        if name == "always_call":
            nn.modules.module.forget_always_call()
            continue
        owner, _, attribute = name.rpartition(".")
        parts = owner.split(".")
        holder = sys.modules["torch"]
        for part in parts[1:]:
            holder = getattr(holder, part)
        delattr(holder, attribute)


_remove(os.environ.get("STUB_TORCH_WITHOUT", ""))
