"""The models of the workloads at their true sizes, in plain PyTorch, with random weights that are made on the GPU.

A model is called with a batch and returns the loss.
"""

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

RANK = 8  # of LoRA


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int  # learned ones; 0: rotary, with attention and MLP side by side and a head of its own, as GPT-NeoX has it
    activation: str

    def scaled(self, x):
        heads = max(1, round(self.heads * x))
        return dataclasses.replace(self, layers=max(1, round(self.layers * x)), heads=heads, width=self.width // self.heads * heads,
                                   vocabulary=max(256, round(self.vocabulary * x) // 16 * 16) if x != 1 else self.vocabulary)


OPT_1B = Size(24, 2048, 32, 50272, 2050, "relu")
OPT_13B = Size(40, 5120, 40, 50272, 2050, "relu")
NEOX_20B = Size(44, 6144, 64, 50432, 0, "gelu")
GPT2_MEDIUM = Size(24, 1024, 16, 50257, 1024, "tanh")

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "tanh": lambda x: F.gelu(x, approximate="tanh")}


class LoRA(nn.Linear):
    """A linear layer with an addition of low rank, which alone is trained."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.lora_down = nn.Linear(inputs, RANK, bias=False)
        self.lora_up = nn.Linear(RANK, outputs, bias=False)

    def forward(self, x):
        return super().forward(x) + self.lora_up(self.lora_down(x))


class Layer(nn.Module):
    def __init__(self, size, lora, recompute):
        super().__init__()
        self.heads, self.rotary, self.recompute = size.heads, size.positions == 0, recompute
        self.activation = ACTIVATIONS[size.activation]
        linear, width = LoRA if lora else nn.Linear, size.width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        if self.recompute:
            return checkpoint(self.block, x, use_reentrant=False, preserve_rng_state=False)
        return self.block(x)

    def block(self, x):
        attended = self.attention(self.norm1(x))
        if self.rotary:
            return x + attended + self.mlp(self.norm2(x))
        x = x + attended
        return x + self.mlp(self.norm2(x))

    def attention(self, x):
        b, n, width = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if self.rotary:
            q, k = rotated(q), rotated(k)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(a.transpose(1, 2).reshape(b, n, width))

    def mlp(self, x):
        return self.down(self.activation(self.up(x)))


def rotated(x):
    """Turns the first quarter of each head by its position."""
    n, dim = x.shape[-2], x.shape[-1] // 4
    frequencies = 10000.0 ** (-torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) / dim)
    angles = torch.outer(torch.arange(n, device=x.device, dtype=torch.float32), frequencies).repeat(1, 2)
    turned, rest = x[..., :dim], x[..., dim:]
    a, b = turned.chunk(2, dim=-1)
    turned = turned * angles.cos().to(x.dtype) + torch.cat((-b, a), dim=-1) * angles.sin().to(x.dtype)
    return torch.cat((turned, rest), dim=-1)


class Transformer(nn.Module):
    """Takes a batch of tokens. The logits are in bf16, and in float for the loss, as transformers has it."""

    def __init__(self, size, lora, recompute):
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.positions, size.width) if size.positions else None
        self.layers = nn.ModuleList(Layer(size, lora, recompute) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = None if size.positions else nn.Linear(size.width, size.vocabulary, bias=False)
        for name, p in self.named_parameters():
            p.requires_grad_(not lora or "lora_" in name)

    def forward(self, ids):
        x = self.tokens(ids)
        if self.positions:
            x = x + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        logits = (self.head(x) if self.head else F.linear(x, self.tokens.weight)).float()
        targets = F.pad(ids, (0, 1), value=-100)[:, 1:].contiguous()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-100)


class Images(nn.Module):
    """ResNet-152. Takes images and their classes."""

    def __init__(self):
        super().__init__()
        import torchvision
        self.net = torchvision.models.resnet152(weights=None)

    def forward(self, batch):
        images, classes = batch
        return F.cross_entropy(self.net(images).float(), classes)


def transformer(size, lora, recompute, shard=lambda model: None, device="cuda"):
    """Returns a model in bf16. Nothing is made before it has been sharded."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("meta"):
        model = Transformer(size, lora, recompute)
    shard(model)
    model.to_empty(device=device)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p = p.to_local() if hasattr(p, "to_local") else p
            if name.endswith("bias") or "lora_up" in name:
                p.zero_()
            elif "norm" in name:
                p.fill_(1)
            else:
                p.normal_(0, 0.02 if "lora" not in name else 1 / math.sqrt(p.shape[-1]))
    return model


def images(device="cuda"):
    with torch.device(device):
        return Images().to(torch.bfloat16)
