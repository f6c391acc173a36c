"""Checks when steps are laid out, with a library that is played."""

from gmswap_hook import layout, say
from gmswap_hook.follow import Schedule
from gmswap_hook.library import FOLLOWED, PLANNING, RECORDED, UNPLANNED

said = []
say.once = said.append


class Account(object):
    stitches = 0


class Memory(object):
    device, evictions = 1, 0


class Library(object):
    """Records two steps, and plans for so many."""

    def __init__(self, plans=2, state=UNPLANNED):
        self.plans, self.state, self.begun, self.total = plans, state, 0, Account()
        self.ends = 0

    def account(self, device):
        assert device == 1
        return self.total

    def iteration(self, device, begins):
        assert device == 1
        if self.plans is None:
            return -1
        if not begins:
            self.begun, self.state, self.ends = 0, UNPLANNED, self.ends + 1
            return self.state
        self.begun += 1
        self.state = RECORDED if self.begun < 3 else PLANNING if self.begun < 3 + self.plans else FOLLOWED
        return self.state


def schedule():
    made = Schedule.__new__(Schedule)
    made.followed = 0
    return made


def steps(plan, library, made, count, stitches=(20, 20), stays=True, follow=True):
    """Takes so many steps, with so many requests for which memory is mapped where there is no plan, and where there is one."""
    for _ in range(count):
        made.followed += follow
        library.total.stitches += stitches[library.state == FOLLOWED]
        plan.begin_step(made, stays)


library = Library()
memory = Memory()
plan = layout.Layout(library, memory)
first = schedule()
assert not plan.hopeful()
plan.begin_step(None, True)
plan.begin_step(first, True)  # the first one that may follow it
steps(plan, library, first, 2)
assert library.begun == 0, "two steps are not enough"
steps(plan, library, first, 1)
assert (library.begun, library.state) == (1, RECORDED)
steps(plan, library, first, 1, follow=False)
assert (library.state, library.ends) == (UNPLANNED, 1), "a step that went another way is recorded"
steps(plan, library, first, 3)
assert library.state == RECORDED
steps(plan, library, first, 4, (20, 0))
assert library.state == FOLLOWED and len(said) == 1 and "20 requests" in said[0], said
steps(plan, library, first, 3, (20, 0), follow=False)
steps(plan, library, first, 30, (20, 0))
assert (library.state, library.ends) == (FOLLOWED, 1), "the plan is good"
assert plan.hopeful()
second = schedule()
plan.begin_step(second, True)
assert (library.state, library.ends) == (UNPLANNED, 2), "the plan is of another schedule's steps"
assert not plan.hopeful()

steps(plan, library, second, 5, stays=False)
assert library.begun == 0, "another schedule is being made"
assert not plan.hopeful()
steps(plan, library, second, 1, stays=False)
assert library.begun == 1, "that takes long, and a plan was of use before"
steps(plan, library, second, 13)
assert library.ends == 3 and plan.plans == 1, (library.ends, plan.plans)  # the plan was of no use, and is tried once more
assert plan.settled == 3
steps(plan, library, second, 40)
assert (library.state, library.ends) == (UNPLANNED, 4) and library.begun == 0, "it is not tried again"

third = schedule()
plan.begin_step(third, True)
steps(plan, library, third, 2)
assert plan.hopeful()
steps(plan, library, third, 20, (3, 0))
assert library.begun == 0 and not plan.hopeful(), "there is little to gain"
steps(plan, library, third, 12, (20, 0))
assert library.state == FOLLOWED
library.begun = 0  # the allocator has given the plan up
steps(plan, library, third, 1, (20, 0))
assert library.state == UNPLANNED and plan.plans == 1

library.total.stitches = 0  # the program has reset its counts
steps(plan, library, third, 1)

none = Library(plans=None)
plan = layout.Layout(none, memory)
plan.begin_step(first, True)
steps(plan, none, first, 10)
assert plan.plans == 0 and none.ends == 0, "no plan is to be had"
plan.begin_step(None, True)

small = Library()
small.iteration = lambda device, begins: RECORDED if begins else UNPLANNED
plan = layout.Layout(small, memory)
plan.begin_step(first, True)
steps(plan, small, first, 4)
assert plan.plans == layout.Layout.PLANS
steps(plan, small, first, 1)
assert plan.plans == 0 and plan.state == UNPLANNED, "there is nothing to lay out"

busy = Library()
plan = layout.Layout(busy, memory)
plan.begin_step(first, True)
steps(plan, busy, first, 3)
assert (busy.begun, busy.ends) == (1, 0)
for i in range(3):
    memory.evictions += 2
    steps(plan, busy, first, 1)
    assert (busy.begun, busy.ends, plan.state) == (1, i + 1, RECORDED), "a step whose requests found no room is laid out"
steps(plan, busy, first, 1)
memory.evictions += 1  # in the step that shows how long requests last
steps(plan, busy, first, 1)
assert (busy.state, busy.ends) == (PLANNING, 3)
for step in range(2 * layout.Layout.TRIES):  # as many are recorded in vain as may be, of this schedule
    busy.begun, plan.state, plan.recorded = 1, RECORDED, 1
    memory.evictions += 1
    steps(plan, busy, first, 1)
assert busy.ends == layout.Layout.TRIES and plan.tries == 0
plan.begin_step(second, True)
assert plan.tries == layout.Layout.TRIES
print("ok")
