"""Programs that use two GPUs in one process."""

import random

import torch
import torch.nn.functional as F
from torch import nn

from language import llama_1b


def spread(steps, batch=4, longest=2048):
    """A Llama of one billion parameters, half of its layers on each GPU, put there by accelerate; texts of all lengths."""
    from accelerate import dispatch_model

    places = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": 1, "lm_head": 1}
    places.update(("model.layers.%d" % i, i // 8) for i in range(16))
    yield from texts(dispatch_model(llama_1b(), places), steps, batch, longest)


def replicas(steps, batch=8, longest=2048):
    """The same model in DataParallel: each GPU has a copy, and half of a batch."""
    yield from texts(nn.DataParallel(llama_1b()), steps, batch, longest)


def texts(model, steps, batch, longest):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        tokens = random.Random(step).randint(longest // 4, longest)
        ids = torch.randint(0, 32000, (batch, tokens), device="cuda", generator=torch.Generator("cuda").manual_seed(step))
        loss = model(input_ids=ids, labels=ids)["loss"].mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


class Stage(nn.Module):
    """Blocks with a residual, on one GPU."""

    def __init__(self, blocks, width, device):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(blocks)).to(device)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def pipeline(steps, rows=2048, parts=4, width=2048):
    """A pipeline by hand: all parts of a batch go forward through both stages, and then back. Its kernels are deterministic."""
    stages = [Stage(6, width, "cuda:%d" % i) for i in range(2)]
    optimizers = [torch.optim.AdamW(stage.parameters(), lr=1e-5) for stage in stages]
    for step in range(steps):
        draw = torch.Generator("cuda:0").manual_seed(step)
        losses = []
        for _ in range(parts):
            x = torch.randn(rows, width, device="cuda:0", generator=draw)
            losses.append(F.mse_loss(stages[1](stages[0](x).to("cuda:1")), x.to("cuda:1")))
        for loss in losses:
            loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        yield sum(float(loss) for loss in losses)
