"""Measures kernels on memory of the host that the GPU uses in place, as gmswap run has for what finds no room, and checks their results.

Usage: python3 in_place.py BIN [--csv FILE]

Each operator runs on memory of the GPU, and then, when a program has used up its limit, on what it is given instead: inputs, outputs and workspaces.
The exit status is 1 where results differ in a bit.
"""

import argparse
import csv
import ctypes
import os
import subprocess
import sys
import time

LIMIT = 4 << 30  # bytes
FIELDS = "device", "torch", "operator", "bytes", "gpu_ms", "host_ms", "same"
ROUNDS = 3


def operators(torch):
    """Yields names, functions and the inputs that they are given."""
    f, half = torch.nn.functional, torch.bfloat16
    draw = lambda *size, dtype=torch.float32: torch.randn(*size, device="cuda", dtype=dtype)
    index = torch.randint(0, 1000, (1 << 20,), device="cuda")

    def convolution(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = f.conv2d(x, w, padding=1)
        y.square().sum().backward()
        return y.detach(), x.grad, w.grad

    def attention(q, k, v):
        return f.scaled_dot_product_attention(q, k, v, is_causal=True)

    def update(p, g):
        p = torch.nn.Parameter(p.clone())
        p.grad = g.clone()
        optimizer = torch.optim.AdamW([p], fused=True)
        optimizer.step()
        return p.detach(), optimizer.state[p]["exp_avg_sq"]

    yield "x + y", torch.add, (draw(1 << 24), draw(1 << 24))
    yield "gelu", f.gelu, (draw(1 << 24),)
    yield "layer norm", lambda x: f.layer_norm(x, (2048,)), (draw(4096, 2048),)
    yield "softmax", lambda x: x.softmax(-1), (draw(4096, 2048),)
    yield "matrix product, 2048, float32", torch.mm, (draw(2048, 2048), draw(2048, 2048))
    yield "matrix product, 4096, bfloat16", torch.mm, (draw(4096, 4096, dtype=half), draw(4096, 4096, dtype=half))
    yield "linear with bias, bfloat16", f.linear, (draw(4096, 2048, dtype=half), draw(2048, 2048, dtype=half), draw(2048, dtype=half))
    yield "attention, bfloat16", attention, [draw(4, 16, 1024, 64, dtype=half) for _ in range(3)]
    yield "convolution, both passes", convolution, (draw(16, 64, 64, 64), draw(64, 64, 3, 3))
    yield "sums by atomics", lambda x: torch.zeros(1000, device="cuda").index_add(0, index, x), (torch.randint(0, 9, (1 << 20,), device="cuda").float(),)
    yield "sort", lambda x: tuple(torch.sort(x)), (draw(1 << 22),)
    yield "FFT", lambda x: torch.view_as_real(torch.fft.fft2(x)), (draw(32, 512, 512),)
    yield "AdamW, fused", update, (draw(1 << 22), draw(1 << 22))
    yield "copy to the CPU and back", lambda x: x.cpu().cuda(), (draw(1 << 22),)
    yield "compiled", torch.compile(lambda x, y: (x * y).sum(-1).softmax(-1)), (draw(4096, 2048), draw(4096, 2048))


def timed(torch, function, inputs):
    """Returns results, and the least milliseconds of some runs but the first."""
    least = float("inf")
    for round in range(ROUNDS + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        results = function(*inputs)
        torch.cuda.synchronize()
        if round:
            least = min(least, (time.perf_counter() - begin) * 1e3)
    return results if isinstance(results, tuple) else (results,), least


def child(path):
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    borrowed = ctypes.CDLL(os.environ["GM_LIB"]).gm_swap_borrowed
    borrowed.argtypes = (ctypes.c_void_p,)
    on_host = lambda t: borrowed(t.data_ptr()) >= 0
    model = torch.nn.Linear(512, 512).cuda()
    model(torch.randn(512, 512, device="cuda")).sum().backward()
    done = []
    for name, function, inputs in operators(torch):
        results, ms = timed(torch, function, inputs)
        done.append((name, function, [x.cpu() for x in inputs], [x.cpu() for x in results], ms))
    del inputs, results
    full = []
    for size in (256 << 20, 16 << 20, 1 << 20):
        while not full or not on_host(full[-1]):
            full.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        full.pop()
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, FIELDS, lineterminator="\n")
        out.writeheader()
        for name, function, inputs, wanted, ms in done:
            given = [x.cuda() for x in inputs]
            large = [x for x in given if x.nbytes >= 2 << 20]
            assert all(map(on_host, large)), name
            results, slow = timed(torch, function, given)
            same = all(torch.equal(x.cpu(), want) for x, want in zip(results, wanted))
            out.writerow({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "operator": name, "gpu_ms": "%.3f" % ms, "host_ms": "%.3f" % slow,
                          "bytes": sum(x.nbytes for x in [*inputs, *wanted]), "same": "yes" if same else "NO"})


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin", type=os.path.abspath)
    parser.add_argument("--csv", default="in-place.csv")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.csv)
    command = [os.path.join(args.bin, "gmswap"), "run", "-m", str(LIMIT), "--", sys.executable, os.path.abspath(__file__), args.bin, "--csv", args.csv, "--child"]
    subprocess.run(command, check=True, env=dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8"))
    with open(args.csv) as f:
        rows = list(csv.DictReader(f))
    print("%-32s %10s %10s %10s  %s" % ("operator", "MB", "GPU ms", "host ms", "same bits"))
    for r in rows:
        print("%-32s %10.1f %10.3f %10.3f  %s" % (r["operator"], int(r["bytes"]) / 1e6, float(r["gpu_ms"]), float(r["host_ms"]), r["same"]))
    sys.exit(not rows or any(r["same"] != "yes" for r in rows))


main()
