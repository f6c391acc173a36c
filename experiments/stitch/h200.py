"""Checks gmstitch on a machine with an NVIDIA GPU and PyTorch.

Usage: h200.py BIN OUT [SECTION...] [--seconds N] [--rounds N] [--steps N] [--modes A,B] [--workloads A,B] [--traces FILE...]

BIN holds gmstitch and, for the section latency, the program of that name. The sections:

    workloads  the workloads in each mode, in turns     fsdp       OPT-13B under FSDP2, on 2 GPUs
    cap        the largest that fits under 40 GB        stress     random shapes, frees, streams and lacks of memory
    graphs     CUDA graphs, torch.compile and the rest  sanitizer  compute-sanitizer on a short run
    latency    BIN/latency                              replay     gmstitch replay of --traces
    peers      two GPUs in one process            planner    the planner is killed; BIN holds gmswap, too

OUT gets stitch.csv (a row for each run), checks.csv, stitch.json (all that was measured) and stitch.log (what the programs said); what is
there already is added to. A section stops after --seconds: what is left out is said. The exit status is 1 where a check did not hold.
"""

import argparse
import os
import sys
import time

import cap
import other_runs
import planner_runs
import workload_runs
from modes import MODES
from results import Results
from workloads import WORKLOADS

SECTIONS = {
    "workloads": workload_runs.workloads, "fsdp": workload_runs.fsdp, "cap": cap.section, "stress": other_runs.stress,
    "graphs": other_runs.graphs, "peers": other_runs.peers, "sanitizer": other_runs.sanitizer, "latency": other_runs.latency, "replay": other_runs.replay,
    "planner": planner_runs.section,
}


class Budget:
    """The seconds that a section may take."""

    def __init__(self, seconds, results):
        self.end, self.results = time.monotonic() + seconds, results

    def left(self):
        return max(1.0, self.end - time.monotonic())

    def allows(self, seconds, what):
        """Says whether so many seconds are left. If not, it is noted that something was left out."""
        if self.left() >= seconds:
            return True
        self.results.check(what, "runs", "left out: %.0f s needed, %.0f s left" % (seconds, self.left()), False)
        return False


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("sections", nargs="*", metavar="SECTION")
    p.add_argument("--seconds", type=float, default=570)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--steps", type=int, default=23)
    p.add_argument("--modes", type=lambda s: s.split(","), default=list(MODES))
    p.add_argument("--workloads", type=lambda s: s.split(","), default=list(WORKLOADS))
    p.add_argument("--traces", nargs="+", default=[], type=os.path.abspath)
    o = p.parse_intermixed_args()
    for given, known in ((o.sections, SECTIONS), (o.modes, MODES), (o.workloads, WORKLOADS)):
        for name in given:
            if name not in known:
                p.error("%s: not one of %s" % (name, ", ".join(known)))
    return o


def main():
    o = options()
    results = Results(o.out)
    for name in o.sections or ["workloads"]:
        start, results.section = time.monotonic(), name
        try:
            SECTIONS[name](o, results, Budget(o.seconds, results))
        except Exception as e:
            results.check(name, "no exception", "%s: %s" % (type(e).__name__, e), False)
        print("# %s took %.0f s" % (name, time.monotonic() - start), flush=True)
    sys.exit(0 if results.show() else 1)


if __name__ == "__main__":
    main()
