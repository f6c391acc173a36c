"""Runs jobs of gmswap serve for a while on a machine with an NVIDIA GPU and PyTorch, and meddles with them.

Usage: soak.py BIN OUT [--minutes N] [--gb N] [--store-gb N] [--objects N] [--steps N] [--quantum TIME] [--idle TIME] [--kill SECONDS] [--kill-server SECONDS]
               [--seed N]

BIN holds gmswap, gmstitch and libgm.so (make all). Two loops that train and one that infers keep --gb each, by default 0.4 of the card, so that they
exceed it together; a process with a store of --objects has --store-gb, 0.15 of the card. Each loop is run alone first. Then all run beside each other, again
and again; at random moments jobs are put to sleep, held and woken, now and then a job or the server is killed, and starts again. Once a minute all
sleep, and what is left on the card is measured.

What is checked: each loss and each sum is that of the run alone, to the bit; each object is what was written; no program ends that was not killed; each
sleep and wake ends within a minute; what is left on the card, and the server's memory, do not grow.

OUT gets soak.csv (seconds, what, name, value), and server.log. The exit status is 1 where a check did not hold.
"""

import argparse
import csv
import os
import random
import signal
import subprocess
import sys
import threading
import time

import h200

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "soak_job.py")
MODULE = os.path.join(HERE, "..", "..", "packaging", "python")
LOOPS = {"train": "train", "tune": "train", "infer": "infer"}  # the kind of each
ROUND = 60  # seconds between measurements of what is left


class Soak(h200.Part):
    """What is measured, and the processes that were started."""

    def __init__(self, o):
        super().__init__(argparse.Namespace(out=o.out, bin=o.bin), "soak")
        self.o = o
        self.env.update(SOAK_LIBGM=os.path.join(o.bin, "libgm.so"), PYTHONPATH=MODULE)
        self.began, self.lock, self.stopping = time.monotonic(), threading.Lock(), False
        self.file = open(os.path.join(o.out, "soak.csv"), "w", newline="")
        self.rows = csv.writer(self.file)
        self.rows.writerow(["seconds", "what", "name", "value"])
        self.counts, self.alone, self.failures, self.killed = {}, {}, [], set()
        self.left, self.memory = [], []  # GB on the card while all sleep; bytes of each server, from its start on
        self.server = None

    def note(self, what, name, value=""):
        with self.lock:
            self.rows.writerow(["%.1f" % (time.monotonic() - self.began), what, name, value])
            self.file.flush()
            self.counts[what, name] = self.counts.get((what, name), 0) + 1

    def fail(self, text):
        self.note("failure", "", text)
        self.failures.append(text)
        print("FAILURE", text, flush=True)

    def total(self, what):
        return sum(n for (kind, _), n in self.counts.items() if kind == what)

    def words(self, name):
        if name == "store":
            return ["store", str(self.o.seed), str(self.o.store_gb), str(self.o.objects)]
        return [LOOPS[name], str(self.o.seed + list(LOOPS).index(name)), str(self.o.steps), str(self.o.gb)]

    def run_alone(self, name):
        p = self.start(self.tool("gmstitch"), "run", "--", sys.executable, JOB, *self.words(name))
        self.alone[name] = [h200.expect(p, "loss") for _ in range(self.o.steps)]
        if p.wait(120):
            raise RuntimeError("%s alone ends with %d: see server.log" % (name, p.returncode))

    def launch(self, name):
        if name == "store":
            return self.start(sys.executable, JOB, *self.words(name))
        return self.start(self.tool("gmstitch"), "run", "--server", "--name", name, "--", sys.executable, JOB, *self.words(name))

    def keep_running(self, name):
        """Runs a program again whenever it has ended or was killed, and checks what it says."""
        while not self.stopping:
            p, ended = self.launch(name), False
            self.note("start", name)
            for line in p.stdout:
                words = line.split()
                ended = ended or words[:1] == ["ended"]
                self.hear(name, words)
            status = p.wait()
            with self.lock:
                killed = name in self.killed
                self.killed.discard(name)
            if not (ended and status == 0 or killed or self.stopping):
                self.fail("%s ends by itself with %d: %s" % (name, status, self.last_words()))
                time.sleep(5)

    def last_words(self):
        """The last lines of the log that are not the server's."""
        with open(os.path.join(self.o.out, "server.log"), errors="replace") as f:
            lines = [line.strip() for line in f.readlines()[-200:] if line.strip() and not line[:2].isdigit()]
        return " | ".join(lines[-3:])[-500:]

    def hear(self, name, words):
        if words[:1] == ["loss"]:
            want = self.alone[name][int(words[1])]
            if words[1:] != want:
                self.fail("%s step %s: %s, alone %s" % (name, words[1], words[2:], want[1:]))
        elif words[:1] == ["wrong"]:
            self.fail("an object of the store is not what was written")
        elif words[:1] != ["right"]:
            return
        with self.lock:
            self.counts["compared", name] = self.counts.get(("compared", name), 0) + 1

    def ctl_or_note(self, *words):
        """Runs gmswap ctl. A job may have ended, or the server, or be about to."""
        try:
            self.ctl(*words)
            self.note(words[0], words[-1])
        except RuntimeError as e:
            self.note("refused", words[-1], str(e).strip()[-200:])
        except subprocess.TimeoutExpired:
            self.fail("gmswap ctl %s has not ended after a minute" % " ".join(words))

    def pids(self):
        """The process of each name that the server knows: that of its job, or the store's."""
        found = {}
        for j in self.jobs():
            name = "store" if j["state"] == "objects" else j["name"]
            found[name] = j["pid"]
        return found

    def kill_one(self, chance):
        pids = self.pids()
        if not pids:
            return
        name = chance.choice(sorted(pids))
        with self.lock:
            self.killed.add(name)
        try:
            os.kill(pids[name], signal.SIGKILL)
            self.note("kill", name)
        except ProcessLookupError:
            with self.lock:
                self.killed.discard(name)

    def start_server(self):
        self.server = self.serve("--quantum", self.o.quantum, "--idle", self.o.idle)
        self.memory.append([])

    def kill_server(self, chance):
        self.server.kill()
        self.server.wait(10)
        self.note("kill", "server")
        time.sleep(chance.uniform(0, 3))
        self.start_server()

    def measure(self):
        """Has all programs sleep, and notes what is left on the card and how much memory the server has."""
        names = sorted(self.pids())
        for name in names:
            if name == "store":
                self.ctl_or_note("sleep", str(self.pids().get("store", 0)))
            else:
                self.ctl_or_note("sleep", "--hold", name)
        away = [j for j in self.jobs() if j["state"] != "objects" and any(c["away_bytes"] for c in j["cards"]) and not any(c["device_bytes"] for c in j["cards"])]
        if len(away) == len(LOOPS):
            self.left.append(h200.used() - self.before)
            self.note("left", "card", "%.3f" % self.left[-1])
        for name in names:
            if name != "store":
                self.ctl_or_note("wake", name)
        with open("/proc/%d/status" % self.server.pid) as f:
            resident = next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))
        self.memory[-1].append(resident)
        self.note("resident", "server", resident)

    def meddle(self, chance):
        """Does one thing at random with a job."""
        name = chance.choice(sorted(LOOPS))
        what = chance.random()
        if what < 0.4:
            self.ctl_or_note("sleep", name)
        elif what < 0.7:
            self.ctl_or_note("sleep", "--hold", name)
            time.sleep(chance.uniform(0, 2))
            self.ctl_or_note("wake", name)
        else:
            self.ctl_or_note("wake", name)

    def soak(self):
        for name in LOOPS:
            self.run_alone(name)
        self.before = h200.used()
        chance = random.Random(self.o.seed)
        self.start_server()
        threads = [threading.Thread(target=self.keep_running, args=(name,)) for name in [*LOOPS, "store"]]
        for t in threads:
            t.start()
        end = time.monotonic() + 60 * self.o.minutes
        due = {f: time.monotonic() + every for f, every in self.intervals()}
        while time.monotonic() < end:
            time.sleep(chance.uniform(1, 4))
            self.meddle(chance)
            for f, every in self.intervals():
                if time.monotonic() > due[f]:
                    f(*([] if f == self.measure else [chance]))
                    due[f] = time.monotonic() + every
        self.finish(threads)

    def intervals(self):
        return [(self.measure, ROUND), (self.kill_one, self.o.kill), (self.kill_server, self.o.kill_server)]

    def finish(self, threads):
        self.stopping = True
        for pid in self.pids().values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.end()
        for t in threads:
            t.join(60)
        time.sleep(2)
        self.note("in the end", "card", "%.3f" % (h200.used() - self.before))

    def table(self):
        """Prints what happened, and returns whether all checks held."""
        print("\n%-10s %8s %8s %10s" % ("program", "starts", "kills", "compared"))
        for name in [*LOOPS, "store"]:
            print("%-10s %8d %8d %10d" % (name, *(self.counts.get((what, name), 0) for what in ("start", "kill", "compared"))))
        print("sleeps %d, wakes %d, refused %d, the server killed %d times" % (
            self.total("sleep"), self.total("wake"), self.total("refused"), self.counts.get(("kill", "server"), 0)))
        if self.left:
            print("left on the card asleep, GB: first %.3f, last %.3f, most %.3f" % (self.left[0], self.left[-1], max(self.left)))
        growth = max([m[-1] - m[0] for m in self.memory if len(m) > 1], default=0)
        print("growth of a server's memory, MB: %.1f" % (growth / 1e6))
        checks = {
            "no failures": not self.failures,
            "all were compared": all(self.counts.get(("compared", name), 0) for name in [*LOOPS, "store"]),
            "left on the card does not grow by 0.2 GB": not self.left or self.left[-1] - self.left[0] < 0.2,
            "a server's memory does not grow by 50 MB": growth < 50e6,
        }
        for what, good in checks.items():
            print("%-45s %s" % (what, "yes" if good else "NO"))
        return all(checks.values())


def card_gb():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits", "-i", "0"], stdout=subprocess.PIPE, text=True,
                         timeout=20, check=True)
    return float(out.stdout.split()[0]) * 2**20 / 1e9


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("--minutes", type=float, default=10)
    p.add_argument("--gb", type=float)
    p.add_argument("--store-gb", type=float)
    p.add_argument("--objects", type=int, default=40)
    p.add_argument("--steps", type=int, default=300, help="of a run of a loop")
    p.add_argument("--quantum", default="4s")
    p.add_argument("--idle", default="5s")
    p.add_argument("--kill", type=float, default=45, help="seconds between kills of a program")
    p.add_argument("--kill-server", type=float, default=150)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    if o.gb is None:
        o.gb = 0.4 * card_gb()
    if o.store_gb is None:
        o.store_gb = 0.15 * card_gb()
    return o


def main():
    o = options()
    os.makedirs(o.out, exist_ok=True)
    s = Soak(o)
    try:
        s.soak()
    finally:
        s.stopping = True
        s.end()
    return 0 if s.table() else 1


if __name__ == "__main__":
    sys.exit(main())
