"""Runs the small programs with deterministic kernels under each tool, several at once, and says where a tool changes what they compute or takes more
than its limit.

Usage: python3 exact.py BIN OUT [--steps N] [--shares 70,50] [--jobs N] [--seconds N] [--no-trace] [PROGRAM...]

BIN holds gmstitch, gmswap, gmtrace and gmplan. Each program, a name of programs.py with settings behind colons, runs under PyTorch's own allocator, under
gmstitch, under gmswap run -m with shares of what gmstitch had allocated at its peak, and under gmtrace run, whose file gmplan is to solve; then again under
PyTorch's own where losses differ, as they may do by themselves. OUT gets exact.csv, and exact.log of runs that failed or had other losses. Programs for
which no time is left are not begun. The exit status is 1 where a program failed under a tool and not without it, its losses are not PyTorch's, or a limit did
not hold. A limit that is too low for a program ends it with OutOfMemoryError: those are counted. Where a request of a library is denied, and it goes on in another
way, or compiled graphs recompute more, losses may differ.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "swap"))
import runner  # noqa: E402
from programs import EXACT  # noqa: E402

FIELDS = "program", "way", "ok", "limit", "allocated", "reserved", "losses", "seconds", "steps", "said"

DENIED = "a library was denied memory"
FUSED = "compiled graphs recompute more"
HOST = "some on the host, in place"
ENOUGH = 90  # seconds that a program takes in all ways


class Check:
    """Runs one program in all ways."""

    def __init__(self, o, name):
        self.o, self.name, self.rows = o, name, []
        self.plain = ()  # the losses of the first run that did not fail

    def one(self, way, prefix, limit=0):
        begin = time.monotonic()
        words = [*prefix, sys.executable, runner.TRAIN, *self.name.split(":", 1), "--steps", str(self.o.steps)]
        result, said, failed = runner.run(words, self.o.end - begin, CUBLAS_WORKSPACE_CONFIG=":4096:8")
        result = result or {}
        ways = re.findall(r"gmswap: \d+ steps? \((.*)\): ", said)
        if "gmswap: out of memory" in said or "cuDNN takes another algorithm" in said:
            ways.append(DENIED)
        if "gmswap: compiled:" in said:
            ways.append(FUSED)
        if "the GPU used memory of the host" in said:
            ways.append(HOST)
        row = dict(program=self.name, way=way, ok=failed or "yes", limit=limit, seconds="%.1f" % (time.monotonic() - begin), said="; ".join(ways),
                   steps=" ".join(map(str, result.get("steps", []))), **{k: result.get(k, "") for k in ("allocated", "reserved", "losses")})
        each = result.get("each", [])
        self.plain = self.plain or each
        others = [step for step, (loss, plain) in enumerate(zip(each, self.plain), 1) if loss != plain]
        if failed or others:
            with self.o.lock, open(os.path.join(self.o.out, "exact.log"), "a") as f:
                f.write("== %s under %s%s\n%s\n" % (self.name, way, ": other losses in steps %s" % others if others else "", said[-4000:]))
        self.rows.append(row)
        return row

    def all(self):
        tool = lambda name, *words: [os.path.join(self.o.bin, name), "run", *words, "--"]
        if self.o.end - time.monotonic() < ENOUGH or self.one("torch", [])["ok"] != "yes":
            return self.rows
        stitch = self.one("gmstitch", tool("gmstitch"))
        for share in self.o.shares if stitch["ok"] == "yes" else []:
            limit = stitch["allocated"] * share // 100
            self.one("gmswap %d" % share, tool("gmswap", "-m", str(limit)), limit)
        if self.o.trace:
            self.traced()
        if any(r["ok"] == "yes" and r["losses"] != self.rows[0]["losses"] for r in self.rows):
            self.one("torch again", [])
        return self.rows

    def traced(self):
        path = os.path.join(self.o.out, self.name + ".parquet")
        row = self.one("gmtrace", [os.path.join(self.o.bin, "gmtrace"), "run", "-o", path, "--"])
        solved = subprocess.run([os.path.join(self.o.bin, "gmplan"), "--time", "1s", "-o", os.devnull, path], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True)
        row["said"] = solved.stderr.strip()[-300:].replace("\n", " ")
        if solved.returncode != 0 and row["ok"] == "yes":
            row["ok"] = "gmplan: status %d" % solved.returncode
        if os.path.exists(path):
            os.remove(path)


def refused(row):
    """Returns whether a program ended as its limit is too low."""
    return row["limit"] and row["ok"].startswith("OutOfMemoryError")


def faults(rows):
    """Returns what is wrong with the rows of a program."""
    plain = {r["losses"] for r in rows if r["way"].startswith("torch")}
    found = []
    for r in rows[1:] if rows[0]["ok"] == "yes" else []:
        if r["ok"] != "yes" and not refused(r):
            found.append("%s: %s" % (r["way"], r["ok"]))
        elif len(plain) == 1 and r["losses"] not in plain and not refused(r) and DENIED not in r["said"] and FUSED not in r["said"]:
            found.append("%s: other losses" % r["way"])
        if r["limit"] and r["reserved"] and r["reserved"] > r["limit"]:
            found.append("%s: %d bytes reserved of %d" % (r["way"], r["reserved"], r["limit"]))
    return found


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("programs", nargs="*", default=list(EXACT))
    p.add_argument("--steps", type=int, default=14)
    p.add_argument("--shares", type=lambda s: [int(x) for x in s.split(",")], default=[70, 50])
    p.add_argument("--jobs", type=int, default=6)
    p.add_argument("--seconds", type=float, default=560)
    p.add_argument("--no-trace", dest="trace", action="store_false")
    o = p.parse_intermixed_args()
    os.makedirs(o.out, exist_ok=True)
    o.end, o.lock = time.monotonic() + o.seconds, threading.Lock()
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        tables = [rows for rows in pool.map(lambda name: Check(o, name).all(), o.programs) if rows]
    with open(os.path.join(o.out, "exact.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter=";", lineterminator="\n")
        out.writeheader()
        out.writerows(r for rows in tables for r in rows)
    print("%-30s %-12s %6s %9s %9s %9s  %s" % ("program", "way", "time", "limit", "allocated", "reserved", "said"))
    gb = lambda n: "%.3f GB" % (n / 1e9) if n else ""
    for rows in tables:
        for r in rows:
            said = r["said"] if r["ok"] == "yes" else r["ok"]
            print("%-30s %-12s %5ss %9s %9s %9s  %s" % (r["program"], r["way"], r["seconds"], gb(r["limit"]), gb(r["allocated"]), gb(r["reserved"]), said))
        if len({r["losses"] for r in rows if r["way"].startswith("torch")}) > 1:
            print("  its losses are others in each run of PyTorch's own")
    low = ["%s (%s)" % (r["program"], r["way"]) for rows in tables for r in rows if refused(r)]
    print("%d of %d runs under a limit ended in OutOfMemoryError: %s" % (len(low), sum(r["limit"] > 0 for rows in tables for r in rows), ", ".join(low)))
    bad = ["%s under %s" % (rows[0]["program"], fault) for rows in tables for fault in faults(rows)]
    print("\n".join(bad) or "all the same, all within their limits")
    sys.exit(bool(bad))


main()
