"""Tensors that modules are given and autograd does not save, as masks, of which others are recomputed. By hand a checkpoint keeps those of its module."""

import collections
import sys
import threading
import weakref

from .entry import layout, version
from .watch import Watch, compiling

# Of a module, the place, or the name, of an argument, where the step is when the module is called, and what type it is of and how many dimensions it has.
Argument = collections.namedtuple("Argument", ("module", "place", "packs", "course", "dtype", "dims"))


class Arguments(object):
    """Holds copies of those that are wanted, as the program may write to its own at any time: from when a module is given one, by a hook, up to the backward pass. What
    is recomputed of one holds it from then on."""

    def __init__(self, memory, kept):
        self.memory, self.torch, self.kept = memory, memory.torch, kept  # by names: what returns a copy, and its version
        self.wanted = {}  # by ids of modules: their arguments
        self.modules = weakref.WeakValueDictionary()  # that a recorded step has run, by ids
        self.step = self.thread = None  # the step whose arguments are held, and the program's thread
        self.copies, self.sources = {}, {}  # by what they are of: copies, and references to storages; and that by names
        self.handles = []

    def begin_step(self, step):
        if self.wanted:
            self.release()
            hook = Watch(self.take, compiling(self.torch))
            for module in filter(None, map(self.modules.get, self.wanted if step is not None else ())):
                self.handles.append(module.register_forward_pre_hook(hook, prepend=True, with_kwargs=True))
        self.step, self.thread = step, threading.get_ident()

    def release(self):
        """Holds none any more."""
        self.step = None
        while self.handles:
            self.handles.pop().remove()
        for name in self.sources:
            self.kept.pop(name, None)
        self.copies, self.sources = {}, {}

    def want(self, name):
        """Has the steps that begin from now on hold one."""
        self.wanted.setdefault(name.module, set()).add(name)

    def forget(self):
        self.release()
        self.wanted = {}

    def see(self, operators, module, args, kwargs, step):
        """Has operators note what a module is given in a step that is recorded."""
        operators.levels.append({})
        if threading.get_ident() != self.thread or isinstance(module, getattr(sys.modules.get("torch.jit"), "ScriptModule", ())) or not self.alone(module):
            return
        self.modules[id(module)] = module
        for place, x in (*enumerate(args), *kwargs.items()):
            if self.holds(x):
                operators.see_given(x, Argument(id(module), place, step.packs, step.course, x.dtype, x.dim()), len(step.entries))

    def holds(self, x):
        """Returns whether an argument can be held: a tensor of this device that is no parameter, and tells when it is written to."""
        return type(x) in self.memory.types and self.memory.movable(x) and not x.is_inference() and not self.memory.parameter(self.memory.key(x))

    def alone(self, module):
        """Returns whether a module has no hooks but ours, which may give it something else."""
        everywhere = self.torch.nn.modules.module._global_forward_pre_hooks
        return all(type(hook) is Watch for hooks in (module._forward_pre_hooks, everywhere) for hook in hooks.values())

    def take(self, module, args, kwargs):
        step = self.step
        if step is None or threading.get_ident() != self.thread or self.memory.capturing():
            return
        for name in self.wanted.get(id(module), ()):
            if (name.packs, name.course) == (step.packs, step.course):
                x = kwargs.get(name.place) if type(name.place) is str else args[name.place] if name.place < len(args) else None
                if self.alone(module) and self.holds(x) and (x.dtype, x.dim()) == (name.dtype, name.dims):
                    self.hold(name, x)

    def hold(self, name, x):
        """Holds a copy. Where a module is called twice at one place, as by a program that tries again, it is not known which of two is meant."""
        of = self.memory.key(x), version(x), layout(x)
        if self.sources.setdefault(name, of) != of:
            self.kept[name] = (lambda: None), 0
            return
        if of not in self.copies:
            copy = self.copied(x)
            if copy is None or copy.stride() != x.stride():
                return
            self.copies[of] = copy, self.memory.weak(x.untyped_storage())  # so that its address stays that of one
        copy = self.copies[of][0]
        self.kept[name] = (lambda: copy), version(copy)

    def copied(self, x):
        """Returns a copy, None if there is no room, or it cannot be copied."""
        looking, self.memory.looking = self.memory.looking, True
        try:
            with self.memory.plainly():
                return copied(x)
        except (RuntimeError, *self.memory.failures):
            return None
        finally:
            self.memory.looking = looking


def copied(x):
    """Returns a copy of a tensor, in which elements that lie at several places do so as well, in the same order unless there are gaps."""
    one = x.detach()
    for i, (size, stride) in enumerate(zip(x.size(), x.stride())):
        if stride == 0 and size > 1:
            one = one.narrow(i, 0, 1)
    return one.clone().expand(x.size())
