"""Watches a step that is recorded, and makes the graph of it."""

import heapq
import os
import socket
import sys

from .entry import layout
from .measure import Clock, Scale
from .places import Layers
from .step import Members

LAYER_INPUT, ATTENTION = 1, 2  # roles of tensors, as swap.Role has them


class Whole(object):
    """Moves all that a step saves, at once, so that it shows until when the program itself holds on to that."""

    @staticmethod
    def pack(entry, new, stream):
        if new and entry.offload():
            entry.free()

    def unpack(self, entry, stream):
        pass

    def end(self):
        pass


class Watched(object):
    """Conducts a step that is recorded. Its operators are the stretches between two points: the start, then each pack and unpack. What moves
    its tensors amid an operator pauses what measures that."""

    way = "recorded"
    SELDOM = 16  # an entry that was held for so many operators is looked at one operator later than one that was not

    def __init__(self, recording, step, operators, mover):
        self.recording, self.step, self.operators, self.mover = recording, step, operators, mover
        self.memory = recording.memory
        self.sequence = []  # of points: the entry's index, negative and less one for an unpack
        self.trails = []  # of the step, at points at which something is saved
        self.sizes = []  # of the entries
        self.members = Members()
        self.layouts, self.versions = [], []  # of the tensors that were saved first of the entries
        self.places = [""]  # of the points
        self.made_at = []  # of the entries: the operator before the point at which they are saved
        self.uses = []  # of the entries: the operators that they live in
        self.clock, self.scale = Clock(self.memory), Scale(self.memory)
        self.ended = 0  # operators
        self.live = {}  # the entries that the program holds, or that its backward pass has asked for, and the operators from which on, by index
        self.due = []  # a heap of operators before which it is to be seen whether the program still holds an entry, and these
        self.asked = set()  # entries that the backward pass has asked for, by index
        self.freed = {}  # those that live, and that we do not hold, by index
        self.measuring = False  # an operator is under way
        self.before = self.memory.present  # bytes of steps before this one
        self.memory.closed = self.closed = []  # entries that autograd has let go of in this operator
        recording.watched(self)
        self.memory.small.see(operators)
        self._begin()

    def _begin(self):
        """Begins an operator."""
        while self.due and self.due[0][0] <= self.ended:
            self._look(self.step.entries[heapq.heappop(self.due)[1]])
        self.clock.begin()
        self.scale.begin(self._resident)
        self.measuring = True

    def _end(self, fresh=0):
        """Ends an operator, and notes what was let go of in it."""
        self.measuring = False
        self.clock.end()
        self.scale.end(fresh)
        for e in self.closed:
            if e.step == self.step.number:
                self.live.setdefault(e.index, self.ended)
                self._dies(e.index, self.ended + 1)
        del self.closed[:]
        self.ended += 1

    def _look(self, entry):
        """Looks whether the program still holds an entry: the seldomer the longer it has."""
        index = entry.index
        if index not in self.live or index in self.asked:
            return
        if entry.occupied():
            heapq.heappush(self.due, (self.ended + 1 + (self.ended - self.made_at[index]) // self.SELDOM, index))
        else:
            self._dies(index, self.ended)

    def _lives(self, entry):
        """Notes that an entry lives from the next operator on."""
        if entry.index not in self.live:
            self.live[entry.index] = self.ended
        if entry.resident():
            self.freed.pop(entry.index, None)
        else:
            self.freed[entry.index] = entry

    def _dies(self, index, at):
        """Notes that an entry that lived does so in no operator from one on."""
        self.uses[index].extend(range(self.live.pop(index), at))
        self.freed.pop(index, None)

    def pause(self):
        """Measures the operator that is under way no longer."""
        if self.measuring:
            self.clock.pause()
            self.scale.pause()

    def resume(self):
        if self.measuring:
            self.clock.resume()
            self.scale.resume(self._resident)

    def _resident(self):
        """Returns the bytes of the step's entries that are on the device."""
        return self.memory.present - self.before + sum(e.nbytes for e in self.freed.values() if not e.hosted)

    def pack(self, entry, new, stream):
        self._end(entry.nbytes if new and not entry.hosted else 0)
        self.members.note(self.step, entry.index)
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
        self.mover.pack(entry, new, stream)
        if new:
            self._lives(entry)
            heapq.heappush(self.due, (self.ended, entry.index))
        self._begin()

    def unpack(self, entry, stream):
        self._end()
        self.members.ended(self.step)
        if self.operators is not None:
            self.operators.forget()
        self.sequence.append(-entry.index - 1)
        self.places.append(self.places[self.made_at[entry.index] + 1])
        self.mover.unpack(entry, stream)
        entry.on_device(stream)
        self.asked.add(entry.index)
        self._lives(entry)
        self._begin()

    def end(self):
        self._end()
        for index in list(self.live):
            self._dies(index, self.ended)
        self.memory.closed = None
        self.recording.watched(None)
        if self.operators is None:  # or requests were made that are no step's
            self.mover.end()
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
                t["recompute_ns"], t["from"], t["row"], t["scratch"] = recipes[i].ns, recipes[i].sources, recipes[i].row, recipes[i].chain.extra()
            tensors.append(t)
        return {"name": self.recording.name, "device": self.memory.name(), "process": process(self.memory), "ops": ops, "tensors": tensors}


def process(memory):
    """Returns where this is."""
    number = lambda name, default: int(os.environ.get(name, "") or default)
    return {"capacity": memory.capacity(), "host": socket.gethostname(), "pid": os.getpid(), "rank": number("RANK", 0),
            "local_rank": number("LOCAL_RANK", 0), "world_size": number("WORLD_SIZE", 1), "command": " ".join(sys.argv)}
