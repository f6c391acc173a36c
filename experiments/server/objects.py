"""Checks memory that processes share by keys (docs/server.md) on a machine with an NVIDIA GPU and PyTorch.

Usage: objects.py BIN OUT [PART...] [--gb N]

BIN holds gmswap and libgm.so (make all); the module gm is that of packaging/python. The parts, each in a process of its own:

    driver  what cuMemAlloc and cuMemFree take
    attach  a process makes 50 GB of weights; a second one attaches them: time, bytes, bits; SIGKILL of the maker; drop
    frozen  a kernel writes to what is frozen: its process fails, the contents stay
    tensors a file of safetensors, loaded twice: PyTorch's tensors without a copy, bits

OUT gets objects.csv and objects.log. The exit status is 1 where a check did not hold. A part that fails does not end the others.
"""

import argparse
import csv
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(HERE, "..", "..", "packaging", "python")
LIMITS = {"driver": 20, "attach": 60, "frozen": 25, "tensors": 25}  # seconds
MOST = 110  # seconds for all


class Part:
    """What a part measures, and the processes that it starts."""

    def __init__(self, o, name):
        self.o, self.name, self.log = o, name, open(os.path.join(o.out, "objects.log"), "a")
        self.env = dict(os.environ, GM_SERVER=os.path.join(o.out, "keys-" + name), PYTHONPATH=MODULE, OBJECTS_LIBGM=os.path.join(o.bin, "libgm.so"))
        self.started = []

    def row(self, what, value, goal="", good=None):
        print("ROW\t%s\t%s\t%s\t%s\t%s" % (self.name, what, value, goal, "" if good is None else "yes" if good else "NO"), flush=True)

    def most(self, what, value, goal, form="%.3f"):
        self.row(what, form % value, "<= " + form % goal, value <= goal)

    def same(self, what, value, goal):
        self.row(what, value, goal, str(value) == str(goal))

    def start(self, *words):
        p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=self.env, text=True, bufsize=1)
        self.started.append(p)
        return p

    def act(self, *words):
        return self.start(sys.executable, os.path.abspath(__file__), "--act", *map(str, words))

    def gmswap(self, *words):
        return subprocess.run([os.path.join(self.o.bin, "gmswap"), *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=20)

    def serve(self):
        p = self.start(os.path.join(self.o.bin, "gmswap"), "serve")
        until(lambda: self.gmswap("ctl", "list").returncode == 0, 10)
        return p

    def keys(self):
        return [j for j in json.loads(self.gmswap("ctl", "list", "--json").stdout) if j["state"] == "shared"]

    def end(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
                p.wait(10)


def until(f, seconds):
    end = time.monotonic() + seconds
    while not f():
        if time.monotonic() > end:
            raise RuntimeError("waited %d s in vain" % seconds)
        time.sleep(0.005)


def expect(p, word):
    """Reads lines of a process up to one that begins with a word, and returns its other words."""
    for line in p.stdout:
        words = line.split()
        if words and words[0] == word:
            return words[1:]
    raise RuntimeError("the process ended before it said %r: see objects.log" % word)


def go(p):
    p.stdin.write("\n")
    p.stdin.flush()


def used():
    """Memory of the first card that is in use, in bytes."""
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"], stdout=subprocess.PIPE, text=True, timeout=20)
    return int(out.stdout.split()[0]) * 2**20


def driver(part):
    p = part.act("driver")
    for line in p.stdout:
        words = line.rstrip("\n").split("\t")
        if words[0] == "figure":
            part.row(words[1], words[2])
    if p.wait(20):
        raise RuntimeError("the process failed: see objects.log")


def attach(part):
    gb = part.o.gb
    part.serve()
    empty = used()
    alone = part.act("idle")
    expect(alone, "ready")
    context = used() - empty
    part.row("a process of PyTorch with a context, GB", "%.3f" % (context / 1e9))
    alone.kill()
    alone.wait(10)
    until(lambda: used() - empty < 2**28, 10)
    maker = part.act("key", gb)
    part.row("make %.0f GB, fill them by a kernel, freeze, s" % gb, "%.3f / %.3f / %.3f" % tuple(map(float, expect(maker, "made"))))
    part.same("bits the same in the maker", expect(maker, "same")[0], "True")
    full = used()
    second = part.act("key", gb)
    seconds = float(expect(second, "found")[0])
    part.most("a second process attaches %.0f GB, s" % gb, seconds, 0.1, "%.4f")
    part.same("bits the same in the second", expect(second, "same")[0], "True")
    more = used() - full - context
    part.row("more on the card, beside its context, MiB", "%.1f" % (more / 2**20), "0 +- 64", abs(more) <= 64 << 20)
    part.same("uses in ctl list", part.keys()[0]["uses"], 2)
    times = []
    for _ in range(2):
        p = part.act("key", gb)
        times.append(float(expect(p, "found")[0]))
        part.same("bits the same in a further one", expect(p, "same")[0], "True")
        p.kill()
        p.wait(10)
    part.row("two further ones, s", " ".join("%.4f" % t for t in sorted(times)))
    killed(part, gb, maker, second, empty)


def killed(part, gb, maker, second, empty):
    """Kills the maker, then the other; the memory stays until it is dropped."""
    maker.send_signal(signal.SIGKILL)
    maker.wait(10)
    go(second)
    part.same("the maker is killed: bits the same in the other", expect(second, "same")[0], "True")
    second.send_signal(signal.SIGKILL)
    second.wait(10)
    until(lambda: part.keys()[0]["uses"] == 0, 10)
    time.sleep(0.5)
    part.row("all are killed: on the card, GB", "%.2f" % ((used() - empty) / 1e9), "%.2f" % gb, abs(used() - empty - gb * 1e9) < 2**28)
    third = part.act("key", gb)
    part.most("the next process attaches, s", float(expect(third, "found")[0]), 0.1, "%.4f")
    part.same("bits the same", expect(third, "same")[0], "True")
    go(third)
    expect(third, "same")
    go(third)
    third.wait(20)
    began = time.monotonic()
    part.gmswap("ctl", "drop", "weights")
    until(lambda: used() - empty < 2**28, 10)
    part.most("drop: the memory is free, s", time.monotonic() - began, 0.5)


def frozen(part):
    part.serve()
    maker = part.act("key", 0.1)
    expect(maker, "same")
    spoiler = part.act("spoil", 0.1)
    answer = expect(spoiler, "spoil")[0]
    part.same("a kernel that writes to it", answer, "failed")
    go(maker)
    part.same("bits the same in the maker", expect(maker, "same")[0], "True")


def tensors(part):
    part.serve()
    path = os.path.join(part.o.out, "model.safetensors")
    p = part.act("write", path)
    expect(p, "written")
    for n in ("first", "second"):
        p = part.act("load", path)
        seconds, same, shares = expect(p, "loaded")
        part.row("%s load of 0.8 GB, s" % n, "%.3f" % float(seconds))
        part.same("bits the same, and PyTorch computes with them", same, "True")
        part.same("all tensors lie in the memory of the key", shares, "True")
        p.wait(20)
    part.same("keys", len(part.keys()), 1)
    os.remove(path)


def act(words):
    """What the processes of a part do."""
    import torch

    from gm import _shared

    _shared._path = lambda: os.environ["OBJECTS_LIBGM"]
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    {"idle": act_idle, "driver": act_driver, "key": act_key, "spoil": act_spoil, "write": act_write, "load": act_load}[words[0]](torch, *words[1:])


def act_idle(torch):
    right(torch, torch.zeros(1 << 20, dtype=torch.uint8, device="cuda"))  # loads the kernels that others use
    torch.cuda.empty_cache()
    print("ready", flush=True)
    sys.stdin.readline()


def timed(torch, f, n=50):
    """Returns the median time of a call, in microseconds."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        f()
        times.append(time.perf_counter() - began)
    return sorted(times)[n // 2] * 1e6


def act_driver(torch):
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1")
    p = ctypes.c_uint64()
    for size, name in ((128, "128 B"), (16 << 20, "16 MiB"), (32 << 20, "32 MiB")):
        def both(size=size):
            if cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size)) or cuda.cuMemFree_v2(p):
                raise RuntimeError("cuMemAlloc failed")
        print("figure\tcuMemAlloc and cuMemFree of %s, us\t%.1f" % (name, timed(torch, both)), flush=True)


def numbers(torch, data):
    """A view of bytes as whole numbers, and those that are to be there, by parts."""
    words = data.view(torch.int64)
    part = 1 << 27
    for begin in range(0, len(words), part):
        view = words[begin : begin + part]
        yield view, torch.arange(begin, begin + len(view), device=words.device)


def right(torch, data):
    return all(torch.equal(view, want.mul_(2654435761)) for view, want in numbers(torch, data))


def act_key(torch, gb):
    import gm

    began = time.perf_counter()
    memory = gm.Shared("weights")
    opened = time.perf_counter() - began
    if memory.address is None:
        size = int(float(gb) * 1e9) // (2 << 20) * (2 << 20)
        memory.make(size)
        made = time.perf_counter()
        for view, want in numbers(torch, torch.as_tensor(memory, device="cuda:0")):
            torch.mul(want, 2654435761, out=view)
        torch.cuda.synchronize()
        filled = time.perf_counter()
        memory.freeze()
        print("made", made - began, filled - made, time.perf_counter() - filled, flush=True)
    else:
        print("found", opened, flush=True)
    data = torch.as_tensor(memory, device="cuda:0")
    assert data.data_ptr() == memory.address
    for _ in range(2):
        same = right(torch, data)
        torch.cuda.empty_cache()
        print("same", same, flush=True)
        sys.stdin.readline()
    del data
    memory.close()


def act_spoil(torch, gb):
    import gm

    data = torch.as_tensor(gm.Shared("weights"), device="cuda:0")
    try:
        data.fill_(7)
        torch.cuda.synchronize()
        print("spoil done", flush=True)
    except RuntimeError as e:
        print("spoil failed", str(e).split("\n")[0], flush=True)
    os._exit(0)


NAMES = {"BF16": "bfloat16", "F32": "float32", "F16": "float16", "I64": "int64"}


def expected(torch, n, dtype):
    return (torch.arange(1 << 24, device="cuda") * (n + 3) % 251).to(getattr(torch, NAMES[dtype]))


def act_write(torch, path):
    header, at, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for n in range(12):
        dtype = ("I64", "F32", "BF16", "F16")[n // 3]
        data = expected(torch, n, dtype).cpu().contiguous().view(torch.uint8)
        header["t%d" % n] = {"dtype": dtype, "shape": [1 << 10, 1 << 14], "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for data in parts:
            file.write(memoryview(data.numpy()))
    print("written", flush=True)


def act_load(torch, path):
    import gm

    began = time.perf_counter()
    loaded = gm.load_safetensors(path)
    seconds = time.perf_counter() - began
    same = lies = True
    low = min(t.data_ptr() for t in loaded.values())
    for n in range(12):
        t = loaded["t%d" % n]
        dtype = ("I64", "F32", "BF16", "F16")[n // 3]
        same = same and t.shape == (1 << 10, 1 << 14) and torch.equal(t.flatten(), expected(torch, n, dtype))
        lies = lies and t.is_cuda and low <= t.data_ptr() < low + (3 << 30)
    product = (loaded["t4"][:, :512].float() @ loaded["t5"][:512].float()).isfinite().all().item()
    print("loaded", seconds, same and product, lies, flush=True)


PARTS = {"driver": driver, "attach": attach, "frozen": frozen, "tensors": tensors}


def run(o, name, end):
    """Runs a part in a process of its own, and returns its rows."""
    words = [sys.executable, os.path.abspath(__file__), o.bin, o.out, name, "--within", "--gb", str(o.gb)]
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    began = time.monotonic()
    timer = threading.Timer(max(1, min(LIMITS[name], end - began)), lambda: os.killpg(p.pid, signal.SIGKILL))
    timer.start()
    rows = []
    for line in p.stdout:
        print(line, end="", flush=True)
        if line.startswith("ROW\t"):
            rows.append(line.rstrip("\n").split("\t")[1:])
    timer.cancel()
    if p.wait():
        rows.append([name, "the part ends well", "after %.0f s with %d" % (time.monotonic() - began, p.returncode), "0", "NO"])
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return rows


def options():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("bin", type=os.path.abspath)
    p.add_argument("out", type=os.path.abspath)
    p.add_argument("parts", nargs="*", metavar="PART")
    p.add_argument("--gb", type=float, default=50)
    p.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_intermixed_args()
    for name in o.parts:
        if name not in PARTS:
            p.error("%s: not one of %s" % (name, ", ".join(PARTS)))
    return o


def main():
    if sys.argv[1:2] == ["--act"]:
        act(sys.argv[2:])
        return 0
    o = options()
    os.makedirs(o.out, exist_ok=True)
    if o.within:
        part = Part(o, o.parts[0])
        try:
            PARTS[o.parts[0]](part)
        finally:
            part.end()
        return 0
    end = time.monotonic() + MOST
    rows = [row for name in o.parts or PARTS for row in run(o, name, end)]
    with open(os.path.join(o.out, "objects.csv"), "a", newline="") as f:
        csv.writer(f).writerows([["part", "what", "value", "goal", "good"]] + rows)
    log = os.path.join(o.out, "objects.log")
    print("\nthe end of objects.log:\n" + "".join(open(log).readlines()[-25:]) if os.path.exists(log) else "")
    for row in rows:
        print("%-8s %-52s %-24s %-10s %s" % tuple(row[:5]))
    return 1 if any(row[4] == "NO" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
