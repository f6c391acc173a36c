"""Runs one program of programs.py and prints what it took, as a line of JSON.

Usage: train.py NAME [--steps N] [KEY=VALUE...]

The line holds the time of each step in seconds, a digest of the losses, and the peaks in bytes: allocated and reserved as PyTorch counts them, and
`card`, what the card has less at the end than at the start.
"""

import argparse
import hashlib
import json
import random
import time
import traceback

import torch

from programs import PROGRAMS


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("name", choices=sorted(PROGRAMS))
    p.add_argument("settings", nargs="*")
    p.add_argument("--steps", type=int, default=24)
    o = p.parse_intermixed_args()
    settings = dict(s.split("=", 1) for s in o.settings)
    random.seed(0)
    torch.manual_seed(0)
    before = torch.cuda.mem_get_info()[0]
    result = {"name": o.name, "ok": True}
    times, losses = [], []
    try:
        for loss in PROGRAMS[o.name](o.steps, **settings):
            torch.cuda.synchronize()
            times.append(time.perf_counter())
            losses.append(float(loss))
    except Exception as e:
        traceback.print_exc()
        result["ok"] = "%s: %s" % (type(e).__name__, str(e)[:200])
    result.update(
        steps=[round(b - a, 5) for a, b in zip(times, times[1:])], losses=hashlib.md5(json.dumps(losses).encode()).hexdigest()[:12],
        allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(), card=before - torch.cuda.mem_get_info()[0])
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
