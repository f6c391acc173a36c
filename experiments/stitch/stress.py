"""Takes and frees tensors of random shapes on three streams a GPU, and looks whether their contents stay and nothing is left behind.

Usage: stress.py [--steps N] [--seed N] [--live GB] [--gpus N]

A tensor holds a pattern of its own, which is looked at on the GPU, in the order of a stream, just before the tensor is freed: on the
stream that made it, or on another, which is kept busy first, after record_stream; on another GPU, to which it is copied. Every 50 steps
more is asked for than there is, now and then the cache is emptied. A line for each check: name | expected | got | ok. The exit status is 1 where one did not hold.
"""

import argparse
import math
import random
import sys

import torch

import memory

SMALLEST, LARGEST = 256, 1 << 30  # bytes
SLACK = 64 << 20  # by so much may the driver's view differ: it loads code when that is first used


def pattern(elements, key, out=None):
    out = torch.arange(elements, dtype=torch.int32, device="cuda", out=out)
    return out.mul_(2 * key + 1).add_(key)


class Held:
    """A tensor on a stream, with its pattern."""

    def __init__(self, rng, stream, key):
        self.stream, self.key = stream, key
        elements = int(math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST)))) // 4
        columns = rng.randrange(1, 4097)
        with torch.cuda.stream(stream):
            self.tensor = torch.empty((max(1, elements // columns), columns), dtype=torch.int32, device="cuda")
            pattern(self.tensor.numel(), key, self.tensor.view(-1))
        self.bytes = self.tensor.numel() * 4

    def check(self, stream, wrong, busy):
        """Adds to wrong how many elements are not as they were, as soon as the stream comes to it."""
        if stream.device != self.stream.device:
            return self.check_copy(stream, wrong)
        if stream != self.stream:
            stream.wait_stream(self.stream)
            self.tensor.record_stream(stream)
        with torch.cuda.stream(stream):
            torch.cuda._sleep(busy)
            wrong.add_((self.tensor.view(-1) != pattern(self.tensor.numel(), self.key)).sum())

    def check_copy(self, stream, wrong):
        """Does so with a copy on the GPU of a stream. The copy is work of the tensor's own stream."""
        with torch.cuda.stream(self.stream), torch.cuda.stream(stream):
            there = self.tensor.to(stream.device, non_blocking=True)
            wrong.add_((there.view(-1) != pattern(there.numel(), self.key)).sum())


class Stress:
    def __init__(self, seed, live, gpus):
        self.rng, self.limit, self.gpus = random.Random(seed), live, range(gpus)
        self.streams = [s for i in self.gpus for s in (torch.cuda.current_stream(i), torch.cuda.Stream(i), torch.cuda.Stream(i))]
        self.wrong = [torch.zeros((), dtype=torch.int64, device=s.device) for s in self.streams]
        synchronize(self.gpus)
        self.held, self.bytes, self.made, self.ooms, self.odd = [], 0, 0, 0, []

    def step(self):
        for _ in range(self.rng.randrange(1, 9)):
            if self.held and (self.bytes > self.limit or self.rng.random() < 0.45):
                self.free(self.held.pop(self.rng.randrange(len(self.held))))
            else:
                self.made += 1
                h = Held(self.rng, self.rng.choice(self.streams), self.made)
                self.held.append(h)
                self.bytes += h.bytes

    def free(self, h):
        elsewhere = self.rng.random() < 0.4
        i = self.rng.randrange(len(self.streams)) if elsewhere else self.streams.index(h.stream)
        h.check(self.streams[i], self.wrong[i], self.rng.randrange(1_000, 2_000_000) if elsewhere else 1_000)
        self.bytes -= h.bytes

    def too_much(self, total):
        """Asks for more than there is."""
        try:
            torch.empty(total, dtype=torch.uint8, device=self.rng.choice(self.gpus))
            self.odd.append("%d bytes were there" % total)
        except RuntimeError as e:
            self.ooms += 1
            if not isinstance(e, torch.OutOfMemoryError) and not str(e).startswith("CUDA out of memory"):
                self.odd.append("%s: %s" % (type(e).__name__, str(e).splitlines()[0]))

    def end(self):
        while self.held:
            self.free(self.held.pop(self.rng.randrange(len(self.held))))
        synchronize(self.gpus)
        wrong = sum(int(w) for w in self.wrong)
        self.wrong = []
        return wrong


def synchronize(gpus):
    for i in gpus:
        torch.cuda.synchronize(i)


def of_all(gpus, count):
    return sum(count(i) for i in gpus)


class View:
    """The driver's view of what the allocator holds, from now on."""

    def __init__(self, gpus):
        self.gpus, self.worst = range(gpus), 0
        self.used, self.reserved = of_all(self.gpus, memory.driver_used), of_all(self.gpus, torch.cuda.memory_reserved)

    def differs(self):
        """Returns by how many bytes the two views differ."""
        synchronize(self.gpus)
        used, reserved = of_all(self.gpus, memory.driver_used), of_all(self.gpus, torch.cuda.memory_reserved)
        off = abs((used - self.used) - (reserved - self.reserved))
        self.worst = max(self.worst, off)
        return off


def say(name, expected, got, ok):
    print("%s | %s | %s | %s" % (name, expected, str(got).replace("|", "/").replace("\n", " "), "ok" if ok else "NO"), flush=True)
    return ok


def run(steps, seed, live, gpus):
    total = torch.cuda.mem_get_info()[1]
    warm = Stress(seed, live, gpus)  # loads the code of all kernels that are used
    for _ in range(5):
        warm.step()
    warm.end()
    torch.cuda.empty_cache()
    view, stress = View(gpus), Stress(seed, live, gpus)
    for i in range(1, steps + 1):
        stress.step()
        if i % 50 == 0:
            stress.too_much(total)
            view.differs()
            print("step %d: %d tensors, %.2f GB; reserved %.2f GB" % (
                i, len(stress.held), stress.bytes / 1e9, of_all(stress.gpus, torch.cuda.memory_reserved) / 1e9), flush=True)
        if stress.rng.random() < 0.03:
            torch.cuda.empty_cache()
    return stress, view


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--live", type=float, default=20, help="GB")
    p.add_argument("--gpus", type=int, default=1)
    a = p.parse_args()
    torch.cuda.init()
    stress, view = run(a.steps, a.seed, a.live * 1e9, a.gpus)
    peak = of_all(stress.gpus, torch.cuda.max_memory_allocated) / max(1, of_all(stress.gpus, torch.cuda.max_memory_reserved))
    wrong, ooms = stress.end(), a.steps // 50
    torch.cuda.empty_cache()
    left, reserved = of_all(stress.gpus, torch.cuda.memory_allocated), of_all(stress.gpus, torch.cuda.memory_reserved)
    ok = [
        say("contents of %d tensors" % stress.made, "0 elements differ", wrong, wrong == 0),
        say("lacks of memory", "%d, caught" % ooms, "%d %s" % (stress.ooms, stress.odd[:2]), stress.ooms == ooms and not stress.odd),
        say("allocated at the end", 0, left, left == 0),
        say("reserved at the end", 0, reserved, reserved == 0),
        say("the driver's view at the end", "0, within 64 MiB", view.differs(), view.differs() <= SLACK),
        say("the driver's view on the way", "as reserved, within 64 MiB", view.worst, view.worst <= SLACK),
        say("utilisation", "for information", "%.4f" % peak, True),
    ]
    sys.exit(0 if all(ok) else 1)


if __name__ == "__main__":
    main()
