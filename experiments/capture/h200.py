"""Checks gmtrace run on a machine with an NVIDIA GPU and PyTorch. Needs nothing but the programs beside it.

Usage: h200.py BIN OUT [NAME...]

BIN holds gmtrace, gmplan, gmbench and calls (compiled from calls.c), OUT takes results: capture.csv and some traces. Each line of the
table at the end is a check: what was to hold, what was measured, and whether it held.
"""

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow.parquet

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "train.py")
BIN, OUT = (os.path.abspath(p) for p in sys.argv[1:3])
WORK = tempfile.mkdtemp()
ROWS = []


def check(name, target, measured, held):
    ROWS.append((name, target, measured, "yes" if held else "NO"))
    print("##", name, "|", target, "|", measured, "|", "yes" if held else "NO", flush=True)


def tool(name, *args):
    return subprocess.run([os.path.join(BIN, name), *args], capture_output=True, text=True, timeout=300)


def run(words, trace=None, env=None, flags=(), timeout=400):
    """Runs a program, under gmtrace if a trace is named."""
    if trace:
        words = [os.path.join(BIN, "gmtrace"), "run", "-o", trace, *flags, "--", *words]
    start = time.time()
    p = subprocess.run(words, capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})}, cwd=WORK)
    p.seconds = time.time() - start
    print("$", " ".join(words)[:300], "->", p.returncode, "%.1f s" % p.seconds)
    print("\n".join((p.stdout + p.stderr).splitlines()[-8:]), flush=True)
    return p


def train(name, *flags, trace=False, env=None, run_flags=(), program=(sys.executable, TRAIN)):
    times = os.path.join(WORK, name + ".json")
    path = os.path.join(WORK, name + ".parquet") if trace else None
    p = run([*program, "--times", times, *flags], path, env, run_flags)
    result = json.load(open(times)) if p.returncode == 0 else {}
    result["code"], result["text"] = p.returncode, p.stdout + p.stderr
    return result, path


def rows(path):
    return pyarrow.parquet.read_table(path).to_pylist()


def show(path):
    return json.loads(tool("gmtrace", "show", "--json", path).stdout)


def account(name, path):
    """Compares what was traced with what NVML says of the process."""
    accounts = [d["driver"]["reconciliation"] for d in show(path)["devices"] if d.get("driver") and d["driver"]["reconciliation"]]
    r = max(accounts, key=lambda r: r["used_bytes"])
    off = 100 * abs(r["unexplained_bytes"]) / r["used_bytes"]
    check(name + ": driver rows against NVML", "within 1 %", "%.2f %% of %.2f GiB" % (off, r["used_bytes"] / 2**30), off <= 1)


ACTIONS = {"alloc": "alloc", "free_requested": "free_requested", "free_completed": "free_completed",
           "segment_alloc": "segment_alloc", "segment_free": "segment_free",
           "segment_map": "segment_map", "segment_unmap": "segment_unmap"}


def history(snapshot):
    """PyTorch's own history, as (op, size, address, stream, which allocation)."""
    live, count, out = {}, 0, []
    for e in pickle.load(open(snapshot, "rb"))["device_traces"][0]:
        if e["action"] not in ACTIONS:
            continue
        which = 0
        if e["action"] == "alloc":
            count += 1
            which = live[e["addr"]] = count
        elif e["action"] == "free_requested":
            which = live.get(e["addr"], 0)
        elif e["action"] == "free_completed":
            which = live.pop(e["addr"], 0)
        out.append((e["action"], e["size"], e["addr"], e["stream"], which))
    return out


def framework(path):
    """The framework's rows of a trace, in the same form."""
    ids, out = {}, []
    for e in rows(path):
        if e["level"] != "framework" or e["op"] not in ACTIONS:
            continue
        which = 0
        if e["op"] == "alloc":
            which = ids[e["id"]] = len(ids) + 1
        elif e["id"]:
            which = ids[e["id"]]
        out.append((e["op"], e["size"], e["addr"], e["stream"], which))
    return out


LORA = ["--lora", "--recompute"]
ROUNDS = 8  # of each variant, each round in another order: the speed of the machine drifts


def overhead():
    variants = {"untraced": None, "traced": [], "traced with stacks": ["--stacks", "both"], "--only-oom": ["--only-oom"]}
    names, times = list(variants), {name: [] for name in variants}
    for i in range(ROUNDS):
        for name in names[i % len(names):] + names[:i % len(names)]:
            flags = variants[name]
            times[name].append(train("step%d" % i, *LORA, trace=flags is not None, run_flags=flags or [])[0]["times"][2:])
    with open(os.path.join(OUT, "steps.json"), "w") as f:
        json.dump(times, f)
    for name, limit in (("traced", 1.0), ("traced with stacks", None), ("--only-oom", 0.5)):
        best, typical = more(times, name, min), more(times, name, statistics.median)
        check("a training step, " + name, "within %s %%" % limit if limit else "for information",
              "%+.2f %% by the best of %d runs of each step, %+.2f %% by their median; median step %.4f s, untraced %.4f s" % (
                  best, ROUNDS, typical, middle(times[name]), middle(times["untraced"])), limit is None or best <= limit)
    left = os.path.join(WORK, "step0.parquet")
    os.remove(left)
    train("step0", *LORA, "--steps", "3", trace=True, run_flags=["--only-oom"])
    check("--only-oom leaves no trace of a run that ends well", "none", os.path.exists(left), not os.path.exists(left))


def more(times, name, pick):
    """Returns by how many percent a variant's steps are longer, each step being what pick makes of its runs."""
    a, b = ([pick(runs) for runs in zip(*times[n])] for n in (name, "untraced"))
    return 100 * (statistics.median(x / y for x, y in zip(a, b)) - 1)


def middle(runs):
    return statistics.median(t for run in runs for t in run)


def fidelity():
    snapshot = os.path.join(WORK, "own.pickle")
    result, path = train("own", *LORA, "--record", "--snapshot", snapshot, trace=True)
    a, b = history(snapshot), framework(path)
    n = len(a)
    check("rows of PyTorch's own whole history, ids, sizes, order", "identical", "%d of %d" % (sum(x == y for x, y in zip(a, b)), n),
          n > 0 and a == b[:n])
    result, path = train("ring", *LORA, "--snapshot", snapshot, trace=True)
    a, b = [x[:4] for x in history(snapshot)], [x[:4] for x in framework(path)]
    ends = [i + 1 for i in range(len(a) - 1, len(b)) if b[i] == a[-1] and b[i + 1 - len(a):i + 1] == a]
    check("rows joined from %d and more in a ring of 40000" % len(b), "end as the ring", "at row %s" % ends[-1:], bool(ends))
    account("OPT-1.3B, LoRA, recomputation", path)
    reserved = max_reserved(path)
    check("peak of segments against PyTorch's own", "equal", "%d, %d" % (reserved, result["peak_reserved"]), reserved == result["peak_reserved"])
    marks = sum(e["op"] == "mark" and e["tag"] == "step" for e in rows(path))
    check("step marks", "30", marks, marks == 30)
    save(path, "opt1.3b-capture.parquet")
    p = subprocess.run("%s/gmplan < %s | %s/gmbench" % (BIN, path, BIN), shell=True, capture_output=True, text=True)
    print(p.stdout, p.stderr)
    verify = tool("gmbench", "verify", path)
    print(verify.stdout, verify.stderr)
    check("capture | gmplan | gmbench, and verify", "0, identical", "%d, %d" % (p.returncode, verify.returncode), p.returncode == 0 and verify.returncode == 0)


def max_reserved(path):
    held = most = 0
    for e in rows(path):
        if e["level"] == "framework" and e["op"] in ("segment_alloc", "segment_map"):
            held += e["size"]
        elif e["level"] == "framework" and e["op"] in ("segment_free", "segment_unmap"):
            held -= e["size"]
        most = max(most, held)
    return most


def expandable():
    result, path = train("expandable", "--steps", "6", trace=True, env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    held = most = 0
    sizes = {}
    for e in rows(path):
        if e["level"] == "driver" and e["op"] == "alloc" and e["tag"] == "physical by=pytorch":
            sizes[e["id"]] = e["size"]
            held += e["size"]
        elif e["op"] == "free" and e["id"] in sizes:
            held -= sizes[e["id"]]
        most = max(most, held)
    check("expandable segments: physical bytes against PyTorch's reserved", "equal", "%d, %d" % (most, result["peak_reserved"]),
          most == result["peak_reserved"])
    account("expandable segments", path)
    result, path = train("async", "--steps", "6", trace=True, env={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
    account("cudaMallocAsync", path)


def others():
    for name, code in (
        ("cupy", "import cupy; x = cupy.zeros((1000, 1000000)); y = x * 2 + 1; print(float(y.sum()))"),
        ("jax", "import jax.numpy as n; x = n.ones((30000, 30000)); print((x @ x).sum())"),
        ("numba", "from numba import cuda; import numpy; d = cuda.to_device(numpy.ones(1 << 28)); print(d.size)"),
    ):
        path = os.path.join(WORK, name + ".parquet")
        p = run([sys.executable, "-c", code], path)
        if p.returncode:
            check(name, "runs", p.stderr[-100:], False)
        else:
            account(name, path)
    for pairs, what in (("25000", ""), ("400000", ", more than the ring holds")):
        plain, traced = ([min(float(run([os.path.join(BIN, "calls"), pairs], t).stdout.split()[k]) for _ in range(5)) for k in (0, 1)]
                         for t in (None, os.path.join(WORK, "calls.parquet")))
        more = traced[0] - plain[0]
        check("a call of cuMemAllocAsync or cuMemFreeAsync" + what, "150 ns more at most", "%+.0f ns on %.0f" % (more, plain[0]), more <= 150)
        check("a call of cuMemAlloc or cuMemFree" + what, "for information", "%+.0f ns on %.0f" % (traced[1] - plain[1], plain[1]), True)


def oom():
    result, path = train("oom", "--oom", trace=True, run_flags=["--stacks", "python"])
    last = [e for e in rows(path) if e["level"] == "framework"][-1]
    top = tool("gmtrace", "show", "--top", path).stdout
    print(top)
    check("an OOM: exit status, last row of the framework", "1, oom", "%d, %s" % (result["code"], last["op"]), result["code"] == 1 and last["op"] in ("oom", "snapshot"))
    held = top.split("out of memory")[-1].split("share")[1].splitlines()[1]
    check("gmtrace show --top names what held most", "main of train.py", " ".join(held.split()), held.startswith("train.py:") and " main " in held)
    _, path = train("only", "--oom", trace=True, run_flags=["--only-oom"])
    check("--only-oom writes a trace of it", "an oom row", os.path.exists(path), os.path.exists(path) and any(e["op"] == "oom" for e in rows(path)))
    save(os.path.join(WORK, "oom.parquet"), "oom-capture.parquet")


def odd():
    before = set(os.listdir(tempfile.gettempdir()))
    for name, flags, env, more in (
        ("workers", ["--workers", "4", "--steps", "8"], {}, []),
        ("compile", ["--compile", "--steps", "6", "--layers", "4"], {}, []),
        ("audit", ["--steps", "6"], {}, ["--mode", "audit"]),
        ("steps", ["--steps", "8"], {}, ["--steps", "3:6"]),
    ):
        folder = os.path.join(WORK, name + ".d")
        p = run([sys.executable, TRAIN, *flags], folder + "/", env, more)
        files = [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs]
        check(name, "status 0, one file", "%d, %d" % (p.returncode, len(files)), p.returncode == 0 and len(files) == 1)
        if len(files) == 1 and name == "audit":
            account(name, files[0])
        if len(files) == 1 and name == "steps":
            marks = sum(e["op"] == "mark" and e["tag"] == "step" for e in rows(files[0]))
            print({e["tag"] for e in rows(files[0]) if e["op"] == "mark"})
            verify = tool("gmbench", "verify", files[0])
            check("--steps 3:6", "3 marks, verified", "%d, %d" % (marks, verify.returncode), marks == 3 and verify.returncode == 0)
    graph = """
import torch
x = torch.ones(1 << 20, device="cuda"); s = torch.cuda.Stream(); g = torch.cuda.CUDAGraph()
m = torch.nn.Linear(1024, 1024).cuda(); y = torch.ones(64, 1024, device="cuda"); m(y)
with torch.cuda.graph(g): z = m(y) * 2
g.replay(); torch.cuda.synchronize(); print("graph", float(z.sum()))
"""
    p = run([sys.executable, "-c", graph], os.path.join(WORK, "graph.parquet"))
    check("a CUDA graph", "0", p.returncode, p.returncode == 0 and "graph" in p.stdout)
    p = run(["bash", "-c", "ls > /dev/null; exit 7"], os.path.join(WORK, "none.parquet"))
    check("no CUDA: status, file", "7, none", "%d, %s" % (p.returncode, os.path.exists(os.path.join(WORK, "none.parquet"))),
          p.returncode == 7 and not os.path.exists(os.path.join(WORK, "none.parquet")))
    p = run([sys.executable, "-c", "import os, signal, torch; x = torch.ones(9, device='cuda'); os.kill(os.getpid(), signal.SIGKILL)"], os.path.join(WORK, "kill.parquet"))
    allocs = [e for e in rows(os.path.join(WORK, "kill.parquet")) if e["tag"] == "memory by=pytorch"]
    check("SIGKILL: status, PyTorch's segment is there", "137, 1", "%d, %d" % (p.returncode, len(allocs)), p.returncode == 137 and len(allocs) == 1)
    left = set(os.listdir(tempfile.gettempdir())) - before
    left = {f for f in left if f.startswith("gmtrace")}
    check("files left behind", "none", sorted(left), not left)


def torchrun():
    pattern = os.path.join(WORK, "job-%r.parquet")
    before = set(os.listdir(WORK))
    p = run(["torchrun", "--nproc-per-node", "2", TRAIN, "--ddp", "--steps", "8"], pattern, timeout=500)
    files = [pattern.replace("%r", str(r)) for r in (0, 1)]
    check("torchrun on 2 GPUs", "status 0, 2 files", "%d, %d" % (p.returncode, sum(map(os.path.exists, files))), p.returncode == 0 and all(map(os.path.exists, files)))
    new = set(os.listdir(WORK)) - before
    check("other files", "none", sorted(new - {"job-0.parquet", "job-1.parquet"}), len(new) == 2)
    save(files[0], "torchrun-0.parquet")
    save(files[1], "torchrun-1.parquet")
    for r, path in enumerate(files):
        tags = {}
        for e in rows(path):
            if e["level"] == "driver" and e["op"] == "alloc" and e["tag"].endswith("by=nccl"):
                tags[e["tag"]] = tags.get(e["tag"], 0) + e["size"]
        check("rank %d: memory by NCCL" % r, "more than 0", tags, any(k.startswith(("memory", "physical")) for k in tags))
        account("rank %d" % r, path)
        meta = pyarrow.parquet.read_schema(path).metadata
        check("rank %d: metadata" % r, "%d of 2" % r, "%s of %s" % (meta.get(b"gm.rank", b"0").decode(), meta[b"gm.world_size"].decode()),
              meta.get(b"gm.rank", b"0") == str(r).encode() and meta[b"gm.world_size"] == b"2")


    pattern = os.path.join(WORK, "mpi-%r.parquet")
    p = run(["mpirun", "--allow-run-as-root", "-np", "2", sys.executable, "-c", "import cupy; print(cupy.ones(1 << 26).sum())"], pattern)
    files = [os.path.exists(pattern.replace("%r", r)) for r in "01"]
    check("mpirun, 2 ranks", "status 0, 2 files", "%d, %d" % (p.returncode, sum(files)), p.returncode == 0 and all(files))


def save(path, name):
    if os.path.exists(path):
        subprocess.run(["cp", path, os.path.join(OUT, name)])


CHECKS = {f.__name__: f for f in (overhead, fidelity, expandable, others, oom, odd, torchrun)}


def main():
    for name in sys.argv[3:] or [n for n in CHECKS if n != "torchrun"]:
        start = time.time()
        try:
            CHECKS[name]()
        except Exception as e:
            check(name, "no exception", "%s: %s" % (type(e).__name__, e), False)
        print("#", name, "took %.0f s" % (time.time() - start), flush=True)
    with open(os.path.join(OUT, "capture-%s.csv" % (sys.argv[3] if len(sys.argv) > 3 else "all")), "w") as f:
        f.write("check;target;measured;held\n")
        for row in ROWS:
            f.write(";".join(str(c).replace(";", ",") for c in row) + "\n")
    print()
    for row in ROWS:
        print("%-3s %-62s %-28s %s" % (row[3], row[0], row[1], row[2]))
    sys.exit(any(row[3] == "NO" for row in ROWS))


if __name__ == "__main__":
    main()
