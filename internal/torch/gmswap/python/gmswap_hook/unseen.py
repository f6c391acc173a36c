"""Sees what is written past PyTorch's operators, as by kernels that a program launches by itself."""

import sys


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
        """Returns the numbers of storages that have changed, or may have, as far as they were looked at since this was asked last."""
        looks, self.looks = self.looks, []
        found, rows = set(), iter(self.memory.fetched([sums for _, sums in looks if sums is not None]))
        for number, sums in looks:
            row = None if sums is None else next(rows)
            if number not in self.first:
                self.first[number] = row
            elif row is None or self.first[number] is None or not self.memory.torch.equal(row, self.first[number]):
                found.add(number)
        return found


class Launches(object):
    """Tells listeners which tensors are given to kernels that are no operators': those of Triton, and of whatever takes memory by its address."""

    def __init__(self, torch):
        self.torch, self.listeners = torch, ()
        self.wrap(torch.Tensor, "__cuda_array_interface__")
        self.wrap(torch.Tensor, "__dlpack__")

    @classmethod
    def of(cls, torch):
        """Returns those of the process."""
        known = getattr(getattr(torch.Tensor, "__dlpack__", None), "_gmswap", None)
        return known or cls(torch)

    def listen(self, told):
        self.wrap(getattr(sys.modules.get("triton.runtime.jit"), "JITFunction", None), "run")
        self.cease(told)
        self.listeners += (told,)

    def cease(self, told):
        self.listeners = tuple(other for other in self.listeners if other != told)

    def wrap(self, owner, name):
        real = getattr(owner, name, None)
        if real is None or hasattr(getattr(real, "fget", real), "_gmswap"):
            return
        function = real.fget if isinstance(real, property) else real

        def launch(first, *args, **kwargs):
            if self.listeners:
                self.tell((first, *args, *kwargs.values()))
            return function(first, *args, **kwargs)

        launch._gmswap = self
        setattr(owner, name, property(launch) if isinstance(real, property) else launch)

    def tell(self, given):
        for x in given:
            if isinstance(x, self.torch.Tensor):
                for told in self.listeners:
                    told(x)
