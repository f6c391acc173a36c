"""Runs a program in several modes at once, a step of each in turns.

The speed of a shared host drifts by tens of percent within seconds. What is compared must run at the same time, but not on the same cores and GPU.
So all processes are there at once, and each waits before a step until it is its turn.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stitch"))
from modes import command, end  # noqa: E402


class Player:
    """A process of train.py --turns."""

    def __init__(self, folder, mode, words, log, **more):
        words, env = command(folder, mode, [str(w) for w in words])
        self.mode, self.log, self.result, self.over = mode, log, None, False
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env={**env, **more}, start_new_session=True, text=True, errors="replace")

    def step(self):
        """Lets the process make a step, or end."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            if line == "STEP\n":
                return
            if line.startswith("RESULT "):
                self.result = line.removeprefix("RESULT ")
            self.log.write(line)
        self.over = True

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        return code


def play(players, timeout):
    """Lets players make steps in turns to their end and returns for each mode its exit status, None where it took too long, and its line of results, if any."""
    begin, late = time.monotonic(), threading.Event()

    def stop():
        late.set()
        for p in players:
            end(p.process)

    watch = threading.Timer(timeout, stop)
    watch.start()
    first = 0
    while not all(p.over for p in players):
        for p in players[first:] + players[:first]:
            if not p.over:
                p.step()
        first = (first + 1) % len(players)
    codes = [p.close() for p in players]
    watch.cancel()
    print("    %s, %.1f s" % (", ".join("too long" if late.is_set() else str(c) for c in codes), time.monotonic() - begin), flush=True)
    return {p.mode: (None if late.is_set() else code, p.result) for p, code in zip(players, codes)}
