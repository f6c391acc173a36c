"""Trains under gmswap with one policy after another, and says for each what was foreseen and what was measured.

Usage: gmswap run -- python sweep.py [--model llama|chain] [--tokens N] [--layers N] [--json FILE] POLICY...

A step is recorded once. For each policy a schedule is made of it, refined by the times of steps that follow it, and followed for some more.
"""

import argparse
import gc
import json
import statistics
import time

import torch

import chain
import llama

FOLLOWED = 3  # steps that are measured
PATIENCE = 8  # steps in which a schedule must have been refined


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("policies", nargs="+", metavar="POLICY")
    p.add_argument("--model", choices=("llama", "chain"), default="llama")
    p.add_argument("--tokens", type=int, default=16384)
    p.add_argument("--layers", type=int, default=8)
    p.add_argument("--json")
    return p.parse_args()


def runtime():
    """Returns what conducts the steps of this process."""
    return next(x for x in gc.get_objects() if type(x).__module__ == "gmswap_hook.runtime" and type(x).__name__ == "Runtime")


class Training:
    def __init__(self, a):
        self.model = llama.llama(a.layers) if a.model == "llama" else chain.chain(a.layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self.ids = torch.randint(llama.VOCABULARY, (1, a.tokens), device="cuda")

    def step(self):
        """Returns the time of a step and the most bytes that were in use in it."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        self.model(self.ids).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        return time.perf_counter() - start, torch.cuda.max_memory_allocated()


def follow(training, conduct, policy):
    """Has a policy make the schedule, and returns what was foreseen and measured."""
    conduct.settings.policy = policy
    conduct.schedule, conduct.clocks, conduct.refined = conduct.planner.make(), type(conduct.clocks)(), False
    for _ in range(PATIENCE):
        if conduct.refined:
            break
        training.step()
    steps = [training.step() for _ in range(FOLLOWED)]
    s = conduct.schedule
    return {"policy": policy, "foreseen_s": s.step_ns / 1e9, "measured_s": statistics.median(t for t, _ in steps),
            "foreseen_peak": s.peak, "measured_peak": max(peak for _, peak in steps), "refined": conduct.refined,
            "followed": s.followed, "deviated": conduct.deviated}


def main():
    a = arguments()
    training = Training(a)
    for _ in range(4):
        training.step()
    conduct = runtime()
    results = []
    for policy in a.policies:
        r = follow(training, conduct, policy)
        results.append(r)
        print("%s: step %.4f s, foreseen %.4f; peak %.3f GB, foreseen %.3f; %s" % (
            policy, r["measured_s"], r["foreseen_s"], r["measured_peak"] / 1e9, r["foreseen_peak"] / 1e9, r), flush=True)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"model": a.model, "tokens": a.tokens, "layers": a.layers, "results": results}, f)


if __name__ == "__main__":
    main()
