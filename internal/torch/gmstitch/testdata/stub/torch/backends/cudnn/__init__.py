"""Stands for torch.backends.cudnn."""

import sys

from ... import _C
from .. import ContextProp, PropModule


def set_flags(_benchmark=None):
    before = (_C._get_cudnn_benchmark(),)
    if _benchmark is not None:
        _C._set_cudnn_benchmark(_benchmark)
    return before


class CudnnModule(PropModule):
    benchmark = ContextProp(_C._get_cudnn_benchmark, _C._set_cudnn_benchmark)


sys.modules[__name__] = CudnnModule(sys.modules[__name__], __name__)
