"""Finds the longest sequence that can be trained on within 40 GB, in each mode but --auto: by halves, with a process for each try.

Usage: by h200.py, as its section cap
"""

import dataclasses
import os
import sys

from modes import PYTORCH, run

TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")
CAP = 40  # GB
OUT_OF_MEMORY = 3  # train.py's status


@dataclasses.dataclass
class Case:
    name: str
    flags: tuple
    steps: int
    fits: int  # a length that is known to fit in each mode
    too_long: int  # one whose tensors alone are more
    unit: int
    seconds: float  # of a try that was not seen yet


CASES = (
    Case("gpt2m-V", ("--batch", 32), 16, 640, 1024, 8, 30),
    Case("opt13b-LRV", (), 8, 512, 1024, 16, 45),
)


def section(o, results, budget):
    modes = [mode for mode in o.modes if mode != "auto"]
    for case in CASES:
        longest = {}
        for mode in modes:
            low, high, whole = search(o, results, budget, case, mode)
            name = "%s, %s: longest under %d GB" % (case.name, mode, CAP)
            results.put(name=case.name, mode=mode, cap_gb=CAP, longest=low, shortest_too_long=high, whole=whole)
            results.check(name, "found", "%d fits, %d does not" % (low, high) if whole else "between %d and %d" % (low, high), whole)
            if whole:
                longest[mode] = low
        own = [longest[mode] for mode in PYTORCH if mode in longest]
        if "gmstitch" in longest and own:
            results.check(case.name + ": longest", "longer than %s" % own, longest["gmstitch"], longest["gmstitch"] > max(own))


def search(o, results, budget, case, mode):
    """Returns the longest that fitted, the shortest that did not, and whether the search came to its end."""
    low, high = case.fits, case.too_long
    while high - low > case.unit:
        length = (low + high) // 2 // case.unit * case.unit
        if not budget.allows(case.seconds, "%s under %s, %d long" % (case.name, mode, length)):
            return low, high, False
        words = [sys.executable, TRAIN, case.name, "--cap", CAP, "--steps", case.steps, "--longest", length, *case.flags]
        ended = run(o.bin, mode, words, min(budget.left(), 4 * case.seconds), results.log)
        if ended.code == 0:
            low = length
        elif ended.code == OUT_OF_MEMORY:
            high = length
        else:
            results.check("%s, %s, %d long" % (case.name, mode, length), "trains, or lacks memory", "status %s" % ended.code, False)
            return low, high, False
        case.seconds = 1.3 * ended.seconds
    return low, high, True
