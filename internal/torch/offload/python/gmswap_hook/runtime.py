"""The steps of a program: the first are watched, the others follow a schedule."""

from . import say
from .entry import Entry, Saved
from .follow import Follower
from .graph import Recording
from .reactive import Reactive


class Step(object):
    """A forward pass and the backward pass after it."""

    def __init__(self, number, conduct):
        self.number, self.conduct = number, conduct
        self.entries = []
        self.backward = False


class Runtime(object):
    """Moves the tensors of one device. Its methods are called by the program's threads, one at a time."""

    WARM_UP = 1  # steps that are not recorded: they do what is done but once

    def __init__(self, memory, lanes, settings, planner, report):
        self.memory, self.lanes, self.settings, self.planner, self.report = memory, lanes, settings, planner, report
        self.smallest = settings.smallest
        self.step = None
        self.steps = 0
        self.recording = None
        self.schedule = None
        self.deviated = 0  # steps, one after the other
        self.declined = False

    # Called by Hooks.

    def begin(self, module):
        """Begins a step, unless the last one has not come to its backward pass. Returns whether what is saved is to be packed."""
        if self.declined:
            return False
        if self.step is None or self.step.backward:
            self.next_step()
        self.memory.note_storages(module)
        return True

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
        step = self.step
        entry = memory.entries.get(storage._cdata)
        new = entry is None
        if new:
            entry = Entry(memory, self.lanes, len(step.entries), tensor, storage, nbytes)
            memory.entries[entry.key] = entry
            step.entries.append(entry)
        saved = Saved(entry, tensor)
        step.conduct.pack(entry, new, memory.stream())
        return saved

    def unpack(self, saved):
        if not isinstance(saved, Saved):
            return saved
        step, entry = self.step, saved.entry
        stream = self.memory.stream()
        step.backward = True
        step.conduct.unpack(entry, stream)
        return entry.tensor(saved, stream)

    # Steps.

    def next_step(self):
        if self.step is not None:
            self.end_step(self.step)
        number, self.steps = self.steps, self.steps + 1
        step = self.step = Step(number, None)
        if self.schedule is not None and self.deviated < 3:
            step.conduct = Follower(step, self.schedule, self.settings)
        elif number < self.WARM_UP:
            step.conduct = Reactive(step, self.settings.window)
        else:
            if self.recording is None:
                self.recording = Recording(self.memory, self.settings)
            step.conduct = self.recording.next(step)
        self.report.step(step)

    def end_step(self, step):
        step.conduct.end()
        if isinstance(step.conduct, Follower):
            self.deviated = self.deviated + 1 if step.conduct.deviation else 0
            if step.conduct.deviation:
                say.once("step %d went another way than the recorded one: %s" % (step.number, step.conduct.deviation))
            if self.deviated == 3:
                say.line("three steps went another way: the next ones are recorded anew")
        elif self.recording is not None and self.recording.complete:
            recording, self.recording = self.recording, None
            self.plan(recording)
        step.entries.clear()

    def plan(self, recording):
        try:
            self.schedule = self.planner.plan(recording)
        except Exception as e:
            say.line("no schedule: %s; tensors are moved as they come" % say.reason(e))
            self.schedule = None
            self.deviated = 0
            return
        self.deviated = 0
        if self.schedule.empty() and not self.settings.always:
            self.declined = True
