"""The steps of an optimizer, chunk by chunk, between which its states wait on the host."""

import collections
import itertools
import sys
import weakref

from . import say
from .apart import Apart, Together, Undo
from .states import AWAY, HERE, States, meets, part, shared
from .updates import each, known

GIB = float(1 << 30)
REDUCING = "Adafactor",  # classes of torch.optim in whose updates ranks meet whatever the gradients are: they sum over a parameter


class Steps(object):
    """The steps of an optimizer. Its states stay on the device until memory is short; from then on they are there for their update alone:
    a chunk is updated while the one before goes and the next one comes. Where nothing else has to be moved, as many stay as there is room for."""

    def __init__(self, store, optimizer):
        self.store, self.memory = store, store.memory
        self.optimizer, self.name = weakref.ref(optimizer, lambda _: store.close(self)), type(optimizer).__name__
        self.moves = self.under_way = False
        self.why = ""  # they are not moved
        self.apart = None if known(store.torch, optimizer) else Apart(store.torch, store.memory, store.gradient)
        self.parameters = None  # how many each group had when they were looked at, and how many of them ranks share
        self.leaving = collections.deque()  # places whose copies to the host are under way
        self.turns = Turns()
        self.keep = self.kept = 0  # bytes that may stay after an update, and that have stayed in this step
        self.seen = None, 0  # how often places had changed when bytes that can be spared were counted, and these
        self.grows = True  # memory was never short because of them
        self.at_once = False  # all are needed by an update that is under way
        self.count = self.moved = 0  # steps, and those whose states were moved
        self.nbytes = 0  # of states on the host, after the last of these
        self.marks = None  # around it

    def step(self, real, args, kwargs):
        optimizer = self.optimizer()
        self.check(optimizer)
        if self.why or self.memory.capturing() or self.apart is not None and (args or kwargs):  # a closure may be called at any time
            self.fetch(optimizer)
            return real(optimizer, *args, **kwargs)
        if self.apart is not None:
            return self.step_apart(optimizer, lambda: real(optimizer, *args, **kwargs))
        closure, args, kwargs = without_closure(args, kwargs)
        loss = None
        if closure is not None:
            with self.store.torch.enable_grad():
                loss = closure()
        update = lambda: real(optimizer, *args, **kwargs)
        with self.memory:
            self.at_once = self.whole(optimizer)
        if self.at_once:
            self.run_whole(update)
        else:
            self.run(optimizer, self.chunks(optimizer), update)
        return loss

    def whole(self, optimizer):
        """Returns whether all states are known, stay, and were used last in this stream, and there is room to update them at once: for as much
        again twice. With memory."""
        if self.moves or not self.count:
            return False
        stream, states, nbytes = self.memory.stream(), optimizer.state, 0
        for p in each(optimizer):
            state, gradient = states.get(p), self.store.gradient(p)
            if gradient is not None and meets(p, gradient, state or {}):
                return False
            if type(state) is States:
                if state.changed:
                    return False
                for key, place in state.places.items():
                    if place.home != stream or not place.holds(dict.get(state, key)):
                        return False
                    nbytes += place.nbytes
            elif not states:
                nbytes += self.bytes(optimizer, p)
            elif state is not None or gradient is not None:
                return False
        return self.store.room() > 2 * nbytes

    def run_whole(self, update):
        """Updates all parameters, whose states cannot leave meanwhile."""
        try:
            update()
        finally:
            self.at_once = False
            self.count += 1
            self.turns.begin()

    def step_apart(self, optimizer, update):
        """Makes a step of an optimizer that nobody knows: by chunks if states do not fit otherwise, and if each parameter is updated by itself."""
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
        undo, away, before = Undo(self.store.torch, self.store.gradient, optimizer, chunks[0]), self.away(optimizer), self.nbytes_of(optimizer)
        try:
            self.update(optimizer, chunks[0], lambda: self.apart.update(optimizer, update))
            made = self.nbytes_of(optimizer) - before
        except Together as e:
            return str(e)
        finally:
            undo.undo()
        numbers = [sum(p.numel() for _, parameters in chunk for p in parameters) for chunk in chunks]
        if away + made * sum(numbers) / numbers[0] < self.store.room():
            return "it is none of torch.optim's, and memory sufficed in its first step"
        return ""

    def nbytes_of(self, optimizer):
        values = (v for state in list(optimizer.state.values()) for v in dict.values(state))
        return sum(v.numel() * v.element_size() for v in values if isinstance(v, self.store.torch.Tensor))

    def away(self, optimizer):
        return sum(place.nbytes for place in self.all(optimizer) if place.where is AWAY)

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
        early = self.turns.begin()
        with self.memory:
            if self.moves and begin is None:
                self.leaving.extend(place for place in self.all(optimizer) if place.leave())
            self.settle(0)
            if self.moves and self.grows and self.store.runtime.idle():
                self.keep = self.kept + max(0, self.store.room() - 3 * self.store.chunk)
            self.kept = 0
        if begin is not None:
            self.moved += 1
            self.marks = None if early else (begin, self.memory.mark())
            self.nbytes = self.away(optimizer)

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
        """Divides the parameters that have gradients. All those in whose updates ranks meet are together, as ranks may divide the others in different ways."""
        chunks, together, size = [], [], None
        for group in optimizer.param_groups:
            for p in group["params"]:
                gradient = self.store.gradient(p)
                if gradient is None:
                    continue
                if meets(p, gradient, optimizer.state.get(p) or {}):
                    include(together, group, p)
                    continue
                n = self.bytes(optimizer, p)
                if size is None or size + n > self.store.chunk:
                    chunks.append([])
                    size = 0
                size += n
                include(chunks[-1], group, p)
        return [chunk for chunk in (together, *chunks) if chunk] or [[(group, []) for group in optimizer.param_groups]]

    def bytes(self, optimizer, p):
        """Returns the bytes of a parameter's states, an estimate where there are none yet."""
        state = optimizer.state.get(p)
        if isinstance(state, States):
            return sum(place.nbytes for place in state.places.values())
        return 2 * part(p).numel() * p.element_size()

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
        self.memory.shifts += 1
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
            with self.memory.trial:
                place.load(stream)
        except self.memory.failures as e:
            say.once("states are not fetched ahead: %s" % say.brief(e))
        return place.where is not AWAY

    def send(self, optimizer, chunk):
        """Notes the states that an update has made, and begins to copy all of the chunk to the host."""
        for _, parameters in chunk:
            for p in parameters:
                self.adopt(optimizer.state, p)
        places = list(self.places(optimizer, chunk))
        self.memory.shifts += 1
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
        for place in () if self.at_once else self.all(optimizer):
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

    def on_host(self):
        optimizer = self.optimizer()
        for place in self.all(optimizer) if optimizer is not None else ():
            if place.where is HERE and not place.needed and self.memory.lies_on_host(place.tensor):
                yield place

    def spared(self):
        optimizer = self.optimizer()
        if optimizer is None or not self.keep:
            return 0
        if self.seen[0] != self.memory.shifts:  # requests for memory ask often
            spared = sum(p.nbytes for p in self.all(optimizer) if p.where is HERE and not p.needed and not self.memory.lies_on_host(p.tensor))
            self.seen = self.memory.shifts, spared
        return self.seen[1]

    def fetch(self, optimizer):
        """Has all states on the device."""
        for state in list(optimizer.state.values()):
            if isinstance(state, States):
                state.fetch()

    # What is not moved.

    def check(self, optimizer):
        """Looks for what makes updates in chunks wrong."""
        counts = [(len(group["params"]), sum(map(shared, group["params"]))) for group in optimizer.param_groups]
        if counts != self.parameters and not self.why:
            self.parameters, self.why = counts, unfit(self.store, optimizer)
        if not self.why and any(g is not None and g.layout is not self.store.torch.strided for g in map(self.store.gradient, each(optimizer))):
            self.why = "gradients are sparse"

    def account(self):
        if not self.moved:
            return
        took = "updates are early"
        if self.marks is not None:
            self.memory.synchronize()
            took = "the last update took %.3f s" % (self.memory.elapsed(*self.marks) / 1e9)
        say.line("states of %s: %.2f GiB on the host, in %d of %d steps; %s" % (self.name, self.nbytes / GIB, self.moved, self.count, took))


class Turns(object):
    """The order in which parameters are updated early, which is that of the backward pass before."""

    def __init__(self):
        self.chunks, self.before, self.at = [], [], {}

    def begin(self):
        """Ends a backward pass. Returns whether there were updates in it."""
        if self.chunks:
            self.before, self.chunks = self.chunks, []
            self.at = {id(chunk[0][1][0]): i for i, chunk in enumerate(self.before)}
            return True
        return False

    def after(self, chunk):
        """Returns what comes after a parameter, as far as that is known."""
        self.chunks.append(chunk)
        at = self.at.get(id(chunk[0][1][0]))
        return [] if at is None else itertools.islice(self.before, at + 1, None)


def include(chunk, group, p):
    """Has a parameter be the last one of a chunk."""
    if not chunk or chunk[-1][0] is not group:
        chunk.append((group, []))
    chunk[-1][1].append(p)


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
    split = any(map(shared, parameters))
    for wrong, why in (
        (lambda: any(group.get("differentiable") for group in optimizer.param_groups), "it is differentiable"),
        (lambda: any(type(part(p)) not in plain or p.layout is not torch.strided for p in parameters), "parameters are sparse, or of a type of their own"),
        (lambda: split and (not known(torch, optimizer) or type(optimizer).__name__ in REDUCING), "ranks share parameters, and may have to meet in updates"),
        (lambda: not all(map(store.memory.here, parameters)), "parameters are on other devices"),
    ):
        if wrong():
            return why
    return ""
