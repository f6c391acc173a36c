"""Leaves steps alone that have room, as far as their inputs tell."""

from .entry import stays, untied
from .measure import TIMING


class Alone(object):
    """Conducts a step for which there is room, with some to spare: of what it saves the first tensor of each call of a model is looked at, so that it shows
    when the backward pass ends."""

    way = "left alone"

    def pack(self, entry, new, stream):
        pass

    def unpack(self, entry, stream):
        pass

    def end(self):
        pass


class Ample(object):
    """Tells that a step has room where nothing has to be moved: others had inputs of the same sizes, saved the same, and needed so much less than there is. So did all
    that the program has done since a step was recorded."""

    SURE = 4  # such steps in a row
    SPARE = 8  # a part of the limit that has to stay free, more after a step that lacked memory

    def __init__(self, called, relief):
        self.called, self.relief = called, relief  # how often models are called
        self.spare, self.right = relief.limit // self.SPARE, 0
        self.dims = self.sizes = None
        self.needed = 0  # bytes

    def fits(self, dims):
        """Returns whether a step that begins now is known to have room."""
        relief = self.relief
        if self.right < self.SURE or dims != self.dims or not dims:
            return False
        return max(relief.start + self.needed, relief.library.peak(relief.memory.device)) + self.spare <= relief.limit

    def saw(self, sizes, dims, needed):
        """Notes what a step saved and needed."""
        same = (dims, sizes) == (self.dims, self.sizes)
        self.right, self.needed = (self.right + 1, max(needed, self.needed)) if same else (0, needed)
        self.dims, self.sizes = dims, sizes

    def calls(self, model, count):
        """Returns whether a call of a model, the so many-th, is one of those of a step."""
        return count <= self.called.get(model, 0)

    def lacked(self):
        """Notes that a step had no room that was known to have some."""
        self.right, self.spare = 0, 2 * self.spare

    def extends(self, sizes, dims):
        """Is told of a step like those of a schedule for all sizes, where these may ask for others."""
        return True


class Outlook(object):
    """Tells which steps of a runtime are left alone, and has one looked at nevertheless that turns out to be another, or to lack memory. What such a step has
    saved cannot be moved."""

    RECHECK = 16  # one of so many steps is looked at

    def __init__(self, runtime):
        self.runtime = runtime
        self.left = []  # what was looked at of steps that were left alone, and is still in use

    @property
    def shapes(self):
        """Is what tells the need of a step by its inputs, or None."""
        return self.runtime.planner.shapes

    def leaves_alone(self, step, instrument=None):
        """Returns whether a step that begins has room in any case. None is left alone where it would end the program to be wrong."""
        relief, shapes = self.runtime.relief, self.shapes
        self.left = [e for e in self.left if e.users]
        if shapes is None or relief is None or not relief.lends or isinstance(instrument, TIMING) or self.left or step.number % self.RECHECK == 0:
            return False
        return shapes.fits(step.dims)

    def strange(self, step):
        """Returns whether a step may have to recompute, and those that were recorded do not tell how. If it followed a schedule first, it would leave that in the
        middle, and recompute less."""
        relief = self.runtime.relief
        return relief is not None and relief.desperate and not self.runtime.planner.suits(step)

    def pack(self, step, tensor):
        """Returns what autograd keeps of a tensor that is not looked at, None for one that is. Nothing more is packed then of this call."""
        if step.looked != step.call or not step.entries[-1].users:
            return None
        self.runtime.rest()
        return stays(untied(tensor))

    def planned(self, schedule):
        """Is told of a schedule that is to be followed."""
        runtime, planner = self.runtime, self.runtime.planner
        if schedule.empty() and planner.family is None and runtime.relief is not None:
            planner.shapes = Ample(planner.timed.step.calls, runtime.relief)

    def leave(self, step):
        """Has a step that begins left alone."""
        step.alone, step.whole = True, False
        self.runtime.memory.begin_like_last()
        return Alone()

    def goes_on(self, step, module):
        """Returns whether a call of a model is part of a step of which nothing that was looked at is there any more."""
        call = id(module), step.calls.get(id(module), 0) + 1
        return step.alone and len(step.entries) > 0 and self.shapes.calls(*call) or step.selected and call in step.members.calls

    def called(self, step):
        """Notes that a model is called in a step: one that it does not have is looked at."""
        if step.alone and not self.shapes.calls(*step.call):
            self.shapes.right = 0  # it may be two steps, of which the first has shown no end
            self.look_closer(step)

    def look_again(self, step):
        """Has what a step saves looked at from here on, if it lacks memory that it was known to have."""
        if step is not None and step.alone and step.conduct is not None and step.entries and not step.backward:
            self.shapes.lacked()
            self.look_closer(step)

    def look_closer(self, step):
        """Has the rest of a step looked at that was left alone."""
        step.alone, step.whole = False, not step.entries
        if step.whole:
            self.runtime.memory.note_anew()
        step.conduct = self.runtime.unplanned(step)
        self.runtime.wake()

    def ended(self, step):
        """Notes what is left of a step."""
        if not step.whole:
            self.left.extend(e for e in step.entries if e.users)

    def saw(self, step, sizes, schedule):
        """Notes whether what a step saved and needed was foreseen."""
        shapes, relief = self.shapes, self.runtime.relief
        if shapes is not None and schedule is not None:
            shapes.saw(sizes, step.dims, relief.most - relief.start if relief is not None else 0)
            shapes is schedule or shapes.extends(sizes, step.dims)
