"""The sections of h200.py."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")
OUT_OF_MEMORY = 3  # train.py's status
GB = 10**9


def run(o, results, mode, flags, words, until, env=None):
    """Runs train.py, under gmswap if flags are given, and returns what it measured, None if it said nothing."""
    folder = tempfile.mkdtemp()
    path, stats = os.path.join(folder, "train.json"), os.path.join(folder, "stats.json")
    command = [sys.executable, TRAIN, *map(str, words), "--json", path]
    if flags is not None:
        policy = [] if "--policy" in flags else ["--policy", o.policy]
        graph = os.path.join(results.folder, "%s.parquet" % mode.replace(" ", "-").replace("%", ""))
        command = [os.path.join(o.bin, "gmswap"), "run", "--stats", stats, "--record", graph, *policy, *flags, "--", *command]
    code, seconds = execute(command, results.log, max(1, until - time.monotonic()), env)
    print("$ [%s] %s -> %s, %.1f s" % (mode, " ".join(command)[-160:], code, seconds), flush=True)
    tail(results.log, 2 if code == 0 else 15)
    result = read(path)
    if result is not None:
        result.update(mode=mode, account=read(stats), code=code)
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
    log.seek(0, os.SEEK_END)
    sys.stdout.flush()


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def llama(o, results, end):
    for tokens in o.tokens:
        words = ["--tokens", tokens, "--steps", o.steps]
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


def longest(o, results, end):
    """Finds the longest sequence under 40 GB, in steps of 2048 tokens, by halves."""
    modes = {"plain": None, "recompute": None, "gmswap": ["-m", str(40 * GB)]}
    found = {}
    for mode, flags in modes.items():
        low, high = 8192, 98304
        while high - low > 2048 and time.monotonic() < end:
            tokens = (low + high) // 2 // 2048 * 2048
            words = ["--tokens", tokens, "--steps", 6, "--warm-up", 4, "--cap", 40]
            if mode == "recompute":
                words += ["--how", "recompute"]
            result = run(o, results, mode, flags, words, end)
            fits = result is not None and result["code"] == 0
            low, high = (tokens, high) if fits else (low, tokens)
        found[mode] = low
        results.check("longest under 40 GB: " + mode, "found", "%d fits, %d does not" % (low, high), high - low <= 2048)
    results.check("longest under 40 GB", "longer than recomputing", str(found), found["gmswap"] > found["recompute"])


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
    for tokens in o.tokens:
        foreseen, measured = {}, {}
        for eighth in range(0, 9, o.eighths):
            name = "memo=%.3f" % (eighth / 8)
            words = ["--tokens", tokens, "--steps", 9, "--warm-up", 7]
            moved = run(o, results, name, ["--policy", name], words, end)
            schedule = ((moved or {}).get("account") or {}).get("schedule")
            if not schedule:
                results.check("%d tokens, %s" % (tokens, name), "runs", "no", False)
                continue
            foreseen[eighth], measured[eighth] = schedule["step_ns"] / 1e9, moved["median_s"]
            what = "%d tokens, %s" % (tokens, name)
            step, peak = foreseen[eighth] / measured[eighth], schedule["peak"] / moved["allocated"]
            results.check(what + ": step foreseen", "within 5 %", "%.3f" % step, abs(step - 1) <= 0.05)
            results.check(what + ": peak foreseen", "within 1 %", "%.3f" % peak, abs(peak - 1) <= 0.01)
        if foreseen:
            best, real = min(foreseen, key=foreseen.get), min(measured, key=measured.get)
            results.check("%d tokens: best alpha" % tokens, "within 1/8", "%d/8 foreseen, %d/8 measured" % (best, real), abs(best - real) <= o.eighths)


def link(o, results, end):
    """What gmswap bw measures, on all GPUs."""
    path = os.path.join(results.folder, "link.json")
    code, seconds = execute([os.path.join(o.bin, "gmswap"), "bw", "-o", path], results.log, max(1, end - time.monotonic()), None)
    tail(results.log, 30)
    results.check("gmswap bw", "status 0", "%s, %.0f s" % (code, seconds), code == 0)


def pair(o, results, end):
    """Two processes, each with a GPU, alone and at the same time: the link may be shared."""
    words = ["--tokens", 32768, "--steps", 12, "--warm-up", 8]
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
