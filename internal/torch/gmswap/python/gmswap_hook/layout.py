"""Has steps that follow a schedule get the addresses of a plan, where each of their requests for itself would have memory mapped anew in each step."""

import collections

from . import say
from .follow import Schedule
from .library import FOLLOWED, RECORDED, UNPLANNED


class Layout(object):
    """libgm.so records two steps, and has the first one laid out by another process. A plan is for the steps of one schedule, which are all alike."""

    SETTLED, AGAIN = 3, 1  # steps in a row that followed a schedule which is here to stay, and where a plan was of use before
    STITCHES = 4  # the least requests of each of them that memory was mapped for
    JUDGED = 8  # steps that show what a plan is worth
    PLANS = 2  # that are tried with one schedule
    MARKS = 2  # steps at most before there is an iteration to lay out
    TRIES = 6  # steps with requests that found no room, and had some made, that are recorded in vain: most steps have others
    LATE = 6  # steps that follow a schedule which is not made anew with their times by then

    def __init__(self, library, memory):
        self.library, self.memory, self.device = library, memory, memory.device
        self.evictions, self.tries = memory.evictions, self.TRIES  # up to now, and that are left
        self.schedule, self.seen = None, 0  # what the last step was to follow, and how many had followed it
        self.state, self.plans = UNPLANNED, self.PLANS
        self.stitches = 0  # requests that memory was mapped for, up to now
        self.recent = collections.deque(maxlen=self.JUDGED)  # of the last steps
        self.recorded = 0  # steps
        self.before = 0.0  # on average without a plan
        self.settled = self.SETTLED

    def begin_step(self, schedule, stays):
        """Is told between two steps what schedule there is, and whether no other one is being made."""
        followed = schedule.followed if isinstance(schedule, Schedule) else 0
        alike = schedule is self.schedule and followed > self.seen
        if schedule is not self.schedule:
            self.end()
            self.schedule, self.plans, self.tries = schedule, self.PLANS, self.TRIES
        self.seen = followed
        if not self.plans:
            return
        now = self.library.account(self.device).stitches
        stitched, self.stitches = max(0, now - self.stitches), now
        evicted, self.evictions = self.memory.evictions > self.evictions, self.memory.evictions
        if not alike or not stays and followed < self.LATE:
            if self.state == RECORDED:
                self.end()
            self.recent.clear()
            return
        self.recent.append(stitched)
        if self.state != UNPLANNED:
            if evicted and self.recorded == 1 and self.tries:  # that step is the one that would be laid out
                self.tries -= 1
                self.library.iteration(self.device, False)
                self.recorded = 0
            self.go_on()
        elif len(self.recent) >= self.settled and min(self.recent) >= self.STITCHES:
            self.before = sum(self.recent) / float(len(self.recent))
            self.go_on()

    def hopeful(self):
        """Returns whether there is a plan, or may be one soon: of steps of a schedule that is not here to stay there is none."""
        return self.state != UNPLANNED or self.plans > 0 and len(self.recent) > 0 and min(self.recent) >= self.STITCHES

    def go_on(self):
        """Says that another step begins that is like those before."""
        was, self.state = self.state, self.library.iteration(self.device, True)
        self.recorded = self.recorded + 1 if self.state == RECORDED else 0
        if self.state < 0:
            self.state, self.plans = UNPLANNED, 0
        elif self.recorded > self.MARKS:  # they have no large requests, or too many
            self.plans = 0
            self.end()
        elif was == FOLLOWED and (self.state != FOLLOWED or self.fails()):
            self.plans, self.tries, self.settled = self.plans - 1, self.TRIES, self.SETTLED  # libgm.so has given the plan up, or it is of no use
            self.end()
        elif self.state == FOLLOWED and was != FOLLOWED:
            self.recent.clear()
            self.settled = self.AGAIN
            say.once("steps get the addresses of a plan: %.0f requests in each had memory mapped anew" % self.before)

    def fails(self):
        """Returns whether steps have memory mapped nevertheless."""
        return len(self.recent) == self.JUDGED and 2 * sum(self.recent) > self.before * self.JUDGED

    def end(self):
        if self.state != UNPLANNED:
            self.library.iteration(self.device, False)
            self.state, self.recorded = UNPLANNED, 0
        self.recent.clear()
