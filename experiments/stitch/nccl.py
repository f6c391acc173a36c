"""Memory that NCCL registers, on two GPUs: a line for each check, with PyTorch's allocator or under gmstitch.

Usage: torchrun --nproc-per-node 2 nccl.py segments|pool

With `segments` the program asks for all segments to be registered with NCCL as the allocator takes them
(TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK), which gmstitch declines. With `pool` it registers a pool of memory from ncclMemAlloc by hand. The sums
that all-reduce leaves are checked in whole, while memory is taken, freed and returned between them.
"""

import os
import sys

if sys.argv[1:] == ["segments"]:
    os.environ["TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"] = "1"  # before torch reads it
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import random  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

MB = 1 << 20


def summed(n, rank, size):
    """Sums a tensor of n elements over all ranks and says how many elements are wrong."""
    x = torch.arange(n, device="cuda") % 1000 + rank
    dist.all_reduce(x)
    return int((x != (torch.arange(n, device="cuda") % 1000) * size + size * (size - 1) // 2).sum())


def registered(rank, size):
    rng = random.Random(7)
    kept, wrong, steps = [], 0, 60
    for step in range(steps):
        kept.append(torch.full((rng.randrange(1, 24) * MB,), float(step), device="cuda"))
        wrong += summed(rng.randrange(1, 12 * MB), rank, size)
        for t in kept:
            dist.all_reduce(t, op=dist.ReduceOp.MAX)
        wrong += sum(int((t != t[0]).sum()) for t in kept)
        rng.shuffle(kept)
        del kept[rng.randrange(1, 8):]
        if step % 15 == 14:
            torch.cuda.empty_cache()
    return "%d steps, %d elements wrong" % (steps, wrong), wrong == 0


def pooled(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = torch.full((64 * MB,), float(rank + 1), device="cuda")
    backend.register_mem_pool(pool)
    dist.all_reduce(x)
    wrong = int((x != size * (size + 1) / 2).sum())
    backend.deregister_mem_pool(pool)
    del x, pool
    torch.cuda.empty_cache()
    return "%d elements wrong" % wrong, wrong == 0


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    said, good = {"segments": registered, "pool": pooled}[sys.argv[1]](rank, dist.get_world_size())
    print("%-7s rank %d, %s: %s" % ("ok" if good else "FAILED", rank, sys.argv[1], said), flush=True)
    dist.destroy_process_group()
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
