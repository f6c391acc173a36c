"""Trains programs plainly, with the checkpoints that their library offers, and by gmswap run in the same memory: a step of each in turns.

Usage: python3 byhand.py BIN OUT [--steps N] [--gpu N] [--seconds N] [--first N] [PROGRAM[:LIMIT,...]|PROGRAM:SETTING=VALUE...]

BIN holds gmswap. A program is one of ../programs that takes checkpoints=1. A limit is an amount for gmswap run -m such as 17GB, or `none`; a program with
a setting, such as zoo:name=timm:vit_base_patch16_224, gets what it has allocated with checkpoints, and a 50th more, which short runs say first. OUT gets
byhand.csv, a row for each run, and byhand.log, what the programs said; what is there already is added to. Times are those of the steps from the
fifth on, or from the Nth on: the median of the ratios to the plain step of the same turn, all of them together, and the longest against the plain one of its turn.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
import runner  # noqa: E402
import turns  # noqa: E402, also finds modes
from modes import MODES  # noqa: E402

FIRST = 4  # steps in which a schedule is made
ENOUGH = 40  # seconds; with less left no more programs are begun
FIELDS = "program", "way", "ok", "allocated", "reserved", "losses", "median", "all", "longest", "ways", "steps"
LIMITS = ["vit:17GB,8.9GB,none", "layers7b:27.6GB,19.3GB,none", "hf:16GB,11.5GB,none"]


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("programs", nargs="*", default=LIMITS)
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--gpu", type=int, default=0)
    p.add_argument("--seconds", type=float, default=560)
    p.add_argument("--first", type=int, default=FIRST + 1, help="the first step whose time counts")
    return p.parse_intermixed_args()


def mode_of(limit):
    """Returns the name of the mode of gmswap with a limit."""
    name = "gmswap " + limit
    MODES[name] = (["gmswap", "run", "--progress"] + ([] if limit == "none" else ["-m", limit]), {})
    return name


def same(spec):
    """Returns the limit of a program with a setting: what it has allocated in steps with checkpoints and a 50th, nothing if it fails."""
    result, _, failed = runner.run([sys.executable, runner.TRAIN, *spec.split(":", 1), "checkpoints=1", "--steps", "24"], 120)
    return [] if failed else [str(result["allocated"] * 51 // 50)]


def limits_of(specs):
    """Returns programs by what was asked for, with their limits."""
    found = {spec: list(filter(None, spec.partition(":")[2].split(","))) for spec in specs if "=" not in spec}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        short = [spec for spec in specs if "=" in spec]
        found.update(zip(short, pool.map(same, short)))
    return found


def played(o, spec, limits, seconds):
    """Runs a program in all ways and returns their rows."""
    name, _, setting = spec.partition(":")
    settings = [setting] if "=" in setting else []
    title = spec if settings else name
    MODES["by hand"] = MODES["default"]
    ways = [("default", []), ("by hand", ["checkpoints=1"])] + [(mode_of(limit), []) for limit in limits]
    logs = {mode: open(os.path.join(o.out, "byhand-%d.log" % i), "w+", errors="replace") for i, (mode, _) in enumerate(ways)}
    words = [sys.executable, os.path.join(turns.HERE, "train.py"), name, *settings, "--turns", "--steps", o.steps]
    players = [turns.Player(o.bin, mode, words + more, logs[mode], CUDA_VISIBLE_DEVICES=str(o.gpu)) for mode, more in ways]
    print("$ [%s] %s" % (", ".join(mode for mode, _ in ways), title), flush=True)
    ended, rows, plain = turns.play(players, seconds), [], None
    with open(os.path.join(o.out, "byhand.log"), "a", errors="replace") as all_logs:
        for mode, log in logs.items():
            log.seek(0)
            said = log.read()
            all_logs.write("== %s, %s\n%s\n" % (title, mode, said))
            log.close()
            os.remove(log.name)
            rows.append(row(title, mode, *ended[mode], said, plain, o.first - 1))
            plain = plain or rows[0].pop("times", None)
    return rows


def row(name, mode, code, result, said, plain, passed):
    row = {"program": name, "way": "plain" if mode == "default" else mode}
    if code != 0 or not result or json.loads(result)["ok"] is not True:
        return dict(row, ok="too long" if code is None else "status %d" % code if code else json.loads(result or '{"ok": "no result"}')["ok"])
    result = json.loads(result)
    times = result["steps"][passed:]
    row.update({c: result[c] for c in ("allocated", "reserved", "losses")}, ok="yes", steps=" ".join(map(str, result["steps"])))
    row["ways"] = "; ".join(re.findall(r"gmswap: \d+ steps \((.*)\): ", said))
    if plain is None:
        row["times"] = times
    ratios = [t / p for t, p in zip(times, plain or times)]
    row.update(median="%.3f" % statistics.median(ratios), longest="%.3f" % max(ratios), all="%.3f" % (sum(times) / sum(plain or times)))
    return row


def show(rows, passed):
    wide = max((len(r["program"]) for r in rows), default=0)
    print("%-*s %-20s %10s %10s %7s %7s %7s %9s  %s" % (wide, "program", "way", "allocated", "reserved", "median", "all", "longest", "step", "steps"))
    for r in rows:
        if r["ok"] != "yes":
            print("%-*s %-20s FAILED: %s" % (wide, r["program"], r["way"], r["ok"]))
            continue
        step = statistics.median(map(float, r["steps"].split()[passed:]))
        print("%-*s %-20s %7.2f GB %7.2f GB %7s %7s %7s %7.4f s  %s" % (
            wide, r["program"], r["way"], r["allocated"] / 1e9, r["reserved"] / 1e9, r["median"], r["all"], r["longest"], step, r["ways"]))


def main():
    o = options()
    os.makedirs(o.out, exist_ok=True)
    path, end, rows = os.path.join(o.out, "byhand.csv"), time.monotonic() + o.seconds, []
    for spec, limits in limits_of(o.programs).items():
        if rows and end - time.monotonic() < ENOUGH:
            break
        rows += played(o, spec, limits, max(1, end - time.monotonic()))
    with open(path, "a", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter=";", lineterminator="\n", extrasaction="ignore")
        if f.tell() == 0:
            out.writeheader()
        out.writerows(rows)
    show(rows, o.first - 1)
    sys.exit(any(r["ok"] != "yes" for r in rows))


if __name__ == "__main__":
    main()
