"""Steps that do the same with other sizes: schedules for some sizes, from which that of any step follows."""

import bisect
import types

from .between import Unlike
from .follow import Follower
from .model import Model
from .remake import COUNTED, Remake
from .remembered import Recalled
from .selection import Trust

BEYOND = 1.5  # what the largest step saves that schedules are made for, of the largest one that was seen


class Family(object):
    """Has schedules, each for the steps that save no more than it does. First those for the largest step are made and for
    the largest one for which nothing has to be moved, then, while steps follow these, some at once between those that are furthest apart. That is done by a thread of
    the planner's; levels are replaced as a whole."""

    JUST = 1 + 1e-6  # or just as much: places are rounded
    GAP = 1.0 / 24  # between two schedules, of what the largest saves
    TOGETHER = 8  # that are made at once
    wanted = ()  # steps that followed one ask for no others

    def __init__(self, recording, remembered, device):
        """Raises Unlike where the recorded steps have too little in common."""
        self.model = Model(recording, remembered)
        self.device = self.enough = device  # bytes that schedules are to keep to, and that are enough for one that cannot
        self.extent = self.model.extent  # or Extents
        self.sequence, self.trails, self.members = recording.timed.sequence, recording.timed.trails, recording.timed.members
        points = len(self.sequence) + 1
        self.unknown = types.SimpleNamespace(sequence=self.sequence, trails=self.trails, members=self.members, actions=[()] * points, sizes=[1 << 62] * points,
                                             exact=frozenset(), remade=frozenset(), trust=None)  # what is followed until the size shows
        self.trust = Trust(range(self.extent.first + 1))
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

    def foresees(self, sizes, dims=()):
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
        if not self.model.bounded:
            return Chooser(step, self, unplanned, relief, instrument)
        model = self.model
        return Bounded(Recalled(model.remembered, model.memory, step, self.device // COUNTED), step, self, unplanned, relief, instrument)

    def at(self, place):
        """Returns the schedule for a step, None if it saves more than any is for."""
        share = place.share()
        level = next((level for level in self.levels if share <= level.share), None)
        if level is None:
            return None
        return Upto(self.model, level, place) if self.model.bounded else Sized(self.model, level, place)

    def extends(self, sizes, dims=()):
        """Returns whether a step of these sizes is one of these, and notes how large they get."""
        if self.place(sizes) is None:
            if not self.extent.widen(sizes):
                return False
            self.renew()
        self.most = max(self.most, self.extent.saves(sizes))
        return True

    def allows(self, seen):
        """Returns what some steps save at most, by their dimensions and sizes."""
        return sum(self.extent.saves(sizes) for _, sizes in seen)

    # How schedules are made.

    def lacks(self):
        """Returns whether schedules are missing, or old."""
        return self.outgrown() or len(self.missing()) > 0

    def outgrown(self):
        return not self.full and (not self.levels or self.most > sum(self.levels[-1].sizes))

    def missing(self):
        """Returns the places for which schedules are to be made next, a few at most."""
        places = [level.share for level in self.levels[::-1] if level.edition < self.edition][: self.TOGETHER]
        shares = [level.share for level in self.levels]
        while len(places) < self.TOGETHER:
            between = self.between(shares)
            if between is None:
                break
            places.append(between)
            bisect.insort(shares, between)
        return places

    def between(self, shares):
        """Returns the place between the two of some that are furthest apart, None if they are close enough."""
        middles = ((self.extent.bytes(b) - self.extent.bytes(a), (a + b) / 2) for a, b in zip(shares, shares[1:]))
        widest = max((wide for wide in middles if wide[1] not in self.refused), default=(0, None))
        return widest[1] if widest[0] > self.GAP * self.extent.bytes(shares[-1]) else None

    def plan(self, make):
        """Has the schedules made that are missing, the first ones alone if there are none yet. Make is given the model, places, and maybe a policy and an
        amount of memory, and returns schedules, or errors. Returns itself."""
        if not self.levels:
            self.begin(make)
            return self
        while self.lacks():
            if self.outgrown():
                self.grow(make)
            else:
                places = self.missing()
                for share, there in zip(places, self.add(make, places)):
                    there or self.drop(share)
        return self

    def begin(self, make):
        """Has the first ones made."""
        self.grow(make)
        if not self.levels[0].empty():
            try:
                self.add(make, [self.fitting(make)])
            except Exception as e:
                self.failed = e  # the others come between as well

    def grow(self, make):
        """Has one made for steps that are larger than the largest one that was seen, or for that, or for the recorded ones: the largest that there is."""
        known = self.most, sum(self.model.timed.sizes), min(self.extent.total)
        for n, saved in enumerate([BEYOND * self.most] + [self.JUST * saved for saved in known]):
            if self.levels and n > 1:
                break
            if self.add(make, [self.extent.share(saved)])[0]:
                self.full = n > 1
                return
        self.full = True
        if not self.levels:
            raise self.failed

    def add(self, make, places):
        """Has schedules made for steps up to some places. Returns whether there are such."""
        edition, added = self.edition, []
        try:
            made = make(self.model, places)
        except Exception as e:
            made = [e] * len(places)
        for share, level in zip(places, made):
            if not isinstance(level, Exception) and level.device > self.enough:
                level = ValueError("%d bytes are not enough, %d would be" % (self.enough, level.device))
            if isinstance(level, Exception):
                self.failed = level
                continue
            level.share, level.edition = share, edition
            level.trust = self.trust
            added.append(level)
        there = {level.share for level in added}
        self.levels = tuple(sorted([old for old in self.levels if old.share not in there] + added, key=lambda level: level.share))
        return [share in there for share in places]

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
        least = make(self.model, [low], policy="none", device=1 << 61)[0]
        if isinstance(least, Exception):
            raise least
        slope = (top.plain_peak - least.plain_peak) / (top.share - low)
        return max(low, min(top.share, low + (self.device - least.plain_peak) / max(1.0, slope)))

    def correct(self, instrument):
        """Takes what an instrument has measured: the schedules are to be made anew."""
        self.model.correct(instrument)
        self.renew()

    def renew(self):
        self.refused = set()
        self.edition += 1


class Sized(object):
    """The schedule for a step of one size: one that was made for larger steps."""

    def __init__(self, model, schedule, place):
        self.model, self.place = model, place
        self.sequence, self.trails, self.sizes, self.actions = schedule.sequence, schedule.trails, schedule.sizes, schedule.actions
        self.exact, self.remade = schedule.exact, schedule.remade
        self.selection, self.trust = schedule.selection, schedule.trust

    def exactly(self, index):
        return self.model.extent.exactly(index, self.place)

    def recipe(self, index):
        recipes = self.model.recipes[index]
        return recipes.at(self.place) if recipes is not None else None


class Upto(Sized):
    """The same of a model that knows only how large sizes get."""

    def exactly(self, index):
        return self.sizes[index], None

    def recipe(self, index):
        return None


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
        self.rely(sized)
        return True

    def spared(self, entry):
        return False  # the schedule is one for this size


class Remaking(object):
    """Conducts a step of which no more than the most is known that its tensors have, with what follows a schedule. How one is recomputed follows from those
    that it is made of."""

    def __init__(self, recalled, *args):
        super(Remaking, self).__init__(*args)
        self.recalled = recalled

    def pack(self, entry, new, stream):
        if new:
            self.recalled.note(entry)
        super(Remaking, self).pack(entry, new, stream)

    def free(self, entry):
        """Frees the memory of an entry, or, where it was to be recomputed and cannot be, once it is on the host."""
        if entry.index not in self.schedule.remade:
            entry.free()
            return
        if entry.made is None and entry.alias is not None and entry.intact():
            recipe = self.recalled.scheduled(entry)
            if recipe is not None:
                entry.made = Remake(recipe, self.step.entries, entry)
        entry.evict()


class Bounded(Remaking, Chooser):
    """Conducts a step whose schedule shows when some was saved."""
