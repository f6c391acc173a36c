"""Steps of optimizers chunk by chunk, so that few states are on the device at a time."""

import atexit
import contextlib
import functools
import os
import weakref

from . import say
from .library import Failure
from .states import PartPlace, Place, States, part
from .steps import Steps
from .updates import each
from .watch import compiling

CHUNK = 512 << 20  # bytes of states


class Stepping(object):
    """Stands between a program and the step() of its optimizers. Nothing is done before there is a store, for each device."""

    def __init__(self, torch):
        self.compiling, self.stores = compiling(torch), {}
        self.early = lambda: False  # whether one parameter is updated, in the backward pass
        self.unguarded = contextlib.nullcontext  # in which gradients are read by an update
        self.gradient = torch.Tensor.grad.__get__
        make_tree(torch)
        optimizer = torch.optim.Optimizer
        for name in "_patch_step_function", "_hook_for_profile":  # the latter in PyTorch 2.0
            if hasattr(optimizer, name):
                self.wrap(optimizer, name)
                return

    def wrap(self, optimizer, name):
        """Wraps step() of each class within what runs its hooks, before PyTorch wraps it with that."""
        real = getattr(optimizer, name)

        @functools.wraps(real)
        def patch(instance):
            cls = type(instance)
            if not hasattr(cls.step, "_gmswap"):
                cls.step = self.chunked(cls.step)
            real(instance)

        setattr(optimizer, name, patch)

    def chunked(self, real):
        @functools.wraps(real)
        def step(optimizer, *args, **kwargs):
            store = None if self.compiling() else self.store_of(optimizer)
            if store is None:
                return real(optimizer, *args, **kwargs)
            steps = store.steps(optimizer)
            if steps.under_way:  # one class's step() calls another's
                return real(optimizer, *args, **kwargs)
            steps.under_way = True
            try:
                if self.early():
                    return steps.early_step(real, args, kwargs)
                for known in self.stores.values():
                    known.note_gradients(optimizer)
                    known.make_again(optimizer)
                return steps.step(real, args, kwargs)
            finally:
                steps.under_way = False

        step._gmswap = True
        return step

    def store_of(self, optimizer):
        """Returns the store of the device that the first parameter of an optimizer is on, or else the first one, None if there is none."""
        if len(self.stores) > 1:
            for p in each(optimizer):
                if p.is_cuda and p.device.index in self.stores:
                    return self.stores[p.device.index]
        return next(iter(self.stores.values()), None)

    def apart(self, optimizer):
        """Returns whether an optimizer that nobody knows has turned out to update each parameter by itself."""
        store = self.store_of(optimizer)
        steps = store.optimizers.get(optimizer) if store is not None else None
        return steps is not None and steps.apart is not None and steps.apart.trusted


def make_tree(torch):
    """Has PyTorch look into states as into dictionaries, where it maps functions over what such hold."""
    trees = getattr(getattr(torch, "utils", None), "_pytree", None)
    register = getattr(trees, "register_pytree_node", None) or getattr(trees, "_register_pytree_node", None)  # before 2.2
    if register is not None and States not in getattr(trees, "SUPPORTED_NODES", {}):
        register(States, lambda states: (list(states.values()), list(dict.keys(states))), lambda values, keys: dict(zip(keys, values)))


class Store(object):
    """The states of all optimizers that a runtime may move."""

    FIRST = 8  # steps

    def __init__(self, runtime, stepping):
        self.torch, self.memory, self.lanes = runtime.memory.torch, runtime.memory, runtime.lanes
        self.runtime, self.stepping, self.gradient = runtime, stepping, stepping.gradient
        self.smallest, self.chunk = runtime.settings.smallest, min(CHUNK, runtime.settings.window)
        self.optimizers = weakref.WeakKeyDictionary()
        self.open = {}  # of the same, by id: what to say at the end
        self.pid = os.getpid()
        atexit.register(self.end)

    def steps(self, optimizer):
        steps = self.optimizers.get(optimizer)
        if steps is None:
            steps = self.optimizers[optimizer] = Steps(self, optimizer)
            self.open[id(steps)] = steps
        return steps

    def close(self, steps):
        """Reports what was done with the states of an optimizer, once."""
        if self.open.pop(id(steps), None) is not None and os.getpid() == self.pid:
            steps.account()

    def place(self, value):
        """Returns the place of what may be moved, None for all else."""
        own = part(value)
        if not isinstance(own, self.torch.Tensor) or value.requires_grad or not self.memory.movable(own):
            return None
        if self.memory.size(own) < self.smallest:
            return None
        if not own.untyped_storage().resizable():  # as of some that torch.load made
            if not self.memory.sole(own):
                return None
            own.data = own.clone()
        return Place(self.memory, self.lanes, value) if own is value else PartPlace(self.memory, self.lanes, value)

    def note_gradients(self, optimizer):
        """Notes the parameters that have gradients in the first steps: they are used."""
        if self.runtime.steps <= self.FIRST:
            self.memory.used.update(id(p) for p in each(optimizer) if self.gradient(p) is not None)

    def make_again(self, optimizer):
        """Recomputes what a backward pass is still to use, and what is made of parameters that an optimizer is about to change. None is left after most backward passes."""
        step, memory = self.runtime.step, self.memory
        if memory.capturing():
            return
        with memory:
            left = [e for e in (*(step.entries if step is not None else ()), *memory.entries.values()) if e.users and e.made is not None]
            changed = set(map(id, each(optimizer))) if left else ()
            for e in left:
                if e.made is not None and not e.made.parameters().isdisjoint(changed):
                    try:
                        with memory.trial:
                            e.on_device(memory.stream())
                        e.keep()
                    except (RuntimeError, Failure) as why:
                        say.once("what is to be recomputed is not, before parameters change: %s" % say.reason(why))  # whoever needs the tensor finds that they have

    def room(self):
        """Returns the bytes that can be loaded ahead of need."""
        return self.runtime.relief.room()

    def make_room(self, size):
        """Frees at least this many bytes of the device if it can: nothing else has. With memory."""
        return self.freed(size, Steps.make_room)

    def spare(self, size):
        """Frees at least this many bytes if there are so many of states that are there for speed alone. With memory."""
        return self.freed(size, Steps.spare)

    def spared(self):
        """Returns the bytes of those."""
        return sum(steps.spared() for steps in list(self.optimizers.values()))

    def on_host(self):
        """Yields the places of what found no room on the device, and is used where it is."""
        for steps in list(self.optimizers.values()):
            yield from steps.on_host()

    def freed(self, size, free):
        freed = 0
        for steps in list(self.optimizers.values()):
            if freed < size:
                freed += free(steps, size - freed)
        return freed

    def end(self):
        """Reports what was done, at the end of the process."""
        for steps in list(self.open.values()):
            self.close(steps)
