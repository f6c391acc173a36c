"""Trains programs whose sizes vary from step to step under limits of memory that they would exceed, and says what they take and how long.

Usage: python3 limits.py BIN OUT [--steps N] [--shares 70,50] [--seconds N] [PROGRAM...]

BIN holds gmstitch and gmswap. A program is one of ../programs, or `same`: a small Llama with texts of all lengths, evaluations and a second backward pass,
with deterministic kernels, whose parameters must come out equal to the bit. Each runs under gmstitch, and then by gmswap run -m, with shares of what it
had allocated at its peak. OUT gets limits.csv. A row says whether reserved bytes stayed within the limit; times are those of the steps from the fifth on,
against gmstitch's: the median of the ratios, and all together.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import statistics
import sys
import time

import runner

FIRST = 4  # steps in which a schedule is made
FIELDS = "program", "share", "limit", "allocated", "reserved", "held", "median", "all", "longest", "losses", "ways", "steps"


def same(steps):
    """Trains the small Llama and yields losses; the last is a digest of the parameters."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.use_deterministic_algorithms(True, warn_only=True)
    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=16, vocab_size=16000, use_cache=False,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    draw = torch.Generator().manual_seed(0)
    for step in range(steps):
        length = int(torch.randint(128, 1025, (), generator=draw))
        ids = torch.randint(0, 16000, (4, length), generator=draw).cuda()
        loss = model(input_ids=ids, labels=ids).loss
        if step % 5 == 4:
            with torch.no_grad():
                model(input_ids=ids[:, : length // 2])
        loss.backward(retain_graph=step % 4 == 3)
        if step % 4 == 3:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield float(loss)
    digest = hashlib.sha256()
    for p in model.parameters():
        digest.update(p.detach().float().cpu().numpy().tobytes())
    yield int(digest.hexdigest()[:12], 16)


def child(steps):
    import torch

    torch.manual_seed(0)
    times, losses, program = [], [], same(steps)
    while True:
        begin = time.perf_counter()
        loss = next(program, None)
        if loss is None:
            break
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        losses.append(loss)
    print("RESULT " + json.dumps({
        "ok": True, "steps": [round(t, 5) for t in times[1:-1]], "losses": hashlib.md5(json.dumps(losses).encode()).hexdigest()[:12],
        "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}))


def run(prefix, name, steps, seconds):
    """Returns the result of a program and what was said, None for a result where it failed."""
    words = [os.path.abspath(__file__), "", "", "--child", "--steps", str(steps)] if name == "same" else [runner.TRAIN, name, "--steps", str(steps)]
    result, said, failed = runner.run(prefix + [sys.executable] + words, seconds, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    return (result, said) if result is not None else (None, "%s\n%s" % (failed, said[-3000:]))


def row(name, share, limit, plain, result, said):
    held = [t / p for t, p in zip(result["steps"][FIRST:], plain["steps"][FIRST:])]
    ways = re.findall(r"gmswap: \d+ steps \((.*)\): ", said)
    return dict(program=name, share=share, limit=limit, allocated=result["allocated"], reserved=result["reserved"],
                held="yes" if result["reserved"] <= limit else "NO", median="%.3f" % statistics.median(held),
                all="%.3f" % (sum(result["steps"][FIRST:]) / sum(plain["steps"][FIRST:])),
                longest="%.3f" % (max(result["steps"][FIRST:]) / max(plain["steps"][FIRST:])),
                losses=result["losses"], ways="; ".join(ways), steps=" ".join(map(str, result["steps"])))


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("programs", nargs="*", default=["same", "hf", "maskrcnn"])
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--shares", type=lambda s: [int(x) for x in s.split(",")], default=[70, 50])
    p.add_argument("--seconds", type=float, default=560)
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    if o.child:
        return child(o.steps)
    os.makedirs(o.out, exist_ok=True)
    end, rows, failed = time.monotonic() + o.seconds, [], []
    tool = lambda name, *words: [os.path.join(o.bin, name), "run", *words, "--"]
    for name in o.programs:
        plain, said = run(tool("gmstitch"), name, o.steps, max(1, end - time.monotonic()))
        if plain is None:
            failed.append((name, "plain", said))
            continue
        rows.append(row(name, 100, plain["reserved"], plain, plain, said))
        for share in o.shares:
            limit = plain["allocated"] * share // 100
            result, said = run(tool("gmswap", "-m", str(limit)), name, o.steps, max(1, end - time.monotonic()))
            print("== %s, %d %%\n%s" % (name, share, "\n".join("  " + line for line in said.splitlines() if line.startswith(("gmswap", "gm:")))), flush=True)
            if result is None:
                failed.append((name, share, said))
            else:
                rows.append(row(name, share, limit, plain, result, said))
    with open(os.path.join(o.out, "limits.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter=";", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    for name, share, said in failed:
        print("FAILED: %s, %s: %s" % (name, share, said))
    print("%-9s %5s %9s %9s %9s %4s %7s %7s %7s %13s  %s" % ("program", "share", "limit", "allocated", "reserved", "held", "median", "all", "longest", "losses", "steps"))
    for r in rows:
        print("%-9s %3d %% %6.2f GB %6.2f GB %6.2f GB %4s %7s %7s %7s %13s  %s" % (
            r["program"], r["share"], r["limit"] / 1e9, r["allocated"] / 1e9, r["reserved"] / 1e9, r["held"], r["median"], r["all"], r["longest"], r["losses"], r["ways"]))
    unequal = [r for r in rows if r["program"] == "same" and r["losses"] != next(s["losses"] for s in rows if s["program"] == "same")]
    sys.exit(bool(failed or unequal or any(r["held"] == "NO" for r in rows)))


main()
