"""Has parameters that wait on the host have a copy on the device as their memory while modules run that they belong to."""

import contextlib
import threading
import weakref

from .entry import Saved, layout
from .exposed import Data
from .hooks import unreal
from .memory import AS_IT_IS


TRIALS = 2


class Weight(object):
    """A parameter that waits on the host, and its copy on the device."""

    __slots__ = ("parameter", "nbytes", "depth", "home", "key", "exposures", "storage", "made", "trials")

    def __init__(self, parameter, nbytes):
        self.parameter, self.nbytes = weakref.ref(parameter), nbytes
        self.depth = 0  # modules that run and that it belongs to
        self.home, self.key = None, 0  # a tensor in the memory of the host, while the parameter has that of the copy, and the address of its storage then
        self.exposures = 0  # times that the program has asked for what shows no versions
        self.trials = TRIALS  # times that the copy is still compared with the parameter when it is put back
        self.storage, self.made = None, ()  # a weak reference to the last copy's storage, and the step and what told of changes when it was made

    def count(self):
        """Returns what differs where the parameter was changed, as far as that shows."""
        p = self.parameter()
        return p._version, self.exposures, layout(p)

    def is_there(self, memory):
        """Returns whether the parameter still has the memory of the host, or of the copy."""
        p = self.parameter()
        return p is not None and (memory.key(p) == self.key if self.home is not None else memory.lies_on_host(p))


class Stand(object):
    """The copy of a parameter, while it is its memory."""

    def __init__(self, memory, weight):
        self.memory, self.weight, self.home = memory, weight, memory.key(weight.parameter())
        self.ordinal = memory.parameter(self.home)
        self.held = 0  # tensors in it that autograd was given to keep, beside an entry's
        self.packs = False

    def pack(self, runtime, tensor):
        """Packs a tensor in the copy as any other, and counts what holds that from then on."""
        self.packs = True
        try:
            runtime.step.follow(self.ordinal)
            before = self.memory.uses(tensor)
            kept = runtime.pack(tensor)
            if type(kept) is Saved:
                return Copied(kept, self, layout(tensor))
            self.held += self.memory.uses(tensor) - before
            return kept
        finally:
            self.packs = False

    def shared(self, p):
        """Returns whether something holds the copy that is neither the parameter nor autograd, as a view that the program keeps."""
        memory = self.memory
        entry = memory.entries.get(memory.key(p))
        return memory.uses(p) > memory.alone + self.held + (entry is not None and entry.alias is not None)


class Copied(object):
    """What autograd keeps of a copy: if the program has asked for .data since, the contents may be others, which are the parameter's."""

    __slots__ = ("saved", "stand", "exposures", "layout")

    def __init__(self, saved, stand, layout):
        self.saved, self.stand, self.layout = saved, stand, layout
        self.exposures = stand.weight.exposures

    def unpack(self, unpack):
        tensor, stand = unpack(self.saved), self.stand
        p = stand.weight.parameter()
        if stand.weight.exposures == self.exposures or p is None or stand.memory.key(p) != stand.home:
            return tensor
        return stand.memory.view(p.detach(), *self.layout)


class Entered(threading.local):
    def __init__(self):
        self.stack = []  # modules that run, and the Weights that have come for them


class Stands(object):
    """Called by hooks of modules, and with memory between two operators."""

    def __init__(self, weights):
        self.weights, self.relief, self.memory = weights, weights.home.relief, weights.memory
        torch = self.memory.torch
        self.unreal, self.local = unreal(torch), Entered()
        self.inference = getattr(torch, "is_inference_mode_enabled", lambda: False)
        self.data = None  # of tensors, once somebody waits
        self.last, self.after = None, {}  # the Weight that came last and in what, and which ones came next, by these
        self.stream = None  # the address of the stream of copies ahead of need
        self.ahead = None  # the Weight that is copied so, the copy, the stream of its memory, and when that was

    def watch(self):
        if self.data is None:
            self.data = Data.of(self.memory.torch)
            self.data.told.append(self.weights.expose)

    def enter(self, module, args):
        weights = [] if self.bars() else self.weights.of(module)
        self.local.stack.append((module, weights))
        with self.memory:
            for weight in weights:
                weight.depth += 1
                if weight.depth == 1:
                    self.come(weight)

    def leave(self, module, args, output):
        stack = self.local.stack
        while any(m is module for m, _ in stack):
            left, weights = stack.pop()
            with self.memory:
                for weight in weights:
                    weight.depth = max(0, weight.depth - 1)
                    if not weight.depth:
                        self.put_back(weight)
            if left is module:
                break

    def bars(self):
        """Returns whether parameters stay where they are now."""
        memory, step = self.memory, self.relief.runtime.step
        return memory.capturing() or self.graphs() or self.unreal() or self.inference() or step is None or memory.stream() != step.stream

    def graphs(self):
        """Returns whether a CUDA graph may know addresses."""
        return self.relief.library.had_pools(self.memory.device)

    def come(self, weight):
        """Has a parameter have a copy on the device, unless something else may know where it is."""
        memory, p = self.memory, weight.parameter()
        if not weight.is_there(memory):
            return self.weights.forget(weight)
        with memory.trial, memory.tracked(), memory.plainly(), self.unseen():
            ahead = self.arrived(weight)
            if not self.alone(p):
                return
            try:
                copy = self.standing(weight, p)
                copy = copy if copy is not None else ahead if ahead is not None else p.detach().clone()
            except memory.failures:
                return
            if memory.lies_on_host(copy):
                return
            stand = Stand(memory, weight)
            weight.home, weight.made = p.detach(), self.now(weight)
            weight.storage = memory.weak(copy.untyped_storage())
            self.data.put(p, copy)
            weight.key = memory.key(p)
            memory.stands[weight.key] = stand
            for operators in self.watchers():
                operators.recount(p)
        self.look_ahead(weight)

    def alone(self, p):
        return self.memory.sole(p) and not self.memory.addressed(p)

    def now(self, weight):
        """Returns when it is, as far as copies of a parameter tell apart."""
        step = self.relief.runtime.step
        return step.number, step.backward, weight.count()

    def standing(self, weight, p):
        """Returns the last copy if autograd still holds it, and it is as the parameter is, else None."""
        if weight.storage is None or weight.made != self.now(weight):
            return None
        storage = self.memory.torch.UntypedStorage._new_with_weak_ptr(weight.storage.cdata)
        if storage is None or storage.nbytes() != weight.nbytes:
            return None
        return self.memory.torch.empty(0, dtype=p.dtype, device=p.device).set_(storage, p.storage_offset(), p.size(), p.stride())

    def put_back(self, weight):
        """Has a parameter have the memory of the host again. Where the program may have changed the copy, or may yet, it keeps that."""
        weight.depth = 0
        if weight.home is None:
            return
        memory, p, stand = self.memory, weight.parameter(), self.memory.stands.pop(weight.key, None)
        with memory.tracked(), memory.plainly(), self.unseen():
            there = weight.is_there(memory) and weight.made[2] == weight.count()
            home, weight.home = weight.home, None
            there = there and self.same(weight, p, home)
            if there and stand is not None and not (memory.addressed(p) or memory.capturing() or self.graphs() or stand.shared(p)):
                self.data.put(p, home)
            else:
                self.weights.forget(weight)

    def same(self, weight, p, home):
        """Returns whether a copy is as the parameter is, as far as is looked at: at first, as a module may change it in each of its forward passes by ways that nothing tells of."""
        memory = self.memory
        if not weight.trials or memory.capturing():
            return True
        weight.trials -= 1
        memory.looking = True
        try:
            with memory.trial:
                return memory.same(p.detach(), home)
        except memory.failures:
            return True
        finally:
            memory.looking = False

    # Ahead of need.

    def begin_step(self):
        self.arrived(None)
        self.last = None

    def forget(self, weight):
        """Copies it ahead no more."""
        self.after = {a: b for a, b in self.after.items() if a is not weight and b is not weight}

    def look_ahead(self, weight):
        """Begins to copy what came next when a parameter had come, in the same call of a model, or evaluation."""
        turn = self.relief.runtime.step.turn, self.memory.torch.is_grad_enabled()
        if self.last is not None and self.last[1] == turn:
            self.after[self.last[0]] = weight
        self.last = weight, turn
        if weight in self.after:
            self.fetch(self.after[weight])

    def fetch(self, weight):
        """Begins to copy a parameter ahead of need, unless operators are to be seen."""
        memory, p, runtime = self.memory, weight.parameter(), self.relief.runtime
        if weight.depth or weight.home is not None or runtime.recording is not None or runtime.step.backward or not weight.is_there(memory):
            return
        with memory.trial, memory.tracked(), memory.plainly(), self.unseen():
            if not self.alone(p):
                return
            try:
                copy, main = memory.torch.empty_like(p.detach()), memory.stream()
            except memory.failures:
                return
            if memory.lies_on_host(copy):
                return
            self.stream = self.stream or memory.new_stream()
            with memory.on(self.stream):
                memory.follow(main)
                copy.copy_(p.detach(), non_blocking=True)
            memory.used_by(p, self.stream)
            self.ahead = weight, copy, main, self.now(weight)

    def arrived(self, weight):
        """Has the stream of the copy's memory wait for what was begun ahead. Returns the copy if it is one of a parameter as that is now, else None."""
        if self.ahead is None:
            return None
        (other, copy, main, then), self.ahead = self.ahead, None
        with self.memory.on(main) if self.memory.stream() != main else AS_IT_IS:
            self.memory.follow(self.stream)
        return copy if other is weight and then == self.now(weight) else None

    # Modes of the program.

    def watchers(self):
        """Returns those of ours that see operators."""
        step, recording = self.relief.runtime.step, self.relief.runtime.recording
        return [x for x in (step and step.parting and step.parting.live, recording and recording.operators) if x is not None]

    @contextlib.contextmanager
    def unseen(self):
        """A context in which operators are seen by none of the program's modes: by ours if there are no others."""
        c, ours = self.memory.torch._C, [x.mode for x in self.watchers()]
        others = not all(any(m is x for x in ours) for m in modes())
        with getattr(c, "DisableTorchFunction", lambda: AS_IT_IS)(), getattr(c, "_DisableTorchDispatch", lambda: AS_IT_IS)() if others else AS_IT_IS:
            yield


def modes():
    """Returns all modes that operators are given to."""
    from torch.utils import _python_dispatch

    return _python_dispatch._get_current_dispatch_mode_stack()
