"""Checks gmswap serve on a machine with an NVIDIA GPU and PyTorch.

Usage: h200.py BIN OUT [PART...] [--gb N] [--cycles N] [--turns-gb N] [--passes N]

BIN holds gmswap, gmstitch, libgmgate.so and launch (make all bin/launch). The parts, each in a process of its own:

    gate    what the gate adds to a launch                    train   a training loop, put to sleep five times: losses to the bit
    sleep   50 GB to the host and back: time, bits, a graph,  kill    SIGKILL of a job, and of the server while a job sleeps
            what is left on the card, cycles                  turns   two jobs that together exceed the card
    plain   torch_memory_saver's way: pin, copy, free         links   50 GB over the links of two GPUs: on two alone

OUT gets server.csv and server.log; what is there is added to. The exit status is 1 where a check did not hold. A part that fails does not end
the others.
"""

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "job.py")
LIMITS = {"gate": 40, "sleep": 110, "train": 80, "kill": 60, "plain": 90, "turns": 150, "links": 130}  # seconds


class Part:
    """What a part measures, and the processes that it starts."""

    def __init__(self, o, name):
        self.o, self.name, self.log = o, name, open(os.path.join(o.out, "server.log"), "a")
        self.env = dict(os.environ, GM_SERVER=os.path.join(o.out, "socket-" + name))
        self.started = []

    def row(self, what, value, goal="", good=None):
        print("ROW\t%s\t%s\t%s\t%s\t%s" % (self.name, what, value, goal, "" if good is None else "yes" if good else "NO"), flush=True)

    def most(self, what, value, goal, form="%.3f"):
        self.row(what, form % value, "<= " + form % goal, value <= goal)

    def start(self, *words, **more):
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=self.env, text=True, bufsize=1, **more)
        self.started.append(p)
        return p

    def tool(self, name):
        return os.path.join(self.o.bin, name)

    def serve(self, *flags):
        p = self.start(self.tool("gmswap"), "serve", *flags)
        asks = [self.tool("gmswap"), "ctl", "list"]
        until(lambda: subprocess.run(asks, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0, 10)
        return p

    def job(self, name, *words, flags=()):
        return self.start(self.tool("gmstitch"), "run", "--server", "--name", name, *flags, "--", sys.executable, JOB, *words)

    def ctl(self, *words):
        """Runs gmswap ctl, and returns the seconds that the memory took."""
        done = subprocess.run([self.tool("gmswap"), "ctl", *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError("gmswap ctl %s: %s" % (" ".join(words), done.stdout))
        found = re.search(r"in ([0-9.]+) s", done.stdout)
        return float(found.group(1)) if found else 0.0

    def jobs(self):
        out = subprocess.run([self.tool("gmswap"), "ctl", "list", "--json"], env=self.env, stdout=subprocess.PIPE, text=True, timeout=20).stdout
        return json.loads(out or "[]")

    def end(self):
        for p in self.started:
            if p.poll() is None:
                p.terminate()
        for p in self.started:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()


def until(f, seconds):
    end = time.monotonic() + seconds
    while not f():
        if time.monotonic() > end:
            raise RuntimeError("waited %d s in vain" % seconds)
        time.sleep(0.005)


def expect(p, word):
    """Reads lines of a job up to one that begins with a word, and returns its other words."""
    for line in p.stdout:
        words = line.split()
        if words and words[0] == word:
            return words[1:]
    raise RuntimeError("the job ended before it said %r: see server.log" % word)


def ask(p, line, word):
    p.stdin.write(line + "\n")
    p.stdin.flush()
    return expect(p, word)


def used():
    """Memory of the first card that is in use, in GB."""
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], stdout=subprocess.PIPE, text=True, timeout=20)
    return float(out.stdout.split()[0]) * 2**20 / 1e9


def gate(part):
    least = {}
    for mode, preload in (("without", ""), ("with", part.tool("libgmgate.so")), ("without", ""), ("with", part.tool("libgmgate.so"))):
        out = subprocess.run([part.tool("launch")], env=dict(os.environ, LD_PRELOAD=preload), stdout=subprocess.PIPE, stderr=part.log, text=True,
                             timeout=30).stdout
        for line in out.splitlines():
            what, low, median = line.split()
            least[what, mode] = min(float(median), least.get((what, mode), 1e9))
    for what in ("launch", "refused"):
        part.row("%s, ns without gate" % what, "%.1f" % least[what, "without"])
        part.row("%s, ns with gate" % what, "%.1f" % least[what, "with"])
    part.most("gate, ns a call (of refused ones)", least["refused", "with"] - least["refused", "without"], 10, "%.1f")


def sleep(part):
    gb, before = part.o.gb, used()
    empty = part.start(sys.executable, "-c", "import torch; torch.zeros(1, device='cuda'); print('ready', flush=True); input()")
    expect(empty, "ready")
    part.row("a process of PyTorch with one number, GB", "%.3f" % (used() - before))
    empty.communicate("\n", timeout=30)
    until(lambda: used() - before < 0.1, 20)
    part.serve()
    small = part.job("small", "hold", "2")
    expect(small, "ready")
    part.ctl("sleep", "small")
    time.sleep(0.5)
    part.row("the same job with 2 GB leaves on the card, GB", "%.3f" % (used() - before))
    ask_quit(small)
    until(lambda: used() - before < 0.1, 20)
    job = part.job("hold", "hold", str(gb))
    part.row("graph before", *expect(job, "ready"))
    full = used()
    part.row("first sleep, s (pins %.0f GB)" % gb, "%.3f" % part.ctl("sleep", "hold"))
    time.sleep(0.5)
    part.most("left on the card, GB", used() - before, 0.65)
    part.row("on the card awake, GB", "%.2f" % (full - before))
    part.row("first wake, s", "%.3f" % part.ctl("wake", "hold"))
    answer = ask(job, "check", "same")[0]
    part.row("bits the same", answer, "True", answer == "True")
    answer = ask(job, "replay", "replayed")[0]
    part.row("graph replays", answer, "True", answer == "True")
    out, back, left = [], [], []
    for _ in range(part.o.cycles):
        out.append(part.ctl("sleep", "hold"))
        left.append(used() - before)
        back.append(part.ctl("wake", "hold"))
    out.sort(), back.sort()
    part.most("sleep, s (median of %d)" % len(out), out[len(out) // 2], 0.97 * gb / 50)
    part.most("wake, s (median of %d)" % len(back), back[len(back) // 2], 0.97 * gb / 50)
    part.row("least and most, s", "%.3f %.3f / %.3f %.3f" % (out[0], out[-1], back[0], back[-1]))
    part.most("growth of what is left, GB", max(left) - left[0], 0.0)
    part.ctl("sleep", "hold")
    right, seconds = ask(job, "replay", "replayed")
    part.row("a graph launch wakes the job, s", "%.3f" % float(seconds), "right", right == "True")
    for line, word in (("copy", "copied"), ("fill", "filled")):
        part.ctl("sleep", "hold")
        answer = ask(job, line, word)[0]
        part.row("a %s alone wakes the job" % line, answer, "True", answer == "True")
    answer = ask(job, "check", "same")[0]
    part.row("bits the same after all", answer, "True", answer == "True")
    ask_quit(job)


def ask_quit(job):
    job.stdin.write("quit\n")
    job.stdin.flush()
    job.wait(30)


def train(part):
    steps = 120
    plain = part.start(part.tool("gmstitch"), "run", "--", sys.executable, JOB, "train", str(steps))
    want = [expect(plain, "loss") for _ in range(steps)]
    part.serve()
    job = part.job("train", "train", str(steps))
    got, slept = [], 0
    for step in range(steps):
        got.append(expect(job, "loss"))
        if step % 20 == 15 and slept < 5:
            part.ctl("sleep", "--hold", "train")
            time.sleep(0.3)
            part.ctl("wake", "train")
            slept += 1
    part.row("times slept while it trains", slept, "5", slept == 5)
    part.row("losses equal to the bit", sum(a == b for a, b in zip(want, got)), steps, want == got)


def free_after_kill(part, before, what):
    """Kills the job, and measures when its memory is free."""
    os.kill([j["pid"] for j in part.jobs() if j["name"] == "hold"][0], signal.SIGKILL)
    began = time.monotonic()
    until(lambda: used() - before < 1, 20)
    part.most("%s is killed: its memory is free, s" % what, time.monotonic() - began, 0.5)
    until(lambda: not part.jobs(), 20)
    part.row("and is gone from the list after, s", "%.2f" % (time.monotonic() - began))


def kill(part):
    before = used()
    server = part.serve()
    job = part.job("hold", "hold", "40")
    expect(job, "ready")
    until(lambda: part.jobs(), 10)
    free_after_kill(part, before, "a job that never slept")
    job = part.job("hold", "hold", "40")
    expect(job, "ready")
    part.ctl("sleep", "--hold", "hold")
    server.kill()
    server.wait(10)
    right, seconds = ask(job, "replay", "replayed")
    part.row("the server is killed: the job wakes by itself, s", "%.2f" % float(seconds), "right", right == "True")
    answer = ask(job, "check", "same")[0]
    part.row("bits the same", answer, "True", answer == "True")
    part.serve()
    until(lambda: any(j["name"] == "hold" for j in part.jobs()), 10)
    part.row("it connects to the next server", "yes", "yes", True)
    free_after_kill(part, before, "a job that has pinned 40 GB")


def plain(part):
    job = part.start(sys.executable, JOB, "plain", str(part.o.gb))
    for n in ("first", "second"):
        out, back = expect(job, "plain")
        part.row("%s pause and resume, s" % n, "%.2f / %.2f" % (float(out), float(back)))
    answer = expect(job, "same")[0]
    part.row("bits the same", answer, "True", answer == "True")


def turns(part):
    seconds = [alone(part, gb) for gb in (2, part.o.turns_gb, part.o.turns_gb)][1:]  # the first run makes what PyTorch's classes ask for
    part.row("two jobs of %.0f GB alone, one after the other, with the import of torch, s" % part.o.turns_gb, "%.1f + %.1f" % tuple(seconds))
    for quantum in ("30s", "6s"):
        server = part.serve("--quantum", quantum)
        both(part, quantum, sum(seconds))
        server.terminate()
        server.wait(10)


def alone(part, gb):
    """Returns the seconds from the start of a job of gb GB, with no other and no server, to the end of its passes."""
    began = time.time()
    job = part.start(part.tool("gmstitch"), "run", "--", sys.executable, JOB, "turns", str(gb), str(part.o.passes))
    expect(job, "ended")
    seconds = time.time() - began
    job.wait(60)
    return seconds


def both(part, quantum, seconds):
    """Runs two jobs that together exceed the card, and compares with the seconds of one after the other."""
    began, ends, right = time.time(), [], []

    def follow(job):
        try:
            expect(job, "ended")
            ends.append(time.time() - began)
            right.append(expect(job, "same")[0])
            job.wait(60)
        except RuntimeError as e:
            print(e, flush=True)

    jobs = [part.job(name, "turns", str(part.o.turns_gb), str(part.o.passes)) for name in ("one", "two")]
    threads = [threading.Thread(target=follow, args=(job,)) for job in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    part.row("quantum %s: both end, and all numbers are right" % quantum, " ".join(right), "True True", right == ["True", "True"])
    if len(ends) == 2:
        part.row("the first ends, the second ends, s", "%.1f, %.1f" % (min(ends), max(ends)))
        part.most("makespan, in parts of one after the other", max(ends) / seconds, 1.05)


def links(part):
    """Compares one link with two, in turns."""
    gb = part.o.gb
    part.serve()
    jobs = {"one": part.job("one", "hold", str(gb))}
    part.row("graph before", *expect(jobs["one"], "ready"))
    times = {"one": ([], []), "two": ([], [])}
    cycle(part, "one", times, 1)
    part.ctl("sleep", "one")
    jobs["two"] = part.job("two", "hold", str(gb), flags=("--links", "1"))
    part.row("graph before", *expect(jobs["two"], "ready"))
    for _ in range(4):
        part.ctl("sleep", "two")
        part.ctl("wake", "one")
        cycle(part, "one", times, 3)
        part.ctl("sleep", "one")
        part.ctl("wake", "two")
        cycle(part, "two", times, 3)
    for name, (out, back) in times.items():
        out.sort(), back.sort()
        part.row("links: %s; sleep and wake, s (medians of %d)" % (name, len(out)), "%.3f %.3f" % (out[len(out) // 2], back[len(back) // 2]))
    part.row("wake over two links, GB/s", "%.1f" % (gb / times["two"][1][len(back) // 2]), ">= 95", gb / times["two"][1][len(back) // 2] >= 95)
    for name, job in jobs.items():
        answer = ask(job, "check", "same")[0]
        part.row("bits the same, links: " + name, answer, "True", answer == "True")
        answer = ask(job, "replay", "replayed")[0]
        part.row("graph replays, links: " + name, answer, "True", answer == "True")
        part.ctl("sleep", name)


def cycle(part, name, times, n):
    for _ in range(n):
        times[name][0].append(part.ctl("sleep", name))
        times[name][1].append(part.ctl("wake", name))


PARTS = {"gate": gate, "sleep": sleep, "train": train, "kill": kill, "turns": turns, "plain": plain, "links": links}


def run(o, name):
    """Runs a part in a process of its own, and returns its rows."""
    words = [sys.executable, os.path.abspath(__file__), o.bin, o.out, name, "--within", "--gb", str(o.gb), "--cycles", str(o.cycles),
             "--turns-gb", str(o.turns_gb), "--passes", str(o.passes)]
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    timer = threading.Timer(LIMITS[name], lambda: os.killpg(p.pid, signal.SIGKILL))
    timer.start()
    rows, began = [], time.monotonic()
    for line in p.stdout:
        print(line, end="", flush=True)
        if line.startswith("ROW\t"):
            rows.append(line.rstrip("\n").split("\t")[1:])
    timer.cancel()
    if p.wait():
        rows.append([name, "the part ends well", "after %.0f s with %d" % (time.monotonic() - began, p.returncode), "0", "NO"])
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return rows


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("parts", nargs="*", metavar="PART")
    p.add_argument("--gb", type=float, default=50)
    p.add_argument("--cycles", type=int, default=20)
    p.add_argument("--turns-gb", type=float, default=90)
    p.add_argument("--passes", type=int, default=250, help="of the jobs of turns over their memory")
    p.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    for name in o.parts:
        if name not in PARTS:
            p.error("%s: not one of %s" % (name, ", ".join(PARTS)))
    return o


def main():
    o = options()
    os.makedirs(o.out, exist_ok=True)
    if o.within:
        part = Part(o, o.parts[0])
        try:
            PARTS[o.parts[0]](part)
        finally:
            part.end()
        return 0
    rows = [row for name in o.parts or PARTS if name in o.parts or name != "links" for row in run(o, name)]
    with open(os.path.join(o.out, "server.csv"), "a", newline="") as f:
        csv.writer(f).writerows([["part", "what", "value", "goal", "good"]] + rows)
    log = os.path.join(o.out, "server.log")
    print("\nthe end of server.log:\n" + "".join(open(log).readlines()[-25:]) if os.path.exists(log) else "")
    for row in rows:
        print("%-6s %-52s %-24s %-10s %s" % tuple(row[:5]))
    return 1 if any(row[4] == "NO" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
