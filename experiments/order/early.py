"""Trains programs with early updates and without, and says what memory and time a step takes, and whether parameters are equal to the bit.

Usage: python3 early.py GMSWAP [--device cuda|cpu] [--small] [--steps N] [--csv FILE] [PROGRAM...]

Each program runs in processes of its own: plainly, by gmswap run --early-updates, and plainly again where these differ, all with deterministic kernels
and PyTorch's allocator. Peaks are the most allocated bytes of the last steps, those in which early updates are made; times are medians of these steps.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

FIELDS = "program", "mode", "torch", "allocated", "step_s", "parameters", "digest", "gradients_most", "gradients_all"
WATCHED = 4  # steps in which an optimizer is looked at, and one more


def llama(small):
    """A Llama of one billion parameters in bf16, from transformers, with AdamW one by one."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    width, layers, tokens = (128, 2, 64) if small else (2048, 16, 1024)
    config = LlamaConfig(hidden_size=width, num_hidden_layers=layers, num_attention_heads=width // 64, intermediate_size=4 * width, vocab_size=32000,
                         use_cache=False)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    return model, lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4), lambda: (torch.randint(0, 32000, (2, tokens)),), lambda m, x: m(input_ids=x, labels=x).loss


def gpt2(small):
    """GPT-2 large of transformers in fp32, with fused AdamW on a GPU."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=128, n_layer=2, n_head=2) if small else GPT2Config(n_embd=1280, n_layer=36, n_head=20)
    tokens = 64 if small else 512
    fused = torch.cuda.is_available()
    return GPT2LMHeadModel(config), lambda m: torch.optim.AdamW(m.parameters(), lr=1e-4, fused=fused), lambda: (torch.randint(0, 50000, (2, tokens)),), lambda m, x: m(input_ids=x, labels=x).loss


def vgg(small):
    """VGG-16 of torchvision, whose parameters are many for its activations, with SGD and momentum."""
    return vision("vgg16", 2 if small else 16)


def resnet(small):
    """ResNet-152 of torchvision, with SGD and momentum."""
    return vision("resnet18" if small else "resnet152", 2 if small else 8)


def vision(name, batch):
    import torch
    import torchvision

    model = getattr(torchvision.models, name)()
    return (model, lambda m: torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9, foreach=True),
            lambda: (torch.randn(batch, 3, 224, 224), torch.randint(0, 1000, (batch,))),
            lambda m, x, y: torch.nn.functional.cross_entropy(m(x), y))


PROGRAMS = {f.__name__: f for f in (llama, gpt2, vgg, resnet)}


def train(o):
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model, make, batch, loss = PROGRAMS[o.programs[0]](o.small)
    model.to(o.device)
    optimizer, times, peaks = make(model), [], []
    for _ in range(o.steps):
        inputs = [x.to(o.device) for x in batch()]
        synchronize(o.device, reset=True)
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(model, *inputs).backward()
        optimizer.step()
        synchronize(o.device)
        times.append(time.perf_counter() - start)
        peaks.append(torch.cuda.max_memory_allocated() if o.device == "cuda" else 0)
    digest = hashlib.sha256()
    for p in model.parameters():
        digest.update(p.detach().float().cpu().numpy().tobytes())
    with open(o.child, "w") as f:
        json.dump({"torch": torch.__version__, "allocated": max(peaks[WATCHED:]), "step_s": round(statistics.median(times[WATCHED:]), 5),
                   "parameters": sum(p.numel() * p.element_size() for p in model.parameters()), "digest": digest.hexdigest()[:16]}, f)


def synchronize(device, reset=False):
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
        if reset:
            torch.cuda.reset_peak_memory_stats()


def run(o, name, mode):
    """Runs a program in a process of its own and returns its row."""
    prefix = [o.gmswap, "run", "--early-updates", "--allocator", "torch", "--"] if mode == "early" else []
    with tempfile.TemporaryDirectory() as folder:
        seen = os.path.join(folder, "seen")
        command = prefix + [sys.executable, os.path.abspath(__file__), o.gmswap, "--child", seen, "--device", o.device, "--steps", str(o.steps), name]
        command += ["--small"] * o.small
        ended = subprocess.run(command, env=dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8"), stderr=subprocess.PIPE, text=True)
        if ended.returncode:
            print("%s, %s: status %d\n%s" % (name, mode, ended.returncode, ended.stderr[-2000:]))
            return None
        lines = [line for line in ended.stderr.splitlines() if line.startswith("gmswap: ")]
        print("\n".join("    " + line for line in lines) or "    -", flush=True)
        with open(seen) as f:
            row = dict(json.load(f), program=name, mode=mode)
    counts = re.findall(r"at most (\d+) bytes of gradients at a time, of (\d+)", "\n".join(lines))
    if counts:
        row["gradients_most"], row["gradients_all"] = map(int, counts[0])
    return row


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("gmswap", type=os.path.abspath)
    p.add_argument("programs", nargs="*", default=list(PROGRAMS))
    p.add_argument("--device", default="cuda")
    p.add_argument("--small", action="store_true")
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--csv")
    p.add_argument("--child", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    if o.child:
        return train(o)
    rows = []
    for name in o.programs:
        ended = [run(o, name, mode) for mode in ("plain", "early")]
        if None not in ended and ended[0]["digest"] != ended[1]["digest"]:
            ended.append(run(o, name, "again"))
        rows += filter(None, ended)
    if o.csv:
        with open(o.csv, "w", newline="") as f:
            out = csv.DictWriter(f, FIELDS, lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
    print("%-8s %-6s %11s %9s %18s" % ("program", "mode", "allocated", "step", "parameters after"))
    for r in rows:
        print("%-8s %-6s %8.1f MB %7.4f s %18s" % (r["program"], r["mode"], r["allocated"] / 1e6, r["step_s"], r["digest"]))
    different = {r["program"] for r in rows if r["mode"] == "early"} - {
        r["program"] for r in rows for s in rows if r["program"] == s["program"] and (r["mode"], s["mode"]) == ("plain", "early") and r["digest"] == s["digest"]}
    for name in sorted(different):
        print("NOT EQUAL: " + name)
    sys.exit(bool(different) or len(rows) < 2 * len(o.programs))


main()
