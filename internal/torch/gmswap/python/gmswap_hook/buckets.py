"""Schedules for steps whose inputs vary in several dimensions by themselves, each for all steps that it keeps to the limit."""

import math
import operator
import types

from .between import Unlike
from .family import Remaking
from .follow import Follower
from .growth import Growth, Where
from .measure import TIMING
from .model import NEVER, Model
from .pace import FREE, OFFLOAD, PREFETCH, RECOMPUTE
from .remake import COUNTED
from .remembered import Recalled
from .selection import Selection, Trust, entry


class Buckets(object):
    """The shapes of its inputs tell what a step saves, and so what it has on the device at each point of a schedule that was made for another one. It follows
    the one that moves least of those that fit. Schedules are made for multiples of a step at first, later for steps that have none, or one that moves
    far too much. That is done by a thread of the planner's; they are replaced as a whole."""

    FACTORS = 1.5, 1.25, 1.0, 0.9, 0.8, 0.7, 0.6  # what schedules that are made first are for, times the largest step that was recorded
    LARGER = 1.03  # what others are for, times the step
    WASTE = 1.5  # what a schedule may move, times what has to be, and a part of the limit
    PART = 16
    MOST = 32  # schedules
    ATTEMPTS = 3  # steps in a row whose sizes were not foreseen before it is not looked any more how they grow
    TOGETHER = 8  # that are made at once
    SURE = 4  # steps in a row whose sizes were foreseen before what they need is relied on
    SPARE = 16  # a part of the limit that has to stay free then, more after a step that had not so much

    def __init__(self, recording, remembered, device):
        """Raises Unlike where the recorded steps have too little in common."""
        self.device = self.enough = device  # bytes that schedules are to keep to, and that are enough for one that cannot
        self.model = Shaped(recording, remembered)
        self.growth = self.model.extent
        self.sequence, self.trails, self.members = recording.timed.sequence, recording.timed.trails, recording.timed.members
        self.called = dict(recording.timed.step.calls)  # how often models are called
        self.buckets = ()
        self.most = max(map(sum, (w.sizes for w in (recording.made, recording.again, recording.timed))))  # bytes that a step has saved
        self.wanted = []  # where others are to be made
        self.refused, self.failed = [], None  # products from which on there are none, and why there was none for the last of these
        self.unlike = 0  # steps in a row that are none of these
        self.right, self.spare = 0, device // self.SPARE  # steps in a row whose sizes were foreseen, and bytes that have to stay free in one that is left alone
        self.more = 0  # bytes in use when the last step began beside those that are known of
        self.edition = 0  # how often the model was corrected
        self.plain = Profile(self.growth, self.model, ())
        self.followed = 0  # steps
        points = len(self.sequence) + 1
        self.nothing = types.SimpleNamespace(sequence=self.sequence, trails=self.trails, members=self.members, actions=[()] * points, exact=frozenset(), remade=frozenset())
        self.nothing.selection, self.nothing.trust = Selection(self.nothing, recording.timed.sizes, device), Trust()

    # As what tells what steps need.

    def saw(self, sizes, dims, needed):
        """Notes whether the sizes of a step were foreseen, and that it needed so many bytes at least."""
        foreseen = self.growth.foresees(dims, sizes) and needed <= self.plain.peak(dims) - self.model.bases.start + self.spare // 2
        self.right = self.right + 1 if foreseen else 0

    def fits(self, dims):
        """Returns whether a step that begins now is known to have room, with some to spare."""
        return self.sure(dims) and self.begins(dims) < -self.spare

    def sure(self, dims):
        """Returns whether what a step needs is relied on."""
        return self.right >= self.SURE and self.growth.knows(dims)

    def calls(self, model, count):
        """Returns whether a call of a model, the so many-th, is one of those of a step."""
        return count <= self.called.get(model, 0)

    def lacked(self):
        """Notes that a step had no room that was known to have some."""
        self.right, self.spare = 0, 2 * self.spare

    def begins(self, dims):
        """Returns how much more memory a step that begins now needs than there is, with nothing moved."""
        self.more = max(0, self.model.memory.allocated() - self.model.bases.start)
        return self.lacking(dims)

    # As a schedule.

    @property
    def largest(self):
        return max(self.buckets, key=lambda bucket: bucket.saved)

    def empty(self):
        return False

    def foresees(self, sizes, dims):
        """Returns whether there is a schedule for a step, or nothing to move in it."""
        if not self.growth.foresees(dims, sizes):
            return False
        return self.lacking(dims) <= 0 or self.best(dims) is not None

    def covers(self, recorded):
        """Returns whether a step that was recorded now is one of these."""
        return (self.sequence, self.trails) == (recorded.sequence, recorded.trails) and self.foresees(recorded.sizes, recorded.step.dims)

    def extends(self, sizes, dims):
        """Returns whether a step is one of these, and allows for its sizes."""
        if not self.growth.takes(dims) or len(sizes) != len(self.growth.terms):
            return False
        if not self.growth.foresees(dims, sizes) and not self.widen(sizes, dims):
            self.unlike += 1
            return False
        self.unlike = 0
        self.most = max(self.most, sum(sizes))
        return True

    def widen(self, sizes, dims):
        if self.unlike >= self.ATTEMPTS:
            return False
        try:
            growth = self.growth.widened(dims, sizes)
        except Unlike:
            return False
        self.model.grows(growth)
        self.growth, self.plain = growth, Profile(growth, self.model, ())
        self.renew()
        return True

    def follower(self, step, unplanned, relief, instrument):
        """Returns what conducts a step. One that fits is measured by a clock like others."""
        dims, growth = step.dims, self.growth
        if not growth.takes(dims):
            return unplanned(step)
        lacking = self.begins(dims)
        if lacking > 0:
            bucket = self.chosen(dims, lacking)
        else:
            step.room = self.sure(dims) and lacking < -(self.spare // 4)
            step.members = self.members if step.room else None
            bucket = self.nothing if isinstance(instrument, TIMING) or step.room and instrument is None and self.trusted(step, relief) else None
        if bucket is None:
            return unplanned(step)
        values = growth.values(dims)
        if instrument is not None:
            instrument.shares = self.model.shares(growth, values)
        recalled = Recalled(self.model.remembered, self.model.memory, step, self.device // COUNTED)
        return Chosen(recalled, step, Shape(bucket, growth.sizes(values)), unplanned, relief, instrument)

    def trusted(self, step, relief):
        """Returns whether a step that has room is looked at in part; else it goes on demand, so that it shows what it needs."""
        return relief is not None and self.nothing.trust.selection(self.nothing, step, relief) is not None

    def chosen(self, dims, lacking):
        """Returns the schedule for a step that lacks memory, None if there is none. A better one is made where that moves far too much."""
        bucket = self.best(dims)
        if bucket is None or bucket.moves(dims) > self.WASTE * lacking + self.device // self.PART:
            self.want(Where(dims, self.LARGER), bucket is None)
        return bucket

    def lacking(self, dims):
        """Returns how much more memory a step needs than there is, with nothing moved."""
        return self.plain.peak(dims) + self.more - self.device

    def best(self, dims):
        """Returns what moves the least of a step, of those with which it fits, None if there is none."""
        for bucket in sorted(self.buckets, key=lambda bucket: bucket.moves(dims)):
            if bucket.profile.peak(dims) + self.more <= bucket.allowed:
                return bucket
        return None

    def allows(self, seen):
        """Returns what some steps save at most, by their dimensions and sizes."""
        return sum(self.growth.bytes(self.growth.values(dims)) for dims, _ in seen)

    # How schedules are made.

    def want(self, where, lacks):
        """Has a schedule made for a step, maybe one that has one, if there is room for it."""
        if where in self.wanted or any(b.where == where for b in self.buckets) or self.refuses(self.growth.larger(where)):
            return
        if len(self.buckets) + len(self.wanted) < self.MOST or lacks and not self.wanted:
            self.wanted.append(where)

    def refuses(self, values):
        """Returns whether there was no schedule for a step no larger than one."""
        return any(all(map(operator.le, refused, values)) for refused in self.refused)

    def lacks(self):
        """Returns whether schedules are missing, or old."""
        return len(self.wanted) > 0 or any(b.edition < self.edition for b in self.buckets)

    def plan(self, make):
        """Has the schedules made that are missing, the first ones if there are none yet. Make is given the model and where they are for, and returns schedules, or
        errors. Returns itself."""
        if not self.buckets:
            large = max((dims for dims, _ in self.growth.seen), key=self.plain.peak)
            factors = [factor for factor in self.FACTORS if self.plain.peak(large, factor) > self.device]
            self.add(make, [Where(large, factor) for factor in factors or self.FACTORS[:1]])
            if not self.buckets:
                raise self.failed
            return self
        while self.lacks():
            old = [b.where for b in self.buckets if b.edition < self.edition]
            self.add(make, (self.wanted + old)[: self.TOGETHER])
        return self

    def add(self, make, places):
        """Has schedules made in place of old ones, which stay if there would be none."""
        edition, growth, added = self.edition, self.growth, []
        try:
            made = make(self.model, places)
        except Exception as e:
            made = [e] * len(places)
        for where, schedule in zip(places, made):
            try:
                added.append(self.bucket(schedule, where, edition, growth))
            except Exception as e:
                self.failed = e
                if edition == self.edition and not self.refuses(growth.larger(where)):
                    self.refused.append(growth.larger(where))
            if where in self.wanted:
                self.wanted.remove(where)
        now = [b for b in self.buckets if b.where not in places] + added
        if now:
            self.buckets = tuple(now[-self.MOST :])
        else:
            for b in self.buckets:
                b.edition = edition

    def bucket(self, schedule, where, edition, growth):
        if isinstance(schedule, Exception):
            raise schedule
        if schedule.device > self.enough:
            raise ValueError("%d bytes are not enough, %d would be" % (self.enough, schedule.device))
        schedule.trust = self.nothing.trust
        return Bucket(schedule, where, edition, Profile(growth, self.model, schedule.actions), self.device)

    def correct(self, instrument):
        """Takes what an instrument has measured: the schedules are to be made anew."""
        self.model.correct(instrument)
        self.renew()

    def renew(self):
        self.refused = []
        self.edition += 1


class Shaped(Model):
    """What a step does, by the dimensions of its inputs."""

    def fit(self, steps, layouts):
        kinds = [[(layout[0], len(layout[1])) for layout in step.layouts] for step in steps]
        if any(other != kinds[0] for other in kinds):
            raise Unlike("types")
        return Growth([(step.step.dims, list(step.sizes)) for step in steps]), True

    def find_bases(self, recording):
        steps = recording.again, recording.timed
        self.needs = [[max(0, base - w.scale.start) for base in w.scale.bases()] for w in steps]  # bytes beside entries
        self.inputs, self.proven_at = [w.step.dims for w in steps], recording.made.step.dims
        self.grows(self.extent)
        return types.SimpleNamespace(start=recording.timed.scale.start)

    def grows(self, growth):
        """Takes what allows for more steps. What operators need grows with an entry that they make or use, or else with others."""
        growth.bases = [growth.own(self.entry(at), column, self.inputs) if any(column) else (0.0, 0) for at, column in enumerate(zip(*self.needs))]
        self.extent = growth

    def entry(self, at):
        """Returns the entry that is saved behind an operator, or needed."""
        sequence = self.timed.sequence
        return entry(sequence[min(at, len(sequence) - 1)])

    def sized(self, where):
        growth = self.extent
        values = growth.larger(where)
        sizes = growth.sizes(values)
        remade = [self.slower * value / proven for value, proven in zip(values, growth.values(self.proven_at))]
        return {"ns": [int(ns * share) for ns, share in zip(self.ns, self.shares(growth, values))],
                "bases": [int(self.bases.start + share * values[which]) for share, which in growth.bases],
                "bytes": sizes,
                "recompute_ns": [int(t.get("recompute_ns", 0) * remade[growth.terms[i][1]]) if not self.remembered.hopeless(i) else NEVER
                                 for i, t in enumerate(self.timed_graph["tensors"])],
                "scratch": [math.ceil(share * sum(sizes)) for share in self.remembered.beside]}

    def shares(self, growth, values):
        """Returns how long operators take in a step, of what they take in the one that was timed: as the entries grow that they make or use."""
        grown = [max(1, value) / timed for value, timed in zip(values, growth.values(self.inputs[-1]))]
        return [grown[growth.terms[self.entry(at)][1]] for at in range(len(self.ns))]

    def recorded(self, where):
        timed, growth = self.timed, self.extent
        return types.SimpleNamespace(sequence=timed.sequence, trails=timed.trails, members=timed.members, layouts=timed.layouts,
                                     sizes=growth.sizes(growth.larger(where)))


class Profile(object):
    """The memory that a step takes at the points of a schedule, as shares of the products that it grows with: for points at which that may be most."""

    def __init__(self, growth, model, actions):
        self.growth, self.model, self.rows = growth, model, []
        sequence, now, here = model.timed.sequence, [0.0] * len(growth.products), {}  # of entries that there are, whether they are on the device
        last = {entry(index): at for at, index in enumerate(sequence, 1)}

        def move(index, there):
            if here.get(index, there) != there:
                share, which = growth.terms[index]
                now[which] += share if there else -share
                here[index] = there

        for at, (share, which) in enumerate(growth.bases):
            for kind, index, _ in actions[at] if actions else ():
                if kind in (FREE, PREFETCH, RECOMPUTE):
                    move(index, kind != FREE)
            index = sequence[at] if at < len(sequence) else -1
            if index >= 0 and index not in here and last[index] > at:
                here[index] = False
                move(index, True)
            row = list(now)
            row[which] += share
            self.note(row)
            index = entry(sequence[at - 1]) if at else None
            if last.get(index) == at:
                move(index, False)
                del here[index], last[index]

    def note(self, row):
        """Adds a row, unless the one before is not less in anything, and leaves out those before that are not more."""
        if self.rows and all(map(operator.le, row, self.rows[-1])):
            return
        while self.rows and all(map(operator.le, self.rows[-1], row)):
            self.rows.pop()
        self.rows.append(row)

    def peak(self, dims, factor=1.0):
        """Returns the most memory that a step takes, or one that saves so many times as much."""
        values = self.growth.values(dims)
        return self.model.bases.start + factor * max(sum(map(operator.mul, row, values)) for row in self.rows)


class Bucket(object):
    """A schedule, and what tells whether another step may follow it."""

    def __init__(self, schedule, where, edition, profile, device):
        self.schedule, self.where, self.edition, self.profile = schedule, where, edition, profile
        growth = profile.growth
        self.saved = growth.bytes(growth.larger(where))
        self.allowed = max(device, profile.peak(*where))  # by the planner's account it fits
        self.moved = [0.0] * len(growth.products)
        for index in {index for actions in schedule.actions for kind, index, _ in actions if kind in (OFFLOAD, RECOMPUTE)}:
            share, which = growth.terms[index]
            self.moved[which] += share

    def __getattr__(self, name):
        return getattr(self.schedule, name)

    def moves(self, dims):
        """Returns the bytes that are moved or recomputed in a step."""
        return sum(map(operator.mul, self.moved, self.profile.growth.values(dims)))


class Shape(object):
    """The schedule for a step: one that was made for another."""

    def __init__(self, schedule, sizes):
        self.sequence, self.trails, self.members, self.actions = schedule.sequence, schedule.trails, schedule.members, schedule.actions
        self.exact, self.remade, self.sizes = schedule.exact, schedule.remade, sizes
        self.selection, self.trust = schedule.selection, schedule.trust

    def exactly(self, index):
        return self.sizes[index], None

    def recipe(self, index):
        return None


class Chosen(Remaking, Follower):
    """Conducts a step by a schedule that was chosen when it began."""

    def spared(self, entry):
        return False  # it was looked whether it needs one
