"""Measures gm's order of operators in programs of torch.compile: peaks by Inductor's model of memory, compile times, and whether results are equal.

Usage: python3 inductor.py [--gmswap PROGRAM] [--device cpu|cuda] [--batch N] [--size N] [--infer] [--peaks] [--jobs N] [--seconds N] [--csv FILE] [MODEL...]

Each model of compiled.py runs three training steps three times, in processes of their own with empty caches: with nothing reordered, plainly, and by
gmswap run --order. For each graph that is compiled, the forward and the backward pass of a model, the peaks are those of the order that Inductor
begins with (baseline), of its three methods, and of the order that the graph got. A peak counts what Inductor's estimate counts: buffers until their
last use, outputs until the end, and inputs that can be freed. Of a whole step on a GPU the most allocated bytes are noted, too. The time to compile
is that of the first step less that of the second one, and less what was spent here. With --peaks no kernels of the CPU are compiled, which takes
minutes for some models: times are without that, and results are not compared. --jobs models are run at a time, and none is begun after --seconds.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

import compiled

MODELS = "alexnet", "vgg11", "squeezenet1_1", "mobilenet_v2", "densenet121", "random32", "random64"
FIELDS = ("model", "pass", "device", "batch", "size", "torch", "graph", "nodes", "baseline", "lpmf", "bfs", "dfs", "plain", "gm",
          "equal", "compile_plain_s", "compile_gm_s", "step_none", "step_plain", "step_gm")


def peak(nodes, inputs, outputs):
    """Returns the most bytes in memory at once, and checks Inductor's estimate: later versions of it leave out the outputs."""
    place = {node: i for i, node in enumerate(nodes)}
    change = [0] * (len(nodes) + 1)
    kept = 0
    buffers = [(b, 0, b.mpi_buffer.size_free) for b in inputs.values()]
    buffers += [(b, i, b.mpi_buffer.size_alloc) for i, node in enumerate(nodes) for b in node.get_outputs()]
    for b, first, size in buffers:
        last = max((place[s] for s in b.mpi_buffer.succ_nodes), default=first)
        if b.get_name() in outputs:
            last, kept = len(nodes) - 1, kept + b.mpi_buffer.size_free
        change[first] += size
        change[last + 1] -= b.mpi_buffer.size_free
    found = max(itertools.accumulate(change))
    from torch._inductor import memory
    estimate = memory.estimate_peak_memory(nodes, inputs, outputs)[0]
    assert estimate in (found, found - kept), (estimate, found, kept)
    return found


class Watch(object):
    """Notes the peaks of all methods for each graph that Inductor orders."""

    def __init__(self):
        from torch._inductor import memory
        self.memory, self.real = memory, memory.reorder_for_peak_memory
        self.graphs, self.seconds = [], 0.0
        memory.reorder_for_peak_memory = self.reorder

    def reorder(self, nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs):
        got = self.real(nodes, name_to_buf, name_to_fused_node, graph_inputs, graph_outputs)
        start, m = time.perf_counter(), self.memory
        inputs = m.get_freeable_input_buf(nodes, graph_inputs)
        orders = {"baseline": nodes, "lpmf": m.topological_sort_lpmf(nodes, inputs, name_to_buf, graph_outputs),
                  "bfs": m.topological_sort_bfs(nodes), "dfs": m.topological_sort_dfs(nodes), "got": got}
        self.graphs.append(dict({name: peak(order, inputs, graph_outputs) for name, order in orders.items()}, nodes=len(nodes)))
        self.seconds += time.perf_counter() - start
        return got


def train(args):
    """Runs two steps of a model, and writes what was seen as JSON."""
    import torch

    watch = Watch()
    if args.peaks:
        from torch._inductor.async_compile import AsyncCompile
        AsyncCompile.cpp_pybinding = lambda *_: lambda *_: None
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch._inductor.config.reorder_for_peak_memory = not args.unordered
    if hasattr(torch._inductor.config, "deterministic"):
        torch._inductor.config.deterministic = True
    torch.manual_seed(0)
    model, inputs, result = compiled.make(args.models[0], args.batch, args.size, args.device)
    program = torch.compile(model.train(not args.infer))
    digest, seconds = hashlib.sha256(), []
    for _ in range(3):
        torch.manual_seed(1)
        model.zero_grad()
        if args.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        with torch.set_grad_enabled(not args.infer):
            out = result(program(*inputs))
        if not args.infer:
            out.float().square().mean().backward()
        digest.update(out.detach().cpu().numpy().tobytes())
        seconds.append(time.perf_counter() - start)
        for p in model.parameters():
            digest.update(p.grad.cpu().numpy().tobytes() if p.grad is not None else b"")
    with open(args.child, "w") as f:
        json.dump({"graphs": watch.graphs, "digest": digest.hexdigest(), "compile": seconds[0] - seconds[1] - watch.seconds,
                   "torch": torch.__version__, "step": torch.cuda.max_memory_allocated() if args.device == "cuda" else ""}, f)


def run(args, model, prefix=(), more=()):
    """Runs a model in a process of its own, and returns what it saw."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "seen")
        command = [sys.executable, os.path.abspath(__file__), "--child", out, "--device", args.device, "--batch", str(args.batch),
                   "--size", str(args.size), model, *more] + ["--infer"] * args.infer + ["--peaks"] * args.peaks
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "cache"), CUBLAS_WORKSPACE_CONFIG=":4096:8")
        subprocess.run([*prefix, *command], check=True, env=env)
        with open(out) as f:
            return json.load(f)


def rows(args, model):
    none = run(args, model, more=["--unordered"])
    plain = run(args, model)
    ordered = run(args, model, [args.gmswap, "run", "--order", "--allocator", "torch", "--"])
    assert len(plain["graphs"]) == len(ordered["graphs"])
    made = []
    for i, (p, o) in enumerate(zip(plain["graphs"], ordered["graphs"])):
        assert all(p[k] == o[k] for k in ("nodes", "baseline", "lpmf", "bfs", "dfs")), (p, o)
        made.append({"pass": "inference" if args.infer else ("forward", "backward")[i % 2], **dict(
            model=model, device=args.device, batch=args.batch, size=args.size, torch=plain["torch"], graph=i, nodes=p["nodes"],
            baseline=p["baseline"], lpmf=p["lpmf"], bfs=p["bfs"], dfs=p["dfs"], plain=p["got"], gm=o["got"],
            equal="-" if args.peaks else "yes" if plain["digest"] == ordered["digest"] else "NO",
            compile_plain_s="%.2f" % plain["compile"], compile_gm_s="%.2f" % ordered["compile"],
            step_none=none["step"], step_plain=plain["step"], step_gm=ordered["step"])})
    return made


def several(args):
    """Returns the rows of all models, and says which failed or were left out."""
    end = time.monotonic() + args.seconds

    def one(model):
        if time.monotonic() > end:
            print("left out: " + model, flush=True)
            return []
        try:
            made = rows(args, model)
        except Exception as e:
            print("%s failed: %s: %s" % (model, type(e).__name__, e), flush=True)
            return []
        if args.csv:
            write(args.csv, made)
        return made

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return [row for made in pool.map(one, args.models) for row in made]


def write(path, made):
    with open(path, "a", newline="") as f:
        out = csv.DictWriter(f, FIELDS, lineterminator="\n")
        if not f.tell():
            out.writeheader()
        out.writerows(made)


def table(made):
    """Prints the rows, peaks in MiB."""
    print("%-14s %-9s %5s %9s %9s %9s %9s %9s %6s %5s %9s %9s" % (
        "model", "pass", "nodes", "baseline", "lpmf", "bfs", "dfs", "gm", "saved", "equal", "compile s", "with gm"))
    for r in made:
        peaks = ["%9.1f" % (r[k] / 2**20) for k in ("baseline", "lpmf", "bfs", "dfs", "gm")]
        print("%-14s %-9s %5d %s %5.1f%% %5s %9s %9s" % (r["model"], r["pass"], r["nodes"], " ".join(peaks),
              100.0 * (r["plain"] - r["gm"]) / max(r["plain"], 1), r["equal"], r["compile_plain_s"], r["compile_gm_s"]))
    for model, step in {r["model"]: [r["step_" + mode] for mode in ("none", "plain", "gm")] for r in made if r["step_gm"]}.items():
        print("%-14s whole step: nothing reordered %.1f MiB, Inductor %.1f, gm %.1f" % (model, *(x / 2**20 for x in step)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--gmswap", default="gmswap")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--infer", action="store_true", help="a forward pass alone")
    parser.add_argument("--peaks", action="store_true", help="compile no kernels of the CPU")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--csv", help="append the rows to this table")
    parser.add_argument("--unordered", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return train(args)
    made = several(args)
    table(made)
    sys.exit(not made or any(r["equal"] == "NO" for r in made))


main()
