"""Measures the operators of a step, the stretches between two points of it, and puts that into the step's graph."""

import functools

from .pace import Pace


class Clock(object):
    """Measures how long operators take on the device. A device that waits for what launches them would seem to be as slow, so it is given something to do
    meanwhile, between two operators."""

    AHEAD, MOST = 2000000, 16000000  # nanoseconds by which what launches operators is to be ahead of the device, at first and at most
    IN_VAIN = 200000000  # nanoseconds that may be lost in a step, as where the program itself waits for the device now and then
    LAUNCH = 400000  # so many for each operator since the last time are not lost, as it takes that to be launched

    def __init__(self, memory):
        self.memory = memory
        self.stretches = []  # of each operator the marks around what is measured of it
        self.ahead = self.AHEAD
        self.late = set()  # operators at whose ends the device waited: they may have taken less
        self.since = self.in_vain = 0  # operators since it was kept busy last, and nanoseconds that were lost by that
        self.saved = 0  # bytes, where steps of other sizes are measured, too
        self.shares = None  # where operators differ in that, of what each takes in the recorded step

    def begin(self, resident=None, at_once=False):
        """Begins an operator, at once where the one before has ended: the same mark is for both."""
        before = self.stretches[-1][-1] if self.stretches else (None, None)
        if before[1] is not None:
            self.ended(len(self.stretches) - 1, self.memory.passed(before[1]))
        filled = self.fill(before[0])  # it may be about to wait
        self.stretches.append([[self.memory.mark() if filled or not at_once else before[1], None]])

    def fill(self, mark):
        """Keeps the device busy, if it has come to a mark. Returns whether it has."""
        if self.in_vain >= self.IN_VAIN or not self.memory.fill(mark, self.ahead):
            return False
        self.in_vain += max(0, self.ahead - self.since * self.LAUNCH)
        self.since = 0
        return True

    def ended(self, op, late):
        """Notes whether the device waits at the end of an operator."""
        self.since += 1
        if late:
            self.late.add(op)
            self.ahead = min(2 * self.ahead, self.MOST)

    def resume(self, resident=None):
        self.fill(self.stretches[-1][-1][0])
        self.stretches[-1].append([self.memory.mark(), None])

    def pause(self):
        self.stretches[-1][-1][1] = self.memory.mark()

    def end(self, fresh=0):
        self.pause()

    def nanoseconds(self):
        self.memory.synchronize()
        times = [sum(self.memory.elapsed(begin, end) for begin, end in stretches) for stretches in self.stretches]
        return [int(ns / share) for ns, share in zip(times, self.shares)] if self.shares else times


TIMING = Clock, Pace  # what measures the time of a step


class Clocks(object):
    """Measures how long operators take in some steps, and in others how long they take to be launched. The clock of a GPU at its power limit goes down and up:
    in a single step some operators take a quarter longer than in the next one."""

    STEPS, PACES = 3, 2

    def __init__(self):
        self.clocks, self.paces = [], []

    def next(self, memory):
        """Returns what measures the next step."""
        return Clock(memory) if len(self.clocks) < self.STEPS else Pace(memory)

    def add(self, instrument):
        """Adds a step, and returns whether there are enough."""
        (self.paces if isinstance(instrument, Pace) else self.clocks).append(instrument)
        return len(self.paces) == self.PACES

    def correct(self, graph):
        """Has a graph take the times of steps that follow a schedule, the median of each operator's: copies are beside it, and the GPU has no
        rest in which to cool down."""
        times = self.medians()
        slower = sum(times) / max(1, sum(op["ns"] for op in graph["ops"]))
        for op, ns in zip(graph["ops"], times):
            op["ns"] = ns
        for t in graph["tensors"]:
            t["recompute_ns"] = int(t.get("recompute_ns", 0) * slower)

    def medians(self, saved=0):
        """Returns the time of each operator, in a step that saves so many bytes if they differ in that: the median of those that are sure, or else the least."""
        steps = [[ns * saved // clock.saved if clock.saved else ns for ns in clock.nanoseconds()] for clock in self.clocks]
        medians = []
        for op, times in enumerate(zip(*steps)):
            sure = sorted(ns for ns, clock in zip(times, self.clocks) if op not in clock.late)
            medians.append(sure[len(sure) // 2] if sure else min(times))
        return medians


class Gauge(object):
    """Measures operators one by one: how long each takes, and the most bytes that are in use meanwhile. Short ones seem longer, as the
    device waits for them to be launched."""

    def __init__(self, memory):
        self.memory = memory

    def begin(self):
        self.memory.peak.begin()
        return self.memory.mark()

    def end(self, begin, function, args, kwargs, result):
        return begin, self.memory.mark(), self.memory.peak.bytes()

    def results(self, measured):
        """Returns nanoseconds and bytes."""
        self.memory.synchronize()
        return [(self.memory.elapsed(begin, end), peak) for begin, end, peak in measured]


class Scale(object):
    """Measures how much memory operators need beside the entries. A step may begin with more of it in use than when it was recorded: the
    state of an optimizer is made when that is run for the first time."""

    def __init__(self, memory):
        self.memory = memory
        self.start = memory.allocated()
        self.needs, self.fresh = [], []
        self.resident = 0

    def begin(self, resident, at_once=False):
        """Begins an operator. Resident is called for the bytes of entries that are on the device."""
        self.needs.append(0)
        self.resume(resident)

    def resume(self, resident):
        self.resident = resident()
        self.memory.peak.begin()

    def pause(self):
        self.needs[-1] = max(self.needs[-1], self.memory.peak.bytes() - self.resident)

    def end(self, fresh):
        """Ends an operator, which made entries of this many bytes."""
        self.pause()
        self.fresh.append(fresh)

    def bases(self):
        return [max(0, need - fresh) for need, fresh in zip(self.needs, self.fresh)]

    def correct(self, graph):
        for op, base in zip(graph["ops"], self.bases()):
            op["base"] = max(op["base"], base)


class Peak(object):
    """The most bytes of a device that were in use since it began, though the program may begin to look for its own peak meanwhile."""

    def __init__(self, torch, device):
        self.reset, self.most = (lambda: torch.cuda.reset_peak_memory_stats(device)), (lambda: torch.cuda.max_memory_allocated(device))
        self.before = 0  # what was the most until the program's last reset
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            real = getattr(torch._C, name, None)
            if real is not None:
                setattr(torch._C, name, self.noted(real))

    def noted(self, real):
        @functools.wraps(real)
        def reset(*args):
            self.before = self.bytes()
            return real(*args)

        return reset

    def begin(self):
        self.reset()
        self.before = 0

    def bytes(self):
        return max(self.before, self.most())

    def begin_within(self):
        """Begins to look for the peak of a part. Returns what end_within is to be given."""
        before = self.bytes()
        self.begin()
        return before

    def end_within(self, before):
        """Returns the peak of the part, and goes on with that of the whole."""
        most = self.bytes()
        self.before = max(before, most)
        return most
