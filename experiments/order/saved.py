"""Measures what compiled models save for their backward pass, and what that costs: PyTorch's shares of what it saves, and gm's choice under limits.

Usage: python3 saved.py [--gmswap PROGRAM] [--device cpu|cuda] [--batch N] [--size N] [--jobs N] [--peaks] [--seconds N] [--csv FILE] [MODEL...]

Each model of compiled.py is compiled and trained in processes of its own: plainly, with activation_memory_budget at some shares, and under gmswap run -m
with limits of what plain PyTorch and these shares took. A limit and a peak are bytes beside what there is before a step, gradients included. "again" is what
is recomputed, in microseconds, by gm's estimate for all of them; "estimate" the peak by the same model. On a GPU limits are gmswap's own, peaks those
of PyTorch's allocator, and "step" the median of some steps, with an optimizer's update that changes nothing. Of several jobs one at a time is timed, while
none compiles. On the CPU peaks are the profiler's, with --peaks of graphs whose fused kernels do nothing and are not compiled, and times mean nothing.
Gradients are compared with plain PyTorch's: "differ" is the largest difference by the largest gradient. How much a network makes of a little is seen
where its pictures are the next larger numbers, in plain PyTorch.
"""

import argparse
import concurrent.futures
import csv
import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import compiled

MODELS = "gpt2 without dropout", "llama", "bert without dropout", "resnet50", "mobilenet_v2 without dropout", "gpt2"
BUDGETS = 0.5, 0.2, 0.05
SHARES = 0.8, 0.6
FIELDS = "model", "device", "batch", "size", "torch", "way", "setting", "limit", "peak", "estimate", "again_us", "step_s", "compile_s", "choose_s", "differ"
STEPS = 12
TORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../internal/torch")


class Seen(object):
    """Notes what each graph costs, by gm's estimate, and how long it took to choose what is saved."""

    def __init__(self, torch, partitioners, limit):
        from gmswap_hook import joint, partition

        self.torch, self.partitioners, self.joint = torch, partitioners, joint
        self.chooser = partition.Partition(torch, partitioners, limit, library=os.environ["GM_LIB"])
        self.real, self.peak, self.ns, self.seconds = partitioners.choose_saved_values_set, 0, 0, 0.0
        partitioners.choose_saved_values_set = self.choose

    def choose(self, graph, info, memory_budget=1):
        begin = time.perf_counter()
        values = self.real(graph, info, memory_budget)
        self.seconds += time.perf_counter() - begin
        joint = self.joint.Joint(self.torch, self.partitioners, graph, info, values)
        request = joint.request(1 << 59)  # with room for all, what there is stays
        for op in request["ops"][:request["forward"]]:
            op["able"] = True  # PyTorch's shares recompute what draws random numbers
        told = json.loads(self.chooser.ask(json.dumps(request).encode()))
        self.peak, self.ns = max(self.peak, told["peak"]), self.ns + told["ns"]
        return values


def serve_cpu(partitioners, limit):
    """Has the hook choose for graphs of the CPU, as if there was so much memory beside what is in use."""
    from gmswap_hook import partition

    partition.Partition.PLACE = "cpu"
    partition.Partition.room = lambda self, info: limit
    partition.watch(partitioners, dict(os.environ, GMSWAP_DEVICE=str(limit)))


def install(folder):
    """Puts gmswap's hook where a process finds it that gmswap does not run: it estimates there, and chooses nothing."""
    at = os.path.join(folder, "gmswap_hook")
    shutil.copytree(os.path.join(TORCH, "gmswap/python/gmswap_hook"), at, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(os.path.join(TORCH, "site/python/shared"), at, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def measure(torch, device, step):
    """Returns the bytes that there are before a step, and those that it takes at its peak beside them."""
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        step()
        return before, torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    now = peak = 0
    for _, n in sorted((e.start_ns(), e.nbytes()) for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"):
        now += n
        peak = max(peak, now)
    return 0, peak


def train(args):
    import torch
    from torch._functorch import config, partitioners

    if args.device == "cpu" and args.limit:
        serve_cpu(partitioners, args.limit)

    if args.peaks:
        from torch._inductor.async_compile import AsyncCompile

        AsyncCompile.cpp_pybinding = lambda *_, **__: lambda *_: None
    config.activation_memory_budget, config.enable_autograd_cache = args.budget, False
    seen = Seen(torch, partitioners, args.limit)
    torch.manual_seed(0)
    model, inputs, result = compiled.make(args.models[0], args.batch, args.size, args.device)
    if args.next:
        inputs = [torch.nextafter(x, torch.full_like(x, float("inf"))) for x in inputs]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, fused=True)
    program = torch.compile(model.train())

    def step():
        torch.manual_seed(1)
        result(program(*inputs)).float().square().mean().backward()

    def timed():
        model.zero_grad()
        begin = time.perf_counter()
        step()
        optimizer.step()
        if args.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    with open(args.lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        compiling = timed()
        fcntl.flock(lock, fcntl.LOCK_EX)  # nobody compiles then
        seconds = [timed() for _ in range(STEPS if args.device == "cuda" else 0)]
        grads = [p.grad.double().norm().item() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        before, peak = measure(torch, args.device, step)
    with open(args.child, "w") as f:
        json.dump({"torch": torch.__version__, "before": before, "peak": peak, "estimate": seen.peak, "again_us": seen.ns // 1000,
                   "choose_s": "%.2f" % seen.seconds,
                   "step_s": "%.4f" % statistics.median(seconds[1:]) if seconds else "", "compile_s": "%.1f" % compiling, "grads": grads}, f)


def run(args, model, prefix, **settings):
    """Runs a model in a process of its own, and returns what it saw."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "seen")
        command = [sys.executable, os.path.abspath(__file__), "--child", out, "--lock", args.lock, "--device", args.device,
                   "--batch", str(args.batch), "--size", str(args.size), model, *["--peaks"] * args.peaks]
        command += [word for name, value in settings.items() for word in ("--" + name, str(value))]
        env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(folder, "cache"), CUBLAS_WORKSPACE_CONFIG=":4096:8", KINETO_LOG_LEVEL="3")
        if not prefix:
            install(folder)
            tool = os.path.abspath(args.gmswap)
            env.update(PYTHONPATH=folder, GM_PLANNER=tool, GM_LIB=os.path.join(os.path.dirname(tool), "libgm.so"))
        subprocess.run([*prefix, *command], check=True, env=env)
        with open(out) as f:
            return json.load(f)


def rows(args, model):
    """Yields the rows of a model."""
    plain = run(args, model, [])
    yield row(args, model, "plain", "", plain, plain)
    if not compiled.is_text(model):
        yield row(args, model, "plain", "next numbers", run(args, model, [], next=1), plain)
    for budget in BUDGETS:
        seen = run(args, model, [], budget=budget)
        yield row(args, model, "budget", budget, seen, plain)
        if seen["peak"] < plain["peak"]:
            yield limited(args, model, "as budget %g" % budget, plain, seen["peak"])
    for share in SHARES:
        yield limited(args, model, "%.2f of plain" % share, plain, int(plain["peak"] * share))


def limited(args, model, name, plain, limit):
    """Returns the row of a model in so many bytes beside what there is before a step."""
    prefix = [args.gmswap, "run", "-m", str(plain["before"] + limit), "--"] if args.device == "cuda" else []
    return row(args, model, "gm", name, run(args, model, prefix, limit=limit), plain, limit)


def row(args, model, way, setting, seen, plain, limit=""):
    differ = max(abs(a - b) for a, b in zip(seen["grads"], plain["grads"])) / max(plain["grads"])
    known = {name: value for name, value in seen.items() if name in FIELDS}
    return dict(known, model=model, device=args.device, batch=args.batch, size=args.size, way=way, setting=setting, limit=limit,
                differ="" if args.peaks else "%.1e" % differ)


def tell(args, model):
    """Prints and keeps the rows of a model, and returns whether all could be made."""
    try:
        for r in rows(args, model):
            mib = ["%9.1f" % (r[k] / 2**20) if r[k] else "%9s" % "" for k in ("limit", "peak", "estimate")]
            with args.writes:
                rest = r["again_us"], r["step_s"], r["compile_s"], r["differ"]
                print("%-28s %-8s %-15s %s %9d %8s %9s %8s" % (model, r["way"], r["setting"], " ".join(mib), *rest), flush=True)
                keep(args.csv, r)
            if time.monotonic() > args.end:
                break
    except Exception as e:
        print("%s failed: %s: %s" % (model, type(e).__name__, e), flush=True)
        return False
    return True


def keep(path, r):
    """Appends a row to a table, if there is one."""
    if not path:
        return
    with open(path, "a", newline="") as f:
        out = csv.DictWriter(f, FIELDS, lineterminator="\n")
        if not f.tell():
            out.writeheader()
        out.writerow(r)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--gmswap", default="gmswap")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=1, help="models at a time")
    parser.add_argument("--peaks", action="store_true", help="compile no kernels of the CPU")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--csv", help="append the rows to this table")
    parser.add_argument("--budget", type=float, default=1.0, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--next", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--lock", help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return train(args)
    args.end, args.writes = time.monotonic() + args.seconds, threading.Lock()
    print("%-28s %-8s %-15s %9s %9s %9s %9s %8s %9s %8s" % ("model", "way", "", "limit", "peak", "estimate", "again us", "step s", "compile s", "differ"))
    with tempfile.NamedTemporaryFile() as lock, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        args.lock = lock.name
        sys.exit(not all(list(pool.map(lambda model: tell(args, model), args.models))))


main()
