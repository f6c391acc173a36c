"""Follows a schedule."""

import time

from . import say
from .between import Unlike
from .remake import Remake
from .pace import AWAIT, FREE, OFFLOAD, PREFETCH, RECOMPUTE, SETTLE, Pace
from .selection import Selection, Trust
from .spare import Spare


class Schedule(object):
    """What is done at each point of a step: at the start, which is point 0, and at each pack and unpack."""

    wanted = ()  # steps that followed it ask for no others

    def __init__(self, answer, recorded, recipes):
        self.followed = 0  # steps
        self.sequence, self.sizes, self.layouts, self.recipes = recorded.sequence, recorded.sizes, recorded.layouts, recipes
        self.trails, self.members = recorded.trails, recorded.members
        self.policy, self.step_ns, self.plain_ns = answer["policy"], answer["step_ns"], answer["plain_ns"]
        self.peak, self.plain_peak = answer["peak"], answer["plain_peak"]
        self.unfit = answer.get("unfit", "")  # why it is not the one that was asked for
        self.device = answer["device"]  # bytes that it keeps to: more than was asked for where that is not enough
        self.actions = [()] * (len(self.sequence) + 1)
        known = {index: at for at, index in reversed(list(enumerate(self.sequence)))}  # the points from which on there are tensors, less one
        for kind, tensor, at, nbytes in answer["actions"]:
            if at > 0 and known.get(tensor, at) >= at:
                raise ValueError("the schedule moves tensor %d at point %d, where there is none yet" % (tensor, at))
            self.actions[at] = self.actions[at] + ((kind, tensor, nbytes),)
        self.copied = sum(nbytes for kind, _, _, nbytes in answer["actions"] if kind == OFFLOAD)  # bytes to the host
        self.remade = {tensor for kind, tensor, _, _ in answer["actions"] if kind == RECOMPUTE}
        self.exact = self.remade.union(*(recipes[tensor].sources for tensor in self.remade))  # tensors that are to be just as recorded
        self.selection, self.trust = Selection(self, self.sizes, self.device), Trust()

    def empty(self):
        return not any(self.actions)

    def foresees(self, sizes, dims):
        """Returns whether it was made for a step of these sizes, with inputs of some dimensions."""
        return self.sizes == sizes

    def extends(self, sizes, dims):
        """Returns whether a schedule for a step of these sizes can be made of what was recorded."""
        return False

    @property
    def largest(self):
        """Is the schedule for the largest step."""
        return self

    def lacks(self):
        """Returns whether there are steps for which a schedule is still to be made."""
        return False

    def exactly(self, index):
        """Returns the size and the layout of an entry."""
        return self.sizes[index], self.layouts[index]

    def recipe(self, index):
        """Returns how an entry is recomputed."""
        return self.recipes[index]

    def follower(self, step, unplanned, relief, instrument):
        """Returns what conducts a step."""
        return Follower(step, self, unplanned, relief, instrument)

    def covers(self, recorded):
        """Returns whether a step that was recorded now follows the schedule, with no larger tensor."""
        return ((self.sequence, self.trails) == (recorded.sequence, recorded.trails) and all(a >= b for a, b in zip(self.sizes, recorded.sizes))
                and all(self.layouts[i] == recorded.layouts[i] for i in self.exact))


class Follower(object):
    """Conducts a step by a schedule. If an instrument is given, it measures the operators. A step that goes another way is handed over to what
    unplanned returns for it."""

    way = "planned"
    MAPPING = 1 / 32.0  # of the time of a step: a 64th of the memory is worth less

    def __init__(self, step, schedule, unplanned, relief, instrument=None):
        self.step, self.schedule, self.unplanned, self.relief, self.instrument = step, schedule, unplanned, relief, instrument
        self.point = self.packed = 0
        self.selection = self.trust = None  # what is looked at, None for all, and what has come of other steps with this schedule
        self.evictions = self.evicted()  # before
        self.begun = False  # the backward pass
        self.saved = self.less = 0  # bytes, and how many fewer than in the recorded step
        step.members = schedule.members
        step.pace = instrument if isinstance(instrument, Pace) else None
        if relief is not None and relief.tight():
            step.spare = Spare(self, relief.memory)
        self.measuring = False  # an operator is under way, and measured
        if instrument is not None:
            if relief is not None:
                relief.watched = self
            self.begin_operator()
        self.rely(schedule)

    def rely(self, schedule):
        """Looks at no more of the step than has to be, if others have followed the schedule to their end."""
        self.trust = schedule.trust
        if self.trust is None or self.relief is None:
            return
        self.selection = self.trust.selection(schedule, self.step, self.relief) if self.instrument is None else None
        if self.selection is not None:
            self.step.select(self.selection)

    def come(self):
        """Goes on to the next point that is looked at."""
        if self.selection is not None:
            self.point = self.selection.next[self.point]
            self.packed = self.selection.packed[self.point]
        return self.point

    def pack(self, entry, new, stream):
        at, sequence = self.come(), self.schedule.sequence
        if at >= len(sequence) or sequence[at] != entry.index:
            why = "tensor %d is saved at point %d" % (entry.index, at)
        elif self.schedule.trails[self.packed] != self.step.trail:
            why = "other parameters are used before point %d" % at
        elif self.step.astray:
            why = "other tensors are saved before point %d" % at
        else:
            why = ""
        self.packed += 1
        if why:
            self.doubt()
        else:
            if self.step.trail != self.step.agreed:
                self.step.agrees(entry, new)
            if new and (entry.index in self.schedule.exact or entry.nbytes > self.schedule.sizes[entry.index]):  # else its size is all that matters
                why = self.differs(entry)
        if why:
            self.leave(why).take_over(entry, new, stream)
        elif new and self.spared(entry):
            self.step.room = True
            self.hand_over().take_over(entry, new, stream)
        else:
            self.advance(stream, fresh=entry.nbytes if new and not entry.hosted else 0)

    def pass_point(self, at, stream):
        """Goes to the next point, that of a tensor that stays where it is."""
        saves = self.schedule.sequence[at] >= 0
        if self.come() == at and (self.schedule.trails[self.packed] == self.step.trail if saves else self.starts_backward()):
            self.advance(stream)
            return
        if saves:
            self.doubt()
        self.leave("other tensors come before point %d" % at)

    def starts_backward(self):
        """Returns whether a backward pass that may begin does so where that of the recorded step did, if that is to be known."""
        if self.selection is None or self.begun:
            return True
        self.begun = True
        if self.step.where() == self.selection.schedule.members.end:
            return True
        self.doubt()
        return False

    def doubt(self):
        """Has nothing recomputed that is still here and may be something else than it was in the recorded step, which has just shown."""
        self.step.differs = True
        for e in self.step.entries[self.step.certain :]:
            if e.made is not None and e.alias is not None:
                e.keep()

    def differs(self, entry):
        """Returns how a new entry differs from the recorded one, "" if it does not. Notes how the entry is recomputed."""
        schedule, index = self.schedule, entry.index
        size, shape = schedule.sizes[index], None
        try:
            if index in schedule.exact:
                size, shape = schedule.exactly(index)
            recipe = schedule.recipe(index) if index in schedule.remade else None
        except Unlike:
            return "tensor %d has a size that was not foreseen" % index
        if entry.nbytes > size or entry.nbytes < size and shape is not None:
            return "%d bytes are saved instead of %d" % (entry.nbytes, size)
        if shape is not None and entry.laid_out() != shape:
            return "tensor %d has another shape" % index
        if recipe is not None:
            if not recipe.usable(entry.memory, self.step.entries):
                return "tensor %d cannot be recomputed" % index
            entry.made = Remake(recipe, self.step.entries, entry)
        return ""

    def spared(self, entry):
        """Returns whether nothing has to be moved after all, as the step is smaller."""
        if self.selection is not None:
            return False
        self.saved += entry.nbytes
        self.less += self.schedule.sizes[entry.index] - entry.nbytes
        count = entry.index + 1
        return self.less > 0 and self.relief is not None and self.relief.foresight.looks(count) and self.relief.fits(count, self.saved)

    def unpack(self, entry, stream):
        at, sequence = self.come(), self.schedule.sequence
        if at >= len(sequence) or sequence[at] != -entry.index - 1 or not self.starts_backward():
            return self.leave("tensor %d is needed at point %d" % (entry.index, at)).unpack(entry, stream)
        self.advance(stream, entry)

    def advance(self, stream, needed=None, fresh=0):
        """Goes to the next point."""
        self.point += 1
        if self.instrument is not None:
            self.measuring = False
            self.instrument.end(fresh)
        actions = self.schedule.actions[self.point]
        act = self.act if self.step.pace is None else self.act_measured
        for action in actions:
            act(stream, *action)
        if self.instrument is not None:
            still = not actions and (needed is None or needed.alias is not None)
            if needed is not None:
                needed.on_device(stream)
            self.begin_operator(still)

    def begin_operator(self, at_once=False):
        self.instrument.begin(self.resident, at_once=at_once)
        self.measuring = True

    def pause(self):
        """Measures the operator that is under way no longer, as a request has something leave."""
        if self.measuring or self.step.pace is not None:
            self.instrument.pause()

    def resume(self):
        if self.measuring or self.step.pace is not None:
            self.instrument.resume(self.resident)

    def resident(self):
        """Returns the bytes of the step's entries that are on the device."""
        return sum(e.nbytes for e in self.step.entries if e.users and not e.hosted and (e.resident() or e.occupied()))

    def act_measured(self, stream, kind, tensor, nbytes):
        begin, evicted = time.perf_counter_ns(), self.evicted()
        self.act(stream, kind, tensor, nbytes)
        if kind != RECOMPUTE and self.evicted() == evicted:
            self.step.pace.handle(kind, time.perf_counter_ns() - begin)

    def act(self, stream, kind, tensor, nbytes):
        entry = self.step.entries[tensor]
        if not entry.users:
            return
        try:
            if kind == OFFLOAD:
                entry.offload(nbytes)
            elif kind == FREE:
                self.free(entry)
            elif kind == PREFETCH:
                with entry.memory.trial:
                    entry.load(stream)
            elif kind == RECOMPUTE:
                self.remake(entry, stream)
            elif kind == AWAIT:
                entry.wait()
            elif kind == SETTLE:
                entry.settle()
        except entry.memory.failures as e:
            say.once("the schedule cannot be kept to: %s" % say.brief(e))  # whoever needs the tensor tries again

    def free(self, entry):
        entry.free()

    def remake(self, entry, stream):
        pace, begin, evicted = self.step.pace if entry.lacks() else None, time.perf_counter_ns(), self.evicted()
        with entry.memory.trial:
            entry.remake(stream)
        if pace is not None and entry.made is not None and self.evicted() == evicted:
            pace.remade(entry.made.operators(), time.perf_counter_ns() - begin)

    def leave(self, why):
        """Hands over the rest of the step."""
        self.step.deviation, self.step.members, self.step.room = why, None, False
        return self.hand_over()

    def hand_over(self):
        self.tell(False)
        if self.selection is not None:
            self.step.look_at_all()
        self.end_measuring()
        self.step.conduct = rest = self.unplanned(self.step)
        return rest

    def end_measuring(self):
        self.step.pace = None
        if self.relief is not None and self.relief.watched is self:
            self.relief.watched = None

    def tell(self, followed):
        """Notes what has come of the step."""
        if self.trust is not None and self.relief is not None:
            self.trust.ended(self.step, followed, self.evicted() - self.evictions)

    def evicted(self):
        """Returns how many requests have found no room before something left."""
        return self.relief.memory.evictions if self.relief is not None else 0

    def crowded(self):
        """Returns how many more parts of the memory schedules had better leave free: some if there were such requests in this step, though it followed a
        schedule, or if others took long to have memory mapped."""
        mapping = self.relief.mapping() if self.relief is not None else 0
        return 2 if mapping > 2 * self.MAPPING else int(mapping > self.MAPPING or self.evicted() > self.evictions)

    def finished(self):
        """Returns whether the whole step followed the schedule."""
        return self.come() == len(self.schedule.sequence)

    def end(self):
        if self.step.backward:
            self.tell(self.finished() and not self.step.other and not any(e.users for e in self.step.entries))
        if self.instrument is not None:
            self.instrument.end(0)
        self.end_measuring()
