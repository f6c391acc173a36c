"""Trains Llamas whose optimizer's states wait on the host, and says whether bits are the same, what was reserved, and how long steps take.

Usage: python3 states.py BIN OUT [--seconds N] [PART...]

BIN holds gmswap. Parts: `same`, a small Llama for 100 steps with deterministic kernels, whose losses, parameters and states must come out equal to the
bit; `7b`, `3b` and `13b`, Llamas in bfloat16, parameters, gradients and states of AdamW, 8 texts of 2,048 tokens, each layer recomputed by the program
(torch.utils.checkpoint) or not, by plain PyTorch, by gmswap run -m 45GB, and with an optimizer on the host. OUT gets states.csv and states.log. The
bounds are max(compute, link), where updates may begin in the backward pass, and compute + link, where all gradients are clipped before: compute is
plain PyTorch's step, link the time of all states at 55 GB/s, both ways at once. `wide` is AdamW with states in float32, which torch.optim has not.
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
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = {  # width, inner width, heads, layers, texts, tokens
    "same": (2048, 5504, 16, 8, 2, 1024), "3b": (3072, 8192, 24, 28, 8, 2048), "7b": (4096, 11008, 32, 32, 8, 2048),
    "13b": (5120, 13824, 40, 40, 8, 2048),
    "tiny": (1024, 2816, 8, 2, 2, 256),
}
LINK = 55e9  # bytes/s each way
LIMITS = {"same": "3600MB", "3b": "22GB", "7b": "45GB", "13b": "90GB", "tiny": "900MB"}
HOST = "112GB"
# Of each part: a name, the words of gmswap (None: without it) and those of the child.
RUNS = {
    "same": [
        ("plain", None, ["--steps", "100", "--clip"]),
        ("gmswap", [], ["--steps", "100", "--clip"]),
        ("plain fused", None, ["--steps", "100", "--fused"]),
        ("gmswap fused", [], ["--steps", "100", "--fused"]),
        ("gmswap early", ["--early-updates"], ["--steps", "100", "--fused"]),
        ("plain wide", None, ["--steps", "100", "--wide"]),
        ("gmswap wide", [], ["--steps", "100", "--wide"]),
        ("gmswap wide early", ["--early-updates"], ["--steps", "100", "--wide"]),
    ],
    "big": [
        ("plain, checkpoints", None, ["--steps", "6", "--checkpoints"]),
        ("gmswap, checkpoints, clipped", [], ["--steps", "12", "--checkpoints", "--clip"]),
        ("gmswap early, checkpoints", ["--early-updates"], ["--steps", "14", "--checkpoints"]),
        ("gmswap wide, checkpoints, clipped", [], ["--steps", "12", "--checkpoints", "--clip", "--wide"]),
        ("gmswap wide early, checkpoints", ["--early-updates"], ["--steps", "14", "--checkpoints", "--wide"]),
        ("plain", None, ["--steps", "6"]),
        ("gmswap, clipped", [], ["--steps", "14", "--clip"]),
        ("gmswap early", ["--early-updates"], ["--steps", "16"]),
        ("on the host, checkpoints", None, ["--steps", "5", "--checkpoints", "--host"]),
        ("on the host, checkpoints, clipped", None, ["--steps", "5", "--checkpoints", "--host", "--clip"]),
    ],
}
FIELDS = "part", "run", "ok", "step", "steps", "reserved", "allocated", "states", "bound", "ratio", "digest", "said"


def with_wide_states():
    """Returns AdamW with states in 32 bits, whatever parameters are in, written plainly."""
    import torch

    class AdamW32(torch.optim.Optimizer):
        def __init__(self, parameters, lr):
            super().__init__(parameters, dict(lr=lr))

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.update(p, group["lr"], self.state[p])

        def update(self, p, lr, state):
            if not state:
                state.update(step=0, exp_avg=torch.zeros_like(p, dtype=torch.float32), exp_avg_sq=torch.zeros_like(p, dtype=torch.float32))
            state["step"] += 1
            g, first, second = p.grad.float(), state["exp_avg"], state["exp_avg_sq"]
            first.lerp_(g, 0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            step = second.sqrt().mul_((1 - 0.999 ** state["step"]) ** -0.5).add_(1e-8).reciprocal_().mul_(first)
            p.mul_(1 - 0.01 * lr).add_(step, alpha=-lr / (1 - 0.9 ** state["step"]))

    return AdamW32


class OnHost(object):
    """AdamW on the host, as torchao's CPUOffloadOptimizer has it: a pinned copy of each parameter, and an optimizer for it. Gradients go to the host
    as they become complete, or in step() if they are clipped before."""

    def __init__(self, parameters, clipped):
        import torch

        self.torch, self.parameters, self.stream = torch, list(parameters), torch.cuda.Stream()
        self.copies, self.optimizers, self.waiting = {}, {}, {}
        for p in self.parameters:
            copy = self.copies[p] = torch.empty(p.shape, dtype=p.dtype, pin_memory=True).copy_(p.detach())
            copy.grad = torch.empty_like(copy, pin_memory=True)
            self.optimizers[p] = torch.optim.AdamW([copy], lr=1e-4, fused=True)
            if not clipped:
                p.register_post_accumulate_grad_hook(self.send)

    def send(self, p):
        self.stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(self.stream):
            self.copies[p].grad.copy_(p.grad, non_blocking=True)
            p.grad.record_stream(self.stream)
            self.waiting[p] = self.stream.record_event()
        p.grad = None

    def step(self):
        for p in self.parameters:
            if p.grad is not None:
                self.send(p)
        for p, event in self.waiting.items():
            event.synchronize()
            self.optimizers[p].step()
            with self.torch.cuda.stream(self.stream):
                p.data.copy_(self.copies[p], non_blocking=True)
        self.waiting.clear()
        self.torch.cuda.current_stream().wait_stream(self.stream)

    def zero_grad(self):
        pass


def child(o):
    sys.path.insert(0, HERE)
    import torch

    import llama
    import train

    llama.WIDTH, llama.INNER, llama.HEADS, layers, texts, tokens = SIZES[o.child]
    if o.child in ("same", "tiny"):
        train.same_each_time()
    torch.manual_seed(0)
    model = llama.llama(layers, o.checkpoints)
    parameters = list(model.parameters())
    if o.host:
        optimizer = OnHost(parameters, o.clip)
    elif o.wide:
        optimizer = with_wide_states()(parameters, lr=1e-4)
    else:
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, **({"fused": True} if o.fused else {}))
    scheduler = None if o.host else torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=50)
    generator = torch.Generator(device="cuda").manual_seed(1)
    times, losses = [], []
    for step in range(o.steps):
        ids = torch.randint(llama.VOCABULARY, (texts, tokens), device="cuda", generator=generator)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loss = model(ids)
        loss.backward()
        if o.clip:
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        losses.append(float(loss.detach()))
        if scheduler:
            scheduler.step()
        print("%d: %.4f s, loss %s" % (step, times[-1], losses[-1].hex()), flush=True)
    print("RESULT " + json.dumps({
        "steps": [round(t, 4) for t in times], "reserved": torch.cuda.max_memory_reserved(), "allocated": torch.cuda.max_memory_allocated(),
        "states": 2 * sum(p.numel() * (4 if o.wide else p.element_size()) for p in parameters),
        "digest": digest(losses, parameters, optimizer) if o.child in ("same", "tiny") else ""}), flush=True)


def digest(losses, parameters, optimizer):
    import torch

    sums = hashlib.sha256(json.dumps(losses).encode())
    for p in parameters:
        state = optimizer.state[p]
        for t in (p, state["exp_avg"], state["exp_avg_sq"]):
            sums.update(t.detach().cpu().view(torch.uint8).numpy().tobytes())
    return sums.hexdigest()[:12]


def run(o, log, part, name, words, more, seconds):
    """Runs a child, and returns a row."""
    command = [sys.executable, os.path.abspath(__file__), "", "", "--child", part, *more]
    if words is not None:
        command = [os.path.join(o.bin, "gmswap"), "run", "-m", o.limit or LIMITS[part], "--host", HOST, "--progress", *words, "--"] + command
    row, begin = dict.fromkeys(FIELDS, ""), time.monotonic()
    row.update(part=part, run=name, ok="no")
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds,
                           env=dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8"))
        out = p.stdout
    except subprocess.TimeoutExpired as e:
        out = (e.stdout or b"").decode(errors="replace") + "\ntoo long"
    log.write("\n$ %s, %s: %s\n%s\n" % (part, name, " ".join(command), out))
    log.flush()
    said = [line for line in out.splitlines() if line.startswith("gmswap: ") and not re.match(r"gmswap: step \d+:", line)]
    row["said"] = " | ".join(said)
    found = re.findall(r"^RESULT (.*)$", out, re.M)
    if found:
        result = json.loads(found[-1])
        steps = result.pop("steps")
        row.update(result, ok="yes", step="%.4f" % statistics.median(steps[-3:]), steps=" ".join(map(str, steps)))
    print("== %s, %s: %s, %.0f s\n%s" % (part, name, "ok" if found else "FAILED", time.monotonic() - begin,
                                        "\n".join("   " + line[:300] for line in (said if found else out.splitlines()[-12:]))), flush=True)
    return row


def judge(rows):
    """Fills in bounds, from the plain run with the same checkpoints."""
    for r in rows:
        plain = next((p for p in rows if p["part"] == r["part"] and p["ok"] == "yes" and p["run"].startswith("plain")
                      and ("checkpoints" in p["run"]) == ("checkpoints" in r["run"])), None)
        if r["ok"] != "yes" or plain is None or r["part"] in ("same", "tiny"):
            continue
        compute, link = float(plain["step"]), int(r["states"]) / LINK
        bound = compute + link if "clipped" in r["run"] else max(compute, link)
        r.update(bound="%.4f" % bound, ratio="%.3f" % (float(r["step"]) / bound))


def plain_of(run):
    """Returns the name of the run without gmswap that must come out the same."""
    return {"gmswap early": "plain fused", "gmswap wide early": "plain wide"}.get(run, run.replace("gmswap", "plain"))


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("parts", nargs="*", default=["same", "7b", "3b"])
    p.add_argument("--seconds", type=float, default=350)
    p.add_argument("--limit", help="-m, instead of the part's own")
    p.add_argument("--only", default="", help="words that the names of runs have, with | between")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--steps", type=int, default=10, help=argparse.SUPPRESS)
    for flag in "clip", "fused", "checkpoints", "host", "wide":
        p.add_argument("--" + flag, action="store_true", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    if o.child:
        return child(o)
    os.makedirs(o.out, exist_ok=True)
    end, rows = time.monotonic() + o.seconds, []
    with open(os.path.join(o.out, "states.log"), "w") as log:
        for part in o.parts:
            for name, words, more in RUNS.get(part, RUNS["same" if part == "tiny" else "big"]):
                left = end - time.monotonic()
                if left > 10 and any(word in name for word in o.only.split("|")):
                    rows.append(run(o, log, part, name, words, more, min(left, 120)))
    judge(rows)
    with open(os.path.join(o.out, "states.csv"), "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, delimiter=";", lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    print("%-5s %-34s %3s %8s %9s %9s %8s %8s %7s %s" % ("part", "run", "ok", "step", "reserved", "allocated", "states", "bound", "ratio", "digest"))
    for r in rows:
        gb = {k: "%.2f GB" % (int(r[k]) / 1e9) if r[k] != "" else "" for k in ("reserved", "allocated", "states")}
        print("%-5s %-34s %3s %8s %9s %9s %8s %8s %7s %s" % (r["part"], r["run"], r["ok"], r["step"], gb["reserved"], gb["allocated"], gb["states"],
                                                         r["bound"], r["ratio"], r["digest"]))
    small = [r for r in rows if r["part"] in ("same", "tiny")]
    unequal = [r for r in small if r["digest"] != next((s["digest"] for s in small if s["run"] == plain_of(r["run"])), "")]
    for r in unequal:
        print("DIFFERS: %s, %s" % (r["part"], r["run"]))
    sys.exit(bool(unequal or any(r["ok"] != "yes" for r in rows)))


main()
