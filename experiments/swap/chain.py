"""A chain of matrix products with an activation behind each, in bf16: the simplest thing of which a part can be computed again."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, VOCABULARY = 16384, 256


class Link(nn.Module):
    def __init__(self):
        super().__init__()
        self.product = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return F.gelu(self.product(x))


class Chain(nn.Module):
    """Takes a batch of tokens and returns a loss."""

    def __init__(self, layers):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Link() for _ in range(layers))

    def forward(self, ids):
        x = self.tokens(ids % VOCABULARY)
        for layer in self.layers:
            x = layer(x)
        return x.mean(dtype=torch.float32)


def chain(layers):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Chain(layers)
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, WIDTH**-0.5)
    return model
