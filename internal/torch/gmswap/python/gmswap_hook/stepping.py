"""Steps of optimizers chunk by chunk, so that few states are on the device at a time."""

import atexit
import collections
import contextlib
import functools
import itertools
import os
import sys
import weakref

from . import say
from .apart import Apart, Together, Undo
from .hooks import compiling
from .states import AWAY, HERE, Place, States
from .updates import each, known

CHUNK = 512 << 20  # bytes of states
GIB = float(1 << 30)


class Stepping(object):
    """Stands between a program and the step() of its optimizers. Nothing is done before there is a store."""

    def __init__(self, torch):
        self.compiling, self.store = compiling(torch), None
        self.early = lambda: False  # whether one parameter is updated, in the backward pass
        self.unguarded = contextlib.nullcontext  # in which gradients are read by an update
        self.gradient = torch.Tensor.grad.__get__
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
            if self.store is None or self.compiling():
                return real(optimizer, *args, **kwargs)
            steps = self.store.steps(optimizer)
            if steps.under_way:  # one class's step() calls another's
                return real(optimizer, *args, **kwargs)
            steps.under_way = True
            try:
                return (steps.early_step if self.early() else steps.step)(real, args, kwargs)
            finally:
                steps.under_way = False

        step._gmswap = True
        return step

    def apart(self, optimizer):
        """Returns whether an optimizer that nobody knows has turned out to update each parameter by itself."""
        steps = self.store.optimizers.get(optimizer) if self.store is not None else None
        return steps is not None and steps.apart is not None and steps.apart.trusted


class Store(object):
    """The states of all optimizers that a runtime may move."""

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
        if not isinstance(value, self.torch.Tensor) or value.requires_grad or not self.memory.movable(value):
            return None
        if self.memory.size(value) < self.smallest:
            return None
        if not value.untyped_storage().resizable():  # as of some that torch.load made
            if not self.memory.sole(value):
                return None
            value.data = value.clone()
        return Place(self.memory, self.lanes, value)

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


class Steps(object):
    """The steps of an optimizer. Its states stay on the device until memory is short; from then on they are there for their update alone:
    a chunk is updated while the one before goes and the next one comes. Where nothing else has to be moved, as many stay as there is room for."""

    def __init__(self, store, optimizer):
        self.store, self.memory = store, store.memory
        self.optimizer, self.name = weakref.ref(optimizer, lambda _: store.close(self)), type(optimizer).__name__
        self.moves = self.under_way = False
        self.why = ""  # they are not moved
        self.apart = None if known(store.torch, optimizer) else Apart(store.torch, store.memory, store.gradient)
        self.parameters = None  # how many each group had when they were looked at
        self.leaving = collections.deque()  # places whose copies to the host are under way
        self.turns = Turns()
        self.keep = self.kept = 0  # bytes that may stay after an update, and that have stayed in this step
        self.grows = True  # memory was never short because of them
        self.count = self.moved = 0  # steps, and those whose states were moved
        self.nbytes = 0  # of states on the host, after the last of these
        self.marks = None  # around it

    def step(self, real, args, kwargs):
        optimizer = self.optimizer()
        self.check(optimizer)
        if self.why or self.memory.capturing():
            self.fetch(optimizer)
            return real(optimizer, *args, **kwargs)
        if self.apart is not None:
            return self.step_apart(optimizer, lambda: real(optimizer, *args, **kwargs))
        closure, args, kwargs = without_closure(args, kwargs)
        loss = None
        if closure is not None:
            with self.store.torch.enable_grad():
                loss = closure()
        self.run(optimizer, self.chunks(optimizer), lambda: real(optimizer, *args, **kwargs))
        return loss

    def step_apart(self, optimizer, update):
        """Makes a step of an optimizer that nobody knows: chunk by chunk if states do not fit otherwise, and if it updates each parameter by itself."""
        chunks = self.chunks(optimizer)
        if len(chunks) > 1 and not self.apart.trusted:
            self.why = self.tried(optimizer, chunks, update)
            if self.why:
                return update()
            self.apart.trusted = True
        result = []
        self.run(optimizer, chunks, lambda: result.append(self.watched(optimizer, update)))
        return result[0]

    def watched(self, optimizer, update):
        """Updates some parameters, and sees to it that it is each by itself."""
        if not self.apart.trusted:
            return update()  # of all
        try:
            with self.store.stepping.unguarded():
                return self.apart.update(optimizer, update)
        except Together as e:
            raise RuntimeError("gmswap: %s, after %s has updated parameters one by one, which cannot be undone; more -m helps" % (e, self.name))

    def tried(self, optimizer, chunks, update):
        """Updates the first chunk, and undoes that. Returns why there are to be no more such updates, "" for no reason."""
        undo, made, before = Undo(self.store.torch, optimizer, chunks[0]), 0, self.nbytes_of(optimizer)
        try:
            self.update(optimizer, chunks[0], lambda: self.apart.update(optimizer, update))
            made = self.nbytes_of(optimizer) - before
        except Together as e:
            return str(e)
        finally:
            undo.undo()
        numbers = [sum(p.numel() for _, parameters in chunk for p in parameters) for chunk in chunks]
        if made * sum(numbers) / numbers[0] < self.store.room():
            return "it is none of torch.optim's, and memory sufficed in its first step"
        return ""

    def nbytes_of(self, optimizer):
        return sum(v.numel() * v.element_size() for state in list(optimizer.state.values()) for v in dict.values(state) if isinstance(v, self.store.torch.Tensor))

    def run(self, optimizer, chunks, update):
        """Updates chunk by chunk. The memory of a chunk is free when the one behind the next one comes."""
        begin = self.memory.mark() if self.moves else None
        try:
            for i, chunk in enumerate(chunks):
                self.run_one(optimizer, chunk, update, chunks[i + 1 : i + 2])
        finally:
            self.end(optimizer, begin)

    def early_step(self, real, args, kwargs):
        """Updates what there is a gradient of: one parameter, whose turn comes in the same order in each backward pass."""
        optimizer = self.optimizer()
        if self.why:
            real(optimizer, *args, **kwargs)
            return
        chunk = [(group, group["params"]) for group in optimizer.param_groups]
        update = lambda: real(optimizer, *args, **kwargs)
        self.run_one(optimizer, chunk, update if self.apart is None else lambda: self.watched(optimizer, update), self.turns.after(chunk))

    def run_one(self, optimizer, chunk, update, ahead):
        try:
            with self.memory:
                self.settle(self.store.chunk)
                self.arrive(optimizer, chunk)
                self.expect(optimizer, ahead)
            self.update(optimizer, chunk, update)
        finally:
            with self.memory:
                self.send(optimizer, chunk)

    def end(self, optimizer, begin):
        """Ends a step that the program has called for."""
        self.count += 1
        self.turns.begin()
        with self.memory:
            if self.moves and begin is None:
                self.leaving.extend(place for place in self.all(optimizer) if place.leave())
            self.settle(0)
            if self.moves and self.grows and self.store.runtime.idle():
                self.keep = self.kept + max(0, self.store.room() - 3 * self.store.chunk)
            self.kept = 0
        if begin is not None:
            self.moved += 1
            self.marks = begin, self.memory.mark()
            self.nbytes = sum(x.nbytes for x in self.all(optimizer) if x.where is AWAY)

    def update(self, optimizer, chunk, update):
        """Has the optimizer's own step update some parameters."""
        groups = optimizer.param_groups
        before = [(group, group["params"]) for group, _ in chunk]
        try:
            for group, parameters in chunk:
                group["params"] = parameters
            optimizer.param_groups = [group for group, _ in chunk]
            update()
        finally:
            optimizer.param_groups = groups
            for group, parameters in before:
                group["params"] = parameters

    # Chunks: lists of groups, each with some of its parameters.

    def chunks(self, optimizer):
        """Divides the parameters that have gradients."""
        chunks, size = [], None
        for group in optimizer.param_groups:
            for p in group["params"]:
                if self.store.gradient(p) is None:
                    continue
                n = self.bytes(optimizer, p)
                if size is None or size + n > self.store.chunk:
                    chunks.append([])
                    size = 0
                size += n
                if not chunks[-1] or chunks[-1][-1][0] is not group:
                    chunks[-1].append((group, []))
                chunks[-1][-1][1].append(p)
        return chunks or [[(group, []) for group in optimizer.param_groups]]

    def bytes(self, optimizer, p):
        """Returns the bytes of a parameter's states, an estimate where there are none yet."""
        state = optimizer.state.get(p)
        if isinstance(state, States):
            return sum(place.nbytes for place in state.places.values())
        return 2 * p.numel() * p.element_size()

    @staticmethod
    def places(optimizer, chunk):
        for _, parameters in chunk:
            for p in parameters:
                state = optimizer.state.get(p)
                if isinstance(state, States):
                    yield from state.places.values()

    @staticmethod
    def all(optimizer):
        for state in list(optimizer.state.values()):
            if isinstance(state, States):
                yield from list(state.places.values())

    # With memory.

    def arrive(self, optimizer, chunk):
        stream, places = self.memory.stream(), list(self.places(optimizer, chunk))
        for place in places:
            place.needed = True
        for place in places:
            place.arrive(stream)

    def expect(self, optimizer, chunks):
        """Begins the copies back of what is updated next, as far as there is room."""
        stream, room, ahead = self.memory.stream(), None, 0
        for chunk in chunks:
            for place in self.places(optimizer, chunk):
                ahead += place.nbytes
                if place.where is AWAY:
                    room = (self.store.room() if room is None else room) - place.nbytes
                    if room < 0 or not self.come(place, stream):
                        return
            if ahead >= self.store.chunk:
                return

    def come(self, place, stream):
        """Begins a copy back. Returns whether there was memory for it."""
        try:
            place.load(stream)
        except self.memory.failures as e:
            say.once("states are not fetched ahead: %s" % say.reason(e))
        return place.where is not AWAY

    def send(self, optimizer, chunk):
        """Notes the states that an update has made, and begins to copy all of the chunk to the host."""
        for _, parameters in chunk:
            for p in parameters:
                self.adopt(optimizer.state, p)
        places = list(self.places(optimizer, chunk))
        for place in places:
            place.needed = False
        for place in places if self.moves else ():
            if self.kept + place.nbytes <= self.keep:
                self.kept += place.nbytes
            elif place.leave():
                self.leaving.append(place)

    def adopt(self, states, p):
        if type(states.get(p)) is dict and holders(states, p) <= ALONE:
            states[p] = States(states[p])
        state = states.get(p)
        if isinstance(state, States):
            state.adopt(self.store.place)

    def settle(self, nbytes):
        """Frees the memory of what goes to the host, but for the last bytes."""
        left = sum(place.nbytes for place in self.leaving)
        while self.leaving and left > nbytes:
            place = self.leaving.popleft()
            left -= place.nbytes
            place.left()

    def make_room(self, size):
        optimizer = self.optimizer()
        if optimizer is None:
            return 0
        if self.why:
            say.once("states of %s stay on the device: %s" % (self.name, self.why))
            return 0
        freed = self.evict(optimizer, size)
        if freed and not self.moves:
            self.moves = True
            say.line("states of %s wait on the host from now on" % self.name)
            self.store.runtime.renew()
        return freed

    def evict(self, optimizer, size):
        freed = 0
        for place in self.all(optimizer):
            if freed < size and not place.needed:
                place.leave()
                freed += place.left()
        return freed

    def spare(self, size):
        optimizer = self.optimizer()
        if optimizer is None or not self.keep:
            return 0
        freed = self.evict(optimizer, size)
        if freed:
            self.keep, self.grows = max(0, self.keep - freed), False
        return freed

    def spared(self):
        optimizer = self.optimizer()
        if optimizer is None or not self.keep:
            return 0
        return sum(place.nbytes for place in self.all(optimizer) if place.where is HERE and not place.needed)

    def fetch(self, optimizer):
        """Has all states on the device."""
        for state in list(optimizer.state.values()):
            if isinstance(state, States):
                state.fetch()

    # What is not moved.

    def check(self, optimizer):
        """Looks for what makes updates in chunks wrong."""
        counts = [len(group["params"]) for group in optimizer.param_groups]
        if counts != self.parameters and not self.why:
            self.parameters, self.why = counts, unfit(self.store, optimizer)
        if not self.why and any(g is not None and g.layout is not self.store.torch.strided for g in map(self.store.gradient, each(optimizer))):
            self.why = "gradients are sparse"

    def account(self):
        if not self.moved:
            return
        self.memory.synchronize()
        took = self.memory.elapsed(*self.marks) / 1e9
        say.line("states of %s: %.2f GiB on the host, in %d of %d steps; the last update took %.3f s" % (
            self.name, self.nbytes / GIB, self.moved, self.count, took))


class Turns(object):
    """The order in which parameters are updated early, which is that of the backward pass before."""

    def __init__(self):
        self.chunks, self.before, self.at = [], [], {}

    def begin(self):
        """Ends a backward pass."""
        if self.chunks:
            self.before, self.chunks = self.chunks, []
            self.at = {id(chunk[0][1][0]): i for i, chunk in enumerate(self.before)}

    def after(self, chunk):
        """Returns what comes after a parameter, as far as that is known."""
        self.chunks.append(chunk)
        at = self.at.get(id(chunk[0][1][0]))
        return [] if at is None else itertools.islice(self.before, at + 1, None)


def without_closure(args, kwargs):
    if args:
        return args[0], args[1:], kwargs
    return kwargs.get("closure"), args, {key: value for key, value in kwargs.items() if key != "closure"}


def holders(states, p):
    return sys.getrefcount(states[p])


ALONE = holders({0: {}}, 0)  # what holds a state that is in a dictionary alone


def unfit(store, optimizer):
    """Returns why an optimizer cannot update chunk by chunk, "" if it can."""
    torch, parameters = store.torch, list(each(optimizer))
    plain = (torch.Tensor, torch.nn.Parameter)
    for wrong, why in (
        (lambda: any(group.get("differentiable") for group in optimizer.param_groups), "it is differentiable"),
        (lambda: any(type(p) not in plain or p.layout is not torch.strided for p in parameters), "parameters are sparse, or of a type of their own"),
        (lambda: not all(map(store.memory.here, parameters)), "parameters are on several devices"),
    ):
        if wrong():
            return why
    return ""
