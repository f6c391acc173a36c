"""Runs train.py or fsdp.py in each mode, in turns, and compares the modes."""

import os
import statistics
import sys
import tempfile

from modes import MODES, PYTORCH, run

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN, FSDP = os.path.join(HERE, "train.py"), os.path.join(HERE, "fsdp.py")
GUESS = 60  # seconds of a run that was not seen yet


def turns(modes, n):
    """Returns the modes in another order for each n, so that none always comes first."""
    n %= len(modes)
    return modes[n:] + modes[:n]


def workloads(o, results, budget):
    for i, name in enumerate(o.workloads):
        runs, seconds = {mode: [] for mode in o.modes}, GUESS
        for mode in [m for r in range(o.rounds) for m in turns(o.modes, i + r)]:
            if not budget.allows(seconds, "%s under %s" % (name, mode)):
                continue
            path = os.path.join(tempfile.gettempdir(), "stitch-%d.json" % os.getpid())
            words = [sys.executable, TRAIN, name, "--steps", o.steps, "--json", path]
            ended = run(o.bin, mode, words, min(budget.left(), 3 * seconds + 60), results.log)
            seconds = max(1.2 * ended.seconds, 0 if seconds == GUESS else seconds)
            result = results.add(mode, path)
            results.check("%s, %s: trains" % (name, mode), "status 0", ended.code, ended.code == 0 and result is not None)
            if result and ended.code == 0:
                runs[mode].append(result)
        compare(results, name, {mode: r for mode, r in runs.items() if r})
    mean_utilisation(results, o.modes)


def fsdp(o, results, budget):
    """The same on the GPUs of this machine, at most two."""
    ranks, runs, seconds = 2, {}, 120
    for mode in o.modes:
        if not budget.allows(seconds, "FSDP2 under " + mode):
            continue
        path = os.path.join(tempfile.gettempdir(), "stitch-%d-%%r.json" % os.getpid())
        words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, FSDP]
        ended = run(o.bin, mode, [*words, "--steps", o.steps, "--json", path], min(budget.left(), 3 * seconds), results.log)
        seconds = 1.2 * ended.seconds
        found = [results.add(mode, path.replace("%r", str(r)), rank=r) for r in range(ranks)]
        results.check("%s: trains on %d GPUs" % (mode, ranks), "status 0", ended.code, ended.code == 0 and all(found))
        if all(found) and ended.code == 0:
            runs[mode] = found
    for r in range(ranks):
        compare(results, "opt13b-LRV, rank %d" % r, {mode: [found[r]] for mode, found in runs.items()})
    mean_utilisation(results, o.modes)


def compare(results, name, runs):
    """Compares the runs of a workload: each mode has a list of them."""
    own = {mode: median(r) for mode, r in runs.items() if mode in PYTORCH}
    reference = next((runs[mode][0] for mode in PYTORCH if mode in runs), None)
    if reference is None:
        return
    fastest = min(own, key=own.get)
    for mode in runs:
        for r in runs[mode]:
            if r is not reference:
                same = first_difference(reference["losses"], r["losses"])
                results.check("%s, %s: losses as %s" % (name, mode, reference["mode"]), "equal to the last bit",
                              "differ from step %d on" % same if same else "%d equal" % len(r["losses"]), not same)
        if mode not in PYTORCH:
            ratio, each = median(runs[mode]) / own[fastest], statistics.median(
                a / b for a, b in zip(steps(runs[mode]), steps(runs[fastest])))
            results.check("%s, %s: median step" % (name, mode), "1.00 x of %s" % fastest,
                          "%.4f s, %.3f x; step by step %.3f x" % (median(runs[mode]), ratio, each), round(ratio, 2) <= 1)


def steps(runs):
    """Returns the best time of each step after the warm-up."""
    return [min(times) for times in zip(*(r["times_s"][r["warm_up"]:] for r in runs))]


def median(runs):
    return statistics.median(steps(runs))


def first_difference(a, b):
    """Returns the number of the first step that differs, from 1, or 0."""
    for i, (x, y) in enumerate(zip(a, b), 1):
        if x != y:
            return i
    return 0 if len(a) == len(b) else min(len(a), len(b)) + 1


def mean_utilisation(results, modes):
    for mode in modes:
        found = [r["utilisation"] for r in results.all if r["section"] == results.section and r["mode"] == mode and not r["error"]]
        if found:
            mean, own = statistics.fmean(found), not MODES[mode][0]
            results.check("%s: utilisation, mean of %d" % (mode, len(found)), "for comparison" if own else "0.97 at least",
                          "%.4f, lowest %.4f" % (mean, min(found)), own or mean >= 0.97)
