"""Checks stores of objects (docs/server.md) on a machine with an NVIDIA GPU and PyTorch.

Usage: store.py BIN OUT [PART...] [--gb N]

BIN holds gmswap, libgm.so and store (make all bin/store); the module gm is that of packaging/python. The parts:

    calls   create and free, and get of what is there, beside cuMemAlloc and cuMemFree
    evict   create where an object of the same process has to leave
    others  the same where the object is of another process: Ravenstore's table 2
    peer    the same as evict where they go to a second GPU: on two GPUs alone
    job     a job of gmstitch run gets the room that a store has
    train   activations of PyTorch in a store of less than half of them: results, time, each policy

OUT gets store.csv and store.log. The exit status is 1 where a check did not hold. A part that fails does not end the others.
"""

import argparse
import csv
import os
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(HERE, "..", "..", "packaging", "python")
EVICT = {16000000: 600, 32000000: 1000}  # microseconds; Ravenstore has 6,485 and 9,280


class Run:
    """What is measured, and the processes that were started."""

    def __init__(self, o):
        self.o, self.rows, self.started, self.log = o, [], [], open(os.path.join(o.out, "store.log"), "a")
        self.env = dict(os.environ, GM_SERVER=os.path.join(o.out, "socket"), GM_LIBRARY=os.path.join(o.bin, "libgm.so"), PYTHONPATH=MODULE,
                        STORE_LIBGM=os.path.join(o.bin, "libgm.so"))

    def row(self, what, value, goal="", good=None):
        self.rows.append([self.part, what, value, goal, "" if good is None else "yes" if good else "NO"])
        print("%-7s %-60s %-28s %-12s %s" % tuple(self.rows[-1]), flush=True)

    def most(self, what, value, goal, form="%.3f"):
        self.row(what, form % value, "<= " + form % goal, value <= goal)

    def start(self, *words):
        p = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=self.env, text=True)
        self.started.append(p)
        return p

    def store(self, *words):
        """The lines of bin/store: mean, median, 99th of 100 and most, by name."""
        p = self.start(os.path.join(self.o.bin, "store"), *words)
        timer = threading.Timer(90, p.kill)
        timer.start()
        text = p.communicate()[0]
        timer.cancel()
        if p.returncode:
            raise RuntimeError("store %s: exit %d; see store.log" % (" ".join(map(str, words)), p.returncode))
        return {line.split()[0]: [float(n) for n in line.split()[1:]] for line in text.splitlines()}

    def serve(self):
        p = self.start(os.path.join(self.o.bin, "gmswap"), "serve")
        until(lambda: subprocess.run([os.path.join(self.o.bin, "gmswap"), "ctl", "list"], env=self.env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL).returncode == 0, 10)
        return p

    def end(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
        self.started = []


def until(f, seconds):
    end = time.monotonic() + seconds
    while not f():
        if time.monotonic() > end:
            raise RuntimeError("waited %d s in vain" % seconds)
        time.sleep(0.005)


def free():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "-i", "0"], stdout=subprocess.PIPE, text=True, timeout=20)
    return float(out.stdout.split()[0]) * 2**20 / 1e9


def say(line):
    return "mean %.2f, p99 %.2f, most %.0f" % (line[0], line[2], line[3])


def calls(run):
    lines = run.store("calls")
    for size in ("128", "16000000", "32000000"):
        driver, store, get = (lines[name + "-" + size] for name in ("driver", "store", "get"))
        run.row("%s bytes: cuMemAlloc and cuMemFree, us, median" % size, "%.2f" % driver[1])
        run.most("%s bytes: create and free, us, median" % size, store[1], 0.2 * driver[1], "%.2f")
        run.row("%s bytes: create and free, us" % size, say(store))
        run.most("%s bytes: get of what is there, us, median" % size, get[1], 1, "%.2f")
        run.row("%s bytes: get of what is there, us" % size, say(get))


def peer(run):
    lines = run.store("peer")
    for turn in range(3):
        (whole, out), (back,) = (lines["%s-%d" % (name, turn)] for name in ("spill", "return"))
        run.row("20 GB go to another GPU at once, GB/s", "%.0f" % out, ">= 300", out >= 300)
        run.row("the same with the create that they go for, GB/s", "%.0f" % whole)
        run.row("and come back, GB/s", "%.0f" % back)
    evicted(run, lines)


def evict(run):
    evicted(run, run.store("evict"))


def evicted(run, lines):
    for size, goal in EVICT.items():
        line = lines["evict-%d" % size]
        run.most("create that evicts %d bytes, us, median" % size, line[1], goal, "%.0f")
        run.row("create that evicts %d bytes, us" % size, say(line))
        for how in ("read", "written"):
            run.row("%d bytes: all come back in turn, %s, GB/s of them" % (size, how), "%.1f" % lines["%s-%d" % (how, size)][0])


def others(run):
    for size, goal in EVICT.items():
        server = run.serve()
        holder = run.start(os.path.join(run.o.bin, "store"), "hold", free() - 2.5, size)
        holder.stdout.readline()
        time.sleep(1)
        line = run.store("take", size, 1000)["take-%d" % size]
        run.most("create that evicts %d bytes of another process, us, median" % size, line[1], goal, "%.0f")
        run.row("create that evicts %d bytes of another process, us" % size, say(line))
        holder.communicate(timeout=30)
        server.terminate()
        server.wait(10)


def job(run):
    server = run.serve()
    gb = free() * 0.7
    holder = run.start(os.path.join(run.o.bin, "store"), "hold", gb, 256000000)
    holder.stdout.readline()
    program = "import torch, time; t = time.time(); x = torch.ones(int(%.3fe9), dtype=torch.uint8, device='cuda'); torch.cuda.synchronize(); " \
              "print(time.time() - t, int(x[::999983].sum()) == len(x[::999983]))" % gb
    p = run.start(os.path.join(run.o.bin, "gmstitch"), "run", "--server", "--name", "job", "--", sys.executable, "-c", program)
    out = p.communicate(timeout=90)[0].split()
    run.row("a job asks for %.0f GB where a store has as much" % gb, "right in %.2f s" % float(out[0]) if out else "it failed", "right", "True" in out)
    listed = subprocess.run([os.path.join(run.o.bin, "gmswap"), "ctl", "list"], env=run.env, stdout=subprocess.PIPE, text=True).stdout
    run.log.write(listed)
    holder.communicate(timeout=30)
    server.terminate()
    server.wait(10)


def train(run):
    for policy in ("plain", "latency", "lru", "fifo"):
        p = run.start(sys.executable, os.path.abspath(__file__), "--act", policy, str(run.o.gb))
        out = p.communicate(timeout=120)[0].split()
        if p.returncode or len(out) < 3:
            raise RuntimeError("%s: exit %s; see store.log" % (policy, p.returncode))
        if policy == "plain":
            want = out[0]
            run.row("%.0f GB of activations on the card: a step, s" % run.o.gb, out[1])
            continue
        run.row("policy %s, in 40 %% of that: results" % policy, "the same" if out[0] == want else "others", "the same", out[0] == want)
        run.row("policy %s: a step, s; misses of the gets" % policy, out[1] + "; " + out[2])


def act(policy, gb):
    """Steps of a chain whose activations are put forward and got backward. Prints a digest, seconds a step, and misses."""
    import ctypes

    import torch

    n, each = 64, int(gb * 1e9) // 64 // 4096 // 2
    torch.manual_seed(1)
    weights = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) * 4096**-0.5 for _ in range(n)]
    x0 = torch.randn(each, 4096, device="cuda", dtype=torch.bfloat16)
    store = None
    if policy != "plain":
        ctypes.CDLL(os.environ["STORE_LIBGM"])
        import gm
        store = gm.Store(limit=int(gb * 0.4e9), host=int(gb * 1.2e9), policy=policy, server="")
    seconds, stats = [], {"misses": 0, "gets": 0}
    for _ in range(6):
        torch.cuda.synchronize()
        began = time.perf_counter()
        saved, x = [], x0
        for i, w in enumerate(weights):
            x = torch.tanh(x @ w)
            saved.append(store.put(x, next=2 * n - i) if store else x)
        total, grads = x.float().mean(), []
        g = torch.ones_like(x)
        del x
        for i in reversed(range(n)):
            y = saved[i].get(write=False) if store else saved[i]
            g = (g * (1 - y * y)) @ weights[i].t()
            grads.append(g.float().mean())
            del y
            if store:
                saved[i].put()
                saved[i].free()
            saved[i] = None
        digest = torch.stack([total, *grads]).double().sum().item().hex()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    if store:
        stats = store.stats()
        store.close()
    print(digest, "%.3f" % sorted(seconds[1:])[len(seconds) // 2 - 1], "%d/%d" % (stats["misses"], stats["gets"]))


PARTS = {"calls": calls, "evict": evict, "peer": peer, "others": others, "job": job, "train": train}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("out")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--gb", type=float, default=20)
    o = parser.parse_args()
    o.bin, o.out = os.path.abspath(o.bin), os.path.abspath(o.out)
    if set(o.parts) - set(PARTS):
        parser.error("no part is called %s" % ", ".join(set(o.parts) - set(PARTS)))
    run = Run(o)
    for name in o.parts or [name for name in PARTS if name != "peer"]:
        run.part = name
        try:
            PARTS[name](run)
        except Exception as e:  # the next part may be well
            traceback.print_exc(file=run.log)
            run.row("the part ends well", str(e), "", False)
        run.end()
    run.log.close()
    with open(os.path.join(o.out, "store.csv"), "w", newline="", encoding="utf-8") as f:
        csv.writer(f, lineterminator="\n").writerows([["part", "what", "value", "goal", "good"], *run.rows])
    print(open(os.path.join(o.out, "store.log")).read()[-3000:])
    return int(any(row[-1] == "NO" for row in run.rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--act"]:
        act(sys.argv[2], float(sys.argv[3]))
    else:
        sys.exit(main())
