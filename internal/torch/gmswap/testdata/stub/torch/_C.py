"""Stands for torch._C."""

from . import _driver, _storage
from ._autograd import hooks as _autograd  # noqa: F401
from ._autograd.engine import task as _current_graph_task_id  # noqa: F401


def _storage_Use_Count(key):
    return _storage.at[key].tensors


def _cuda_init():
    _driver.load()


def _cuda_resetPeakMemoryStats(device):
    from .cuda import _memory

    _memory["peak"] = _memory["now"]


def _cuda_getCurrentRawStream(index):
    from . import cuda

    return cuda.current_stream(index).cuda_stream


class _functorch(object):
    @staticmethod
    def is_functorch_wrapped_tensor(tensor):
        return False
