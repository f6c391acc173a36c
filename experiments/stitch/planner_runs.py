"""Training whose planner is killed: it goes on, and its losses are the same to the last bit.

Each way of running is taken twice: undisturbed, and with each planner killed as soon as it is seen. Losses are compared with those on PyTorch's own
allocator.
"""

import json
import os
import signal
import sys
import threading
import time

from modes import run

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = [sys.executable, os.path.join(HERE, "train.py"), "opt1.3b-V", "--longest", "256", "--steps", "24"]
WAYS = {
    "gmstitch run --auto": ["gmstitch", "run", "--auto", "--"],
    "gmswap run": ["gmswap", "run", "-m", "12GiB", "--host", "64GiB", "--progress", "--"],
}
PLANNERS = (b"gmstitch\0planner\0", b"gmswap\0planner\0")


class Killer(threading.Thread):
    """Kills the planners of this user as they appear."""

    def __init__(self):
        super().__init__(daemon=True)
        self.killed, self.ended = set(), threading.Event()

    def run(self):
        while not self.ended.wait(0.001):
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if pid in self.killed or not self.plans(pid):
                    continue
                try:
                    os.kill(int(pid), signal.SIGKILL)
                    self.killed.add(pid)
                except OSError:
                    pass

    @staticmethod
    def plans(pid):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                return f.read() in PLANNERS and os.stat("/proc/" + pid).st_uid == os.getuid()
        except OSError:
            return False

    def end(self):
        self.ended.set()
        self.join()
        return len(self.killed)


def losses(o, results, budget, words, kill):
    """Runs the program and returns its losses, what it printed, and how many planners were killed."""
    path = os.path.join(o.out, "planner.json")
    if os.path.exists(path):
        os.remove(path)
    killer = Killer()
    if kill:
        killer.start()
    start = time.monotonic()
    ended = run(o.bin, "default", words + PROGRAM + ["--json", path], budget.left(), results.log)
    killed = killer.end() if kill else 0
    if ended.code != 0:
        return None, ended.text, killed
    with open(path) as f:
        result = json.load(f)
    print("    %.1f s, median step %.4f s, reserved %.2f GB" % (time.monotonic() - start, result["median_s"], result["max_reserved"] / 1e9))
    return result["losses"], ended.text, killed


def section(o, results, budget):
    want, _, _ = losses(o, results, budget, [], False)
    results.check("PyTorch's allocator", "trains", "%d losses" % len(want or ()), bool(want))
    for name, words in WAYS.items():
        words = [os.path.join(o.bin, words[0]), *words[1:]]
        for kill in (False, True):
            what = name + (", planner killed" if kill else "")
            if not budget.allows(60, what):
                continue
            got, text, killed = losses(o, results, budget, words, kill)
            results.check(what, "the losses of PyTorch's allocator", "the same" if got == want else str(got)[:200], bool(got) and got == want)
            lost = [line for line in text.splitlines() if "the planner ended before it answered" in line]
            if kill:
                results.check(what, "at least one is killed, and a line says so", "%d killed, %s" % (killed, lost[:1]), killed > 0 and bool(lost))
            else:
                results.check(what, "planned", str(lost[:1]), not lost and ("planned in" in text or "gmswap: " in text))
