"""Steps that do the same with other sizes: schedules for some sizes, from which that of any step follows."""

import types

from .between import Unlike
from .follow import Follower
from .model import Model


class Family(object):
    """Has schedules, each for the steps that save no more than it does. They are made one after the other, first those for the largest step and for
    the largest one for which nothing has to be moved, then, while steps follow these, between the two that are furthest apart. That is done by a thread of
    the planner's; levels are replaced as a whole."""

    BEYOND = 1.5  # what the largest saves, of the largest step that was seen
    JUST = 1 + 1e-6  # or just as much: places are rounded
    GAP = 1.0 / 24  # between two schedules, of what the largest saves

    def __init__(self, recording, remembered, device):
        """Raises Unlike where the recorded steps have too little in common."""
        self.model, self.device = Model(recording, remembered), device  # bytes that schedules are to keep to
        self.extent = self.model.extent
        self.sequence, self.trails, self.members = recording.timed.sequence, recording.timed.trails, recording.timed.members
        points = len(self.sequence) + 1
        self.unknown = types.SimpleNamespace(sequence=self.sequence, trails=self.trails, members=self.members, actions=[()] * points, sizes=[1 << 62] * points,
                                             exact=frozenset(), remade=frozenset())  # what is followed until the size shows
        self.levels = ()  # schedules, in the order of the places up to which they are for
        self.most = max(self.extent.total)  # bytes that the largest step that was seen has saved
        self.full = False  # there is no schedule for larger steps
        self.refused, self.failed = set(), None  # places for which there is none, and why there was none for the last of them
        self.edition = 0  # how often the model was corrected
        self.followed = 0  # steps

    # As a schedule.

    @property
    def largest(self):
        return self.levels[-1]

    def empty(self):
        return False  # a larger step may come

    def foresees(self, sizes):
        """Returns whether there is a schedule for a step of these sizes."""
        place = self.place(sizes)
        return place is not None and self.at(place) is not None

    def place(self, sizes):
        """Returns the place of a step, None if it is not one of these."""
        try:
            return self.extent.place_of(sizes)
        except Unlike:
            return None

    def covers(self, recorded):
        """Returns whether a step that was recorded now is one of these."""
        return (self.sequence, self.trails) == (recorded.sequence, recorded.trails) and self.foresees(recorded.sizes)

    def follower(self, step, unplanned, relief, instrument):
        return Chooser(step, self, unplanned, relief, instrument)

    def at(self, place):
        """Returns the schedule for a step, None if it saves more than any is for."""
        share = place.share()
        level = next((level for level in self.levels if share <= level.share), None)
        return Sized(self.model, level, place) if level is not None else None

    def extends(self, sizes):
        """Returns whether a step of these sizes is one of these, and notes how large they get."""
        if self.place(sizes) is None:
            return False
        self.most = max(self.most, sum(sizes))
        return True

    # How schedules are made.

    def lacks(self):
        """Returns whether schedules are missing, or old."""
        return self.outgrown() or self.missing() is not None

    def outgrown(self):
        return not self.full and (not self.levels or self.most > sum(self.levels[-1].sizes))

    def missing(self):
        """Returns the place for which a schedule is to be made next, None if there is none."""
        old = next((level.share for level in self.levels[::-1] if level.edition < self.edition), None)
        if old is not None:
            return old
        between = ((self.extent.bytes(b.share) - self.extent.bytes(a.share), (a.share + b.share) / 2) for a, b in zip(self.levels, self.levels[1:]))
        widest = max((wide for wide in between if wide[1] not in self.refused), default=(0, None))
        return widest[1] if widest[0] > self.GAP * self.extent.bytes(self.levels[-1].share) else None

    def plan(self, make):
        """Has the schedules made that are missing, the first ones alone if there are none yet, by a function that is given a graph, the step of it, recipes,
        and maybe a policy and an amount of memory. Returns itself."""
        if not self.levels:
            self.begin(make)
            return self
        while self.lacks():
            if self.outgrown():
                self.grow(make)
            else:
                share = self.missing()
                self.add(make, share) or self.drop(share)
        return self

    def begin(self, make):
        """Has the first ones made."""
        self.grow(make)
        if not self.levels[0].empty():
            try:
                self.add(make, self.fitting(make))
            except Exception as e:
                self.failed = e  # the others come between as well

    def grow(self, make):
        """Has one made for steps that are larger than the largest one that was seen, or for that, or for the recorded ones: the largest that there is."""
        known = self.most, sum(self.model.timed.sizes), min(self.extent.total)
        for n, saved in enumerate([self.BEYOND * self.most] + [self.JUST * saved for saved in known]):
            if self.levels and n > 1:
                break
            if self.add(make, self.extent.share(saved)):
                self.full = n > 1
                return
        self.full = True
        if not self.levels:
            raise self.failed

    def add(self, make, share):
        """Has a schedule made for steps up to a place. Returns whether there is one."""
        edition = self.edition
        try:
            level = make(self.model.graph(share), self.model.recorded(share), self.model.proven)
            if level.device > self.device:
                raise ValueError("%d bytes are not enough, %d would be" % (self.device, level.device))
        except Exception as e:
            self.failed = e
            return False
        level.share, level.edition = share, edition
        self.levels = tuple(sorted([old for old in self.levels if old.share != share] + [level], key=lambda level: level.share))
        return True

    def drop(self, share):
        """Leaves out a place for which there is no schedule, or none any more. The last schedule stays."""
        self.refused.add(share)
        left = tuple(level for level in self.levels if level.share != share)
        self.levels = left or self.levels
        for level in () if left else self.levels:
            level.edition = self.edition

    def fitting(self, make):
        """Returns the place up to which nothing has to be moved, but none far below the smallest step. Peaks lie below the line through two of them."""
        top, low = self.levels[-1], self.extent.lowest()
        if top.share <= low:
            return top.share
        least = make(self.model.graph(low), self.model.recorded(low), self.model.proven, policy="none", device=1 << 61).plain_peak
        slope = (top.plain_peak - least) / (top.share - low)
        return max(low, min(top.share, low + (self.device - least) / max(1.0, slope)))

    def correct(self, instrument):
        """Takes what an instrument has measured: the schedules are to be made anew."""
        self.model.correct(instrument)
        self.refused = set()
        self.edition += 1


class Sized(object):
    """The schedule for a step of one size: one that was made for larger steps."""

    def __init__(self, model, schedule, place):
        self.model, self.place = model, place
        self.sequence, self.trails, self.sizes, self.actions = schedule.sequence, schedule.trails, schedule.sizes, schedule.actions
        self.exact, self.remade = schedule.exact, schedule.remade

    def exactly(self, index):
        return self.model.extent.exactly(index, self.place)

    def recipe(self, index):
        return self.model.recipes[index].at(self.place)


class Chooser(Follower):
    """Conducts a step by the schedule for its size, from the entry on that tells it. What that would have done before is done then."""

    def __init__(self, step, family, unplanned, relief, instrument=None):
        super(Chooser, self).__init__(step, family.unknown, unplanned, relief, instrument)
        self.family = family

    def pack(self, entry, new, stream):
        if new and entry.index == self.family.extent.first and not self.choose(entry, stream):
            self.hand_over().take_over(entry, new, stream)
        else:
            super(Chooser, self).pack(entry, new, stream)

    def choose(self, entry, stream):
        """Follows the schedule for the step's size from now on. Returns False if there is none."""
        sized = self.family.at(self.family.extent.place(entry.nbytes))
        if sized is None:
            return False
        self.schedule = sized
        if self.instrument is not None:
            self.instrument.saved = self.family.extent.bytes(sized.place.share())
        for e in self.step.entries[: entry.index]:
            if e.users and (e.alias is None or self.differs(e)):
                return False
        for point in range(1, self.point + 1):
            for action in sized.actions[point]:
                self.act(stream, *action)
        return True

    def spared(self, entry):
        return False  # the schedule is one for this size
