"""Foresees how much memory a step needs from the sizes of what it saves first, by the steps before."""

import bisect
import collections
import itertools

from .needs import Needs


class Past(object):
    """A step that has ended: the bytes that it had saved when it had saved so many entries, and the most bytes that it would have had in use, beside
    what was there when it began, had nothing been moved."""

    __slots__ = ("saved", "needed")

    def __init__(self, sizes, needed):
        self.saved, self.needed = list(itertools.accumulate(sizes)), needed


class Foresight(object):
    """Steps of a program whose sizes vary do the same with more or less: where the inputs do not tell the need, it is taken to be linear between two steps in
    what was saved."""

    STEPS = 32  # that are remembered
    LOOKS = frozenset(1 << i for i in range(1, 20))  # numbers of entries after which it is worth looking

    def __init__(self):
        self.past = collections.deque(maxlen=self.STEPS)
        self.needs = Needs()

    def looks(self, count):
        """Returns whether it is worth asking after so many entries."""
        return count in self.LOOKS

    def learn(self, sizes, needed, dims=()):
        """Learns from a step that has ended, whose inputs had some dimensions."""
        if sizes:
            self.past.append(Past(sizes, needed))
            self.needs.learn(dims, needed)

    def largest(self, count):
        """Returns the most bytes that one of the steps before saved in so many entries."""
        return max((p.saved[-1] for p in self.past if len(p.saved) == count), default=0)

    def needed(self, count, saved, dims=()):
        """Returns what a step will need that has saved so many entries of so many bytes, 0 where no step before says."""
        by_inputs = self.needs.needed(dims)
        if by_inputs >= max(1, saved):
            return by_inputs
        known = sorted((p.saved[count - 1], p.needed) for p in self.past if len(p.saved) >= count)
        below = [k for k in known if k[0] <= saved]
        above = [k for k in known if k[0] >= saved]
        if below and above:
            return between(below[-1], above[-1] if above[0][0] == saved else above[0], saved)
        if not known:
            return 0
        near, far = (below[-1], below[0]) if below else (above[0], above[-1])
        return between(far, near, saved) if far[0] != near[0] else near[1] * saved // near[0]


class Backward(object):
    """What backward passes need beside the entries and what is there before a step, by the entry that they came to: they come to the last one
    first. Steps that save more need more in proportion."""

    STEPS = 8  # that are remembered

    def __init__(self):
        self.past = collections.deque(maxlen=self.STEPS)  # of lists of (index of an entry, the most that was needed from it on for each byte saved)
        self.begin()

    def begin(self):
        self.now, self.at = {}, None  # None in the forward pass

    def note(self, nbytes):
        """Notes bytes that are needed now."""
        if self.at is not None and nbytes > self.now.get(self.at, 0):
            self.now[self.at] = nbytes

    def learn(self, saved):
        """Learns from a step that ends, which has saved so many bytes."""
        most, rates = 0, []
        for at in sorted(self.now):
            most = max(most, self.now[at])
            rates.append((at, most / max(1.0, saved)))
        self.past.append(rates)

    def needed(self, index, saved):
        """Returns the most bytes that will be needed from the entry on in a step that has saved so many bytes."""
        rate = 0
        for step in self.past:
            before = bisect.bisect_right(step, (index, float("inf")))
            if before:
                rate = max(rate, step[before - 1][1])
        return int(rate * saved)


def between(a, b, at):
    """Returns the value at a place of the line through two points. Of two points at one place it is the greater."""
    if a[0] == b[0]:
        return max(a[1], b[1])
    return max(0, a[1] + (b[1] - a[1]) * (at - a[0]) // (b[0] - a[0]))
