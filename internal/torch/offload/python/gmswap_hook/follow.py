"""Follows a schedule."""

import json

from .reactive import Reactive

OFFLOAD, FREE, PREFETCH, AWAIT, RECOMPUTE, SETTLE = range(6)


class Schedule(object):
    """What is done at each point of a step: at the start, which is point 0, and at each pack and unpack."""

    def __init__(self, answer, sequence, sizes, recipes):
        answer = json.loads(answer)
        self.sequence, self.sizes, self.recipes = sequence, sizes, recipes
        self.policy, self.step_ns, self.plain_ns = answer["policy"], answer["step_ns"], answer["plain_ns"]
        self.peak, self.plain_peak = answer["peak"], answer["plain_peak"]
        self.actions = [()] * (len(sequence) + 1)
        for kind, tensor, at, nbytes in answer["actions"]:
            self.actions[at] = self.actions[at] + ((kind, tensor, nbytes),)
        self.remade = sorted({tensor for kind, tensor, _, _ in answer["actions"] if kind == RECOMPUTE})

    def empty(self):
        return not any(self.actions)


class Follower(object):
    def __init__(self, step, schedule, settings):
        self.step, self.schedule, self.settings = step, schedule, settings
        self.point = 0
        self.deviation = ""

    def pack(self, entry, new, stream):
        schedule = self.schedule
        at = self.point
        if at >= len(schedule.sequence) or schedule.sequence[at] != entry.index:
            return self.leave("tensor %d is saved at point %d" % (entry.index, at)).pack(entry, new, stream)
        if new:
            size = schedule.sizes[entry.index]
            if entry.nbytes > size:
                return self.leave("%d bytes are saved in place of %d" % (entry.nbytes, size)).pack(entry, new, stream)
            recipe = schedule.recipes[entry.index]
            if recipe is not None and entry.index in schedule.remade:
                if entry.nbytes != size:
                    return self.leave("%d bytes are saved in place of %d" % (entry.nbytes, size)).pack(entry, new, stream)
                entry.made = recipe.bind(entry.memory, self.step.entries, entry.nbytes)
        self.point = at + 1
        self.act(stream)

    def unpack(self, entry, stream):
        schedule = self.schedule
        at = self.point
        if at >= len(schedule.sequence) or schedule.sequence[at] != -entry.index - 1:
            return self.leave("tensor %d is needed at point %d" % (entry.index, at)).unpack(entry, stream)
        self.point = at + 1
        self.act(stream)

    def act(self, stream):
        for kind, tensor, _ in self.schedule.actions[self.point]:
            entry = self.step.entries[tensor]
            if not entry.users:
                continue
            if kind == OFFLOAD:
                entry.offload(stream)
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
        self.deviation = why
        self.step.conduct = rest = Reactive(self.step, self.settings.window)
        rest.end = lambda: None
        return rest

    def end(self):
        pass
