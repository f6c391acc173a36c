"""Runs that make checks of their own: a line "name | expected | got | ok" for each, or a status."""

import os
import re
import shutil
import sys

from modes import run

HERE = os.path.dirname(os.path.abspath(__file__))


def script(name):
    return os.path.join(HERE, name)


def lines(o, results, budget, mode, words, seconds):
    """Runs a program and takes over its checks. Those of a mode that is there for comparison always hold."""
    if not budget.allows(seconds, "%s under %s" % (os.path.basename(words[1]), mode)):
        return
    ended = run(o.bin, mode, words, budget.left(), results.log)
    found = [line.split(" | ") for line in ended.text.splitlines() if line.count(" | ") == 3]
    for name, expected, got, ok in found:
        results.check("%s, %s" % (name, mode), expected, got, ok.strip() == "ok" or mode == "default")
    ended_well = bool(found) and ended.code == 0
    results.check("%s, %s" % (os.path.basename(words[1]), mode), "status 0", ended.code, ended_well or mode == "default")


def modes(o):
    return [mode for mode in ("default", "gmstitch") if mode in o.modes]


def stress(o, results, budget):
    for mode in modes(o):
        lines(o, results, budget, mode, [sys.executable, script("stress.py")], 60)


def graphs(o, results, budget):
    for mode in reversed(modes(o)):
        lines(o, results, budget, mode, [sys.executable, script("graphs.py")], 60)


def peers(o, results, budget):
    for mode in o.modes:
        if mode != "auto":
            lines(o, results, budget, mode, [sys.executable, script("peers.py")], 60)
    for mode in modes(o):
        lines(o, results, budget, mode, [sys.executable, script("stress.py"), "--gpus", 2], 60)


def sanitizer(o, results, budget):
    """memcheck of a small model, beside what it finds on PyTorch's own allocator."""
    checker = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    for mode in modes(o):
        words = [checker, "--tool", "memcheck", sys.executable, script("train.py"), "opt1.3b-V", "--scale", "0.1", "--steps", "6"]
        if not budget.allows(60, "memcheck under " + mode):
            continue
        ended = run(o.bin, mode, words, budget.left(), results.log)
        summary = re.findall(r"ERROR SUMMARY: (\d+) error", ended.text)
        errors = sum(map(int, summary)) if summary and ended.code is not None else None
        clean = errors == 0 and "median step" in ended.text
        results.check("memcheck, " + mode, "0 errors" if mode == "gmstitch" else "for comparison",
                      "%s errors, status %s" % (errors, ended.code), clean or mode != "gmstitch")


def latency(o, results, budget):
    """BIN/latency prints a table of its own."""
    ended = run(o.bin, "default", [os.path.join(o.bin, "latency")], budget.left(), results.log)
    print(ended.text, flush=True)
    results.check("latency", "status 0", ended.code, ended.code == 0)


def replay(o, results, budget):
    for trace in o.traces:
        name = os.path.basename(trace)
        if budget.allows(30, "replay of " + name):
            ended = run(o.bin, "default", [os.path.join(o.bin, "gmstitch"), "replay", trace], budget.left(), results.log)
            print(ended.text, flush=True)
            results.check("replay of " + name, "status 0", ended.code, ended.code == 0)
