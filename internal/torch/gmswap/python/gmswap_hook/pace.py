"""How long a program takes to launch its operators, and to do what a schedule has it do: a device that is faster waits for that."""

import collections
import statistics
import time

KINDS = OFFLOAD, FREE, PREFETCH, AWAIT, RECOMPUTE, SETTLE = range(6)  # of actions


class Pace(object):
    """Measures that in a step: from one point to the next, and at the points. What is done about tensors is no part of the first. A program that is far ahead of
    the device would have to wait in the middle of an operator, so it does so at the points."""

    AHEAD, NEAR = 128, 32  # points by which it is ahead at most, and after a wait: one that has just waited is slower for a while, so waits are few

    def __init__(self, memory):
        self.memory, self.marks = memory, collections.deque()
        self.ns = []  # of the operators
        self.points = self.acted = 0  # how many there were, and nanoseconds at them
        self.handled = {}  # by kinds of actions, nanoseconds of each
        self.reruns = []  # nanoseconds for each operator that was rerun
        self.done = 0  # nanoseconds of all these
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
            while len(self.marks) > self.NEAR:
                mark = self.marks.popleft()
            self.memory.reach(mark)

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
        self.points += 1
        self.there = True
        self.resume()

    def end(self, fresh=0):
        if not self.there:
            self.arrive()

    def handle(self, kind, ns):
        """Notes what an action took."""
        self.handled.setdefault(kind, []).append(ns)
        self.done += ns

    def remade(self, operators, ns):
        """Notes what it took to rerun some operators."""
        self.reruns.append(ns // operators)
        self.done += ns

    def looks(self):
        """Returns what it took on average to see how the step goes at a point."""
        return max(0, self.acted - self.done) // max(1, self.points)


class Launches(object):
    """What a program takes, by steps that were measured: the least of each operator's, as others were held up."""

    RERUN = 60000  # nanoseconds to rerun an operator, where none was
    HANDLING = 40000  # and for an action, where there was none of its kind

    def __init__(self, paces=()):
        self.ns = [min(ns) for ns in zip(*(p.ns for p in paces))]
        self.ns[-1:] = [0] if self.ns else []  # that lasts until the next step
        self.looks = min([p.looks() for p in paces] or [0])
        self.rerun = middle([ns for p in paces for ns in p.reruns], self.RERUN)
        self.handling = [middle([ns for p in paces for ns in p.handled.get(kind, ())], self.HANDLING) for kind in KINDS]

    def lasting(self, ns):
        """Returns how long operators keep the device, of those that take it so long: it waits for those that are not launched yet."""
        launched = done = 0
        lasting = []
        for took, launch in zip(ns, self.ns or [0] * len(ns)):
            launched += launch
            before, done = done, max(done + took, launched)
            lasting.append(done - before)
        return lasting

    def told(self, graph, recipes):
        """Returns a graph with what the program takes for operators and actions, and to recompute entries by their recipes. What is moved or recomputed is looked at where
        it is saved and where it is needed, and of what is recomputed some words are compared beside that."""
        if not self.ns:
            return graph
        handling = list(self.handling)
        handling[RECOMPUTE] = 0  # that is the tensor's
        for kind in OFFLOAD, PREFETCH:
            handling[kind] += self.looks
        ops = [dict(op, launch_ns=ns) for op, ns in zip(graph["ops"], self.ns)]
        tensors = [t if recipe is None else dict(t, relaunch_ns=self.rerun * (len(recipe.chain.made) + 2) + 2 * self.looks) for t, recipe in zip(graph["tensors"], recipes)]
        return dict(graph, ops=ops, tensors=tensors, handling=handling)


def middle(ns, otherwise):
    return statistics.median_low(ns) if ns else otherwise
