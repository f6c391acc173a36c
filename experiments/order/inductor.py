"""Measures gm's order of operators in programs of torch.compile: peaks by Inductor's model of memory, compile times, and whether results are equal.

Usage: python3 inductor.py [--gmswap PROGRAM] [--device cpu|cuda] [--batch N] [--size N] [--infer] [--peaks] [--csv FILE] [MODEL...]

Each model, of torchvision or randomN, a convolutional network of N nodes that are wired at random, runs two training steps twice, in processes of their own with empty caches: plainly, and by gmswap run --order. For each
graph that is compiled, the forward and the backward pass of a model, the peaks are those of the order that Inductor begins with (baseline), of its
three methods, and of the order that the graph got. A peak counts what Inductor's estimate counts: buffers until their last use, outputs until the
end, and inputs that can be freed. The time to compile is that of the first step less that of the second one, and less what was spent here.
With --peaks no kernels of the CPU are compiled, which takes minutes for some models: times are without that, and results are not compared.
"""

import argparse
import csv
import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

MODELS = "alexnet", "vgg11", "squeezenet1_1", "mobilenet_v2", "densenet121", "random32", "random64"
FIELDS = ("model", "pass", "device", "batch", "size", "torch", "graph", "nodes", "baseline", "lpmf", "bfs", "dfs", "plain", "gm",
          "equal", "compile_plain_s", "compile_gm_s")


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


def network(name):
    import torch
    import torchvision

    if not name.startswith("random"):
        return getattr(torchvision.models, name)(num_classes=1000)

    class Wired(torch.nn.Module):
        """Nodes that add what they read and convolve it, wired as a Watts-Strogatz graph (n, 4, 0.75) with edges from lower to higher numbers."""

        def __init__(self, nodes, channels=32):
            super().__init__()
            rng = random.Random(nodes)
            edges = set()
            for i in range(nodes):
                for near in (1, 2):
                    to = (i + near) % nodes
                    while rng.random() < 0.75 or to == i or tuple(sorted((i, to))) in edges:
                        to = rng.randrange(nodes)
                        if to != i and tuple(sorted((i, to))) not in edges:
                            break
                    edges.add(tuple(sorted((i, to))))
            self.reads = [sorted(a for a, b in edges if b == i) for i in range(nodes)]
            self.ends = [i for i in range(nodes) if all(a != i for a, _ in edges)]
            self.first = torch.nn.Conv2d(3, channels, 3, padding=1)
            self.convs = torch.nn.ModuleList(torch.nn.Conv2d(channels, channels, 3, padding=1) for _ in range(nodes))

        def forward(self, x):
            x, made = self.first(x), []
            for reads, conv in zip(self.reads, self.convs):
                made.append(conv(torch.relu(sum(made[i] for i in reads) if reads else x)))
            return sum(made[i] for i in self.ends)

    return Wired(int(name[len("random"):]))


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
    torch.backends.cudnn.deterministic = True
    torch.manual_seed(0)
    model = network(args.models[0]).to(args.device).train(not args.infer)
    batch = torch.randn(args.batch, 3, args.size, args.size, device=args.device)
    compiled = torch.compile(model)
    digest, seconds = hashlib.sha256(), []
    for _ in range(2):
        torch.manual_seed(1)
        model.zero_grad()
        start = time.perf_counter()
        with torch.set_grad_enabled(not args.infer):
            out = compiled(batch)
        if not args.infer:
            out.square().mean().backward()
        digest.update(out.detach().cpu().numpy().tobytes())
        seconds.append(time.perf_counter() - start)
        for p in model.parameters():
            digest.update(p.grad.cpu().numpy().tobytes() if p.grad is not None else b"")
    with open(args.child, "w") as f:
        json.dump({"graphs": watch.graphs, "digest": digest.hexdigest(), "compile": seconds[0] - seconds[1] - watch.seconds,
                   "torch": torch.__version__}, f)


def run(args, model, prefix):
    """Runs a model in a process of its own, and returns what it saw."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "seen")
        command = [sys.executable, os.path.abspath(__file__), "--child", out, "--device", args.device, "--batch", str(args.batch),
                   "--size", str(args.size), model] + ["--infer"] * args.infer + ["--peaks"] * args.peaks
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "cache"))
        subprocess.run(prefix + command, check=True, env=env)
        with open(out) as f:
            return json.load(f)


def rows(args, model):
    plain = run(args, model, [])
    ordered = run(args, model, [args.gmswap, "run", "--order", "--allocator", "torch", "--"])
    assert len(plain["graphs"]) == len(ordered["graphs"])
    for i, (p, o) in enumerate(zip(plain["graphs"], ordered["graphs"])):
        assert all(p[k] == o[k] for k in ("nodes", "baseline", "lpmf", "bfs", "dfs")), (p, o)
        yield {"pass": "inference" if args.infer else ("forward", "backward")[i % 2], **dict(
            model=model, device=args.device, batch=args.batch, size=args.size, torch=plain["torch"], graph=i, nodes=p["nodes"],
            baseline=p["baseline"], lpmf=p["lpmf"], bfs=p["bfs"], dfs=p["dfs"], plain=p["got"], gm=o["got"],
            equal="-" if args.peaks else "yes" if plain["digest"] == ordered["digest"] else "NO",
            compile_plain_s="%.2f" % plain["compile"], compile_gm_s="%.2f" % ordered["compile"])}


def table(made):
    """Prints the rows, peaks in MiB."""
    print("%-14s %-9s %5s %9s %9s %9s %9s %9s %6s %5s %9s %9s" % (
        "model", "pass", "nodes", "baseline", "lpmf", "bfs", "dfs", "gm", "saved", "equal", "compile s", "with gm"))
    for r in made:
        peaks = ["%9.1f" % (r[k] / 2**20) for k in ("baseline", "lpmf", "bfs", "dfs", "gm")]
        print("%-14s %-9s %5d %s %5.1f%% %5s %9s %9s" % (r["model"], r["pass"], r["nodes"], " ".join(peaks),
              100.0 * (r["plain"] - r["gm"]) / max(r["plain"], 1), r["equal"], r["compile_plain_s"], r["compile_gm_s"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--gmswap", default="gmswap")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--infer", action="store_true", help="a forward pass alone")
    parser.add_argument("--peaks", action="store_true", help="compile no kernels of the CPU")
    parser.add_argument("--csv", help="append the rows to this table")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return train(args)
    made = [row for model in args.models for row in rows(args, model)]
    if args.csv:
        with open(args.csv, "a", newline="") as f:
            out = csv.DictWriter(f, FIELDS, lineterminator="\n")
            if not f.tell():
                out.writeheader()
            out.writerows(made)
    table(made)


main()
