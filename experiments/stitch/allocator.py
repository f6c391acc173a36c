"""What PyTorch lets only its own allocator do: histories and snapshots, pools, trees of CUDA graphs, other processes, the profiler, cuDNN.

Usage: allocator.py [NAME...]

A line for each check: ok or FAILED | name | what was seen. Contents of tensors are checked on each way. The exit status is 1 where one did
not hold. PyTorch's own allocator passes all.
"""

import gc
import os
import pickle
import sys
import tempfile
import threading
import time

import torch
from torch import nn

CHECKS = {}
MB = 1 << 20


def check(function):
    CHECKS[function.__name__] = function
    return function


def counted(n, begin=0, device="cuda"):
    return torch.arange(begin, begin + n, device=device, dtype=torch.int64)


def holds(x, begin=0):
    return torch.equal(x.cpu(), torch.arange(begin, begin + x.numel(), dtype=torch.int64))


def private(pool=None):
    """Returns the segments of private pools, or of one."""
    return [s for s in torch.cuda.memory_snapshot()
            if (tuple(s["segment_pool_id"]) == tuple(pool) if pool else tuple(s["segment_pool_id"]) != (0, 0))]


def leaf():
    return torch.full((3 * MB,), 7, device="cuda", dtype=torch.uint8)


@check
def backend():
    name = torch.cuda.memory.get_allocator_backend()
    assert name == "native", name
    return name


@check
def history():
    """Requests and frees in their order, with Python's stacks, and those of what is live."""
    torch.cuda.memory._record_memory_history()
    try:
        x = leaf()
        address = x.data_ptr()
        y = leaf()
        del x
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(None)
    trace = [e for e in snapshot["device_traces"][torch.cuda.current_device()] if not e["action"].startswith("segment")]
    actions = [e["action"] for e in trace]
    assert actions == ["alloc", "alloc", "free_requested", "free_completed"], actions
    assert trace[0]["addr"] == trace[2]["addr"] == address and {e["size"] for e in trace} == {3 * MB}
    assert all("leaf" in [f["name"] for f in e["frames"]] for e in trace[:2])
    assert all(a["time_us"] <= b["time_us"] for a, b in zip(trace, trace[1:])) and abs(trace[0]["time_us"] / 1e6 - time.time()) < 60
    live = [b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == y.data_ptr()]
    assert len(live) == 1 and live[0]["state"] == "active_allocated" and live[0]["requested_size"] == 3 * MB
    assert "leaf" in [f["name"] for f in live[0]["frames"]]
    return "%d entries, %d frames" % (len(trace), len(live[0]["frames"]))


@check
def history_of_cpp():
    torch.cuda.memory._record_memory_history(stacks="all", context="all")
    try:
        leaf()
        snapshot = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(None)
    names = {f["name"] for e in snapshot["device_traces"][0] for f in e.get("frames", ())}
    assert any("::" in name for name in names)
    return "%d functions" % len(names)


@check
def history_ring():
    torch.cuda.memory._record_memory_history(max_entries=10)
    try:
        for _ in range(100):
            leaf()
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(None)
    assert len(trace) == 10, len(trace)
    assert not torch.cuda.memory._snapshot()["device_traces"][0]
    return "the last 10"


@check
def skipped_actions():
    torch.cuda.memory._record_memory_history(skip_actions=["free_requested"])
    try:
        leaf()
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(None)
    actions = {e["action"] for e in trace}
    assert "free_requested" not in actions and "free_completed" in actions, actions
    return ", ".join(sorted(actions))


@check
def pages():
    """PyTorch's own pages of a dump."""
    from torch.cuda._memory_viz import profile_plot, segment_plot, trace_plot  # noqa: F401

    torch.cuda.memory._record_memory_history()
    try:
        held = [leaf() for _ in range(5)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "snapshot.pickle")
            torch.cuda.memory._dump_snapshot(path)
            with open(path, "rb") as f:
                data = pickle.load(f)
    finally:
        torch.cuda.memory._record_memory_history(None)
    sizes = [len(trace_plot(data)), len(segment_plot(data))]
    assert min(sizes) > 1000 and held
    return "%d and %d bytes" % tuple(sizes)


@check
def metadata():
    if not hasattr(torch.cuda.memory, "_set_memory_metadata"):
        return "not in this version"
    torch.cuda.memory._set_memory_metadata("phase")
    torch.cuda.memory._record_memory_history()
    try:
        leaf()
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        assert torch.cuda.memory._get_memory_metadata() == "phase"
    finally:
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.memory._set_memory_metadata("")
    assert trace[-1].get("user_metadata") == "phase", trace[-1]
    return "phase"


@check
def observer():
    """Is called before OutOfMemoryError is raised, and may look at the memory."""
    seen = []

    def called(device, size, total, free):
        seen.append((device, size, total, free, len(torch.cuda.memory_snapshot())))

    torch._C._cuda_attach_out_of_memory_observer(called)
    try:
        torch.empty(1 << 45, device="cuda")
    except torch.OutOfMemoryError as e:
        text = str(e)
    assert text.startswith("CUDA out of memory. Tried to allocate "), text
    assert len(seen) == 1 and seen[0][1] >= 1 << 45, seen
    assert holds(counted(MB))
    return "%d of %d bytes free" % (seen[0][3], seen[0][2])


@check
def fraction():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    keep = (torch.cuda.memory_reserved() + 512 * MB) / total
    torch.cuda.set_per_process_memory_fraction(keep)
    try:
        assert abs(torch.cuda.get_per_process_memory_fraction() - keep) < 1e-6
        ok = torch.empty(200 * MB, device="cuda", dtype=torch.uint8)
        try:
            torch.empty(1024 * MB, device="cuda", dtype=torch.uint8)
            raise AssertionError("more than the fraction was given")
        except torch.OutOfMemoryError:
            pass
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return "%d MiB kept, more refused" % (ok.numel() // MB)


@check
def mem_pool():
    x = counted(MB)
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        y = counted(MB, 5)
        assert pool.use_count() == 2
    z = counted(MB, 9)
    assert pool.use_count() == 1
    addresses = [(s["address"], s["address"] + s["total_size"]) for s in private(pool.id)]
    assert addresses == [(s["address"], s["address"] + s["total_size"]) for s in pool.snapshot()]
    inside = [any(a <= t.data_ptr() < b for a, b in addresses) for t in (x, y, z)]
    assert inside == [False, True, False], inside
    assert holds(x) and holds(y, 5) and holds(z, 9)
    name = pool.id
    del y, pool
    gc.collect()
    torch.cuda.empty_cache()
    assert not private(name)
    return "in %d segments" % len(addresses)


@check
def mem_pool_on_oom():
    """A pool that serves other requests when the device is full."""
    torch.cuda.empty_cache()
    pool = torch.cuda.MemPool(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(400 * MB, device="cuda", dtype=torch.uint8)
    del x
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 100 * MB) / total)
    try:
        y = torch.empty(300 * MB, device="cuda", dtype=torch.uint8)
        y.fill_(3)
        assert int(y[-1]) == 3
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    del y, pool
    gc.collect()
    return "300 MiB"


@check
def own_allocator():
    """A pool with memory of an allocator of its own."""
    from torch.utils import cpp_extension  # noqa: F401

    source = """
#include <cuda_runtime_api.h>
#include <sys/types.h>
static int live;
extern "C" void *own_alloc(ssize_t n, int, cudaStream_t) { void *p = nullptr; if (!cudaMalloc(&p, n)) live++; return p; }
extern "C" void own_free(void *p, ssize_t, int, cudaStream_t) { cudaFree(p); live--; }
extern "C" int own_live() { return live; }
"""
    import ctypes
    import subprocess

    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "own.so")
        with open(os.path.join(folder, "own.cpp"), "w") as f:
            f.write(source)
        includes = ["-I" + p for p in cpp_extension.include_paths(device_type="cuda")]
        subprocess.run(["g++", "-shared", "-fPIC", *includes, f.name, "-o", library], check=True)
        allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "own_alloc", "own_free")
        live = ctypes.CDLL(library).own_live
        pool = torch.cuda.MemPool(allocator.allocator())
        with torch.cuda.use_mem_pool(pool):
            x = counted(MB)
            y = counted(100)
        assert live() > 0 and holds(x) and holds(y)
        most = live()
        del x, y, pool
        gc.collect()
        torch.cuda.empty_cache()
        assert live() == 0, live()
    return "%d segments" % most


@check
def graph():
    """A CUDA graph that is replayed, while eager work goes on around it."""
    x = torch.zeros(MB, device="cuda")
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        (x + 1).sum()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x + 1) * 2
    for i in range(5):
        x.fill_(i)
        junk = [torch.full((MB,), -1.0, device="cuda") for _ in range(4)]
        g.replay()
        assert float(y.min()) == float(y.max()) == 2 * (i + 1)
        del junk
    assert private(g.pool())
    return "5 replays"


def trees(shapes, steps):
    """Runs a model that is compiled with trees of graphs, and returns how far it is from eager, and the most memory reserved."""
    torch._dynamo.reset()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Linear(2048, 512)).cuda()
    fast = torch.compile(net, mode="reduce-overhead", dynamic=False)
    off = 0.0
    for step in range(steps):
        for rows in shapes:
            x = torch.randn(rows, 512, device="cuda", generator=torch.Generator("cuda").manual_seed(rows))
            torch.compiler.cudagraph_mark_step_begin()
            y = fast(x)
            z = fast(y.clone() if step % 2 else y)
            loss = z.square().mean()
            loss.backward()
            grad = [p.grad.clone() for p in net.parameters()]
            net.zero_grad()
            loss2 = net(net(x)).square().mean()
            loss2.backward()
            off = max([off, abs(float(loss - loss2))] + [float((a - p.grad).abs().max()) for a, p in zip(grad, net.parameters())])
            net.zero_grad()
    return off


@check
def cudagraph_trees():
    import torch._inductor.config as config

    assert config.triton.cudagraph_trees
    before = torch.cuda.memory_reserved()
    off = trees((32, 64, 200), 6)
    assert off < 1e-2, off
    return "off by %.1e, %d MiB more reserved" % (off, (torch.cuda.memory_reserved() - before) // MB)


@check
def cudagraph_trees_checked():
    """With PyTorch's own checks of what lives in the pool (slow)."""
    import torch._inductor.config as config

    with config.patch({"triton.slow_path_cudagraph_asserts": True, "triton.fast_path_cudagraph_asserts": True}):
        off = trees((16, 48), 5)
    assert off < 1e-2, off
    return "off by %.1e" % off


@check
def cudnn_benchmark():
    torch.backends.cudnn.benchmark = True
    try:
        assert torch.backends.cudnn.benchmark is True
        net = nn.Sequential(nn.Conv2d(3, 64, 7, 2), nn.ReLU(), nn.Conv2d(64, 128, 3), nn.AdaptiveAvgPool2d(1)).cuda().double()
        x = torch.randn(4, 3, 96, 96, device="cuda", dtype=torch.double, requires_grad=True)
        y = net(x)
        y.sum().backward()
        want = net.cpu()(x.detach().cpu())
        off = float((y.detach().cpu() - want).abs().max())
    finally:
        torch.backends.cudnn.benchmark = False
    assert off < 1e-9, off
    return "off by %.1e" % off


@check
def profiler():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as p:
        x = torch.empty(40 * MB, device="cuda", dtype=torch.uint8)
        del x
    events = p.events()
    most = max(getattr(e, "device_memory_usage", 0) or 0 for e in events)
    least = min(getattr(e, "device_memory_usage", 0) or 0 for e in events)
    assert most >= 40 * MB and least <= -40 * MB, (most, least)
    return "%+d and %+d MiB" % (most // MB, least // MB)


@check
def memory_timeline():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True, record_shapes=True, with_stack=True) as p:
        net = nn.Linear(1024, 1024).cuda()
        net(torch.randn(64, 1024, device="cuda")).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.json")
        p.export_memory_timeline(path, device="cuda:0")
        size = os.path.getsize(path)
    assert size > 100
    return "%d bytes" % size


def produce(queue, done):
    sent = [counted(n, n) for n in (100, MB, 9 * MB)]
    for x in sent:
        queue.put(x)
    queue.put(sent[1][1000:2000])
    done.wait()
    assert int(sent[0][0]) == -1  # what the other process wrote


@check
def other_process():
    """CUDA tensors come through a queue from a process that was spawned; memory is the same."""
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    child = context.Process(target=produce, args=(queue, done))
    child.start()
    got = [queue.get(timeout=120) for _ in range(4)]
    sizes = [x.numel() for x in got]
    for x, n in zip(got[:3], (100, MB, 9 * MB)):
        assert holds(x, n)
    assert holds(got[3], MB + 1000)
    got[0][0] = -1
    torch.cuda.synchronize()
    del x, got
    gc.collect()
    done.set()
    child.join(120)
    assert child.exitcode == 0, child.exitcode
    torch.cuda.ipc_collect()
    return "%s numbers" % sizes


def consume(queue, answers):
    x = queue.get(timeout=120)
    answers.put(bool(holds(x, 3)))
    x.add_(1)
    torch.cuda.synchronize()
    del x
    answers.put(True)


@check
def to_other_process():
    context = torch.multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    child = context.Process(target=consume, args=(queue, answers))
    child.start()
    x = counted(3 * MB, 3)
    queue.put(x)
    assert answers.get(timeout=120) and answers.get(timeout=120)
    child.join(120)
    assert child.exitcode == 0 and holds(x, 4)
    return "%d MiB, changed there" % (x.numel() * 8 // MB)


@check
def streams():
    """Memory that another stream uses is not handed out before that has ended."""
    s = torch.cuda.Stream()
    for i in range(20):
        x = counted(4 * MB, i)
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            torch.cuda._sleep(2_000_000)
            y = x + 1
        x.record_stream(s)
        del x
        junk = [torch.full((4 * MB,), -1, device="cuda", dtype=torch.int64) for _ in range(3)]
        torch.cuda.current_stream().wait_stream(s)
        assert holds(y, i + 1)
        y.record_stream(torch.cuda.current_stream())
        del y, junk
    return "20 times"


@check
def threads():
    failed = []

    def work(number):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                g = torch.Generator().manual_seed(number)
                live = []
                for i in range(300):
                    n = int(torch.randint(1, 300_000, (), generator=g))
                    live.append((counted(n, i * number), i * number))
                    if i % 4 == 3:
                        for x, begin in live[:3]:
                            assert holds(x, begin)
                        del live[:3]
        except BaseException as e:
            failed.append(repr(e))

    all_threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    assert not failed, failed
    return "8 threads"


@check
def threads_with_history():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        threads()
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
    finally:
        torch.cuda.memory._record_memory_history(None)
    assert len(trace) == 1000
    return "8 threads, 1000 entries"


@check
def caching_off():
    torch.cuda.caching_allocator_enable(False)
    try:
        before = torch.cuda.memory_allocated()
        x = counted(MB)
        assert torch.cuda.memory_allocated() == before and holds(x)
        del x
    finally:
        torch.cuda.caching_allocator_enable(True)
    return "served by the driver"


@check
def raw():
    p = torch.cuda.caching_allocator_alloc(10 * MB, stream=torch.cuda.current_stream())
    before = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_delete(p)
    assert before - torch.cuda.memory_allocated() >= 10 * MB
    return "10 MiB"


@check
def statistics():
    torch.cuda.empty_cache()
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(64 * MB, device="cuda", dtype=torch.uint8)
    assert torch.cuda.memory_allocated() - before == 64 * MB
    del x
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() - before == 64 * MB
    assert torch.cuda.memory_reserved() >= 64 * MB
    torch.cuda.empty_cache()
    assert "Allocated memory" in torch.cuda.memory_summary() and torch.accelerator.memory_allocated() == before
    return "%d MiB reserved" % (torch.cuda.memory_reserved() // MB)


@check
def two_devices():
    if torch.cuda.device_count() < 2:
        return "only one device"
    live = []
    for i in range(200):
        live.append((counted(1000 + 997 * i, i, "cuda:%d" % (i % 2)), i))
    for x, i in live:
        assert holds(x, i) and holds(x.to("cuda:%d" % ((i + 1) % 2)), i)
    del live, x
    gc.collect()
    return "200 tensors"


@check
def late_objects():
    """What lives until the process ends is freed then, without a word."""
    late_objects.kept = [counted(n) for n in (10, MB)] + [torch.cuda.MemPool()]
    return "freed at the end"


def run(names):
    ok = True
    for name in names:
        begin = time.time()
        try:
            seen = CHECKS[name]()
            word = "ok    "
        except Exception as e:
            word, seen, ok = "FAILED", "%s: %s" % (type(e).__name__, str(e).strip().splitlines()[0] if str(e).strip() else e.__traceback__.tb_next), False
            where = e.__traceback__
            while where.tb_next:
                where = where.tb_next
            seen += " (line %d)" % where.tb_lineno
        print("%s | %-24s | %5.1f s | %s" % (word, name, time.time() - begin, seen), flush=True)
    return ok


if __name__ == "__main__":
    sys.exit(0 if run(sys.argv[1:] or list(CHECKS)) else 1)
