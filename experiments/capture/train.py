"""Trains a transformer on batches of changing length: the shape of OPT-1.3B by default, LoRA and recomputation on request.

Usage: train.py [--steps N] [--layers N] [--batch N] [--lora] [--recompute] [--times FILE] [--snapshot FILE] [--oom]
                [--workers N] [--compile] [--ddp] [--record]
"""

import argparse
import json
import os
import random
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, VOCABULARY = 2048, 32, 50272


class LoRA(nn.Module):
    def __init__(self, linear, rank=8):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Layer(nn.Module):
    def __init__(self, lora):
        super().__init__()
        wrap = LoRA if lora else (lambda linear: linear)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = wrap(nn.Linear(WIDTH, 3 * WIDTH))
        self.out = wrap(nn.Linear(WIDTH, WIDTH))
        self.up = nn.Linear(WIDTH, 4 * WIDTH).requires_grad_(not lora)
        self.down = nn.Linear(4 * WIDTH, WIDTH).requires_grad_(not lora)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, layers, lora, recompute):
        super().__init__()
        self.recompute = recompute
        self.tokens = nn.Embedding(VOCABULARY, WIDTH).requires_grad_(not lora)
        self.layers = nn.ModuleList(Layer(lora) for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False).requires_grad_(not lora)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


class Batches(torch.utils.data.Dataset):
    """Batches of 256 to 768 tokens, the same for each run."""

    def __init__(self, steps, batch):
        rng = random.Random(7)
        self.shapes = [(batch, rng.randrange(256, 769, 8)) for _ in range(steps)]

    def __len__(self):
        return len(self.shapes)

    def __getitem__(self, i):
        return torch.randint(VOCABULARY, self.shapes[i], generator=torch.Generator().manual_seed(i))


def main():
    p = argparse.ArgumentParser()
    for name, default in (("--steps", 30), ("--layers", 24), ("--batch", 16), ("--workers", 0)):
        p.add_argument(name, type=int, default=default)
    for name in ("--lora", "--recompute", "--compile", "--ddp", "--oom", "--record"):
        p.add_argument(name, action="store_true")
    p.add_argument("--times")
    p.add_argument("--snapshot")
    a = p.parse_args()

    if a.record:
        torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    rank = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Model(a.layers, a.lora, a.recompute).bfloat16()
    if a.ddp:
        torch.distributed.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    if a.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=1e-4)
    loader = torch.utils.data.DataLoader(Batches(a.steps, a.batch), batch_size=None, num_workers=a.workers)
    times, held = [], []
    for ids in loader:
        torch.cuda.synchronize()
        start = time.perf_counter()
        logits = model(ids.cuda(non_blocking=True))
        loss = nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1).cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
        if a.oom:
            held.append(torch.empty(20 << 30, dtype=torch.uint8, device="cuda"))
    if a.snapshot:
        torch.cuda.memory._dump_snapshot(a.snapshot)
    free, total = torch.cuda.mem_get_info()
    result = {
        "times": times,
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "reserved": torch.cuda.memory_reserved(),
        "device_used": total - free,
    }
    if a.times:
        with open(a.times, "w") as f:
            json.dump(result, f)
    print("median step %.4f s, peak reserved %.2f GiB" % (sorted(times)[len(times) // 2], result["peak_reserved"] / 2**30))
    if a.ddp:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
