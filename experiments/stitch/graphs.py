"""Uses what PyTorch has around its allocator: CUDA graphs, torch.compile, other processes, accounts and snapshots, limits, cuDNN.

Usage: graphs.py [NAME...]

A line for each check: name | expected | got | ok. The exit status is 1 where one did not hold. gmstitch's compiled class is held to all that
PyTorch's own allocator does (allocator.py has more of that), and a pluggable allocator (GMSTITCH_TORCH=pluggable) to what PyTorch lets one do.
"""

import copy
import os
import pickle
import sys
import tempfile
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

CHECKS = {}
MB = 1 << 20


def check(function):
    CHECKS[function.__name__] = function
    return function


def pluggable():
    return torch.cuda.memory.get_allocator_backend() == "pluggable"


def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 256)).cuda()


def inputs(n, rows=64):
    g = torch.Generator(device="cuda").manual_seed(2)
    return [torch.randn(rows, 256, device="cuda", generator=g) for _ in range(n)]


def trained(net, call, batches):
    """Trains a little and returns losses and weights."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for x in batches:
        loss = call(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach().clone())
    return torch.stack(losses), torch.cat([p.detach().flatten() for p in net.parameters()])


def close(a, b):
    """Returns expected, got, ok of two results."""
    off = max(float((x - y).abs().max()) for x, y in zip(a, b))
    return "as eager, within 1e-3", "%.1e" % off, off <= 1e-3


def warmed(function):
    """Runs a function on a stream of its own first, as a capture asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)


def disturb():
    """Takes, fills and frees ordinary memory, and gives it back."""
    for _ in range(3):
        held = [torch.full((n * MB // 4,), 3.0, device="cuda") for n in (1, 2, 5, 20, 64)]
        del held
        torch.cuda.empty_cache()


@check
def graph_replay():
    net, xs = model(), inputs(6)
    static = torch.zeros_like(xs[0])
    with torch.no_grad():
        warmed(lambda: net(static))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = net(static)
        got = []
        for x in xs:
            disturb()
            static.copy_(x)
            graph.replay()
            got.append(out.clone())
        return close(got, [net(x) for x in xs])


@check
def graph_training_step():
    net, xs = model(), inputs(6)
    eager = copy.deepcopy(net)
    optimizer, static = torch.optim.SGD(net.parameters(), lr=0.0), torch.zeros_like(xs[0])

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = net(static).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    warmed(step)
    graph = torch.cuda.CUDAGraph()
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()
    losses = []
    for x in xs:
        disturb()
        static.copy_(x)
        graph.replay()
        losses.append(loss.detach().clone())
    weights = torch.cat([p.detach().flatten() for p in net.parameters()])
    return close((torch.stack(losses), weights), trained(eager, eager, xs))


@check
def graphs_of_one_pool():
    net, xs = model(), inputs(2)
    with torch.no_grad():
        warmed(lambda: net(xs[0]))
        graphs, outs = [], []
        for x in xs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=graphs[0].pool() if graphs else None):
                outs.append(net(x))
            graphs.append(graph)
        disturb()
        for graph in graphs:
            graph.replay()
        return close(outs, [net(x) for x in xs])


@check
def graph_memory_goes_back():
    net, x = model(), inputs(1)[0]
    with torch.no_grad():
        warmed(lambda: net(x))
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_reserved()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = torch.zeros(64 * MB, device="cuda") + net(x).sum()
        during = torch.cuda.memory_reserved()
        del out
        graph.reset()
        del graph
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    after = torch.cuda.memory_reserved()
    more, left = (during - before) // MB, (after - before) // MB
    return "256 MiB more and back", "%+d MiB, %+d MiB" % (more, left), more >= 256 and left < 64


@check
def make_graphed_callables():
    net, xs = model(), inputs(6)
    eager = copy.deepcopy(net)
    graphed = torch.cuda.make_graphed_callables(net, (xs[0].clone(),))
    return close(trained(net, graphed, xs), trained(eager, eager, xs))


def compiled(**how):
    net, xs = model(), inputs(6)
    eager = copy.deepcopy(net)
    torch._dynamo.reset()
    return close(trained(net, torch.compile(net, **how), xs), trained(eager, eager, xs))


@check
def compile_default():
    return compiled()


@check
def compile_reduce_overhead():
    return compiled(mode="reduce-overhead")


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((100,), float(i * i))


@check
def forked_workers():
    torch.zeros(1, device="cuda")
    loader = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context="fork")
    total = sum(float(batch.cuda(non_blocking=True).sum()) for batch in loader)
    expected = 100.0 * sum(i * i for i in range(64))
    return expected, total, total == expected


def child_sum(queue, n):
    queue.put((float(torch.ones(n, device="cuda").sum()), torch.cuda.memory.get_allocator_backend()))


@check
def spawned_child():
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=child_sum, args=(queue, 1000), daemon=True)
    child.start()
    got = queue.get(timeout=120)
    child.join(60)
    expected = (1000.0, torch.cuda.memory.get_allocator_backend())
    return "%s, status 0" % (expected,), "%s, status %s" % (got, child.exitcode), got == expected and child.exitcode == 0


def child_reads(queue, tensor):
    queue.put(float(tensor.sum()))


@check
def tensor_to_another_process():
    context = torch.multiprocessing.get_context("spawn")
    queue, tensor = context.Queue(), torch.ones(1 << 20, device="cuda")
    expected = "RuntimeError" if pluggable() else "1048576.0"
    child = context.Process(target=child_reads, args=(queue, tensor), daemon=True)
    try:
        child.start()
        got = queue.get(timeout=120)
        child.join(60)
        return expected, got, got == 1 << 20 and not pluggable()
    except RuntimeError as e:
        return expected, "RuntimeError: " + str(e).splitlines()[0], pluggable()


@check
def save_and_load():
    net = model()
    with tempfile.NamedTemporaryFile() as f:
        torch.save(net.state_dict(), f.name)
        loaded = torch.load(f.name)
    same = all(torch.equal(a, loaded[k]) and loaded[k].is_cuda for k, a in net.state_dict().items())
    return "equal, on the GPU", same, same


@check
def accounts():
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = torch.empty(64 * MB, dtype=torch.uint8, device="cuda")
    more = torch.cuda.memory_allocated() - before
    stats, summary = torch.cuda.memory_stats(), torch.cuda.memory_summary()
    within = stats["allocated_bytes.all.current"] <= stats["reserved_bytes.all.current"]
    ok = 0 <= more - x.numel() < 2 * MB and within and "Allocated memory" in summary
    return "64 MiB more, a summary", "%.2f MiB, %d lines, %d stats" % (more / MB, summary.count("\n"), len(stats)), ok


@check
def reset_peak():
    x = torch.empty(256 * MB, dtype=torch.uint8, device="cuda")
    del x
    torch.cuda.reset_peak_memory_stats()
    peak, now = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    return "peak as now", "%d, %d" % (peak, now), peak == now


def viz():
    """Returns functions of PyTorch's own reader of snapshots, all of which take one."""
    from torch.cuda import _memory_viz as v

    plain = {"format_flamegraph": lambda lines: lines}
    return {"segsum": v.segsum, "trace": v.trace, "trace_plot": v.trace_plot, "segment_plot": v.segment_plot,
            "memory": lambda s: v.memory(s, **plain), "segments": lambda s: v.segments(s, **plain)}


@check
def snapshot():
    held = [torch.empty(n, dtype=torch.uint8, device="cuda") for n in (100, 3 * MB, 40 * MB)]
    torch.cuda.synchronize()
    with tempfile.NamedTemporaryFile() as f:
        torch.cuda.memory._dump_snapshot(f.name)
        with open(f.name, "rb") as dumped:
            data = pickle.load(dumped)
    lengths = {name: len(function(data)) for name, function in viz().items()}
    blocks = [b for s in data["segments"] for b in s["blocks"]]
    active = sum(b["size"] for b in blocks if b["state"] == "active_allocated")
    whole = sum(s["total_size"] for s in data["segments"])
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    ok = active == allocated and whole == reserved and len(torch.cuda.memory_snapshot()) > 0  # of which pools differs
    return "read; allocated %d, reserved %d" % (allocated, reserved), "%d, %d; %s" % (active, whole, lengths), ok and len(held) == 3


@check
def history():
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=1000)
    x = torch.ones(MB, device="cuda")
    data = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    entries = sum(map(len, data["device_traces"]))
    return "no entries" if pluggable() else "entries", entries, (entries == 0) == pluggable() and float(x.sum()) == MB


@check
def observer_of_no_memory():
    called = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *a: called.append(a))
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    return "no call" if pluggable() else "a call", len(called), bool(called) != pluggable()


@check
def cudnn_benchmark():
    torch.manual_seed(3)
    conv, x = nn.Conv2d(16, 32, 3, padding=1).cuda(), torch.randn(8, 16, 64, 64, device="cuda")
    with torch.no_grad():
        want = conv(x)
        torch.backends.cudnn.benchmark = True
        got = conv(x)
    on = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    off = float((want - got).abs().max())
    expected = "the same, within 1e-2, benchmark %s" % (not pluggable())
    return expected, "%.1e, benchmark %s" % (off, on), off <= 1e-2 and on != pluggable()


@check
def fraction():
    total, share = torch.cuda.mem_get_info()[1], 0.05
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(share)
    held, error = [], None
    try:
        while len(held) < 10_000:
            held.append(torch.empty(128 * MB, dtype=torch.uint8, device="cuda"))
    except RuntimeError as e:
        error = e
    reserved, had = torch.cuda.memory_reserved(), torch.cuda.get_per_process_memory_fraction()
    del held
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1.0)
    works = float(torch.ones(int(share * total) // 4 + MB, device="cuda")[-1]) == 1
    right = share * total - 160 * MB <= reserved <= share * total and works and abs(had - share) < 1e-9
    ok = isinstance(error, torch.OutOfMemoryError) and right
    return "OutOfMemoryError, up to %d MiB" % (share * total // MB), "%s, %d MiB" % (type(error).__name__, reserved // MB), ok


@check
def out_of_memory():
    total = torch.cuda.mem_get_info()[1]
    try:
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    except RuntimeError as e:
        first = str(e).splitlines()[0]
        right = isinstance(e, torch.OutOfMemoryError) and first.startswith("CUDA out of memory")
        return "CUDA out of memory", "%s: %s" % (type(e).__name__, first[:150]), right
    return "CUDA out of memory", "nothing", False


def main():
    torch.cuda.init()
    bad = 0
    for name in sys.argv[1:] or CHECKS:
        start = time.monotonic()
        try:
            expected, got, ok = CHECKS[name]()
        except Exception as e:
            expected, got, ok = "no exception", "%s: %s" % (type(e).__name__, str(e)[:300]), False
        got = str(got).replace("|", "/").replace("\n", " ")
        print("%s | %s | %s | %s" % (name, expected, got, "ok" if ok else "NO"), flush=True)
        print("# %.1f s" % (time.monotonic() - start), flush=True)
        bad += not ok
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
