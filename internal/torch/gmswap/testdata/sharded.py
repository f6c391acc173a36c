"""A program whose parameters have memory only while they are used, as under FSDP."""

import torch
from torch import nn, ops

from gpu import STEPS, batch, cuda, digest, runtimes, weight


class Gathered(object):
    """A parameter as FSDP has it: its storage has a size only while it is used."""

    def __init__(self, byte):
        self.shard, self.all_gather_outputs, self.grads = torch.full((64, 256), byte), [], []

    def unshard(self):
        if not self.all_gather_outputs:
            self.all_gather_outputs = [cuda(64, 256)]
            t = self.all_gather_outputs[0]
            self.unsharded = nn.Parameter(t.alias(t.size(), t.stride(), 0))
        storage = self.all_gather_outputs[0].untyped_storage()
        if storage.nbytes() == 0:
            storage.resize_(64 << 10)
        self.unsharded.write(self.shard.read())

    def reshard(self):
        storage = self.all_gather_outputs[0].untyped_storage()
        if storage.nbytes():
            before = cuda(64, 256, byte=255)
            storage.resize_(0)
            del before


class Sharded(nn.Module):
    def __init__(self, seed, known):
        super().__init__()
        self.gathered = [Gathered(seed + i) for i in range(3)]
        if known:
            group = type("Group", (), {"fsdp_params": self.gathered})
            self.state = type("State", (), {"_fsdp_param_groups": [group]})

    def forward(self, x):
        for g in self.gathered:
            g.unshard()
        a, b, c = (g.unsharded.alias((64, 256), (256, 1), 0) for g in self.gathered)
        for t, g in zip((a, b, c), self.gathered):
            t.requires_grad = True
            g.leaf = t
        x = x + ops.linear(ops.silu(ops.linear(x, a)) * ops.sigmoid(ops.linear(x, b)), c)
        for g in self.gathered:
            g.reshard()
        return x


def fsdp(known=True):
    if known:
        Sharded._get_fsdp_state = lambda self: self.state

    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks, self.head = [Sharded(10 * i, known) for i in range(3)], weight(77)

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return ops.linear(x, self.head)

    model = Root()
    for step in range(STEPS):
        loss = ops.loss(model(batch(step)))
        for block in model.blocks:
            for g in block.gathered:
                g.unshard()
        loss.backward()
        print(digest(loss, *(g.leaf.grad for b in model.blocks for g in b.gathered)))
        for block in model.blocks:
            for g in block.gathered:
                g.leaf = None
                g.reshard()
                g.shard.write(bytes(255 - b for b in g.shard.read()))
        model.head.grad = None
    if runtimes and known:
        gathered = {g.all_gather_outputs[0].untyped_storage()._cdata for b in model.blocks for g in b.gathered}
        assert gathered <= set(runtimes[0].memory.known)


def resized():
    """The same where nothing says which storages these are."""
    fsdp(False)
