"""Records PyTorch's allocator under many settings: a run for each, as a snapshot with its whole history.

Usage: record.py FOLDER          runs everything, each in a process of its own, and prints a table
       record.py FOLDER NAME     runs one

A run is random requests in two streams (record_stream, empty_cache, tensors that outlive others) and a small
transformer that is trained on batches of changing length. Each line of the table: the peak reserved by PyTorch's own
account, retries, ooms, and the bytes that the process may reserve (0: all).
"""

import json
import os
import random
import subprocess
import sys

# name: (PYTORCH_CUDA_ALLOC_CONF, share of the device, entries of history, what to run)
RUNS = {
    "split32": ("max_split_size_mb:32", None, None, "both"),
    "split64-rounding40": ("max_split_size_mb:64,max_non_split_rounding_mb:40", None, None, "both"),
    "split32-full": ("max_split_size_mb:32", 0.012, None, "both"),
    "gc": ("garbage_collection_threshold:0.6", 0.015, None, "both"),
    "gc-split": ("garbage_collection_threshold:0.5,max_split_size_mb:48", 0.015, None, "both"),
    "divisions4": ("roundup_power2_divisions:4", None, None, "both"),
    "divisions-list": ("roundup_power2_divisions:[1:1,4:4,16:8,>:2]", None, None, "both"),
    "full": ("", 0.012, None, "both"),
    "expandable": ("expandable_segments:True", None, None, "both"),
    "expandable-full": ("expandable_segments:True", 0.010, None, "both"),
    "segments40": ("large_segment_size_mb:40", None, None, "both"),
    "pools": ("", None, None, "pools"),
    "pools-expandable": ("expandable_segments:True", None, None, "pools"),
    "two-devices": ("", None, None, "devices"),
    "ring": ("", None, 3000, "both"),
    "ring-expandable": ("expandable_segments:True", None, 2500, "both"),
}


def churn(torch, seed, steps=1500):
    rng = random.Random(seed)
    side = torch.cuda.Stream()
    sizes = [700, 40_000, 900_000, 1 << 20, (1 << 20) + 512, 3 << 20, 7_340_032, 12 << 20, 33 << 20, 70 << 20, 130 << 20]
    live = []
    for step in range(steps):
        if rng.random() < 0.54 or not live:
            size = rng.choice(sizes) + rng.randrange(4) * 524_288
            stream = side if rng.random() < 0.25 else torch.cuda.current_stream()
            try:
                with torch.cuda.stream(stream):
                    t = torch.empty(size, dtype=torch.uint8, device="cuda")
                live.append((t, stream))
            except torch.OutOfMemoryError:
                for _ in range(len(live) // 2):
                    live.pop(rng.randrange(len(live)))
        else:
            t, stream = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.3:
                other = side if stream is not side else torch.cuda.current_stream()
                with torch.cuda.stream(other):
                    torch.cuda._sleep(rng.randrange(20_000, 400_000))
                t.record_stream(other)
            del t
        if len(live) > 60:
            live.pop(rng.randrange(len(live)))
        if rng.random() < 0.004:
            torch.cuda.empty_cache()


def train(torch, seed, steps=6):
    torch.manual_seed(seed)
    rng = random.Random(seed)
    layer = lambda: torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    model = torch.nn.Sequential(*[layer() for _ in range(4)]).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(steps):
        x = torch.randn(16, rng.randrange(64, 512), 512, device="cuda", dtype=torch.bfloat16)
        try:
            model(x).float().pow(2).mean().backward()
            optimizer.step()
        except torch.OutOfMemoryError:
            pass
        optimizer.zero_grad(set_to_none=True)


def pools(torch):
    pool = torch.cuda.MemPool()
    kept = []
    with torch.cuda.use_mem_pool(pool):
        kept += [torch.empty(s << 20, dtype=torch.uint8, device="cuda") for s in (3, 30, 5, 1)]
    static = torch.randn(512, 512, device="cuda")
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            (static @ static).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        out = (static @ static).relu() @ static
    for _ in range(3):
        graph.replay()
    churn(torch, 5, 300)
    del kept[1]
    with torch.cuda.use_mem_pool(pool):
        kept.append(torch.empty(20 << 20, dtype=torch.uint8, device="cuda"))
    return kept, out


def devices(torch):
    kept = []
    for device in (0, 1, 0, 1):
        with torch.cuda.device(device):
            churn(torch, device, 400)
            kept.append(torch.empty(5 << 20, dtype=torch.uint8, device="cuda"))
    return kept


def one(folder, name):
    conf, share, entries, what = RUNS[name]
    import torch

    limit = 0
    if share:
        torch.cuda.set_per_process_memory_fraction(share)
        limit = int(share * torch.cuda.get_device_properties(0).total_memory)
    torch.cuda.memory._record_memory_history(context=None, max_entries=entries or sys.maxsize)
    keep = None
    if what == "pools":
        keep = pools(torch)
    elif what == "devices":
        keep = devices(torch)
    else:
        churn(torch, 1)
        train(torch, 2)
        churn(torch, 3, 600)
    stats = torch.cuda.memory_stats()
    torch.cuda.memory._dump_snapshot(os.path.join(folder, name + ".pickle"))
    print(json.dumps({
        "name": name, "conf": conf, "limit": limit, "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
        "peak_allocated_bytes": stats["allocated_bytes.all.peak"], "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
    }))
    del keep


def main():
    folder = sys.argv[1]
    if len(sys.argv) > 2:
        return one(folder, sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    results = []
    for name, (conf, *_rest) in RUNS.items():
        env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf)
        run = subprocess.run([sys.executable, __file__, folder, name], env=env, capture_output=True, text=True)
        lines = run.stdout.strip().splitlines()
        if run.returncode or not lines:
            print(f"{name}: exit {run.returncode}: {run.stderr.strip().splitlines()[-1:]}")
            continue
        results.append(json.loads(lines[-1]))
    with open(os.path.join(folder, "runs.json"), "w") as f:
        json.dump(results, f, indent=1)
    print(f"{'run':20} {'peak reserved':>14} {'retries':>8} {'ooms':>5} {'limit':>12}")
    for r in results:
        print(f"{r['name']:20} {r['peak_reserved_bytes']:14} {r['retries']:8} {r['ooms']:5} {r['limit']:12}")


if __name__ == "__main__":
    main()
