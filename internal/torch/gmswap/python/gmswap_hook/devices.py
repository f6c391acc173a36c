"""The runtimes of a program whose models are on several devices."""

import threading

from .entry import Parts, Saved, stayed
from .hooks import replica


class Thread(threading.local):
    def __init__(self):
        self.begun = ()  # the devices whose runtimes serve the step that is under way


class Devices(object):
    """Moves what is saved on each device by a runtime of its own. All of them are told of all models."""

    moves = True

    def __init__(self, runtimes, current):
        self.runtimes, self.current = runtimes, current  # by device, and what returns the current one
        self.local = Thread()

    def begin(self, module, given, known):
        if replica(module):
            here = self.current()
            self.local.begun = [here] if here in self.runtimes and self.runtimes[here].lend(module) else []
        else:
            self.local.begun = [device for device, runtime in self.runtimes.items() if runtime.begin(module, given, known)]
        return len(self.local.begun) > 0

    def serving(self):
        return [self.runtimes[device] for device in self.local.begun]

    def entered(self, module, args, frame):
        for runtime in self.serving():
            runtime.entered(module, args, frame)

    def left(self, module):
        for runtime in reversed(self.serving()):  # modes of PyTorch end in the opposite order
            runtime.left(module)

    def guessing(self):
        return any(runtime.guessing() for runtime in self.runtimes.values())

    def mistaken(self):
        for runtime in self.runtimes.values():
            runtime.mistaken()

    def watching(self):
        return any(runtime.watching() for runtime in self.runtimes.values())

    def recorded(self):
        return any(runtime.recorded() for runtime in self.runtimes.values())

    def parting(self):
        return any(runtime.parting() for runtime in self.runtimes.values())

    def spent(self):
        return False  # a backward pass has a thread for each device: they would begin steps at once

    def finished(self):
        return all(runtime.finished() for runtime in self.runtimes.values())

    def pack(self, tensor):
        runtime = self.of(tensor)
        return runtime.pack(tensor) if runtime is not None else self.leave_alone(tensor)

    def pack_between(self, tensor):
        runtime = self.of(tensor)
        return runtime.pack_between(tensor) if runtime is not None else self.leave_alone(tensor)

    def pack_backward(self, tensor):
        runtime = self.runtimes.get(tensor.device.index) if tensor.is_cuda else None
        return runtime.pack_backward(tensor) if runtime is not None else self.leave_alone(tensor)

    def of(self, tensor):
        """Returns the runtime that serves the device of a tensor, None for none."""
        device = tensor.device.index if tensor.is_cuda else None
        return self.runtimes[device] if device in self.local.begun else None

    def leave_alone(self, tensor):
        return next(iter(self.runtimes.values())).leave_alone(tensor)

    def unpack(self, saved):
        if isinstance(saved, Saved):
            return self.runtimes[saved.entry.memory.device].unpack(saved)
        if isinstance(saved, Parts):
            return saved.unpack(self.unpack)
        return stayed(saved) if type(saved) is tuple else saved
