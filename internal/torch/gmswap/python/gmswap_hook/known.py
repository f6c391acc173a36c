"""Finds what tells how what a step saves can be recomputed, where no schedule does."""

from .live import Live
from .remembered import Recalled


class Known(object):
    RESIZED = 3  # times that steps are recorded for all sizes, where the schedule is for one
    SETTLED = 8  # steps in a row that are as the one before, where no two were, until others are recorded, and twice as many each time

    def __init__(self, runtime):
        self.runtime, self.left = runtime, self.RESIZED
        self.unlike, self.wait = False, self.SETTLED  # recorded steps were, and how many have to be alike then
        self.kind, self.alike = None, 0  # what the last step did whatever its sizes, and how many have done so in a row since

    def of(self, step):
        """Returns what tells that of a step which begins, or leaves its schedule, None if nothing does."""
        return None if step.room else self.recalled(step) or (self.live_within(step) if step.entries else self.live_from(step))

    def recalled(self, step):
        """Returns what knows the operators of a step as far as it is like those that were recorded, None if it is not, or if there is room for it."""
        r = self.runtime
        remembered, family = r.planner.remembered, r.planner.family
        if remembered is None or step.differs or not step.whole or not r.relief.lacks() or r.relief.tight() and not r.planner.suits(step):
            return None
        step.members = remembered.members
        return Recalled(remembered, r.memory, step, r.relief.extra(), family.extent if family is not None and not family.model.bounded else None)

    def resized(self):
        """Returns whether a step that has left a schedule for one size counts with others that have, whatever size they are of: inputs vary, and nobody has tried
        to have schedules for all."""
        r = self.runtime
        alike = r.planner.remembered is None and len(r.before) == len(r.schedule.sizes) and r.before != r.schedule.sizes
        if not alike or not self.left or not r.inputs.vary() or not r.settings.for_all_sizes():
            return False
        self.left -= r.deviated + 1 >= r.patience
        return True

    def settles(self, step):
        """Returns whether steps are recorded once more that has been given up: those that end now have done the same for long, as where a program begins with some
        that do other things."""
        kind = step.course, step.turn, step.packs
        self.kind, self.alike = kind, self.alike + 1 if kind == self.kind else 0
        if not self.unlike or self.alike < self.wait:
            return False
        self.unlike, self.alike, self.wait = False, 0, 2 * self.wait
        return True

    def largest(self, count):
        """Returns the most bytes that a step saved in so many entries, as far as is known."""
        relief = self.runtime.relief
        return relief.foresight.largest(count) if relief is not None else 0

    def live(self):
        """Returns what looks at the operators of a step."""
        return Live(self.runtime.memory, self.runtime.costs, self.runtime.relief.extra())

    def live_from(self, step):
        """Returns the same for a step that begins, None if that is not worth it."""
        return self.live() if self.parts() or not self.runtime.costs.known() else None

    def live_within(self, step):
        """Returns the same for the rest of a step, None unless it has to recompute, and its model is running in this thread, which says when that ends. A mode
        of the program's own may end before, or handle the operator in which a request for memory is made."""
        r = self.runtime
        if step.backward or not step.depth or not r.relief.tight() or r.relief.serves() or not r.owner.here() or r.memory.innermost_mode() is not None:
            return None
        live = self.live()
        live.join(step.depth)
        return live

    def parts(self):
        """Returns whether it is worth recomputing in a step that follows no schedule."""
        r = self.runtime
        return r.relief is not None and r.relief.strained() and (r.planner.remembered is not None or r.relief.desperate or r.costs.worthwhile())
