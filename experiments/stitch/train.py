"""Trains one workload and says what it took.

Usage: train.py NAME [--steps N] [--json FILE] [--scale X] [--seed N] [--batch N] [--longest N] [--cap SIZE]

NAME is one of workloads.py. The first three steps warm up. --scale makes a small model of it, --batch and --longest change its
batches, --cap lets PyTorch have so many GB of the device. The exit status is 3 where memory does not suffice.

A run is the same to the last bit as another on such a GPU. Attention is flash attention in its deterministic form, for which
PyTorch asks that all of its operations be deterministic: its backward pass adds up in order, which makes it slower by a part
of its own time, with no more memory where batch x heads fills the GPU, as here. ResNet takes cuDNN's deterministic algorithms.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what PyTorch takes on Hopper, and asks for in so many words

import torch
import torch.utils.deterministic

import memory
from workloads import WORKLOADS

WARM_UP = 3
OUT_OF_MEMORY = 3  # the exit status


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("name", choices=WORKLOADS)
    for flag, kind, default in (("--steps", int, 23), ("--json", str, None), ("--scale", float, 1), ("--seed", int, 7),
                                ("--batch", int, None), ("--longest", int, None), ("--cap", float, None)):
        p.add_argument(flag, type=kind, default=default)
    return p.parse_args()


def workload(a):
    w = WORKLOADS[a.name].scaled(a.scale)
    return dataclasses.replace(w, batch=a.batch or w.batch, longest=a.longest or w.longest)


def same_each_time(w):
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if w.size is not None:  # ResNet's pooling has no deterministic form that PyTorch would vouch for
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cuda.enable_cudnn_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_math_sdp(False)


def train(w, model, steps, seed, device):
    """Trains and yields a record of each step."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5)
    generator = torch.Generator(device="cuda").manual_seed(seed + device)
    for length in w.lengths(steps, seed):
        batch = w.make(length, generator)
        torch.cuda.synchronize()
        start, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        loss = model(batch)
        loss.backward()
        loss = loss.detach()  # its graph would keep the inputs of recomputed layers
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        thread, process = time.thread_time() - thread, time.process_time() - process
        torch.cuda.synchronize()
        yield {"length": length, "time": time.perf_counter() - start, "thread_cpu": thread, "process_cpu": process,
               "loss": float(loss).hex(), "driver_used": memory.driver_used(device)}


def result(name, records, device, seconds, nvml, error):
    warm = records[WARM_UP:] or [{"time": 0, "thread_cpu": 0, "process_cpu": 0}]
    return {
        "name": name, "error": error, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(device), "started_s": seconds,
        "steps": len(records), "warm_up": WARM_UP,
        "median_s": statistics.median(r["time"] for r in warm),
        "median_thread_cpu_s": statistics.median(r["thread_cpu"] for r in warm),
        "median_process_cpu_s": statistics.median(r["process_cpu"] for r in warm),
        "driver_peak": max((r["driver_used"] for r in records), default=0), "nvml_peak": nvml,
        **memory.account(device),
        "lengths": [r["length"] for r in records], "times_s": [r["time"] for r in records],
        "thread_cpu_s": [r["thread_cpu"] for r in records], "process_cpu_s": [r["process_cpu"] for r in records],
        "losses": [r["loss"] for r in records],
    }


def is_out_of_memory(e):
    return isinstance(e, torch.OutOfMemoryError) or "CUDA out of memory" in str(e)


def run(a, w, device, model, started):
    """Trains the model that model() returns, writes the result and returns the exit status."""
    watch, records, error, seconds = memory.Watch(device), [], "", 0
    watch.start()
    try:
        trained = model()
        torch.cuda.synchronize()
        seconds = time.monotonic() - started
        for r in train(w, trained, a.steps, a.seed, device):
            records.append(r)
            print("%d: %d long, %.4f s, loss %s" % (len(records), r["length"], r["time"], r["loss"]), flush=True)
    except RuntimeError as e:
        if not is_out_of_memory(e):
            raise
        error = str(e)
    out = result(a.name, records, device, seconds, watch.end(), error)
    if a.json:
        with open(a.json, "w") as f:
            json.dump(out, f)
    print("%s: median step %.4f s, allocated %.2f GB, reserved %.2f GB, utilisation %.4f, driver %.2f GB, %s %s" % (
        out["name"], out["median_s"], out["max_allocated"] / 1e9, out["max_reserved"] / 1e9, out["utilisation"],
        out["driver_peak"] / 1e9, out["backend"], error.split("\n")[0]), flush=True)
    return OUT_OF_MEMORY if error else 0


def main():
    started, a = time.monotonic(), arguments()
    w = workload(a)
    same_each_time(w)
    torch.manual_seed(a.seed)
    torch.cuda.init()
    if a.cap:
        torch.cuda.set_per_process_memory_fraction(a.cap * 1e9 / torch.cuda.get_device_properties(0).total_memory)
    sys.exit(run(a, w, 0, w.model, started))


if __name__ == "__main__":
    main()
