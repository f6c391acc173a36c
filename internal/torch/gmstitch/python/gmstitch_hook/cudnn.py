"""torch.backends.cudnn.benchmark stays off: to try algorithms, cuDNN's caller asks the allocator for its largest free block,
which a pluggable allocator cannot tell, and fails."""

import sys

from . import say


def keep_benchmark_off(torch):
    C = torch._C
    real = getattr(C, "_set_cudnn_benchmark", None)
    if real is None:
        return

    def set_benchmark(on):
        if on is True:
            say.once("cudnn.benchmark stays off: a pluggable allocator cannot serve it")
            on = False
        real(on)

    C._set_cudnn_benchmark = set_benchmark
    module = sys.modules.get("torch.backends.cudnn")
    attribute = vars(type(module)).get("benchmark")
    if getattr(attribute, "setter", None) is not None:
        attribute.setter = set_benchmark
    if C._get_cudnn_benchmark():
        set_benchmark(True)
