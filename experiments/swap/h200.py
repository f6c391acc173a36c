"""Checks gmswap on a machine with an NVIDIA GPU and PyTorch.

Usage: h200.py BIN OUT [SECTION...] [--seconds N] [--tokens N,N] [--steps N] [--policy NAME] [--eighths N] [--modes NAME,NAME]
                        [--save-on-cpu]

BIN holds gmswap. The sections:

    llama    8 layers of a Llama of 7B, 1 x N tokens: plain, recomputed, save_on_cpu, and under gmswap at several budgets
    longest  the longest sequence that fits in 40 GB, with 4 layers
    exact    200 steps: losses and gradients as without gmswap, to the last bit, and no growth of memory
    alpha    MEMO's fraction from 0 to 1, in steps of --eighths / 8: what is foreseen against what is measured; a chain of matrix products, Llama
    kinds    layers that are compiled, checkpoints, accumulated gradients
    parallel two ranks: data parallel, fully sharded
    follow   a schedule of gmswap plan
    link     gmswap bandwidth
    pair     two processes on two GPUs at once

OUT gets swap.json (all that was measured), checks.csv and swap.log (what the programs said); what is there already is added to. A section
stops after --seconds. The exit status is 1 where a check did not hold.
"""

import argparse
import os
import sys
import time

import runs
from results import Results

SECTIONS = {"llama": runs.llama, "longest": runs.longest, "exact": runs.exact, "alpha": runs.alpha, "kinds": runs.kinds, "parallel": runs.parallel,
            "follow": runs.follow, "link": runs.link, "pair": runs.pair}


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("sections", nargs="*", metavar="SECTION")
    p.add_argument("--seconds", type=float, default=570)
    p.add_argument("--tokens", type=lambda s: [int(n) for n in s.split(",")], default=[16384, 32768, 65536])
    p.add_argument("--steps", type=int, default=14)
    p.add_argument("--policy", default="auto")
    p.add_argument("--eighths", type=int, default=1)
    p.add_argument("--modes", type=lambda s: s.split(","), help="of the sections longest and kinds, or models of alpha; all by default")
    p.add_argument("--save-on-cpu", action="store_true", help="beside the first number of tokens")
    o = p.parse_intermixed_args()
    for name in o.sections:
        if name not in SECTIONS:
            p.error("%s: not one of %s" % (name, ", ".join(SECTIONS)))
    return o


def main():
    o = options()
    results = Results(o.out)
    for name in o.sections or ["llama"]:
        start, results.section = time.monotonic(), name
        try:
            SECTIONS[name](o, results, start + o.seconds)
        except Exception as e:
            results.check(name, "no exception", "%s: %s" % (type(e).__name__, e), False)
        print("# %s took %.0f s" % (name, time.monotonic() - start), flush=True)
    sys.exit(0 if results.show() else 1)


if __name__ == "__main__":
    main()
