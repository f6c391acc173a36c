"""Records what a step does, as the graph that a schedule is made for.

Two steps are recorded: one for which operators made what is saved, one for times and memory. Where sizes differ from step to step, the operators of
one more are seen between them. Everything is moved meanwhile, at once, so that a step needs as little memory as it can, and so that it shows until
when the program itself holds on to what is saved.
"""

import os
import re
import socket
import sys

from .entry import layout
from .measure import Clock, Scale
from .operators import Operators

LAYER_INPUT, ATTENTION = 1, 2  # roles of tensors, as swap.Role has them
NUMBER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")


class Recording(object):
    ATTEMPTS = 3  # pairs of steps that differ before no more are recorded

    def __init__(self, memory, settings, costs, before):
        self.memory, self.settings, self.costs = memory, settings, costs
        self.before = before  # the sizes of the step before
        self.name = ""  # of the model
        self.names = {}  # of the modules, by id
        self.stack = []
        self.operators = None
        self.made = None  # the first step
        self.again = None  # another one of other sizes, if they vary
        self.timed = None
        self.failed = 0  # times that two steps differed

    def next(self, step):
        """Returns what conducts a step."""
        seen = self.made is None or self.varies() and self.again is None
        self.operators = Operators(self.memory, self.settings.policy.startswith("memo"), proves=self.made is None) if seen else None
        if self.made is not None:
            step.members = self.made.members
        return Watched(self, step, self.operators)

    def varies(self):
        """Returns whether sizes differ from step to step, and schedules for all of them are wanted."""
        return self.before != self.made.sizes and self.settings.for_all_sizes()

    def enter(self, module):
        if not self.stack:
            self.name = self.name or type(module).__name__
            for name, m in module.named_modules():
                self.names[id(m)] = name
            if self.operators is not None:
                self.operators.begin()
        self.stack.append(self.names.get(id(module), type(module).__name__))

    def leave(self, module):
        if self.stack:
            self.stack.pop()
        if not self.stack and self.operators is not None:
            self.operators.end()

    def place(self):
        """Returns where the program is: the path of a module."""
        return self.stack[-1] if self.stack else ""

    def ended(self, watched):
        """Takes note of a step, unless it had no backward pass."""
        if not watched.step.backward:
            return
        if self.made is None:
            self.made = watched
            self.costs.learn(self.operators)
        elif (self.made.sequence, self.made.trails) != (watched.sequence, watched.trails):
            self.made = self.again = None  # once more
            self.failed += 1
        elif watched.operators is None:
            self.take(watched)
        elif self.made.sizes != watched.sizes:
            self.again = watched
        else:
            self.before = self.made.sizes  # they do not vary after all

    def take(self, watched):
        """Takes a step whose operators were not seen, if it tells what is to be known of sizes: that they do not vary, or what third ones are."""
        others = self.again is not None
        tells = watched.sizes not in (self.made.sizes, self.again.sizes) if others else watched.sizes == self.made.sizes
        if tells or self.failed + 1 >= self.ATTEMPTS or not self.settings.for_all_sizes():
            self.timed = watched
            return
        self.failed += 1
        if not others:
            self.made, self.before = None, watched.sizes

    def recipes(self):
        """Returns for each entry how it is recomputed, or None."""
        return self.made.operators.recipes(self.made, self.timed, self.settings.device // 64)

    def recipes_of(self, watched):
        """Returns the same for a step whose operators were seen."""
        return watched.operators.recipes(watched, watched, self.settings.device // 64)


class Watched(object):
    """Conducts a step that is recorded. Its operators are the stretches between two points: the start, then each pack and unpack."""

    way = "recorded"

    def __init__(self, recording, step, operators):
        self.recording, self.step, self.operators = recording, step, operators
        self.memory = recording.memory
        self.sequence = []  # of points: the entry's index, negative and less one for an unpack
        self.trails = []  # of the step, at points at which something is saved
        self.sizes = []  # of the entries
        self.members = {}  # by the calls of models, which of the tensors that were saved there may be moved
        self.layouts, self.versions = [], []  # of the tensors that were saved first of the entries
        self.places = [""]  # of the points
        self.made_at = []  # of the entries: the operator before the point at which they are saved
        self.uses = []
        self.clock, self.scale = Clock(self.memory), Scale(self.memory)
        self.ended = 0  # operators
        self.open = []
        self._begin()

    def _begin(self):
        """Begins an operator."""
        for e in self.open:
            if e.held():
                self._use(e)
        self.scale.begin(self.open)
        self.clock.begin(self.open)

    def _end(self, fresh=0):
        """Ends an operator, and notes what lived in it."""
        self.clock.end(fresh)
        self.scale.end(fresh)
        for e in self.open:
            if e.users == 0 or e.buffer is not None or e.held():
                self._use(e)
        self.open = [e for e in self.open if e.users]
        self.ended += 1

    def _use(self, entry):
        """Notes that an entry lives in the operator."""
        uses = self.uses[entry.index]
        if uses[-1:] != [self.ended]:
            uses.append(self.ended)

    def pack(self, entry, new, stream):
        self._end(entry.nbytes if new else 0)
        self.members.setdefault(self.step.call, set()).add(self.step.packs)
        self.sequence.append(entry.index)
        self.trails.append(self.step.trail)
        self.places.append(self.recording.place())
        if new:
            self.sizes.append(entry.nbytes)
            self.layouts.append(layout(entry.alias))
            self.versions.append(entry.version)
            self.made_at.append(self.ended - 1)
            self.uses.append([])
            if self.operators is not None:
                self.operators.saved(entry)
            self.open.append(entry)
            if entry.offload():
                entry.free()
        self._begin()

    def unpack(self, entry, stream):
        self._end()
        self.sequence.append(-entry.index - 1)
        self.places.append(self.places[self.made_at[entry.index] + 1])
        entry.on_device(stream)
        self._begin()

    def end(self):
        self._end()
        self.recording.ended(self)

    def graph(self, recipes):
        """Returns the graph, as libgm.so takes it."""
        first = next((i for i, s in enumerate(self.sequence) if s < 0), len(self.sequence))
        ops, layers = [], Layers()
        for i, (ns, base) in enumerate(zip(self.clock.nanoseconds(), self.scale.bases())):
            ops.append({"name": self.places[i], "layer": layers.number(self.places[i]), "phase": int(i > first), "ns": ns, "base": base})
        tensors, attention, entered = [], self.recording.made.operators.attention(), set()
        for i, size in enumerate(self.sizes):
            uses = [u for u in self.uses[i] if u >= self.made_at[i]] or [self.made_at[i]]
            place = self.places[self.made_at[i] + 1]
            dtype, shape = self.layouts[i][:2]
            t = {"name": "%s#%d" % (place, i), "dtype": str(dtype).replace("torch.", ""), "shape": "x".join(map(str, shape)),
                 "version": self.versions[i], "bytes": size, "made": self.made_at[i], "uses": uses, "layer": layers.number(place)}
            if i in attention:
                t["role"] = ATTENTION
            elif t["layer"] >= 0 and t["layer"] not in entered:
                t["role"] = LAYER_INPUT  # what is saved first in a layer
                entered.add(t["layer"])
            if recipes[i] is not None:
                t["recompute_ns"], t["from"], t["row"] = recipes[i].ns, recipes[i].sources, recipes[i].row
            tensors.append(t)
        return {"name": self.recording.name, "device": self.memory.name(), "process": process(self.memory), "ops": ops, "tensors": tensors}


def process(memory):
    """Returns where this is."""
    number = lambda name, default: int(os.environ.get(name, "") or default)
    return {"capacity": memory.capacity(), "host": socket.gethostname(), "pid": os.getpid(), "rank": number("RANK", 0),
            "local_rank": number("LOCAL_RANK", 0), "world_size": number("WORLD_SIZE", 1), "command": " ".join(sys.argv)}


class Layers(object):
    """Numbers the layers of a model in the order in which they are met: the outermost modules whose paths have a number."""

    def __init__(self):
        self.numbers = {}  # by path

    def number(self, place):
        """Returns the number of the layer in which a module is, -1 if it is in none."""
        found = NUMBER.search(place)
        return self.numbers.setdefault(place[: found.end(1)], len(self.numbers)) if found else -1
