"""The sections of h200.py."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

TRAIN, SWEEP = (os.path.join(os.path.dirname(os.path.abspath(__file__)), name) for name in ("train.py", "sweep.py"))
GB = 10**9
REFINED = 10  # steps after which gmswap's schedule stays
HOST = 112  # GB of host memory: a machine of one GPU has 137


def run(o, results, mode, flags, words, until, env=None, ranks=1):
    """Runs train.py, under gmswap if flags are given, and returns what it measured, None if it said nothing."""
    folder = tempfile.mkdtemp()
    path, stats = os.path.join(folder, "train.json"), os.path.join(folder, "stats.json")
    launch = [] if ranks == 1 else ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [sys.executable, *launch, TRAIN, *map(str, words), "--json", path]
    if flags is not None:
        policy = [] if "--policy" in flags else ["--policy", o.policy]
        graph = os.path.join(results.folder, "%s.parquet" % mode.replace(" ", "-").replace("%", ""))
        command = [os.path.join(o.bin, "gmswap"), "run", "--stats", stats, "--record", graph, *policy, *flags, "--", *command]
    code, seconds = execute(command, results.log, max(1, until - time.monotonic()), env)
    print("$ [%s] %s -> %s, %.1f s" % (mode, " ".join(command)[-160:], code, seconds), flush=True)
    tail(results.log, 2 if code == 0 else 15)
    result = read(path)
    if result is not None:
        result.update(mode=mode, account=read(stats) if ranks == 1 else None, code=code)
        results.put(**result)
    return result


def execute(command, log, timeout, env):
    log.write("\n$ %s\n" % " ".join(command))
    log.flush()
    start = time.monotonic()
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                         env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})})
    try:
        code = p.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    return code, time.monotonic() - start


def tail(log, n):
    log.seek(0)
    for line in log.read().splitlines()[-n:]:
        print("    " + line[:240])
    sys.stdout.flush()


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def llama(o, results, end):
    for tokens in o.tokens:
        words = ["--tokens", tokens, "--steps", o.steps, "--warm-up", REFINED]
        plain = run(o, results, "plain", None, words, end)
        recomputed = run(o, results, "recompute", None, [*words, "--how", "recompute"], end)
        if not plain or not recomputed:
            continue
        budgets = {"70 %": 0.7 * plain["allocated"], "recompute": recomputed["allocated"]}
        for name, budget in budgets.items():
            moved = run(o, results, "gmswap %s %dK" % (name, tokens // 1024), ["-m", str(int(budget))], words, end)
            if moved:
                compare(results, tokens, name, moved, plain, recomputed)
        if o.save_on_cpu and tokens == o.tokens[0]:
            run(o, results, "save_on_cpu", None, ["--tokens", tokens, "--steps", 4, "--warm-up", 2, "--how", "save_on_cpu"],
                min(end, time.monotonic() + 60))


def compare(results, tokens, name, moved, plain, recomputed):
    what = "%d tokens, %s" % (tokens, name)
    schedule = (moved["account"] or {}).get("schedule")
    results.check(what + ": losses", "equal to the last bit", "", [s["loss"] for s in moved["steps"]] == [s["loss"] for s in plain["steps"]])
    if not schedule:
        results.check(what + ": schedule", "made", "none", False)
        return
    step, peak = moved["median_s"], moved["allocated"]
    results.check(what + ": step foreseen", "within 5 %", "%.3f" % (schedule["step_ns"] / 1e9 / step), abs(schedule["step_ns"] / 1e9 / step - 1) <= 0.05)
    results.check(what + ": peak foreseen", "within 1 %", "%.3f" % (schedule["peak"] / peak), abs(schedule["peak"] / peak - 1) <= 0.01)
    if name == "70 %":
        results.check(what + ": peak", "0.70 of plain", "%.3f" % (peak / plain["allocated"]), peak <= 0.705 * plain["allocated"])
        results.check(what + ": step", "1.02 of plain", "%.3f" % (step / plain["median_s"]), step <= 1.02 * plain["median_s"])
    else:
        results.check(what + ": peak", "that of recomputing", "%.3f" % (peak / recomputed["allocated"]), peak <= 1.005 * recomputed["allocated"])
        results.check(what + ": throughput", "1.2 x recomputing", "%.3f" % (recomputed["median_s"] / step), recomputed["median_s"] >= 1.2 * step)


LONGEST = {"plain": 36864, "recompute": 102400, "recompute expandable": 135168, "save_on_cpu": 94208, "gmswap": 155648}  # first guesses


def longest(o, results, end):
    """Finds the longest sequence under 40 GB, in steps of 4096 tokens: up from a length that fits, or down from one that does not."""
    found = {}
    for mode in o.modes or LONGEST:
        at, fits = LONGEST[mode], {}
        while at not in fits and time.monotonic() < end:
            fits[at] = fit(o, results, mode, at, end)
            at += 4096 if fits[at] else -4096
        low, high = max((t for t in fits if fits[t]), default=0), min((t for t in fits if fits[t] is False), default=0)
        found[mode] = low
        results.check("longest under 40 GB: " + mode, "found", "%d fits, %d does not" % (low, high), high - low == 4096)
    for mode in set(found) - {"gmswap"}:
        results.check("longest under 40 GB: gmswap", "longer than " + mode, "%.2f times" % (found["gmswap"] / max(1, found[mode])), found["gmswap"] > found[mode])


def fit(o, results, mode, tokens, end):
    """Says whether a sequence fits, None if there was no time to find out."""
    flags = ["-m", str(40 * GB), "--host", str(HOST * GB)] if mode == "gmswap" else None
    steps = 6 if mode == "gmswap" else 3
    words = ["--tokens", tokens, "--layers", 4, "--steps", steps, "--warm-up", steps - 1, "--cap", 40, "--host", HOST]
    how, _, segments = mode.partition(" ")
    if how in ("recompute", "save_on_cpu"):
        words += ["--how", how]
    env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if segments else None
    result = run(o, results, mode, flags, words, end, env)
    return None if time.monotonic() >= end else result is not None and result["code"] == 0


def exact(o, results, end):
    words = ["--tokens", 8192, "--steps", 200, "--warm-up", 8, "--deterministic"]
    plain = run(o, results, "plain", None, words, end)
    if not plain:
        return
    moved = run(o, results, "gmswap", ["-m", str(int(0.8 * plain["allocated"]))], words, end)
    if not moved:
        return
    for what in ("loss", "gradients"):
        same = [s[what] for s in plain["steps"]] == [s[what] for s in moved["steps"]]
        results.check("200 steps: " + what, "equal to the last bit", "%d steps" % len(moved["steps"]), same)
    for what in ("after", "host"):
        values = [s[what] for s in moved["steps"]]
        results.check("200 steps: memory, " + what, "no growth", "%.3f to %.3f GB" % (values[10] / GB, values[-1] / GB),
                      values[-1] - values[10] < 0.01 * values[10] + (64 << 20))


def alpha(o, results, end):
    """MEMO's fraction, from 0 to 1: what the simulator foresees and what is measured, and which is best by each."""
    for model, layers in (("chain", 10), ("llama", 8)):
        for tokens in o.tokens if not o.modes or model in o.modes else ():
            sweep(o, results, model, layers, tokens, end)


def sweep(o, results, model, layers, tokens, end):
    name, path = "%s, %d tokens" % (model, tokens), os.path.join(tempfile.mkdtemp(), "sweep.json")
    policies = ["memo=%.3f" % (i / 8) for i in range(0, 9, o.eighths)]
    command = [os.path.join(o.bin, "gmswap"), "run", "--policy", policies[0], "--", sys.executable, SWEEP, "--model", model,
               "--layers", str(layers), "--tokens", str(tokens), "--json", path, *policies]
    code, seconds = execute(command, results.log, max(1, end - time.monotonic()), None)
    print("$ [%s] -> %s, %.1f s" % (name, code, seconds), flush=True)
    tail(results.log, 1 if code == 0 else 15)
    swept = read(path)
    if code != 0 or not swept:
        results.check(name, "runs", "status %s" % code, False)
        return
    results.put(mode="sweep", **swept)
    for r in swept["results"]:
        step, peak = r["foreseen_s"] / r["measured_s"], r["foreseen_peak"] / r["measured_peak"]
        results.check("%s, %s: step foreseen" % (name, r["policy"]), "within 5 %", "%.3f" % step, abs(step - 1) <= 0.05)
        results.check("%s, %s: peak foreseen" % (name, r["policy"]), "within 1 %", "%.3f" % peak, abs(peak - 1) <= 0.01)
    best, real = (min(range(len(policies)), key=lambda i: swept["results"][i][what]) * o.eighths for what in ("foreseen_s", "measured_s"))
    results.check(name + ": best alpha", "within 1/8", "%d/8 foreseen, %d/8 measured" % (best, real), abs(best - real) <= 1)


def kinds(o, results, end):
    """Layers that are compiled, checkpoints and accumulated gradients: losses as without gmswap, in less memory."""
    for name, tokens, words in (("compiled", 16384, ["--compile"]), ("checkpoints", 65536, ["--how", "recompute"]), ("accumulated", 16384, ["--accumulate", 3])):
        if not o.modes or name in o.modes:
            both(o, results, name, ["--tokens", tokens, "--layers", 4, "--steps", 14, "--warm-up", REFINED, *words], end)


def parallel(o, results, end):
    """Two ranks: data parallel, and fully sharded."""
    for name in ("ddp", "fsdp2"):
        both(o, results, name, ["--tokens", 16384, "--layers", 4, "--steps", 16, "--warm-up", REFINED, "--parallel", name], end, ranks=2)


def both(o, results, name, words, end, ranks=1):
    """Runs a training without gmswap and in three quarters of what it takes then, or a little less than all with checkpoints."""
    words = [*words, "--deterministic"]
    plain = run(o, results, name, None, words, end, ranks=ranks)
    if not plain:
        results.check(name, "runs", "no", False)
        return
    part = 0.97 if "recompute" in words else 0.75
    moved = run(o, results, name + " gmswap", ["-m", str(int(part * plain["allocated"]))], words, end, ranks=ranks)
    if not moved:
        results.check(name, "runs under gmswap", "no", False)
        return
    for what in ("loss", "gradients"):
        same = [s[what] for s in moved["steps"]] == [s[what] for s in plain["steps"]]
        results.check("%s: %s" % (name, what), "equal to the last bit", "%d steps" % len(moved["steps"]), same)
    results.check(name + ": peak", "at most %.2f of without" % part, "%.3f" % (moved["allocated"] / plain["allocated"]),
                  moved["allocated"] <= (part + 0.01) * plain["allocated"])
    results.check(name + ": step", "for comparison", "%.3f of without" % (moved["median_s"] / plain["median_s"]), True)


def follow(o, results, end):
    """A schedule that is made outside of the program and followed, one that does not fit the step, and what NVML counts meanwhile."""
    words = ["--tokens", 16384, "--steps", 14, "--warm-up", REFINED]
    plain = run(o, results, "plain", None, words, end)
    if not plain:
        return
    budget = str(int(0.8 * plain["allocated"]))
    run(o, results, "recorded", ["-m", budget], words, end)
    graph, schedule = (os.path.join(results.folder, name) for name in ("recorded.parquet", "schedule.parquet"))
    code, _ = execute([os.path.join(o.bin, "gmswap"), "plan", graph, "-m", budget, "-o", schedule], results.log, max(1, end - time.monotonic()), None)
    tail(results.log, 1)
    results.check("gmswap plan", "status 0", code, code == 0)
    followed = run(o, results, "followed", ["--schedule", schedule, "--policy", "all"], words, end)
    if not followed:
        results.check("followed", "runs", "no", False)
        return
    results.check("followed: losses", "equal to the last bit", "%d steps" % len(plain["steps"]), [s["loss"] for s in followed["steps"]] == [s["loss"] for s in plain["steps"]])
    made = followed["account"]["schedule"]
    step, peak = made["step_ns"] / 1e9 / followed["median_s"], made["peak"] / followed["allocated"]
    results.check("followed: policy", "that of the file", made["policy"], made["policy"] == "auto")
    results.check("followed: step foreseen", "within 5 %", "%.3f" % step, abs(step - 1) <= 0.05)
    results.check("followed: peak foreseen", "within 1 %", "%.3f" % peak, abs(peak - 1) <= 0.01)
    other = run(o, results, "other length", ["--schedule", schedule, "--policy", "joint"], ["--tokens", 12288, *words[2:]], end)
    if not other:
        results.check("other length", "runs", "no", False)
        return
    said = [line for line in results.lines() if schedule in line and "gmswap:" in line]
    results.check("other length: why", "a line says so", said[-1] if said else "", bool(said))
    policy = other["account"]["schedule"]["policy"]
    results.check("other length: policy", "joint", policy, policy == "joint")
    counted = [line for line in results.lines() if "NVML counts" in line]
    print("\n".join(counted), flush=True)


def link(o, results, end):
    """What gmswap bandwidth measures, on all GPUs."""
    path = os.path.join(results.folder, "link.json")
    code, seconds = execute([os.path.join(o.bin, "gmswap"), "bandwidth", "-o", path], results.log, max(1, end - time.monotonic()), None)
    tail(results.log, 30)
    results.check("gmswap bandwidth", "status 0", "%s, %.0f s" % (code, seconds), code == 0)


def pair(o, results, end):
    """Two processes, each with a GPU, alone and at the same time: the link may be shared."""
    words = ["--tokens", 32768, "--steps", 14, "--warm-up", REFINED]
    flags = ["-m", str(36 * GB)]
    figures = os.path.join(results.folder, "link.json")
    if os.path.exists(figures):
        flags += ["--link", figures]
    alone = run(o, results, "alone", flags, words, end, {"CUDA_VISIBLE_DEVICES": "0"})
    together = [None, None]

    def one(gpu):
        env = {"CUDA_VISIBLE_DEVICES": str(gpu), "LOCAL_WORLD_SIZE": "2"}
        together[gpu] = run(o, results, "GPU %d of 2" % gpu, flags, words, end, env)

    threads = [threading.Thread(target=one, args=(gpu,)) for gpu in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if not alone or not all(together):
        results.check("two GPUs", "run", "no", False)
        return
    for gpu, r in enumerate(together):
        schedule = r["account"]["schedule"]
        step = schedule["step_ns"] / 1e9 / r["median_s"]
        results.check("GPU %d of 2: step foreseen" % gpu, "within 5 %", "%.3f" % step, abs(step - 1) <= 0.05)
        results.check("GPU %d of 2: step" % gpu, "for comparison", "%.3f of alone" % (r["median_s"] / alone["median_s"]), True)
