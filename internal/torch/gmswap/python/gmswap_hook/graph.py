"""Records what a step does, as the graph that a schedule is made for.

Two steps are recorded: one for which operators made what is saved, one for times and memory. Where sizes differ from step to step, the operators of
one more are seen between them. What is saved moves on demand meanwhile, or at once where nothing makes room for a request.
"""

import collections
import math

from .demand import Demand
from .family import BEYOND
from .operators import Operators
from .remake import COUNTED, ROOMY, TIGHT
from .watched import Watched, Whole

WORTH = 4  # times as much has to be recomputable as is held in addition


class Recording(object):
    ATTEMPTS = 3  # pairs of steps that differ before no more are recorded
    WAITS = 3  # steps of the first one's sizes again, before it is believed that sizes do not vary
    PASSED = 8  # steps that are not recorded, as they differ from the first one in too little of what varies, before any will do

    def __init__(self, memory, settings, costs, relief, before, schedule, inputs):
        self.memory, self.settings, self.costs, self.relief = memory, settings, costs, relief
        known = getattr(schedule, "sizes", ())  # of the only steps that there is a schedule for
        self.before = before  # the sizes of a step before, None for others than those of any
        if len(known) == len(before) and known != before:
            self.before = known
        elif inputs.vary():
            self.before = None
        self.varied = self.before is not before  # steps of the same kind differ in sizes, or in inputs
        self.name = ""  # of the model
        self.names = {}  # of the modules, by id
        self.stack = []
        self.operators = None
        self.made = None  # the first step
        self.again = None  # another one of other sizes, if they vary
        self.timed = None
        self.held, self.held_bytes = None, 0  # names of arguments of modules, and their bytes in the largest step, once they were chosen
        self.failed = 0  # times that two steps differed, or a third one did not
        self.waits, self.passed = self.WAITS, self.PASSED  # that are left
        self.repeated = None  # the last step that was passed over as one of the two had inputs of its sizes
        self.inputs, self.picks = inputs, True  # of the steps before, and whether they tell which of the next ones is recorded

    def passes(self, step):
        """Returns whether a step is not recorded. Where sizes vary the second one is to differ from the first in each dimension that does, unless some others have
        come, or more like the first one in a row, or one that differs so was of another kind. The third one is to differ from both."""
        if not self.picks or self.made is None or not self.varies():
            return False
        if self.again is not None:
            return self.repeats(step)
        if self.inputs.differ(self.made.step.dims, step.dims):
            return False
        if step.dims != self.made.step.dims:
            self.passed -= 1
            self.waits = self.WAITS if self.passed >= 0 else self.waits
            return self.passed >= 0
        self.waits -= 1
        return self.waits >= 0

    def repeats(self, step):
        """Returns whether a step has inputs of the sizes of one of the two, and others may come."""
        self.failed += self.repeated is not None and self.repeated.backward
        repeats = self.failed + 1 < self.ATTEMPTS and step.dims != () and step.dims in (self.made.step.dims, self.again.step.dims)
        self.repeated = step if repeats else None
        return repeats

    def tells_more(self, step):
        """Returns whether a step differs from the first one where the second one does, and in more dimensions."""
        first, second, third = self.made.step.dims, self.again.step.dims, step.dims
        if not self.picks or not len(first) == len(second) == len(third):
            return False
        varied = [{i for i, (n, m) in enumerate(zip(first, other)) if n != m} for other in (second, third)]
        return varied[0] < varied[1] and self.inputs.differ(first, third)

    def next(self, step):
        """Returns what conducts a step, None for one that is not recorded."""
        if self.passes(step):
            return None
        seen = self.made is None or self.varies() and (self.again is None or self.tells_more(step))
        self.operators = Operators(self.memory, self.settings.policy.startswith("memo"), proves=self.made is None) if seen else None
        if self.made is not None:
            step.members = self.made.members
        return Watched(self, step, self.operators, self.mover(step))

    def mover(self, step):
        """Returns what moves the tensors of a step. On demand a storage stays in a tensor of ours, which tells that the program holds it, too, only where
        holders are counted."""
        return Demand(step, self.relief) if self.relief is not None and self.memory.counts else Whole()

    def watched(self, watched):
        """Has requests for memory pause what measures a step that is watched, None for none."""
        if self.relief is not None:
            self.relief.watched = watched

    def varies(self):
        """Returns whether sizes differ from step to step, and schedules for all of them are wanted."""
        return self.before != self.made.sizes and self.settings.for_all_sizes()

    def enter(self, module, given, step):
        """Notes that a module runs. Given returns what it was called with, by places and by names."""
        if not self.stack:
            self.name = self.name or type(module).__name__
            for name, m in module.named_modules():
                self.names[id(m)] = name
            if self.operators is not None:
                self.operators.begin()
        elif self.operators is not None:
            self.memory.small.arguments.see(self.operators, module, *given(), step)
        self.memory.ran.add(id(module))
        self.stack.append(self.names.get(id(module), type(module).__name__))

    def leave(self, module):
        if self.stack:
            self.stack.pop()
            if self.stack and self.operators is not None:
                self.operators.levels.pop()
        if not self.stack and self.operators is not None:
            self.operators.end()

    def place(self):
        """Returns where the program is: the path of a module."""
        return self.stack[-1] if self.stack else ""

    def ended(self, watched):
        """Takes note of a step, unless it had no backward pass."""
        if not watched.step.backward:
            return
        if self.made is None:
            self.made = watched
            self.costs.learn(self.operators)
        elif (self.made.sequence, self.made.trails) != (watched.sequence, watched.trails):
            self.made = self.again = None  # once more
            self.failed += 1
            self.picks = False
            if self.before is None:
                self.before, self.varied = watched.sizes, False
        elif watched.operators is None:
            self.take(watched)
        elif self.made.sizes != watched.sizes:
            self.again, self.failed = watched, 0 if self.again is not None else self.failed
        elif self.again is not None:
            self.picks = False  # it tells less than the second one
        elif self.varied and self.waits > 0:
            self.waits -= 1
        else:
            self.before = self.made.sizes  # they do not vary after all

    def take(self, watched):
        """Takes a step whose operators were not seen, if it tells what is to be known of sizes: that they do not vary, or what third ones are."""
        others = self.again is not None
        tells = watched.sizes not in (self.made.sizes, self.again.sizes) if others else watched.sizes == self.made.sizes
        if tells or self.failed + 1 >= self.ATTEMPTS or not self.settings.for_all_sizes():
            self.timed = watched
            return
        self.failed += 1
        if not others:
            self.before, self.varied = watched.sizes, True

    def steps(self):
        """Returns the steps that tell of sizes."""
        return [self.timed] if self.again is None else [self.made, self.again, self.timed]

    def grown(self, watched):
        """Returns how much larger the largest step may be that schedules are made for."""
        return BEYOND * max(sum(w.sizes) for w in self.steps()) / sum(watched.sizes) if self.again is not None else 1.0

    def arguments(self):
        """Returns the names of the arguments of modules that are held, as much more can be recomputed then."""
        if self.held is None:
            grown = self.grown(self.made)
            self.held, nbytes = chosen(self.made.operators, self.made, self.settings.device / TIGHT / grown)
            self.held_bytes = math.ceil(nbytes * grown)
        return self.held

    def extra(self):
        """Returns the most bytes that may be taken beside what is recomputed, in the largest step: schedules count them, but for MEMO's."""
        return self.settings.device // (ROOMY if self.settings.policy.startswith("memo") else COUNTED)

    def recipes(self):
        """Returns for each entry how it is recomputed, or None."""
        return self.made.operators.recipes(self.made, self.timed, self.extra(), self.arguments())

    def recipes_of(self, watched):
        """Returns the same for a step whose operators were seen."""
        return watched.operators.recipes(watched, watched, self.extra() / self.grown(watched), self.arguments())


def chosen(operators, made, most):
    """Returns the names of arguments of modules, of so many bytes together at most, of which much more of what a step saves can be recomputed, and their bytes. One that
    several modules are given is held once."""
    known, gains = operators.chains(made, made), collections.Counter()
    sizes = operators.arguments(made, most)
    for index, found in operators.chains(made, made, sizes).items() if sizes else ():
        needed = frozenset(x.number for m in found.made for x in m.call.inputs() if x.small in sizes)
        if index not in known and needed:
            gains[needed] += made.sizes[index]
    numbers, held = {operators.names[name]: nbytes for name, nbytes in sizes.items()}, set()
    for needed, gain in gains.most_common():
        both = held | needed
        if sum(map(numbers.get, both)) <= most and gain >= WORTH * sum(map(numbers.get, needed - held)):
            held = both
    return {name for name in sizes if operators.names[name] in held}, sum(map(numbers.get, held))
