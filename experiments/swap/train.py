"""Trains Llama layers for some steps and says what it took.

Usage: train.py [--tokens N] [--layers N] [--batch N] [--how plain|recompute|save_on_cpu] [--compile] [--accumulate N]
                [--parallel ddp|fsdp2] [--steps N] [--warm-up N] [--cap GB] [--host GB] [--deterministic] [--json FILE]

With --parallel it is for torchrun, and the first rank writes the file. The exit status is 3 where the device's memory does not suffice, 4
where it takes more than --host of the host's.
"""

import argparse
import contextlib
import hashlib
import json
import os
import resource
import statistics
import sys
import threading
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch

import llama

OUT_OF_MEMORY, OUT_OF_HOST = 3, 4  # exit statuses


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--how", choices=("plain", "recompute", "save_on_cpu"), default="plain")
    for flag, kind, default in (("--tokens", int, 16384), ("--layers", int, 8), ("--batch", int, 1), ("--steps", int, 12), ("--warm-up", int, 6),
                                ("--cap", float, None), ("--host", float, None), ("--accumulate", int, 1), ("--seed", int, 7), ("--json", str, None)):
        p.add_argument(flag, type=kind, default=default)
    p.add_argument("--parallel", choices=("ddp", "fsdp2"))
    p.add_argument("--compile", action="store_true", help="each layer by itself")
    p.add_argument("--deterministic", action="store_true")
    return p.parse_args()


def same_each_time():
    import torch.utils.deterministic

    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)


def train(a, model):
    """Trains and yields a record of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    generator = torch.Generator(device="cuda").manual_seed(a.seed + rank())
    for step in range(a.steps):
        ids = [torch.randint(llama.VOCABULARY, (a.batch, a.tokens), device="cuda", generator=generator) for _ in range(a.accumulate)]
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        for part in ids:
            with torch.autograd.graph.save_on_cpu(pin_memory=True) if a.how == "save_on_cpu" else contextlib.nullcontext():
                loss = model(part)
            loss.backward()
        optimizer.step()
        loss = loss.detach()
        torch.cuda.synchronize()
        record = {"time": time.perf_counter() - start, "loss": float(loss).hex(),
                  "allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
        record["gradients"] = digest(model) if a.deterministic else ""
        optimizer.zero_grad(set_to_none=True)
        yield {**record, "after": torch.cuda.memory_allocated(), "host": rss()}


def digest(model):
    """Returns a digest of the bits of all gradients, of this rank's part where they are spread over ranks."""
    gradients = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in model.parameters()]
    bits = [g.reshape(-1).view(torch.int16) for g in gradients]
    sums = torch.stack([b.to(torch.int64).sum() for b in bits])
    parts = torch.stack([b[::997].to(torch.int64).sum() for b in bits])
    return hashlib.sha256(torch.cat((sums, parts)).cpu().numpy().tobytes()).hexdigest()[:16]


def rss():
    """Returns the bytes of host memory of this process."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def watch(limit):
    """Ends the process when it takes more than a limit of host memory, before the machine does."""
    while rss() < limit:
        time.sleep(0.05)
    print("more than %.0f GB of host memory are in use" % (limit / 1e9), flush=True)
    os._exit(OUT_OF_HOST)


def rank():
    return int(os.environ.get("RANK", "0"))


def built(a):
    """Returns the model, spread over the ranks if that is asked for."""
    model = llama.llama(a.layers, a.how == "recompute")
    if a.compile:
        for layer in model.layers:
            layer.compile()
    if a.parallel == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if a.parallel == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    return model


def main():
    a = arguments()
    if a.parallel:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
    if a.host:
        threading.Thread(target=watch, args=(a.host * 1e9,), daemon=True).start()
    if a.deterministic:
        same_each_time()
    torch.manual_seed(a.seed)
    if a.cap:
        torch.cuda.set_per_process_memory_fraction(a.cap * 1e9 / torch.cuda.get_device_properties(0).total_memory)
    records, error = [], ""
    try:
        for r in train(a, built(a)):
            records.append(r)
            print("%d: %.4f s, allocated %.2f GB, reserved %.2f GB, host %.2f GB, loss %s %s" % (
                len(records), r["time"], r["allocated"] / 1e9, r["reserved"] / 1e9, r["host"] / 1e9, r["loss"], r["gradients"]), flush=True)
    except RuntimeError as e:
        if "out of memory" not in str(e):
            raise
        error = str(e).split("\n")[0]
    warm = records[a.warm_up:]
    result = {
        "tokens": a.tokens, "layers": a.layers, "batch": a.batch, "how": a.how, "error": error, "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(), "steps": records,
        "median_s": statistics.median(r["time"] for r in warm) if warm else 0,
        "allocated": max((r["allocated"] for r in warm), default=0), "reserved": max((r["reserved"] for r in warm), default=0),
    }
    if a.json and rank() == 0:
        with open(a.json, "w") as f:
            json.dump(result, f)
    print("%s, %d tokens: median step %.4f s, allocated %.2f GB, reserved %.2f GB %s" % (
        a.how, a.tokens, result["median_s"], result["allocated"] / 1e9, result["reserved"] / 1e9, error), flush=True)
    if a.parallel:
        torch.distributed.destroy_process_group()
    sys.exit(OUT_OF_MEMORY if error else 0)


if __name__ == "__main__":
    main()
