"""A Llama of 7B in plain PyTorch, with fewer layers, in bf16, with random weights that are made on the GPU."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WIDTH, INNER, HEADS, VOCABULARY = 4096, 11008, 32, 32000


class Layer(nn.Module):
    def __init__(self, recompute):
        super().__init__()
        self.recompute = recompute
        linear = lambda a, b: nn.Linear(a, b, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.k, self.v, self.out = (linear(WIDTH, WIDTH) for _ in range(4))
        self.gate, self.up, self.down = linear(WIDTH, INNER), linear(WIDTH, INNER), linear(INNER, WIDTH)

    def forward(self, x, turn):
        if self.recompute:
            return checkpoint(self.block, x, turn, use_reentrant=False, preserve_rng_state=False)
        return self.block(x, turn)

    def block(self, x, turn):
        x = x + self.attention(self.norm1(x), turn)
        return x + self.mlp(self.norm2(x))

    def attention(self, x, turn):
        q, k, v = (f(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(rotated(q, *turn), rotated(k, *turn), v, is_causal=True)
        return self.out(a.transpose(1, 2).flatten(2))

    def mlp(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def rotated(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Llama(nn.Module):
    """Takes a batch of tokens and returns the loss."""

    def __init__(self, layers, recompute):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(recompute) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        turn = self.turn(ids.shape[1], ids.device)
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x, turn)
        logits = self.head(self.norm(x))
        targets = F.pad(ids, (0, 1), value=-100)[:, 1:].flatten()
        return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=-100)

    @staticmethod
    def turn(n, device):
        dim = WIDTH // HEADS
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2, device=device, dtype=torch.float32) / dim)
        angles = torch.outer(torch.arange(n, device=device, dtype=torch.float32), frequencies).repeat(1, 2)
        return angles.cos().bfloat16(), angles.sin().bfloat16()


def llama(layers, recompute=False):
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Llama(layers, recompute)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.fill_(1) if "norm" in name else p.normal_(0, 0.02)
    return model
