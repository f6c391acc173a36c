"""Notes all that a step does: each operator, and the memory that it makes, reads, changes and leaves."""

from . import effects

FORWARD, BACKWARD, UPDATE = range(3)  # phases, as swap.Phase has them
BEFORE = -1  # where memory is made that a step finds


class Storage(object):
    """Memory of the device, and the operators that deal with it."""

    __slots__ = ("key", "weak", "nbytes", "dtype", "shape", "made", "uses", "changes", "died")

    def __init__(self, key, weak, nbytes, tensor, made):
        self.key, self.weak, self.nbytes = key, weak, nbytes
        self.dtype, self.shape = str(tensor.dtype).replace("torch.", ""), "x".join(map(str, tensor.shape))
        self.begin(made)

    def begin(self, made):
        self.made, self.died = made, None  # the operator behind which it is free
        self.uses, self.changes = [], []

    def lasts(self):
        """Returns whether the step finds it and leaves it."""
        return self.made == BEFORE and self.died is None


class Operator(object):
    """What an operator is, the memory that is given to it and what it changes of that, and the states beside memory that it reads and
    changes."""

    __slots__ = ("name", "type", "place", "phase", "given", "changed", "reads", "changes", "measured")


class Ledger(object):
    """The operators of a step and its memory. What returns views, and does nothing else, is not noted."""

    def __init__(self, memory, places, gauge):
        self.memory, self.places, self.gauge, self.torch = memory, places, gauge, memory.torch
        self.live = {}  # storages by address, which is not another one's while there is a weak reference
        self.mode = None
        self.wrong = None  # the error after which nothing is noted
        self.over = False  # nothing is noted any more
        self.begin()

    def open(self):
        self.mode = self.memory.mode(self.run, inside=True)
        self.mode.__enter__()

    def close(self):
        mode, self.mode = self.mode, None
        mode.__exit__(None, None, None)

    def begin(self):
        """Begins a step. All memory that is there is memory that it finds."""
        self.ops = []
        self.phase, self.updating, self.answered = FORWARD, False, False
        self.settle()
        self.dead = []
        for s in self.live.values():
            s.begin(BEFORE)

    def settle(self):
        """Notes what was freed behind the last operator."""
        for key in [key for key, s in self.live.items() if self.memory.expired(s.weak)]:
            self.end(self.live.pop(key))

    def end(self, s):
        s.died, s.weak = len(self.ops) - 1, None
        if s.died >= s.made:
            self.dead.append(s)

    def update(self):
        """Says that an optimizer begins to work."""
        self.updating = True

    def updated(self):
        """Returns whether parameters are being changed, or have been."""
        return self.updating or self.phase == UPDATE

    def run(self, function, args, kwargs):
        """Runs each operator and notes it. What goes wrong with that ends the notes, and not the program."""
        if self.over or self.wrong is not None or effects.silent(function):
            return function(*args, **kwargs)
        try:
            self.settle()
            arguments = effects.tensors(self.torch, (args, kwargs))
            given = self.storages(arguments, BEFORE)
            begin = self.gauge.begin()
        except Exception as e:
            self.wrong = e
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        try:
            measured = self.gauge.end(begin, function, args, kwargs, result)
            self.note(effects.Call(self.torch, function, args, kwargs), arguments, given, effects.tensors(self.torch, result), measured)
        except Exception as e:
            self.wrong = e
        return result

    def storages(self, tensors, made):
        """Returns the storages of those tensors that are memory of the device, each once. What was not seen before is made there."""
        met = {}
        for t in tensors:
            if self.memory.here(t):
                s = self.meet(t.untyped_storage(), t, made)
                met[s.key] = s
        return list(met.values())

    def meet(self, storage, tensor, made):
        key, nbytes = storage._cdata, storage.nbytes()
        s = self.live.get(key)
        if s is None:
            s = self.live[key] = Storage(key, self.memory.weak(storage), nbytes, tensor, made)
        elif s.nbytes != nbytes:  # other memory in the same storage
            weak = s.weak
            self.end(s)
            s = self.live[key] = Storage(key, weak, nbytes, tensor, len(self.ops))
        return s

    def note(self, call, arguments, given, results, measured):
        """Notes a call that has ended, if it has made or changed anything."""
        at, seen = len(self.ops), set(self.live)
        fresh = [s for s in self.storages(results, at) if s.key not in seen]
        written = call.written(arguments)
        changed = self.storages(written, at)
        reads, changes = self.states(call, arguments, results + written, bool(given or fresh))
        if not fresh and not changed and not (given and changes):
            return
        op = Operator()
        op.name, op.type = call.packet, effects.type_of(call.packet)
        op.phase, op.place = self.pass_on(changed), self.place()
        op.given, op.changed = given, changed
        op.reads, op.changes, op.measured = reads, changes, measured
        for s in {s.key: s for s in given + changed}.values():
            s.uses.append(at)
        for s in changed:
            s.changes.append(at)
        self.ops.append(op)

    def states(self, call, arguments, results, here):
        """Returns what a call reads and changes that is no memory of the device."""
        reads, changes = set(), set()
        away = lambda tensors: not all(map(self.memory.here, tensors))
        if call.collective():
            changes.add("collectives")
        if call.random():
            changes.add("random %s" % (self.memory.place,))
        if away(arguments) or self.answered:
            reads.add("host")  # behind an answer the program knows what that was
        if here and (away(results) or call.answers()):
            changes.add("host")
            self.answered = True
        return reads - changes, changes

    def in_backward(self):
        return self.torch._C._current_graph_task_id() != -1

    def place(self):
        return self.places.backward() if self.in_backward() else self.places.forward()

    def pass_on(self, changed):
        """Returns the phase of an operator that changes memory. No phase comes back: a forward pass behind a backward one is part of it."""
        if self.in_backward():
            self.phase = max(self.phase, BACKWARD)
        elif self.phase == BACKWARD and (self.updating or any(self.memory.parameter(s.key) for s in changed)):
            self.phase = UPDATE
        return self.phase
