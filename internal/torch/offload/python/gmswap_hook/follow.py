"""Follows a schedule."""

import json

from .operators import Remake
from .reactive import Reactive

class Clock(object):
    """Times stretches of the stream of operators."""

    def __init__(self, memory):
        self.memory = memory
        self.begins, self.ends = [], []

    def begin(self):
        self.begins.append(self.memory.mark())

    def end(self):
        self.ends.append(self.memory.mark())

    def nanoseconds(self):
        self.memory.synchronize()
        return [self.memory.elapsed(begin, end) for begin, end in zip(self.begins, self.ends)]


OFFLOAD, FREE, PREFETCH, AWAIT, RECOMPUTE, SETTLE = range(6)


class Schedule(object):
    """What is done at each point of a step: at the start, which is point 0, and at each pack and unpack."""

    def __init__(self, answer, sequence, sizes, recipes):
        answer = json.loads(answer)
        self.followed = 0  # steps
        self.sequence, self.sizes, self.recipes = sequence, sizes, recipes
        self.policy, self.step_ns, self.plain_ns = answer["policy"], answer["step_ns"], answer["plain_ns"]
        self.peak, self.plain_peak = answer["peak"], answer["plain_peak"]
        self.actions = [()] * (len(sequence) + 1)
        for kind, tensor, at, nbytes in answer["actions"]:
            self.actions[at] = self.actions[at] + ((kind, tensor, nbytes),)
        self.remade = sorted({tensor for kind, tensor, _, _ in answer["actions"] if kind == RECOMPUTE})

    def empty(self):
        return not any(self.actions)

    def covers(self, recorded):
        """Says whether a step that was recorded now goes the schedule's way, with no tensor that is larger."""
        return self.sequence == recorded.sequence and all(a >= b for a, b in zip(self.sizes, recorded.sizes))


class Follower(object):
    """Conducts a step by a schedule. If clock is given, it measures how long the stretches between the points take."""

    def __init__(self, step, schedule, settings, clock=None):
        self.step, self.schedule, self.settings, self.clock = step, schedule, settings, clock
        self.point = 0
        if clock is not None:
            clock.begin()

    def pack(self, entry, new, stream):
        schedule = self.schedule
        at = self.point
        if at >= len(schedule.sequence) or schedule.sequence[at] != entry.index:
            return self.leave("tensor %d is saved at point %d" % (entry.index, at)).pack(entry, new, stream)
        if new:
            size = schedule.sizes[entry.index]
            if entry.nbytes > size:
                return self.leave("%d bytes are saved in place of %d" % (entry.nbytes, size)).pack(entry, new, stream)
            if entry.index in schedule.remade:
                if entry.nbytes != size:
                    return self.leave("%d bytes are saved in place of %d" % (entry.nbytes, size)).pack(entry, new, stream)
                entry.made = Remake(schedule.recipes[entry.index], entry.memory, self.step.entries, entry.nbytes)
        self.advance(stream)

    def unpack(self, entry, stream):
        schedule = self.schedule
        at = self.point
        if at >= len(schedule.sequence) or schedule.sequence[at] != -entry.index - 1:
            return self.leave("tensor %d is needed at point %d" % (entry.index, at)).unpack(entry, stream)
        self.advance(stream, entry)

    def advance(self, stream, needed=None):
        """Comes to the next point."""
        self.point += 1
        if self.clock is not None:
            self.clock.end()
        self.act(stream)
        if self.clock is not None:
            if needed is not None:
                needed.on_device(stream)
            self.clock.begin()

    def act(self, stream):
        for kind, tensor, nbytes in self.schedule.actions[self.point]:
            entry = self.step.entries[tensor]
            if not entry.users:
                continue
            if kind == OFFLOAD:
                entry.offload(stream, nbytes)
            elif kind == FREE:
                entry.free(stream)
            elif kind == PREFETCH:
                entry.load(stream)
            elif kind == RECOMPUTE:
                entry.remake(stream)
            elif kind == AWAIT:
                entry.await_(stream)
            elif kind == SETTLE:
                entry.settle(stream)

    def leave(self, why):
        """Hands the rest of the step over."""
        self.step.deviation = why
        self.step.conduct = rest = Reactive(self.step, self.settings.window)
        return rest

    def end(self):
        if self.clock is not None:
            self.clock.end()
