"""Trains with batches that do not fit the card: plainly as many as fit, and two and four times as many with the library's checkpoints and by gmswap run.

Usage: python3 beyond.py BIN OUT [--steps N] [--seconds N] [PROGRAM[:BATCH]...]

BIN holds gmswap. A program is one of ../programs that takes batch=N and checkpoints=1, BATCH the largest that fits in plain PyTorch; without it that is
found by what a small batch takes. gmswap is given no limit. OUT gets beyond.csv: samples a second are those of the median step from the fifth on.
"""

import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import time

import runner

FIRST = 4  # steps in which a schedule is made
FIELDS = "program", "way", "batch", "times", "ok", "allocated", "samples", "step", "longest", "losses", "ways", "steps"


def run(prefix, name, batch, steps, seconds, *more):
    return runner.run(prefix + [sys.executable, runner.TRAIN, name, "--steps", str(steps), "batch=%d" % batch, *more], seconds)


def largest(name, seconds):
    """Returns about how many samples a batch can have in plain PyTorch, by what two small ones take, with a tenth of the card left."""
    small, large = (run([], name, n, 3, seconds)[0]["allocated"] for n in (4, 8))
    total = int(subprocess.check_output(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], text=True).splitlines()[0]) << 20
    return int((total * 0.9 - small) / (large - small) * 4) + 4


def row(name, way, batch, times, result, said, failed):
    r = {"program": name, "way": way, "batch": batch, "times": times, "ok": failed or "yes", "ways": "; ".join(re.findall(r"gmswap: \d+ steps \((.*)\): ", said))}
    if result is not None:
        steps = result["steps"][FIRST:]
        step = statistics.median(steps)
        r.update(allocated=result["allocated"], samples="%.1f" % (batch / step), step="%.4f" % step, longest="%.3f" % (max(steps) / step), losses=result["losses"],
                 steps=" ".join(map(str, result["steps"])))
    return r


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("programs", nargs="*", default=["vit", "hf"])
    p.add_argument("--steps", type=int, default=14)
    p.add_argument("--seconds", type=float, default=560)
    o = p.parse_intermixed_args()
    os.makedirs(o.out, exist_ok=True)
    end, rows = time.monotonic() + o.seconds, []
    swap = [os.path.join(o.bin, "gmswap"), "run", "--"]
    for spec in o.programs:
        name, _, batch = spec.partition(":")
        batch = int(batch) if batch else largest(name, end - time.monotonic())
        ways = [("plain", 1, [], [])]
        for times in 2, 4:
            ways += [("by hand", times, [], ["checkpoints=1"]), ("gmswap", times, swap, [])]
        for way, times, prefix, more in ways:
            result, said, failed = run(prefix, name, times * batch, o.steps, end - time.monotonic(), *more)
            rows.append(row(name, way, times * batch, times, result, said, failed))
            print("== %s, %s, %d: %s\n%s" % (name, way, times * batch, failed or "ran", "\n".join(
                "  " + line for line in said.splitlines() if line.startswith(("gmswap", "gm:")) or failed and "Error" in line)), flush=True)
    with open(os.path.join(o.out, "beyond.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter=";", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    print("%-8s %-8s %6s %6s %10s %10s %8s %8s  %s" % ("program", "way", "batch", "times", "allocated", "samples/s", "step", "longest", "steps"))
    for r in rows:
        if r["ok"] != "yes":
            print("%-8s %-8s %6d %6d FAILED: %s  %s" % (r["program"], r["way"], r["batch"], r["times"], r["ok"], r["ways"]))
        else:
            print("%-8s %-8s %6d %6d %7.2f GB %10s %6s s %8s  %s" % (
                r["program"], r["way"], r["batch"], r["times"], r["allocated"] / 1e9, r["samples"], r["step"], r["longest"], r["ways"]))
    sys.exit(any(r["ok"] != "yes" for r in rows))


main()
