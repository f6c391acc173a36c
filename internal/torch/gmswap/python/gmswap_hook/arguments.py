"""Tensors that modules are given and autograd does not save, as masks, of which others are recomputed. By hand a checkpoint keeps those of its module."""

import collections
import sys
import weakref

from .watch import Watch, compiling

# Of the call of a module in a step, by how many calls it had, the place, or the name, of an argument. Such a one is of a type and has so many dimensions.
Argument = collections.namedtuple("Argument", ("module", "call", "place", "dtype", "dims"))


class Arguments(object):
    """Holds copies of those that are wanted, as the program may write to its own at any time: from when a module is given one, by a hook, up to the backward pass. What
    is recomputed of one holds it from then on."""

    def __init__(self, memory, kept):
        self.memory, self.torch, self.kept = memory, memory.torch, kept  # by names: what returns a copy, and its version
        self.wanted = {}  # by ids of modules: their arguments
        self.modules = weakref.WeakValueDictionary()  # that a recorded step has run, by ids
        self.calls, self.handles = collections.Counter(), []

    def begin_step(self):
        self.release()
        self.calls.clear()
        hook = Watch(self.take, compiling(self.torch)) if self.wanted else None
        for module in filter(None, map(self.modules.get, self.wanted)):
            self.handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def release(self):
        """Holds none any more."""
        while self.handles:
            self.handles.pop().remove()
        for name in [name for name in self.kept if type(name) is Argument]:
            del self.kept[name]

    def want(self, name):
        """Has the steps that begin from now on hold one."""
        self.wanted.setdefault(name.module, set()).add(name)

    def forget(self):
        self.release()
        self.wanted = {}

    def see(self, operators, module, args, kwargs, count):
        """Has operators note what a module is given in a step that is recorded, behind so many entries."""
        if isinstance(module, getattr(sys.modules.get("torch.jit"), "ScriptModule", ())):
            return  # has no such hooks
        self.modules[id(module)] = module
        self.calls[id(module)] += 1
        for place, x in (*enumerate(args), *kwargs.items()):
            if self.holds(x):
                name = Argument(id(module), self.calls[id(module)], place, x.dtype, x.dim())
                operators.see_named(operators.handed, self.memory.key(x), x, name, count, self.memory.size(x))

    def holds(self, x):
        """Returns whether an argument can be held: a tensor of this device that is no parameter."""
        key = self.memory.key(x)
        return key != 0 and type(x) in self.memory.types and not self.memory.parameter(key)

    def take(self, module, args, kwargs):
        if not self.torch.is_grad_enabled():
            return
        self.calls[id(module)] += 1
        for name in self.wanted.get(id(module), ()):
            if name.call == self.calls[id(module)]:
                x = kwargs.get(name.place) if type(name.place) is str else args[name.place] if name.place < len(args) else None
                if self.holds(x) and (x.dtype, x.dim()) == (name.dtype, name.dims):
                    self.hold(name, x)

    def hold(self, name, x):
        looking, self.memory.looking = self.memory.looking, True
        try:
            with self.memory.plainly():
                copy = copied(x)
        except self.memory.failures:
            return  # there is no room
        finally:
            self.memory.looking = looking
        if copy.stride() == x.stride():
            self.kept[name] = (lambda: copy), copy._version


def copied(x):
    """Returns a copy of a tensor, in which elements that lie at several places do so as well, in the same order unless there are gaps."""
    repeated = [i for i, (size, stride) in enumerate(zip(x.size(), x.stride())) if stride == 0 and size > 1]
    one = x.detach()
    for i in repeated:
        one = one.narrow(i, 0, 1)
    return one.clone().expand(x.size())
