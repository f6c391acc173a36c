"""Sees what a program does with gradients, and with the parameters whose gradients are complete until the next step of their optimizer."""

import atexit
import contextlib
import functools
import os
import sys
import threading
import weakref

from . import say
from .memory import mode
from .operators import tensors_in
from .updates import Updates, each


class Thread(threading.local):
    ours = False  # what this thread does is ours, or part of zero_grad()


class Property(property):
    """A property in the place of another descriptor, which torch._dynamo asks for its name and whose it is."""

    def __init__(self, read, write, drop, real):
        super(Property, self).__init__(read, write, drop, real.__doc__)
        self.__name__, self.__objclass__ = getattr(real, "__name__", ""), getattr(real, "__objclass__", None)


class Gradients(object):
    """Stands between a program and PyTorch: at property grad of tensors, zero_grad(), backward() and step()."""

    def __init__(self, torch):
        from torch.multiprocessing.reductions import StorageWeakRef
        from torch.optim import optimizer
        from torch.utils import _python_dispatch

        self.torch, self.weak, self.steps, self.stack = torch, StorageWeakRef, optimizer, _python_dispatch
        self.local = Thread()
        self.updates = weakref.WeakKeyDictionary()  # by optimizer; None where it is left alone
        self.accounts = {}  # all updates that are or may become early
        self.there = {}  # parameters whose gradients the program has not dropped, and the updates they belong to, by id
        self.changing = {}  # updates of parameters whose gradients are complete, by address of the storage, until the next step
        self.averaging = weakref.WeakSet()  # modules DistributedDataParallel
        self.compiled = self.guarded = False
        self.apart = lambda optimizer: False  # whether one that is none of torch.optim's updates each parameter by itself
        self.mode = mode(torch, self.run)
        self.folder = os.path.join(os.path.dirname(torch.optim.__file__), "")
        self.raw = torch.Tensor.grad
        self.watch()
        torch.Tensor.grad = Property(self.read, self.write, self.drop, self.raw)
        unwrapped = getattr(getattr(torch, "overrides", None), "get_default_nowrap_functions", None)
        if unwrapped is not None:
            unwrapped.cache_clear()  # the property is among these
        self.pid = os.getpid()
        atexit.register(self.end)

    def watch(self):
        torch = self.torch
        self.steps.register_optimizer_step_pre_hook(self.begin_step)
        self.steps.register_optimizer_step_post_hook(self.end_step)
        wrap(torch.optim.Optimizer, "zero_grad", self.zero(each))
        wrap(torch.nn.Module, "zero_grad", self.zero(lambda module: module.parameters()))
        wrap(torch.autograd, "backward", self.backward)
        wrap(torch.nn.parallel.DistributedDataParallel, "__init__", self.average)
        for owner in (torch, torch.nn.Module):
            if hasattr(owner, "compile"):
                wrap(owner, "compile", self.compile)

    # Gradients.

    def get(self, p):
        return self.raw.__get__(p)

    def set(self, p, gradient):
        self.raw.__set__(p, gradient)

    def read(self, p):
        if id(p) in self.there:
            self.look(p, "reads")
        return self.get(p)

    def write(self, p, gradient):
        if id(p) in self.there:
            if gradient is not None or self.waits(p):
                self.look(p, "sets")
            else:
                self.forget(p)
        self.set(p, gradient)

    def drop(self, p):
        self.write(p, None)

    def look(self, p, what):
        """Takes down that the program reads or sets a gradient that is there, or would be without early updates."""
        owner = self.owner(p)
        if owner is None or self.local.ours:
            return
        frame = sys._getframe(2)
        if not frame.f_code.co_filename.startswith(self.folder):
            owner.differs("%s %s gradients" % (self.named(frame), what))

    def named(self, frame):
        while frame.f_code.co_name.startswith("<") and frame.f_code.co_name != "<module>" and frame.f_back is not None:
            frame = frame.f_back
        file, around = frame.f_code.co_filename, os.path.join(os.path.dirname(os.path.dirname(self.torch.__file__)), "")
        return "%s (%s)" % (frame.f_code.co_name, file[len(around):] if file.startswith(around) else os.path.basename(file))

    def owner(self, p):
        """Returns the updates that a parameter belongs to, if the program has not dropped its gradient."""
        weak, updates = self.there.get(id(p), (None, None))
        return updates if weak is not None and weak() is p else None

    def owed(self, p):
        """Returns whether the program has not dropped the gradient of an earlier step."""
        return self.owner(p) is not None and not self.waits(p)

    def waits(self, p):
        """Returns whether a gradient waits for step()."""
        owner = self.owner(p)
        return owner is not None and id(p) in owner.fired

    def forget(self, p):
        self.there.pop(id(p), None)

    def note(self, p, updates):
        self.there[id(p)] = weakref.ref(p), updates

    def complete(self, p, updates):
        """Notes that a gradient is complete."""
        self.note(p, updates)
        self.changing[address(p)] = updates

    def zero(self, parameters):
        def zero_grad(real, owner, set_to_none=True):
            for p in parameters(owner):
                updates = self.owner(p)
                if updates is not None:
                    if self.waits(p):
                        updates.differs("gradients are dropped before step()")
                    elif not set_to_none:
                        updates.differs("gradients are set to zero instead of None")
                    else:
                        self.forget(p)
            with self.unguarded():
                return real(owner, set_to_none)

        return zero_grad

    @contextlib.contextmanager
    def unguarded(self):
        before, self.local.ours = self.local.ours, True
        try:
            yield
        finally:
            self.local.ours = before

    # Parameters.

    def backward(self, real, *args, **kwargs):
        if any(self.updates.values()):
            self.guard()
        try:
            return real(*args, **kwargs)
        except RuntimeError as e:
            early = [u for u in self.changing.values() if u.ready is not None]
            if early and "modified by an inplace operation" in str(e):
                early[0].differs("the backward pass needs a parameter as it was before: %s" % say.reason(e))
            raise

    def guard(self):
        """Begins to look at operators, below all modes of the program: theirs come and go as they nest."""
        modes = self.stack._get_current_dispatch_mode_stack()
        if not any(m is self.mode for m in modes):
            self.restack([self.mode] + modes)
        self.guarded = True

    def unguard(self):
        self.guarded = False
        modes = self.stack._get_current_dispatch_mode_stack()
        if any(m is self.mode for m in modes):
            self.restack([m for m in modes if m is not self.mode])

    def restack(self, modes):
        for _ in self.stack._get_current_dispatch_mode_stack():
            self.stack._pop_mode()
        for m in modes:
            self.stack._push_mode(m)

    def run(self, function, args, kwargs):
        if self.changing and not self.local.ours:
            for t in tensors_in((args, kwargs)):
                updates = self.changing.get(address(t))
                if updates is not None:
                    updates.differs("%s uses a parameter after its gradient is complete, before step()" % function)
        return function(*args, **kwargs)

    def stream(self, p):
        """Returns the stream that is current where a parameter is."""
        return self.torch._C._cuda_getCurrentRawStream(p.device.index) if p.is_cuda else 0

    # Steps.

    def begin_step(self, optimizer, args, kwargs):
        if self.local.ours:
            return
        updates = self.updates.get(optimizer)
        for p in each(optimizer):
            other = self.owner(p)
            if other not in (None, updates):
                other.differs("%s updates the same parameters" % type(optimizer).__name__)
        if updates is not None:
            updates.begin_step(optimizer, args, kwargs)
        self.changing = {key: u for key, u in self.changing.items() if u is not updates}
        if not self.changing:
            self.unguard()

    def end_step(self, optimizer, args, kwargs):
        if self.local.ours:
            return
        updates = self.updates.get(optimizer)
        if updates is None and optimizer not in self.updates:
            updates = self.updates[optimizer] = Updates(self, optimizer)
            self.accounts[updates] = None
            for p in each(optimizer):
                if self.get(p) is not None:
                    self.note(p, updates)
        elif updates is not None:
            updates.end_step()
        if updates is not None and updates.reasons:
            updates.decline()
            self.leave(optimizer, updates)

    def leave(self, optimizer, updates):
        """Leaves an optimizer alone."""
        self.updates[optimizer] = None
        del self.accounts[updates]

    def release(self, updates):
        """Forgets the parameters of updates that are no more."""
        self.there = {key: x for key, x in self.there.items() if x[1] is not updates}
        self.changing = {key: u for key, u in self.changing.items() if u is not updates}

    def strangers(self):
        """Returns whether the program has hooks on the steps of all optimizers."""
        return len(self.steps._global_optimizer_pre_hooks) > 1 or len(self.steps._global_optimizer_post_hooks) > 1

    # What makes early updates impossible.

    def average(self, real, module, *args, **kwargs):
        real(module, *args, **kwargs)
        self.averaging.add(module)

    def averaged(self, parameters):
        """Returns whether DistributedDataParallel deals with some of these parameters."""
        ids = set(map(id, parameters))
        return any(id(p) in ids for module in self.averaging for p in module.parameters())

    def compile(self, real, *args, **kwargs):
        self.compiled = True
        return real(*args, **kwargs)

    def account(self, updates):
        """Reports what was done by updates, once."""
        if updates in self.accounts and os.getpid() == self.pid:
            del self.accounts[updates]
            updates.account()

    def end(self):
        """Reports what was done, at the end of the process."""
        for updates in list(self.accounts):
            self.account(updates)


def address(t):
    """Returns the address of a tensor's storage, 0 for one that has none."""
    try:
        return t.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return 0  # sparse, or of others


def wrap(owner, name, function):
    """Has a function called with the real one in place of that."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def call(*args, **kwargs):
        return function(real, *args, **kwargs)

    setattr(owner, name, call)
