"""Tells which of the tensors that a step saves are looked at once it is known how the step goes."""

import itertools


class Passed(object):
    """Stands among the entries of a step for those that are not looked at."""

    users = nbytes = ticket = needed = 0
    alias = buffer = made = layout = None

    def resident(self):
        return False

    occupied = resident


PASSED = Passed()


class Mark(object):
    """A tensor that stays where it is, and at whose use a schedule does something: what autograd keeps instead of it."""

    __slots__ = ("tensor", "version", "step", "at")

    def __init__(self, tensor, step, at):
        self.tensor, self.version, self.step, self.at = tensor, tensor._version, step, at


class Selection(object):
    """Of the entries of a step those that a schedule moves, or needs to recompute others, and some at which it shows how the step goes; and the largest of all
    others, so that something can leave when a request finds no room. Beside them points of others at which the schedule does something."""

    RESERVE = 8  # the largest have such a part of the limit, if there are as many
    WORTH = 0.75  # a part of the entries at most, as otherwise little is gained

    def __init__(self, schedule, sizes, device):
        self.schedule, self.sizes, self.device = schedule, sizes, device
        self.calls = None  # by calls of models and numbers of tensors: the entry, and where one is not looked at the points at which it is saved and used, and the
        # course of the step
        self.next, self.packed = [], []  # of each point: the next one that is looked at, and how many tensors are saved before it
        self.worth = False

    def choose(self, looked):
        """Returns the entries, as a set. Looked are those before it is known which schedule a step follows."""
        schedule, sizes, lacking = self.schedule, self.sizes, self.device // self.RESERVE
        chosen = set(looked).union(schedule.exact, shown(schedule.sequence, schedule.members))
        chosen.update(index for actions in schedule.actions for _, index, _ in actions)
        for index in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
            if lacking <= 0:
                break
            if index not in chosen:
                chosen.add(index)
                lacking -= sizes[index]
        return chosen

    def points(self, chosen):
        """Returns the points of other entries at which the schedule does something, by entry: where each is saved, and where it is used, None where it does
        nothing. An entry that is saved or used more than once is chosen."""
        found, places = {}, {}
        for at, index in enumerate(self.schedule.sequence):
            places.setdefault(entry(index), []).append(at)
        for index, there in places.items():
            acts = [at if self.schedule.actions[at + 1] else None for at in there]
            if index in chosen or not any(at is not None for at in acts):
                continue
            if len(there) > 2 or self.schedule.sequence[there[-1]] == index:
                chosen.add(index)
            else:
                found[index] = acts
        return found

    def find(self, looked):
        """Finds the entries, once. Returns whether that is worth it."""
        if self.calls is not None:
            return self.worth
        sequence, chosen = self.schedule.sequence, self.choose(looked)
        points = self.points(chosen)
        known = {index: (index, None, None) for index in chosen}
        known.update({index: (None, *acts) for index, acts in points.items()})
        self.calls = {call: {n: (*known[index], course) for n, (index, course) in numbers.items() if index in known}
                      for call, numbers in self.schedule.members.calls.items()}
        self.packed = list(itertools.accumulate((index >= 0 for index in sequence), initial=0))
        self.next = list(range(len(sequence) + 1))
        seen = {at for acts in points.values() for at in acts}
        for at in reversed(range(len(sequence))):
            if entry(sequence[at]) not in chosen and at not in seen:
                self.next[at] = self.next[at + 1]
        self.worth = len(chosen) <= self.WORTH * len(set(map(entry, sequence)))
        return self.worth


class Trust(object):
    """What has come of steps that followed schedules. Where some have done so to their end, others are looked at no more than has to be, but for one of many."""

    WELL = 4  # such steps in a row, and twice as many after each step in which too little of what was looked at could leave
    RECHECK = 16  # one of so many steps is looked at whole
    FEW = 4  # requests that find no room in a step

    def __init__(self, looked=()):
        self.looked = looked  # entries that are looked at before it is known which schedule a step follows
        self.well, self.wanted = 0, self.WELL

    def selection(self, schedule, step, relief):
        """Returns what is looked at of a step that follows a schedule, None for all."""
        trusted = self.well >= self.wanted and step.number % self.RECHECK and relief.lends
        return schedule.selection if trusted and schedule.selection.find(self.looked) else None

    def ended(self, step, followed, evictions):
        """Notes whether a step has followed its schedule to the end, and holds nothing any more, and how many requests found no room in it."""
        self.well = self.well + 1 if followed and evictions <= self.FEW and not step.short else 0
        if step.short:
            self.wanted *= 2


def shown(sequence, members):
    """Returns the entries that show that a model was called in a step, and that its backward pass has begun."""
    needed = next((entry(index) for index in sequence if index < 0), 0)
    return {numbers[min(numbers)][0] for numbers in members.calls.values()}.union([needed])


def entry(index):
    """Returns the entry of a point of a step."""
    return index if index >= 0 else -index - 1
