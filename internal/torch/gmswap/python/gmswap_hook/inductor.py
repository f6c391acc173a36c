"""The order of operators in what torch.compile makes: gm's is tried after Inductor's own methods, and the least peak wins."""

import atexit
import functools
import inspect
import json
import os
import sys
import time

from . import say
from .library import Library
from .scheduler import Problem

MODULE = "torch._inductor.memory"
MIB = float(1 << 20)
LEAST = 0.01  # of the peak that an order saves: the model knows nothing of workspaces, so less may be more in truth


def wanted(environ):
    return environ.get("GMSWAP_ORDER", "") == "1"


def watch(memory, environ):
    """Wraps reorder_for_peak_memory of Inductor's module, if it is as expected."""
    real = getattr(memory, "reorder_for_peak_memory", None)
    if real is None or not hasattr(memory, "estimate_peak_memory"):
        say.once("order: this PyTorch's Inductor does not order nodes by memory: nothing is reordered")
        return
    orders = Orders(memory, environ["GM_LIB"])

    @functools.wraps(real)
    def reorder_for_peak_memory(*args, **kwargs):
        own = real(*args, **kwargs)
        return orders.better(own, inspect.signature(real), args, kwargs)

    memory.reorder_for_peak_memory = reorder_for_peak_memory


class Orders(object):
    def __init__(self, memory, path):
        self.memory, self.path = memory, path
        self.library = None
        self.peaks = []  # of each graph: in Inductor's order, in the one that it got, and a bound of every order's
        self.seconds = 0.0
        self.pid = os.getpid()
        atexit.register(self.end)

    def better(self, own, signature, args, kwargs):
        """Returns the planner's order of nodes, or Inductor's own where that is as good or anything fails."""
        start = time.monotonic()
        try:
            return self.choose(own, signature.bind(*args, **kwargs).arguments["graph_outputs"])
        except Exception as e:
            say.once("order: Inductor's order stays: %s: %s" % (type(e).__name__, say.reason(e)))
            return own
        finally:
            self.seconds += time.monotonic() - start

    def choose(self, own, outputs):
        own = list(own)
        if not own:
            return own
        problem = Problem(own, outputs)
        before = range(problem.end + 1)
        answer = self.ask(problem.request(limit()))
        nodes = [own[i - 1] for i in answer["order"] if 0 < i < problem.end]
        peaks = problem.peak(before), problem.peak(answer["order"])
        estimates = [self.memory.estimate_peak_memory(order, problem.inputs, outputs)[0] for order in (own, nodes)]
        if estimates[0] - peaks[0] != estimates[1] - peaks[1]:
            raise ValueError("Inductor estimates %d and %d bytes, and not %d and %d" % (*estimates, *peaks))
        better = peaks[1] < peaks[0] * (1 - LEAST)
        self.peaks.append((peaks[0], peaks[better], answer["bound"]))
        return nodes if better else own

    def ask(self, request):
        if self.library is None:
            self.library = Library(self.path)
        return json.loads(self.library.order(json.dumps(request).encode()))

    def end(self):
        """Says at the end of the process what was reordered."""
        if os.getpid() != self.pid or not self.peaks:
            return
        own, made, bound = (max(peaks) / MIB for peaks in zip(*self.peaks))
        say.line("order: %d of %d compiled graphs run in gm's order; the highest of their peaks is %.1f MiB, in Inductor's order %.1f MiB, "
                 "in every order at least %.1f MiB; %.2f s" % (sum(p[1] < p[0] for p in self.peaks), len(self.peaks), made, own, bound, self.seconds))


def limit():
    """Returns how many seconds a search may take: a tenth of the time that the graph is being compiled."""
    graph = sys.modules["torch._inductor.virtualized"].V.graph
    spent = time.time() - getattr(graph, "creation_time", time.time())
    return min(max(spent / 10, 0.05), 1)
