"""Runs one program of programs.py and prints what it took, as a line of JSON.

Usage: train.py NAME [--steps N] [--turns] [KEY=VALUE...]

The line holds the time of each step but the first in seconds, the losses and a digest of them, and the peaks in bytes, of the GPU that had the most: allocated and
reserved as PyTorch counts them, and `card`, what the card has less after the steps than before them. With --turns a step is made for each line of the standard input,
and followed by a line "STEP"; what the card has less between them does not count.
"""

import argparse
import hashlib
import json
import os
import random
import sys
import time
import traceback

import torch

from programs import PROGRAMS


def used(device):
    """Returns the GPUs that the process uses: of torchrun's each has one."""
    others = [] if "LOCAL_RANK" in os.environ else range(torch.cuda.device_count())
    return [device] + [i for i in others if i != device and torch.cuda.max_memory_allocated(i)]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("name", choices=sorted(PROGRAMS))
    p.add_argument("settings", nargs="*")
    p.add_argument("--steps", type=int, default=24)
    p.add_argument("--turns", action="store_true")
    o = p.parse_intermixed_args()
    device = int(os.environ.get("LOCAL_RANK", 0))
    settings = dict(s.split("=", 1) for s in o.settings)
    random.seed(0)
    torch.manual_seed(0)
    result = {"name": o.name, "rank": device, "ok": True}
    times, losses, card = [], [], 0
    try:
        program = PROGRAMS[o.name](o.steps, **settings)
        while True:
            if o.turns:
                sys.stdin.readline()
            before, begin = torch.cuda.mem_get_info(device)[0], time.perf_counter()
            loss = next(program, None)
            if loss is None:
                break
            for i in used(device):
                torch.cuda.synchronize(i)
            times.append(time.perf_counter() - begin)
            losses.append(float(loss))
            card += before - torch.cuda.mem_get_info(device)[0]
            if o.turns:
                print("STEP", flush=True)
    except Exception as e:
        traceback.print_exc()
        result["ok"] = "%s: %s" % (type(e).__name__, str(e)[:200])
    result.update(
        steps=[round(t, 5) for t in times[1:]], losses=hashlib.md5(json.dumps(losses).encode()).hexdigest()[:12], each=losses,
        allocated=max(map(torch.cuda.max_memory_allocated, used(device))), reserved=max(map(torch.cuda.max_memory_reserved, used(device))), card=card)
    print("RESULT " + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
