"""Sees what is written past PyTorch's operators, as by kernels that a program launches by itself."""

import functools
import sys
import threading


class Sums(object):
    """Sums of the words of storages in a step that is recorded, from when an operator first makes or takes them: others later on tell that something else has
    written to them."""

    def __init__(self, memory):
        self.memory = memory
        self.first = {}  # by numbers of storages, on the host
        self.looks = []  # these numbers, and sums on the device, None where there was no room for them

    def look(self, number, tensor):
        """Sums up a storage as it is now."""
        self.looks.append((number, self.memory.sums(tensor)))

    def changed(self):
        """Returns the numbers of storages that have changed, and of those that may have, as far as they were looked at since this was asked last."""
        looks, self.looks = self.looks, []
        changed, unknown, rows = set(), set(), iter(self.memory.fetched([sums for _, sums in looks if sums is not None]))
        for number, sums in looks:
            row = None if sums is None else next(rows)
            if number not in self.first:
                self.first[number] = row
            elif row is None or self.first[number] is None:
                unknown.add(number)
            elif not self.memory.torch.equal(row, self.first[number]):
                changed.add(number)
        return changed, unknown


class Launches(object):
    """Tells listeners which tensors are given to kernels that are no operators': those of Triton, and of whatever asks for the address of memory."""

    def __init__(self, torch):
        self.torch, self.listeners, self.lock, self.within = torch, (), threading.Lock(), threading.local()
        for owner, names in (torch.Tensor, ("__cuda_array_interface__", "__dlpack__", "data_ptr")), (torch, ("to_dlpack",)):
            for name in names:
                self.wrap(owner, name)
        self.wrap(getattr(getattr(torch, "utils", None), "dlpack", None), "to_dlpack")

    @classmethod
    def of(cls, torch):
        """Returns those of the process."""
        known = getattr(getattr(torch.Tensor, "data_ptr", None), "_gmswap", None)
        return known or cls(torch)

    def look(self):
        """Looks whether Triton is there by now."""
        self.wrap(getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None), "run")

    def listen(self, told):
        self.look()
        with self.lock:
            self.listeners = (*(other for other in self.listeners if other != told), told)

    def cease(self, told):
        with self.lock:
            self.listeners = tuple(other for other in self.listeners if other != told)

    def wrap(self, owner, name):
        real = getattr(owner, name, None)
        if real is None or hasattr(getattr(real, "fget", real), "_gmswap"):
            return
        function = real.fget if isinstance(real, property) else real

        @functools.wraps(function)
        def launch(*args, **kwargs):
            if not self.listeners or getattr(self.within, "launch", False):
                return function(*args, **kwargs)
            self.tell((args, kwargs))
            self.within.launch = True  # it asks for the addresses of what it was given
            try:
                return function(*args, **kwargs)
            finally:
                self.within.launch = False

        launch._gmswap = self
        setattr(owner, name, property(launch) if isinstance(real, property) else launch)

    def tell(self, given):
        """Tells of all tensors among arguments, in lists and dicts, and of those that others stand for."""
        for x in given.values() if isinstance(given, dict) else given:
            if isinstance(x, (list, tuple, dict)):
                self.tell(x)
                continue
            if not isinstance(x, self.torch.Tensor):
                x = getattr(x, "base", None)
            if isinstance(x, self.torch.Tensor):
                for told in self.listeners:
                    told(x)


class Touched(object):
    """Has a runtime hear of such kernels: what they are given they may write to."""

    def __init__(self, runtime):
        self.runtime, self.memory = runtime, runtime.memory
        self.memory.launches.listen(self.told)

    def told(self, tensor):
        memory, step = self.memory, self.runtime.step
        key = memory.key(tensor)
        if not key or memory.forked or step is None:
            return
        entry = memory.entries.get(key)
        if entry is not None:
            entry.touched = True
        if step.parting is not None:
            with memory:
                step.parting.launched(key)
