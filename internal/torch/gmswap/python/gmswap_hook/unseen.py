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


class Within(threading.local):
    told = frozenset()  # ids of tensors that this thread gives to a kernel


class Launches(object):
    """Tells listeners which tensors are given to kernels that are no operators': those of Triton, and of whatever asks for the address of memory."""

    def __init__(self, torch):
        self.torch, self.listeners, self.lock, self.within = torch, (), threading.Lock(), Within()
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
            known = self.within.told
            if not self.listeners or args and id(args[0]) in known:
                return function(*args, **kwargs)
            told = set(known)
            self.tell((args, kwargs), name != "run", told)
            self.within.told = told  # a kernel's addresses are asked for once more
            try:
                return function(*args, **kwargs)
            finally:
                self.within.told = known

        launch._gmswap, launch.__module__ = self, owner.__module__ if isinstance(owner, type) else owner.__name__
        launch.__qualname__ = owner.__qualname__ + "." + name if isinstance(owner, type) else name
        setattr(owner, name, property(launch) if isinstance(real, property) else launch)

    def tell(self, given, kept, told):
        """Tells of all tensors among arguments, in lists and dicts, and of those that others stand for: whether their addresses may be kept for later."""
        for x in given.values() if isinstance(given, dict) else given:
            if isinstance(x, (list, tuple, dict)):
                self.tell(x, kept, told)
                continue
            if not isinstance(x, self.torch.Tensor):
                x = getattr(x, "base", None)
            if isinstance(x, self.torch.Tensor):
                told.add(id(x))
                for listener in self.listeners:
                    listener(x, kept)


class Touched(object):
    """Has a runtime hear of such kernels: what they are given they may write to."""

    def __init__(self, runtime):
        self.runtime, self.memory = runtime, runtime.memory
        self.memory.launches.listen(self.told)

    def told(self, tensor, kept):
        memory, step = self.memory, self.runtime.step
        key = memory.key(tensor)
        if not key or memory.forked:
            return
        if kept:
            memory.exported[key] = memory.addresses[key] = memory.weak(tensor.untyped_storage())
        if step is None:
            return
        entry = memory.entries.get(key)
        if entry is not None:
            entry.touched = True
        if step.parting is not None:
            with memory:
                parting = step.parting
                if parting is not None:  # the step has not ended meanwhile
                    parting.launched(key)
