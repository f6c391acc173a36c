"""What a step of any size of a family does, by steps that were recorded."""

import math
import types

from .between import Unlike
from .extent import Extent
from .extents import Extents
from .measure import Scale


NEVER = 1 << 40  # nanoseconds: longer than any step


class Unsolved(Unlike):
    """The steps have too little in common, but others may have more: those differ in fewer ways than steps do."""


class Model(object):
    """The operators of two steps were seen, and a third one was timed. Where their sizes lie on a line, so do those of any other; elsewhere it is
    known how large they get."""

    def __init__(self, recording, remembered):
        """Raises Unlike where the steps have too little in common."""
        self.timed, self.remembered, self.memory = recording.timed, remembered, recording.memory
        steps = recording.made, recording.again, self.timed
        self.extent, self.bounded = self.fit(steps, remembered.layouts)
        self.proven, self.proven_bytes = remembered.proven, sum(recording.made.sizes)
        self.recipes = remembered.recipes
        self.ns = self.timed.clock.nanoseconds()  # of the operators
        known = {i for i, r in enumerate(self.recipes) if r is not None}
        if self.bounded:
            solved = {i for i in known if remembered.solves(i, self.timed)}
            if 2 * len(solved) < len(known):
                raise Unsolved("what tensors are made of")
            known = solved
        self.timed_graph = self.timed.graph([recipe if i in known else None for i, recipe in enumerate(self.proven)])
        self.timed_graph["tensors"] = [dict(t, row=0) for t in self.timed_graph["tensors"]]
        self.bases = self.find_bases(recording)
        self.slower = 1.0  # recomputing is by so much

    def fit(self, steps, layouts):
        """Returns what tells sizes, and whether that is the most that they may be."""
        try:
            return Extent(*steps, layouts), False
        except Unlike as unlike:
            why = unlike
        try:
            return Extents(steps), True
        except Unlike:
            raise why

    def find_bases(self, recording):
        return Bases(recording.again, recording.timed, self.extent)

    def correct(self, instrument):
        """Takes what an instrument has measured in steps that followed a schedule."""
        if isinstance(instrument, Scale):
            self.bases.start = max(self.bases.start, instrument.start)
            return
        times = instrument.medians(sum(self.timed.sizes))
        self.slower *= sum(times) / float(max(1, sum(self.ns)))
        self.ns = times

    def sized(self, share):
        """Returns what the operators and tensors of a step at a place have in place of what the graph says."""
        saved = self.extent.bytes(share)
        slower, remade = saved / sum(self.timed.sizes), self.slower * saved / self.proven_bytes
        return {"ns": [int(ns * slower) for ns in self.ns], "bases": self.bases.at(share), "bytes": self.extent.sizes(share),
                "recompute_ns": [int(t.get("recompute_ns", 0) * remade) if not self.remembered.hopeless(i) else NEVER
                                 for i, t in enumerate(self.timed_graph["tensors"])],
                "scratch": [math.ceil(part * saved) for part in self.remembered.beside]}

    def recorded(self, share):
        """Returns what a schedule has to know of a step at a place."""
        timed = self.timed
        return types.SimpleNamespace(sequence=timed.sequence, trails=timed.trails, members=timed.members, layouts=timed.layouts, sizes=self.extent.sizes(share))


class Bases(object):
    """The bytes that operators need beside entries, at all places: those of two steps, and what they grow by."""

    NEAR = 0.05  # steps that differ by less tell nothing of that

    def __init__(self, one, other, extent):
        self.start = other.scale.start
        a, b = ([max(0, base - w.scale.start) for base in w.scale.bases()] for w in (one, other))
        here, self.share = (extent.place(w.sizes[extent.first]).share() for w in (one, other))
        if abs(self.share - here) < self.NEAR:
            here, a = min(self.share - self.NEAR, -extent.total[0] / (extent.total[1] - extent.total[0])), [0] * len(b)  # as what is saved grows
        self.bytes = b
        self.slopes = [max(0.0, (y - x) / (self.share - here)) for x, y in zip(a, b)]

    def at(self, share):
        return [self.start + max(0, int(base + slope * (share - self.share))) for base, slope in zip(self.bytes, self.slopes)]
