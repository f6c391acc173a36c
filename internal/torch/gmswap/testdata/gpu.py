"""What the programs on the stand-in for PyTorch share. They print what comes out of each step, so that it can be compared with what comes
out where there is no hook.

    HOW    how schedules are made: by hand, as plans.Planner has it, or auto, by libgm.so
    FACTS  file for what the hook did, as JSON
    EVICT  a number: what can be is evicted at random when memory is requested; it says when and what
"""

import atexit
import gc
import hashlib
import json
import os
import random
import sys

import torch
from torch import nn, ops

SMALLEST = 16 << 10
STEPS = 12
runtimes = []
peaks = []  # of steps, by programs that measure them


def hook():
    """Returns the hook, None where there is none."""
    return sys.modules.get("gmswap_hook")


def prepare():
    """Has the hook move small tensors, by schedules that are made by hand."""
    if hook() is None:
        return
    from gmswap_hook import library, parting, planner, settings, start
    from plans import Planner

    complete, begin, how = settings.Settings.complete, start.Late.start, os.environ.get("HOW", "auto")

    def small(self, *args):
        complete(self, *args)
        self.smallest, self.window = SMALLEST, 1 << 18
        if how == "rows":
            self.policy = "memo"

    def started(self, device):
        runtime = begin(self, device)
        if not runtime.moves:
            return runtime
        runtime.planned = Planner(how)
        runtimes.append(runtime)
        if "EVICT" in os.environ:
            evict(runtime, random.Random(int(os.environ["EVICT"])))
        if how != "auto":
            library.Library.plan = lambda self, request: runtime.planned.plan(request)
        return runtime

    settings.Settings.complete, start.Late.start = small, started
    planner.Planning.come = come_late(int(os.environ.get("LATE", "0")))
    if "REMADE" in os.environ:
        note_remade(parting, os.environ["REMADE"])


def come_late(late):
    """Returns what has schedules come when it was looked for them so often before."""

    def come(self, seconds):
        self.looks = getattr(self, "looks", 0) + 1
        if self.looks <= late:
            return False
        self.thread.join()
        return True

    return come


def note_remade(parting, name):
    """Has what steps without a schedule saved be recomputed, however long that takes here, and notes each time in a file."""
    parting.LINK, real = float("inf"), parting.Remake

    def remake(recipe, entries, entry, proven):
        with open(name, "a") as f:
            f.write("%d\n" % entry.nbytes)
        return real(recipe, entries, entry, proven)

    parting.Remake = remake


def evict(runtime, draws):
    """Has requests for memory evict some of what is saved, as those do that find no room."""
    gm = torch._driver.gm
    malloc = gm.gm_try_malloc

    def evicting(*request):
        if draws.random() < 0.2 and os.getpid() == runtime.memory.pid:
            with runtime.memory:
                entries = list(runtime.relief.candidates())
                for e in draws.sample(entries, min(len(entries), draws.randint(1, 4))):
                    e.evict()
        return malloc(*request)

    gm.gm_try_malloc = evicting


prepare()


def cuda(*size, byte=0, index=0):
    return torch.full(size, byte, device=torch.device("cuda", index))


def weight(byte, rows=4, index=0):
    return nn.Parameter(cuda(rows, 256, byte=byte, index=index))


class Block(nn.Module):
    def __init__(self, seed, index=0):
        super().__init__()
        self.up, self.gate, self.down = (weight(seed + i, index=index) for i in range(3))

    def forward(self, x):
        h = ops.silu(ops.linear(x, self.up)) * ops.sigmoid(ops.linear(x, self.gate))
        return x + ops.linear(h, self.down)


class Net(nn.Module):
    def __init__(self, blocks=3):
        super().__init__()
        self.blocks = [Block(10 * i) for i in range(blocks)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def batch(step, rows=64):
    return cuda(rows, 256, byte=step)


def digest(*tensors):
    return hashlib.sha256(b"".join(b"-" if t is None else t.read() for t in tensors)).hexdigest()[:12]


def update(model, loss, *more):
    """Ends a step: says what came out, changes the parameters, and forgets the gradients."""
    parameters = list(model.parameters())
    print(digest(loss, *(p.grad for p in parameters)), *more)
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                ops.add_(p, p.grad)
            p.grad = None


def train(model, step, rows=64):
    loss = ops.loss(model(batch(step, rows)))
    loss.backward()
    update(model, loss)


def finish():
    """Checks that everything has been freed, once the program has let go of its tensors, and notes what was done."""
    gc.collect()
    for r in runtimes:
        atexit.unregister(r.report.end)
        r.report.end()
        r.memory.samples.tables.clear()
    if torch.cuda.memory_allocated():
        sys.exit("%d bytes of the device are left" % torch.cuda.memory_allocated())
    from torch import _driver

    facts = {"served": bool(runtimes), "devices": [r.lanes.stats().copies_out for r in runtimes],
             "ways": runtimes[0].report.ways if runtimes else {}}
    for r in runtimes:
        if r.memory.entries or r.memory.lost or r.memory.dropped:
            sys.exit("entries %s, lost %d" % (r.memory.entries, len(r.memory.lost)))
        if r.lanes.stats().host_bytes:
            sys.exit("%d bytes of the host are left" % r.lanes.stats().host_bytes)
    if runtimes:
        r, stats = runtimes[0], runtimes[0].lanes.stats()
        facts.update(out=stats.copies_out, back=stats.copies_in, steps=r.steps + 1, declined=r.declined, planned=r.planned.made,
                     remade=r.planned.remade, followed=r.schedule.followed if r.schedule else 0, deviated=r.deviated,
                     peak=peaks[-1] if peaks else 0, foreseen=r.schedule.largest.peak if r.schedule else 0)
    for r in runtimes:
        r.lanes.lib.gm_swap_close(r.memory.device)
    _driver.gm.gm_reset()
    if os.environ.get("FACTS"):
        with open(os.environ["FACTS"], "w") as f:
            json.dump(facts, f)
