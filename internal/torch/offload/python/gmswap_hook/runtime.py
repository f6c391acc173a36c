"""The steps of a program: the first are watched, the others follow a schedule."""

from . import say
from .entry import Entry, Saved
from .follow import Clock, Follower
from .graph import Recording
from .reactive import Reactive


class Step(object):
    """A forward pass and the backward pass after it."""

    def __init__(self, number):
        self.number, self.conduct = number, None
        self.entries = []
        self.stream = 0  # that of the forward pass
        self.backward = False
        self.deviation = ""  # from the schedule


class Runtime(object):
    """Moves the tensors of one device. Its methods are called by the program's threads, one at a time."""

    WARM_UP = 1  # steps that are not recorded: they do what is done but once
    TIMED = 2  # the step after so many that followed the schedule is timed
    DEVIATIONS = 3  # steps that go another way before the schedule is made anew

    def __init__(self, memory, lanes, settings, planner, report):
        self.memory, self.lanes, self.settings, self.planner, self.report = memory, lanes, settings, planner, report
        self.smallest = settings.smallest
        self.step = None
        self.steps = 0
        self.recording = None
        self.schedule = None
        self.deviated = 0  # steps that went another way than the schedule
        self.refined = False  # the schedule was made with the times of a step that followed one
        self.declined = False  # nothing has to be moved
        self.given_up = False  # no schedule can be made

    # Called by Hooks.

    def begin(self, module):
        """Begins a step, unless the last one has not come to its backward pass. Returns whether what is saved is to be packed."""
        if self.declined or self.memory.capturing():
            return False
        step = self.step
        if step is None or step.backward or not any(e.users for e in step.entries):
            self.next_step()
            self.step.stream = self.memory.stream()
        self.memory.note_storages(module)
        return True

    def watching(self):
        """Says whether the steps that come are recorded."""
        return self.schedule is None and not self.given_up or self.doubted()

    def finished(self):
        """Says whether nothing will be moved."""
        return self.declined

    def entered(self, module):
        if self.recording is not None:
            self.recording.enter(module)

    def left(self, module):
        if self.recording is not None:
            self.recording.leave(module)

    def pack(self, tensor):
        memory = self.memory
        if not memory.movable(tensor):
            return tensor
        storage = tensor.untyped_storage()
        nbytes = storage.nbytes()
        if nbytes < self.smallest or storage._cdata in memory.known:
            return tensor
        step, stream = self.step, memory.stream()
        if stream != step.stream:
            return tensor  # its memory may be given back in the order of another stream than those that the copies wait for
        entry = memory.entries.get(storage._cdata)
        new = entry is None
        if new:
            entry = Entry(memory, self.lanes, step, tensor, storage, nbytes)
            memory.entries[entry.key] = entry
            step.entries.append(entry)
        saved = Saved(entry, tensor)
        if entry.step is step:
            step.conduct.pack(entry, new, stream)
        return saved

    def unpack(self, saved):
        if not isinstance(saved, Saved):
            return saved
        step, entry = self.step, saved.entry
        stream = self.memory.stream()
        if entry.step is step:
            step.backward = True
            step.conduct.unpack(entry, stream)
        return entry.tensor(saved, stream)

    # Steps.

    def next_step(self):
        if self.step is not None:
            self.end_step(self.step)
        number, self.steps = self.steps, self.steps + 1
        step = self.step = Step(number)
        if self.schedule is not None and not self.doubted():
            step.conduct = self.follower(step)
        elif number < self.WARM_UP or self.given_up:
            step.conduct = Reactive(step, self.settings.window)
        else:
            if self.recording is None:
                self.recording = Recording(self.memory, self.settings)
            step.conduct = self.recording.next(step)
        self.report.step(step)

    def follower(self, step):
        """Returns what conducts a step by the schedule. One of the first is timed, for a better schedule."""
        followed, self.schedule.followed = self.schedule.followed, self.schedule.followed + 1
        return Follower(step, self.schedule, self.settings, Clock(self.memory) if followed == self.TIMED and not self.refined else None)

    def doubted(self):
        """Says whether so many steps went another way than the schedule's that it is to be made anew."""
        return self.deviated >= self.DEVIATIONS

    def end_step(self, step):
        step.conduct.end()
        if step.deviation:
            self.deviated += 1
            say.once("step %d went another way than the recorded one: %s" % (step.number, step.deviation))
        elif isinstance(step.conduct, Follower) and step.conduct.clock is not None:
            self.refine(step.conduct.clock)
        if self.recording is not None and self.recording.complete:
            recording, self.recording = self.recording, None
            self.plan(recording)

    def plan(self, recording):
        """Makes a schedule of what was recorded. The old one stays if it is for the same step with larger tensors."""
        old, self.deviated = self.schedule, 0
        if old is not None and old.covers(recording.timed):
            self.DEVIATIONS = float("inf")
            return
        try:
            self.schedule = self.planner.plan(recording)
        except Exception as e:
            say.line("no schedule: %s; tensors are moved as they come" % say.reason(e))
            self.schedule, self.given_up = None, True
            return
        self.refined = False
        self.declined = self.schedule.empty() or self.settings.dry

    def refine(self, clock):
        self.refined = True
        try:
            self.schedule = self.planner.refine(clock.nanoseconds())
        except Exception as e:
            say.line("the schedule stays as it is: %s" % say.reason(e))
