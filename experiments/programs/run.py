"""Runs the programs of programs.py under PyTorch's two allocators and under gmstitch, step by step in turns, on a machine with NVIDIA GPUs.

Usage: run.py BIN OUT [--programs A,B] [--apart A,B] [--modes A,B] [--rounds N] [--steps N] [--gpus N] [--seconds N]

BIN holds gmstitch. OUT gets programs.csv, a row for each run, and logs of what the programs said; what is there already is added to. With
several GPUs as many programs run side by side, and last ddp, which is hf on all of them, one mode after the other, with rows for each rank. The
programs of --apart run in one mode after the other: together they would not fit a GPU. After --seconds no run is begun: what is left out is said.
Prints a table last; the exit status is 1 where a run failed. `make figures-programs` compares the rows with the targets.
"""

import argparse
import collections
import csv
import json
import os
import queue
import statistics
import sys
import threading
import time

import turns  # also finds modes
from modes import run

PROGRAMS = "hf lora moe t5 generate ppo gat sampled timm maskrcnn swin deeplab unet ddp".split()
COLUMNS = ("program", "mode", "round", "ok", "allocated", "reserved", "card", "losses", "steps")
GUESS = 45  # seconds without which no run is begun


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("--programs", type=lambda s: s.split(","), default=PROGRAMS)
    p.add_argument("--apart", type=lambda s: s.split(","), default=["gat", "t5"])
    p.add_argument("--modes", type=lambda s: s.split(","), default=["default", "expandable", "gmstitch"])
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--gpus", type=int, default=1)
    p.add_argument("--seconds", type=float, default=570)
    return p.parse_args()


class Table:
    """programs.csv, to which several threads add."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.path, self.lock, self.rows = os.path.join(folder, "programs.csv"), threading.Lock(), []
        self.rounds = collections.Counter()  # that are there already, by program
        if os.path.exists(self.path):
            with open(self.path, newline="") as f:
                for row in csv.DictReader(f, delimiter=";"):
                    self.rounds[row["program"]] = max(self.rounds[row["program"]], int(row["round"]) + 1)

    def add(self, row):
        with self.lock, open(self.path, "a", newline="") as f:
            row["round"] += self.rounds[row["program"]]
            writer = csv.DictWriter(f, COLUMNS, delimiter=";", lineterminator="\n")
            if f.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
            self.rows.append(row)


def one(o, gpu, name, modes, n, timeout, log):
    """Runs a program in some modes, in turns, and returns their rows."""
    words = [sys.executable, os.path.join(turns.HERE, "train.py"), name, "--turns", "--steps", o.steps]
    print("$ [%s] %s" % (", ".join(modes), name), flush=True)
    ended = turns.play([turns.Player(o.bin, mode, words, log, CUDA_VISIBLE_DEVICES=str(gpu)) for mode in modes], timeout)
    return [row(name, mode, n, code, result) for mode, (code, result) in ended.items()]


def row(name, mode, n, code, result):
    """Returns the row of a program that ended with a status, None where it took too long, and a line of results."""
    row = {"program": name, "mode": mode, "round": n}
    if code != 0 or not result:
        return dict(row, ok="too long" if code is None else "status %d" % code if code else "no result")
    result = json.loads(result)
    row.update({c: result[c] for c in ("allocated", "reserved", "card", "losses")})
    return dict(row, ok="yes" if result["ok"] is True else result["ok"], steps=" ".join(map(str, result["steps"])))


def ranks(o, mode, n, timeout, log):
    """Runs hf on all GPUs in one mode and returns the rows of its ranks."""
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", o.gpus, os.path.join(turns.HERE, "train.py"), "hf", "--steps", o.steps]
    ended = run(o.bin, mode, words, timeout, log)
    lines = [line.removeprefix("RESULT ") for line in ended.text.splitlines() if line.startswith("RESULT ")]
    lines.sort(key=lambda line: json.loads(line)["rank"])
    lines += [None] * (o.gpus - len(lines))
    return [row("ddp-%d" % rank, mode, n, ended.code, line) for rank, line in enumerate(lines)]


def work(o, gpu, names, table, end):
    """Takes programs from the queue until it is empty."""
    with open(os.path.join(o.out, "programs-%d.log" % gpu), "a+", errors="replace") as log:
        while True:
            try:
                n, i, name = names.get_nowait()
            except queue.Empty:
                return
            modes = in_turn(o.modes, i + n)
            for some in [[m] for m in modes] if name in o.apart else [modes]:
                if enough(end, name, some, n):
                    for row in one(o, gpu, name, some, n, end - time.monotonic(), log):
                        table.add(row)


def in_turn(modes, n):
    return modes[n % len(modes):] + modes[:n % len(modes)]


def enough(end, name, modes, n):
    """Says that a run is left out if too little time is left for it."""
    left = end - time.monotonic()
    if left < GUESS:
        print("left out: %s under %s, round %d: %.0f s are left" % (name, ", ".join(modes), n, left), flush=True)
    return left >= GUESS


def together(o, table, end):
    """Runs ddp."""
    with open(os.path.join(o.out, "programs-ddp.log"), "a+", errors="replace") as log:
        for n in range(o.rounds):
            for mode in in_turn(o.modes, n):
                if enough(end, "ddp", [mode], n):
                    for row in ranks(o, mode, n, end - time.monotonic(), log):
                        table.add(row)


def show(rows):
    print("%-9s %-10s %4s %11s %11s %11s %7s %9s %9s %9s" % ("program", "mode", "runs", "allocated", "reserved", "card", "in use", "median", "longest", "all"))
    for name, mode in dict.fromkeys((r["program"], r["mode"]) for r in rows):
        runs = [r for r in rows if (r["program"], r["mode"]) == (name, mode)]
        good = [r for r in runs if r["ok"] == "yes"]
        for r in runs:
            if r["ok"] != "yes":
                print("%-9s %-10s FAILED: %s" % (name, mode, r["ok"]))
        if good:
            best = [min(times) for times in zip(*([float(t) for t in r["steps"].split()] for r in good))]
            reserved = max(r["reserved"] for r in good)
            print("%-9s %-10s %4d %8.3f GB %8.3f GB %8.3f GB %7.4f %7.4f s %7.4f s %7.3f s" % (
                name, mode, len(good), good[0]["allocated"] / 1e9, reserved / 1e9, max(r["card"] for r in good) / 1e9,
                good[0]["allocated"] / reserved, statistics.median(best[1:]), max(best), sum(best)))


def main():
    o = options()
    table, names, end = Table(o.out), queue.Queue(), time.monotonic() + o.seconds
    for n in range(o.rounds):
        for i, name in enumerate(o.programs):
            if name != "ddp":
                names.put((n, i, name))
    workers = [threading.Thread(target=work, args=(o, gpu, names, table, end)) for gpu in range(o.gpus)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if "ddp" in o.programs and o.gpus > 1:
        together(o, table, end)
    show(sorted(table.rows, key=lambda r: (o.programs.index(r["program"].split("-")[0]), r["program"], o.modes.index(r["mode"]))))
    sys.exit(not table.rows or any(r["ok"] != "yes" for r in table.rows))


if __name__ == "__main__":
    main()
