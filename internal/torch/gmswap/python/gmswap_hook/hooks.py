"""Sees what a program's models save for the backward pass, and where they begin and end."""

import contextlib
import itertools
import os
import sys
import threading
import warnings
import weakref

from . import say
from .nested import PASS, nested
from .samples import Wrong
from .watch import Watch, by_name, compiling
from .whole import UNSUPPORTED

EVERYWHERE, WITHIN, NEAR, ROOTS = "everywhere", "within", "near", "roots"
MOST = 128  # modules near the outermost ones
NONE = -1  # no backward pass


class Thread(threading.local):
    def __init__(self):
        self.stack = []  # of modules whose forward passes are under way, the outermost first
        self.frame = None  # in which the outermost one runs
        self.pushed = False  # our hooks on what is saved are in effect
        self.serves = False  # the runtime is told of the modules on the stack, and is given what they save
        self.between = False  # it is given what is saved between models
        self.nested = NONE  # or the backward pass that has a model run, for which those hooks are in effect
        self.resting = False  # they were taken off until the model that is running ends


class Hooks(object):
    """Calls a runtime from PyTorch's hooks: begin and end of an outermost module's forward pass, pack and unpack of tensors. One that moves
    nothing is not given those. What is saved between models, by functions that the program calls itself, is given to it as well, up to the backward pass,
    where this PyTorch tells whether other hooks are in effect.

    First all modules are watched; while steps are recorded those that were outermost and what is in them; later the outermost ones alone,
    as a hook costs each module time, or those and their layers where operators are seen in a part of the forward pass. Layers that are
    compiled are compiled anew when a hook on all modules comes or goes, and may save tensors in another order then: so that happens before
    steps are recorded, and they are not watched from then on.
    """

    def __init__(self, torch, runtime, met=lambda module, args: None):
        self.torch, self.runtime, self.met = torch, runtime, met  # what is told of a model that is compiled as a whole
        self.local = Thread()
        autograd = torch._C._autograd
        if runtime.moves:
            self.push = lambda: autograd._push_saved_tensors_default_hooks(self.pack, self.unpack)
            self.pop, self.top = autograd._pop_saved_tensors_default_hooks, top(autograd)
        else:
            self.push = self.pop = lambda: None
            self.top = None
        runtime.rest, runtime.wake = self.rest, self.wake
        self.compiling, self.unreal = compiling(torch), unreal(torch)
        self.roots = weakref.WeakSet()
        self.handles, self.watched = [], None
        self.make_way()
        os.register_at_fork(after_in_child=self.remove)
        self.watch_all()

    def watch_all(self):
        self.unwatch()
        # A module that torch.compile made says so where there are hooks on all: the program did not ask for them.
        warnings.filterwarnings("ignore", message="Using `torch.compile")
        module = self.torch.nn.modules.module
        self.watch(module.register_module_forward_pre_hook, module.register_module_forward_hook)
        self.watched = EVERYWHERE

    def watch_within(self):
        self.watch_each(inside(self.roots))
        self.watched = WITHIN

    def watch_near(self):
        self.watch_each(near(self.roots))
        self.watched = NEAR

    def watch_roots(self):
        self.watch_each(self.roots)
        self.watched = ROOTS

    def watch_each(self, modules):
        """Watches modules. ScriptModules take no hooks: where an outermost one is among them all are watched."""
        self.unwatch()
        for module in modules:
            try:
                self.watch(module.register_forward_pre_hook, module.register_forward_hook, prepend=True)
            except RuntimeError:
                if module in self.roots:
                    self.watch_all()
                    return

    def watch(self, before, after, **first):
        self.handles.append(before(Watch(self.enter, self.compiling), **first))
        leave = Watch(self.leave, self.compiling)
        try:
            self.handles.append(after(leave, always_call=True))
        except TypeError:  # PyTorch 2.0
            self.handles.append(after(leave))

    def unwatch(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def remove(self):
        self.unwatch()
        self.end_packing(self.local)

    def stop(self, local, why):
        say.once(why)
        self.unwind(local)
        self.remove()

    def outermost(self):
        """Returns whether no model is running in this thread."""
        return not self.local.stack

    def enter(self, module, args):
        local = self.local
        if local.stack and not running(local.frame):
            self.unwind(local)  # an exception ended it without a call of its hook
        local.stack.append(module)
        if len(local.stack) == 1:
            local.frame = sys._getframe(2)
            self.begin(local, module, args)
        if local.serves:
            self.runtime.entered(module, args, sys._getframe(2))

    def leave(self, module, args, output):
        stack = self.local.stack
        if stack and (stack[-1] is module or any(m is module for m in stack)):
            self.unwind(self.local, module)

    def unwind(self, local, module=None):
        """Leaves modules, the innermost first, up to the given one, or all."""
        while local.stack:
            left = local.stack.pop()
            if local.serves:
                self.runtime.left(left)
            if left is module:
                break
        if not local.stack:
            local.frame, local.serves = None, False
            self.wake()
            if local.nested != NONE:
                task, local.nested = local.nested, NONE
                if task == self.torch._C._current_graph_task_id() and (self.top is None or self.ours()):  # an exception may have ended that
                    self.pop()
            elif self.top is None:
                self.end_packing(local)

    def begin(self, local, module, args):
        if not self.torch.is_grad_enabled() or self.unreal():
            return  # an evaluation
        if self.torch._C._current_graph_task_id() != NONE and not (nested(local.frame) and self.runtime.spent()):
            return  # recomputed by a backward pass
        if self.foreign():
            say.once("tensors saved under the program's own saved-tensor hooks are not moved")
            return
        known = module in self.roots or replica(module)
        if not known and compiled(module) and not self.runtime.guessing():
            self.stop(local, UNSUPPORTED)
            self.met(module, args)
            return
        try:
            if self.runtime.begin(module, [*args, *(x for _, x in sorted(by_name(local.frame).items()))], known):
                local.serves = local.between = self.begin_packing(local)
            else:
                self.end_packing(local)
        except Wrong:
            raise
        except Exception as e:
            self.stop(local, "nothing is moved: %s: %s" % (type(e).__name__, say.reason(e)))
            return
        if not replica(module):
            self.note_root(module)
            self.adjust(local)

    def note_root(self, module):
        """Notes an outermost module, but for one within a model that was met in the middle of its forward pass."""
        if not self.runtime.guessing():
            self.roots.add(module)
        if isinstance(module, self.torch.nn.DataParallel):
            self.roots.add(module.module)  # whose replicas have its hooks

    # Hooks on what is saved. Others may be in effect above ours, which then are given nothing.

    def foreign(self):
        """Returns whether hooks of the program are in effect."""
        return self.top is not None and self.top() is not None and not self.ours()

    def ours(self):
        """Returns whether our hooks are in effect: a thread of autograd has those of the thread that it works for."""
        if self.top is None:
            return self.local.pushed
        hooks = self.top()
        return hooks is not None and hooks[0] == self.pack

    def begin_packing(self, local):
        if not self.ours():
            try:
                self.push()
            except RuntimeError:
                return False  # such hooks are forbidden here, as within torch.func.grad
            local.nested = self.torch._C._current_graph_task_id()  # where what is pushed does not last
            local.pushed = local.pushed or local.nested == NONE
        local.resting = False
        return True

    def end_packing(self, local):
        local.serves = local.between = False
        if local.pushed and self.ours():
            local.pushed = False
            self.pop()

    def rest(self):
        """Takes our hooks off, if they are those in effect, until the model ends that is running: what is saved behind that may be another one's. What is done in a backward
        pass does not last."""
        local = self.local
        lasts = self.top is not None and local.stack and local.pushed and self.torch._C._current_graph_task_id() == NONE
        if lasts and self.ours():
            local.pushed, local.resting = False, True
            self.pop()

    def wake(self):
        """Puts our hooks back where others would not be taken off in their place."""
        local = self.local
        if local.resting and self.torch._C._current_graph_task_id() == NONE and self.top() is None:
            self.begin_packing(local)

    def pack(self, tensor):
        """Is given what autograd saves, also in a backward pass, and between models."""
        local = self.local
        if local.stack and local.serves:
            return self.runtime.pack(tensor)
        if local.stack:
            return self.runtime.leave_alone(tensor)
        if self.torch._C._current_graph_task_id() != NONE:
            return self.runtime.pack_backward(tensor) if engine(sys._getframe().f_back) else self.runtime.leave_alone(tensor)
        if local.between:
            before, packed = self.runtime.guessing(), self.runtime.pack_between(tensor)
            if self.runtime.guessing() and not before:
                self.look_for_model()
            return packed
        return self.runtime.leave_alone(tensor)

    def look_for_model(self):
        """Watches all modules, as one that is not watched may have saved something. Where all are watched it was the program."""
        if self.watched == EVERYWHERE:
            self.runtime.mistaken()
        else:
            self.watch_all()

    def unpack(self, saved):
        if type(saved) is tuple and saved[0]._version == saved[1]:
            return saved[0]  # most stay where they are
        return self.runtime.unpack(saved)

    def adjust(self, local):
        """Watches what the runtime needs from now on."""
        if self.runtime.finished():
            self.unwind(local)
            self.remove()
            return
        wanted = WITHIN if self.runtime.recorded() else EVERYWHERE if self.runtime.watching() else NEAR if self.runtime.parting() else ROOTS
        if wanted != self.watched and (wanted, self.watched) != (ROOTS, NEAR):  # such steps come again
            {EVERYWHERE: self.watch_all, WITHIN: self.watch_within, NEAR: self.watch_near, ROOTS: self.watch_roots}[wanted]()

    def make_way(self):
        """Takes our hooks off where torch.func.grad and its like are used within a model: they refuse to work below any."""
        graph = self.torch.autograd.graph
        real = graph.disable_saved_tensors_hooks

        def disable_saved_tensors_hooks(*args, **kwargs):
            if self.compiling() or not self.ours():
                return real(*args, **kwargs)
            return self.without(real(*args, **kwargs))

        graph.disable_saved_tensors_hooks = disable_saved_tensors_hooks

    @contextlib.contextmanager
    def without(self, context):
        local = self.local
        pushed, local.pushed = local.pushed, False
        self.pop()
        try:
            with context:
                yield
        finally:
            self.push()
            local.pushed = pushed


def engine(caller):
    """Returns whether autograd itself calls in a backward pass, and not what is run forward again there, as by a checkpoint: the frame is the program's that
    began the pass, or none, as in the threads that autograd has for devices."""
    return caller is None or caller.f_code.co_name == PASS


def top(autograd):
    """Returns the function that returns the hooks in effect on what is saved, None where there is none: before 2.8."""
    get = getattr(autograd, "_top_saved_tensors_default_hooks", None)
    if get is None:
        return None

    def top():
        try:
            return get(False)
        except TypeError:
            return get()

    return top


def unreal(torch):
    """Returns the function that says whether tensors that are made now are none of memory: within torch.func they stand for others, and with FakeTensorMode
    they have no contents."""
    nothing = lambda *key: None
    transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", nothing)  # since 2.0
    mode, fake = getattr(torch._C, "_get_dispatch_mode", nothing), getattr(getattr(torch._C, "_TorchDispatchModeKey", None), "FAKE", None)  # since 2.1
    return lambda: transform() is not None or fake is not None and mode(fake) is not None


def replica(module):
    """Returns whether a module is one of DataParallel's copies, which run in threads of their own, a GPU each, while the program waits."""
    return module.__dict__.get("_is_replica", False)


def running(frame):
    """Returns whether a frame is among those of this thread's calls."""
    f = sys._getframe(1)
    while f is not None and f is not frame:
        f = f.f_back
    return f is not None


def inside(modules):
    """Returns modules and all that are in them, but for those that are compiled."""
    return [m for level in levels(modules) for m in level]


def near(modules):
    """Returns modules and those in them that are the fewest levels below, as many levels as have few modules."""
    found = list(modules)
    for level in itertools.islice(levels(modules), 1, None):
        if len(found) + len(level) > MOST:
            break
        found.extend(level)
    return found


def levels(modules):
    """Yields lists of modules: those that are given, their children, and so on, each module once, but for those that are compiled."""
    seen, level = set(), list(modules)
    while level:
        seen.update(map(id, level))
        yield level
        below = {id(m): m for module in level for m in module.children()
                 if not isinstance(m, optimized()) and getattr(m, "_compiled_call_impl", None) is None}
        level = [m for key, m in below.items() if key not in seen]


def partly_compiled(model):
    """Returns whether torch.compile made modules that are in a model."""
    return any(isinstance(m, optimized()) or getattr(m, "_compiled_call_impl", None) is not None for m in model.modules())


def optimized():
    """Returns the type of modules that torch.compile made of others."""
    return getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", ())


def compiled(module):
    """Returns whether a model is what torch.compile made of one, or a wrapper around that."""
    while not isinstance(module, optimized()):
        children = list(module.children())
        if len(children) != 1:
            return False
        module = children[0]
    return True
