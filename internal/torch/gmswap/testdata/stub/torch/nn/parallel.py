"""Models of several processes, and of several devices."""

import threading

from .. import _ops, cuda
from .modules.module import Module, Parameter


class DistributedDataParallel(Module):
    def __init__(self, module):
        super(DistributedDataParallel, self).__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)


class DataParallel(Module):
    """Runs a copy of a model on each device, in a thread of its own."""

    def __init__(self, module, device_ids=(0, 1)):
        super(DataParallel, self).__init__()
        self.module, self.device_ids = module, list(device_ids)

    def forward(self, x):
        copies = [replicate(self.module, i) for i in self.device_ids]
        parts = [x if i == 0 else _ops.to(i)(x) for i in self.device_ids]
        results = [None] * len(parts)

        def run(i):
            cuda.set_device(self.device_ids[i])
            results[i] = copies[i](parts[i])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(parts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return results[0] + _ops.to(0)(results[1])


def replicate(value, i):
    """Returns a copy of a module, which has its hooks, with other tensors."""
    if isinstance(value, (list, tuple)):
        return [replicate(v, i) for v in value]
    if isinstance(value, Parameter):
        return value if i == 0 else _ops.to(i)(value)
    if not isinstance(value, Module):
        return value
    copy = object.__new__(type(value))
    vars(copy).update(vars(value), _is_replica=True)
    for name, v in vars(value).items():
        if isinstance(v, (Module, Parameter)) or isinstance(v, list):
            vars(copy)[name] = replicate(v, i)
    return copy
