"""Trains a workload under FSDP2, each layer and the root sharded, and says what it took on each rank.

Usage: torchrun --nproc-per-node 2 fsdp.py [NAME] [the flags of train.py]

NAME is opt13b-LRV by default. %r in the name of --json is the rank.
"""

import os
import sys
import time

import train  # first: it sets what cuBLAS reads

import torch
import torch.distributed
from torch.distributed.fsdp import fully_shard


def shard(model):
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.argv.insert(1, "opt13b-LRV")
    started, a = time.monotonic(), train.arguments()
    rank = int(os.environ["LOCAL_RANK"])
    w = train.workload(a)
    train.same_each_time(w)
    torch.cuda.set_device(rank)
    torch.manual_seed(a.seed + rank)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    a.json = a.json and a.json.replace("%r", str(rank))
    code = train.run(a, w, rank, lambda: w.model(shard=shard), started)
    if code:
        os._exit(code)  # the other rank waits in a collective: torchrun ends it
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
