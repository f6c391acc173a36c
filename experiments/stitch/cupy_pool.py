"""CuPy with its own memory pool, with no pool, and under gmstitch run --cupy, in turns, on a machine with an NVIDIA GPU and CuPy.

Usage: cupy_pool.py BIN OUT [--rounds N] [--steps N] [--programs A,B]

BIN holds gmstitch. Each run is a process of its own. OUT gets cupy.json: each run with its peak of memory (cudaMemGetInfo, above what was in use
before), its median step and a digest of all results. Prints a line for each check and, last, a table; the exit status is 1 where a run failed,
results differ between the modes, a check did not hold, or gmstitch took more memory than CuPy's pool.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

MODES = ("pool", "none", "gmstitch")
MARK = "cupy_pool: "
MB = 1 << 20


class Sampler(object):
    """The most memory that the device has had in use."""

    def __init__(self, runtime):
        self.runtime, self.before, self.peak, self.on = runtime, 0, 0, False
        self.before = self.now()

    def now(self):
        free, total = self.runtime.memGetInfo()
        return total - free - self.before

    def __call__(self):
        if self.on:
            self.peak = max(self.peak, self.now())


def sizes(seed, step, n, low, high):
    """Returns n sizes that differ from step to step, and are the same in every mode."""
    import random

    rng = random.Random(seed * 1000003 + step)
    return [rng.randrange(low, high) for _ in range(n)]


def arrays(cp, step, sample):
    """Elementwise work, sorting and masks on arrays of varying sizes, some of which live into the next step."""
    held, results = arrays.held, []
    for n in sizes(1, step, 12, 100_000, 12_000_000):
        x = (cp.arange(n, dtype=cp.int64) * 2654435761 + step) % 1000003
        sample()
        y = x[x % 3 == 0]
        z = cp.sort(y) + cp.cumsum(y)
        sample()
        results.append(z[::1009])
        held.append(y)
        if len(held) > 5:
            held.pop(step * 7 % len(held))
    results.append(sum(int(h.sum()) for h in held))
    return results


arrays.held = []


def images(cp, step, sample):
    """Filters of images whose sizes vary, by Fourier transforms: workspaces beside arrays."""
    results = []
    for n in sizes(2, step, 4, 512, 3072):
        image = cp.arange(n * n, dtype=cp.float32).reshape(n, n) % 251
        spectrum = cp.fft.rfft2(image)
        sample()
        spectrum[n // 4:] = 0
        results.append(cp.fft.irfft2(spectrum, s=image.shape)[::97, ::89])
        sample()
        results.append((image[: n // 2] @ image[:, : n // 2])[::61])
    return results


def streams(cp, step, sample):
    """Two streams, each with arrays of its own."""
    if not streams.made:
        streams.made = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    results = []
    for i, stream in enumerate(streams.made):
        with stream:
            for n in sizes(3 + i, step, 8, 50_000, 6_000_000):
                x = cp.arange(n, dtype=cp.int64) % 8191
                results.append(cp.cumsum(x * x + i)[::1013])
                sample()
    for stream in streams.made:
        stream.synchronize()
    return results


streams.made = []


def small(cp, step, sample):
    """Many small requests, where the time of one counts."""
    x = cp.zeros(1000)
    for n in sizes(5, step, 3000, 1, 20_000):
        x[: n % 1000] += cp.empty(n)[:1].size
    sample()
    return [x]


PROGRAMS = {f.__name__: f for f in (arrays, images, streams, small)}


def digest(cp, results):
    h = hashlib.sha256()
    for r in results:
        h.update(cp.asnumpy(r).tobytes() if isinstance(r, cp.ndarray) else repr(r).encode())
    return h.hexdigest()


def timed(cp, function, steps):
    """Returns the digest of all results, and the seconds of each step."""
    h, seconds = hashlib.sha256(), []
    for step in range(steps):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        results = function(cp, step, lambda: None)
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
        h.update(digest(cp, results).encode())
        del results
    return h.hexdigest(), seconds


def child(mode, name, steps):
    import cupy as cp

    if mode == "none":
        cp.cuda.set_allocator(None)
    cp.zeros(1) + 1  # CUDA and a kernel are there
    sample = Sampler(cp.cuda.runtime)
    said, seconds = timed(cp, PROGRAMS[name], steps)
    served = type(cp.empty(1).data.mem).__name__
    sample.on = True  # a second pass: to ask the driver takes time
    sample()
    for step in range(steps):
        PROGRAMS[name](cp, step, sample)
        sample()
    print(MARK + json.dumps({"digest": said, "step": statistics.median(seconds[2:]), "peak": sample.peak, "memory": served,
                             "cupy": cp.__version__}), flush=True)


def checks():
    """Returns what holds of CuPy's functions around its pool, as name and what was seen; raises where one does not."""
    import cupy as cp

    pool = cp.get_default_memory_pool()

    def counted(n):
        return cp.arange(n, dtype=cp.int64)

    def served():
        x = counted(MB)
        assert type(x.data.mem).__name__ == "LibgmMemory" and int(x.sum()) == MB * (MB - 1) // 2
        assert pool.used_bytes() >= 8 * MB and pool.total_bytes() >= pool.used_bytes(), (pool.used_bytes(), pool.total_bytes())
        return "%d of %d bytes" % (pool.used_bytes(), pool.total_bytes())

    def free_all_blocks():
        x = [counted(20 * MB) for _ in range(4)]
        before = cp.cuda.runtime.memGetInfo()[0]
        del x
        pool.free_all_blocks()
        after = cp.cuda.runtime.memGetInfo()[0]
        assert after - before >= 600 * MB, (before, after)
        return "%d MiB go back" % ((after - before) // MB)

    def limit():
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + 100 * MB)
        try:
            counted(40 * MB)
            raise AssertionError("there is no limit")
        except cp.cuda.memory.OutOfMemoryError as e:
            text = str(e)
        finally:
            pool.set_limit(size=0)
        assert int(counted(40 * MB)[-1]) == 40 * MB - 1
        return text[:150]

    def out_of_memory():
        try:
            cp.empty(1 << 45, dtype=cp.uint8)
        except cp.cuda.memory.OutOfMemoryError as e:
            return str(e)[:150]
        raise AssertionError("it was served")

    def other_allocators():
        mine = cp.cuda.MemoryPool()
        with cp.cuda.using_allocator(mine.malloc):
            x = counted(MB)
        assert mine.used_bytes() == x.nbytes and type(x.data.mem).__name__ == "PooledMemory"
        before = cp.cuda.get_allocator()
        cp.cuda.set_allocator(cp.cuda.malloc_managed)
        y = counted(MB)
        cp.cuda.set_allocator(before)
        assert bool((x == y).all()) and type(y.data.mem).__name__ == "ManagedMemory"
        return "kept"

    def per_thread_streams():
        import threading

        wrong = []

        def work(i):
            with cp.cuda.Stream.ptds:
                for n in sizes(7, i, 200, 1000, 400_000):
                    if int(cp.full(n, i, dtype=cp.int64).sum()) != n * i:
                        wrong.append(n)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong
        return "4 threads"

    def graph():
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            x = cp.zeros(4 * MB, dtype=cp.int64)
            x * 2 + 1  # kernels are compiled
            stream.synchronize()
            stream.begin_capture()
            out = (x * 2 + 1) * 3
            g = stream.end_capture()
            for i in range(5):
                held = [counted((i + 1) * 3 * MB) for _ in range(3)]
                del held
                pool.free_all_blocks()
                x[...] = i
                g.launch(stream)
                stream.synchronize()
                assert bool((out == (i * 2 + 1) * 3).all()), i
        return "5 replays"

    def beside_pytorch():
        try:
            import torch
        except ImportError:
            return "no PyTorch here"
        t = torch.arange(MB, device="cuda")
        x = cp.from_dlpack(t) * 2
        u = torch.from_dlpack(x)
        assert torch.equal(u, t * 2) and pool.used_bytes() >= 16 * MB
        return "%s, %d bytes in use" % (torch.cuda.memory.get_allocator_backend(), pool.used_bytes())

    def forked():
        code = os.fork()
        if not code:
            try:
                cp.empty(1000)
            except Exception:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(code, 0)[1] == 0
        return "a child is refused"

    def cycles():
        """Arrays in cycles, which the garbage collector takes apart."""
        import gc

        def failing():
            held = counted(10 * MB)
            try:
                raise RuntimeError(held.size)
            except RuntimeError as e:
                kept = e  # the frame and the exception refer to each other
            return kept is None

        gc.collect()
        before = pool.used_bytes()
        for _ in range(10):
            failing()
        gc.collect()
        assert pool.used_bytes() == before, (before, pool.used_bytes())
        return "nothing is left"

    def memory_hooks():
        seen = []

        class Hook(cp.cuda.MemoryHook):
            name = "check"

            def malloc_postprocess(self, **more):
                seen.append(more["size"])

        with Hook():
            x = counted(1000)
        assert seen and int(x.sum()) == 499500, seen
        return "called"

    found = [served, free_all_blocks, limit, out_of_memory, other_allocators, per_thread_streams, graph, beside_pytorch, forked, cycles,
             memory_hooks]
    failed = False
    for f in found:
        try:
            said, ok = f(), True
        except Exception as e:
            said, ok, failed = "%s: %s" % (type(e).__name__, str(e)[:200]), False, True
        print("%s | done | %s | %s" % (f.__name__, str(said).replace("\n", " ").replace("|", "/"), "ok" if ok else "NO"), flush=True)
    sys.exit(failed)


def start(folder, mode, words):
    command = [sys.executable, os.path.abspath(__file__)] + [str(w) for w in words]
    if mode == "gmstitch":
        command = [os.path.join(folder, "gmstitch"), "run", "--cupy", "--"] + command
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
    return done.returncode, done.stdout


def run(o, mode, name, n):
    """Returns what a run said of itself."""
    code, text = start(o.bin, mode, ["--child", mode, name, o.steps])
    result = {"mode": mode, "program": name, "round": n, "status": code}
    for line in text.splitlines():
        if line.startswith(MARK):
            result.update(json.loads(line[len(MARK):]))
    if code or "digest" not in result:
        result["error"] = text[-2000:]
        print(text[-2000:])
    print("%-8s %-8s %s" % (name, mode, "failed" if "error" in result else "%7.1f ms %9.2f MB  %s" % (
        result["step"] * 1e3, result["peak"] / 1e6, result["memory"])), flush=True)
    return result


def table(runs):
    """Prints medians of the rounds, and says whether all is well."""
    well = not any("error" in r for r in runs)
    print("\n%-8s %-8s %10s %10s %10s" % ("program", "mode", "step", "memory", "results"))
    for name in dict.fromkeys(r["program"] for r in runs):
        of = {mode: [r for r in runs if r["program"] == name and r["mode"] == mode and "error" not in r] for mode in MODES}
        digests = {r["digest"] for mode in MODES for r in of[mode]}
        well &= len(digests) == 1
        for mode in MODES:
            if of[mode]:
                step, peak = (statistics.median(r[k] for r in of[mode]) for k in ("step", "peak"))
                print("%-8s %-8s %7.2f ms %7.1f MB %10s" % (name, mode, step * 1e3, peak / 1e6, "the same" if len(digests) == 1 else "DIFFER"))
        if of["pool"] and of["gmstitch"]:
            well &= max(r["peak"] for r in of["gmstitch"]) <= max(r["peak"] for r in of["pool"]) + 8 * MB
            well &= all(r["memory"] == "LibgmMemory" for r in of["gmstitch"])
    return well


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    if sys.argv[1:2] == ["--checks"]:
        return checks()
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--programs", type=lambda s: s.split(","), default=list(PROGRAMS))
    o = p.parse_args()
    code, text = start(o.bin, "gmstitch", ["--checks"])
    print(text, end="")
    runs = [run(o, mode, name, n) for n in range(o.rounds) for name in o.programs for mode in MODES]
    os.makedirs(o.out, exist_ok=True)
    with open(os.path.join(o.out, "cupy.json"), "w") as f:
        json.dump({"checks": [line for line in text.splitlines() if line.count(" | ") >= 3], "runs": runs}, f, indent=1)
    well = table(runs)
    sys.exit(0 if well and code == 0 else 1)


if __name__ == "__main__":
    main()
