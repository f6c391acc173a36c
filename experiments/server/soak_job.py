"""The programs of soak.py: python soak_job.py train|infer SEED STEPS GB, python soak_job.py store SEED GB OBJECTS.

A loop says "loss STEP LOSS SUM" for each step, the same words in each run; SUM is of a tensor that it changed among GB gigabytes that it only keeps. The
store says "right N" or "wrong N" for each object that it has read.
"""

import ctypes
import os
import random
import sys
import time

import job
import torch

PIECE = 500_000_000  # bytes of a tensor that is kept


def keep(gb, seed):
    """Tensors of gb GB in whole numbers."""
    count = max(int(gb * 1e9) // PIECE, 1)
    return [torch.full((PIECE // 8,), seed * 1000 + i, dtype=torch.int64, device="cuda") for i in range(count)]


def exact():
    """Leaves only kernels whose results are the same each time."""
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def touch(kept, step):
    """Changes one of the tensors, and returns the sum of some of its numbers."""
    kept[step % len(kept)].add_(step + 1)
    return kept[step % len(kept)][::4099].sum().item()


def train(seed, steps, gb):
    exact()
    torch.manual_seed(seed)
    kept, model = keep(gb, seed), job.llama_like().cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 8192, (8, 513), device="cuda")
    for step in range(steps):
        logits = model(tokens[:, :-1]).float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        job.say("loss", step, loss.item().hex(), touch(kept, step))
    job.say("ended")


def infer(seed, steps, gb):
    """Answers requests, and has none for some seconds now and then."""
    exact()
    torch.manual_seed(seed)
    kept, model = keep(gb, seed), job.llama_like().cuda().bfloat16().eval()
    pauses = random.Random(time.time())
    for step in range(steps):
        prompt = torch.randint(0, 8192, (4, 256), generator=torch.Generator().manual_seed(seed * 100000 + step)).cuda()
        with torch.no_grad():
            answer = model(prompt).float()
        job.say("loss", step, answer.square().mean().item().hex(), touch(kept, step))
        if pauses.random() < 0.05:
            time.sleep(pauses.uniform(1, 8))
    job.say("ended")


def patient(make):
    """Returns what a function makes, which takes memory that nobody makes room for: this is no job of the server."""
    while True:
        try:
            return make()
        except torch.OutOfMemoryError:
            time.sleep(0.1)


def store(seed, gb, count):
    """Puts, gets, changes and reads objects at random, for ever."""
    ctypes.CDLL(os.environ["SOAK_LIBGM"])  # which gm uses
    import gm

    chance, objects, numbers = random.Random(seed), [], []
    like = int(gb * 1e9) // count // 8
    with gm.Store() as of:
        for i in range(count):
            objects.append(of.put(patient(lambda: torch.full((like,), i, dtype=torch.int64, device="cuda"))))
            numbers.append(i)
        for n in range(sys.maxsize):
            i, write = chance.randrange(count), chance.random() < 0.3
            tensor = objects[i].get(write=write)
            job.say("right" if patient(lambda: bool((tensor == numbers[i]).all())) else "wrong", n)
            if write:
                numbers[i] = n
                tensor.fill_(n)
            objects[i].put(next=None)
            time.sleep(chance.uniform(0, 0.05))


if __name__ == "__main__":
    kind, seed, second, third = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    if kind == "store":
        store(seed, float(second), int(third))
    else:
        {"train": train, "infer": infer}[kind](seed, int(second), float(third))
