"""How long a program takes to launch its operators, and to do what a schedule has it do: a device that is faster waits for that."""

import collections
import statistics
import time


class Pace(object):
    """Measures that in a step: from one point to the next, and at the points. What is done about tensors is no part of the first. A program that is far ahead of
    the device would have to wait in the middle of an operator, so it does so at the points."""

    AHEAD = 32  # points by which it is ahead at most

    def __init__(self, memory):
        self.memory, self.marks = memory, collections.deque()
        self.ns = []  # of the operators
        self.acted = 0  # nanoseconds at the points
        self.reruns = []  # nanoseconds for each operator that was rerun
        self.at, self.there = 0, True  # when it was measured last, and whether the program is at a point

    def begin(self, resident=None, at_once=False):
        """Begins an operator."""
        if self.ns:
            self.pause()
        self.wait()
        self.ns.append(0)
        self.there = False
        self.resume()

    def wait(self):
        """Has the program wait for the device, if it is far ahead. A graph that is captured is not to."""
        if self.memory.capturing():
            return
        self.marks.append(self.memory.mark())
        if len(self.marks) > self.AHEAD:
            self.memory.reach(self.marks.popleft())

    def resume(self, resident=None):
        self.at = time.perf_counter_ns()

    def pause(self):
        took = time.perf_counter_ns() - self.at
        if self.there:
            self.acted += took
        else:
            self.ns[-1] += took

    def arrive(self):
        """Ends an operator as soon as the program comes to the next point."""
        self.pause()
        self.there = True
        self.resume()

    def end(self, fresh=0):
        if not self.there:
            self.arrive()

    def remade(self, operators, ns):
        """Notes what it took to rerun some operators."""
        self.reruns.append(ns // operators)


class Launches(object):
    """What a program takes, by steps that were measured: the least of each operator's, as others were held up."""

    RERUN = 60000  # nanoseconds to rerun an operator, where none was

    def __init__(self, paces=()):
        self.ns = [min(ns) for ns in zip(*(p.ns for p in paces))]
        self.ns[-1:] = [0] if self.ns else []  # that lasts until the next step
        self.acted = min([p.acted for p in paces] or [0])
        reruns = [ns for p in paces for ns in p.reruns]
        self.rerun = statistics.median_low(reruns) if reruns else self.RERUN

    def lasting(self, ns):
        """Returns how long operators keep the device, of those that take it so long: it waits for those that are not launched yet."""
        launched = done = 0
        lasting = []
        for took, launch in zip(ns, self.ns or [0] * len(ns)):
            launched += launch
            before, done = done, max(done + took, launched)
            lasting.append(done - before)
        return lasting

    def shown(self, ns):
        """Returns the share of what a schedule does that the device waits for: all, but for what the program is ahead of it without a schedule."""
        ahead = sum(ns[:-1]) - sum(self.ns)
        return max(0.0, 1 - max(0, ahead) / (self.acted or sum(self.ns) / 4 or 1))

    def allow(self, ns, recompute, recipes):
        """Returns what a schedule is to count on in place of what operators take the device, and of what recomputing entries does, by their recipes. Beside what is
        rerun something is done when an entry is saved, and when it is there again."""
        rerun = self.rerun * self.shown(ns) if self.ns else 0
        least = [int(rerun * (len(recipe.chain.made) + 2)) if recipe is not None else 0 for recipe in recipes]
        return self.lasting(ns), [max(took, launch) if took else 0 for took, launch in zip(recompute, least)]
