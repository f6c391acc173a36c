"""Experts that ranks split among each other: each rank sends its tokens to the ranks of their experts, and gets them back.

What is local is as torchtitan has it: three matrices of each expert in parameters of three dimensions, multiplied by torch._grouped_mm, and an FSDP2
unit of their own, whose ranks are those that have the same experts.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single, all_to_all_single_autograd


class Feed(nn.Module):
    """SwiGLU, that all tokens pass: the shared experts, side by side."""

    def __init__(self, hidden, width):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(hidden, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.down_proj = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Router(nn.Module):
    """Says which experts a token is sent to, and with which weights: those of the highest scores, or the next ones in turn, so that each expert gets as
    many tokens as any other."""

    def __init__(self, hidden, count, active, sigmoid, balanced):
        super().__init__()
        self.gate = nn.Linear(hidden, count, bias=False)
        self.count, self.active, self.sigmoid, self.balanced = count, active, sigmoid, balanced

    def forward(self, x):
        scores = self.gate(x).float()
        scores = scores.sigmoid() if self.sigmoid else scores.softmax(-1)
        if self.balanced:
            chosen = (torch.arange(len(x) * self.active, device=x.device) % self.count).view(len(x), self.active)
            weights = scores.gather(1, chosen)
        else:
            weights, chosen = scores.topk(self.active, -1)
        return weights / weights.sum(-1, keepdim=True), chosen


class Matrices(nn.Module):
    """The experts of this rank, for rows in their order."""

    def __init__(self, count, hidden, width):
        super().__init__()
        for name, rows, columns in ("gate", width, hidden), ("up", width, hidden), ("down", hidden, width):
            self.register_parameter(name, nn.Parameter(torch.empty(count, rows, columns).normal_(std=0.02)))

    def forward(self, x, counts):
        ends = counts.cumsum(0, dtype=torch.int32)

        def product(x, matrix):
            return torch._grouped_mm(x, matrix.transpose(-2, -1), offs=ends)

        return product(F.silu(product(x, self.gate)) * product(x, self.up), self.down)


class Experts(nn.Module):
    """The feed-forward part of a layer, of a configuration of Mixtral or DeepSeek-V3."""

    def __init__(self, keys, group, balanced):
        super().__init__()
        hidden, count = keys["hidden_size"], keys.get("n_routed_experts") or keys["num_local_experts"]
        width, shared = keys.get("moe_intermediate_size") or keys["intermediate_size"], keys.get("n_shared_experts", 0)
        self.group, self.ranks = group, group.size()
        self.router = Router(hidden, count, keys["num_experts_per_tok"], "n_routed_experts" in keys, balanced)
        self.matrices = Matrices(count // self.ranks, hidden, width)
        self.shared = Feed(hidden, shared * width) if shared else None

    def exchange(self, x, received, sent):
        return all_to_all_single_autograd(x, received, sent, self.group)

    def forward(self, x):
        shape, x, active = x.shape, x.flatten(0, 1), self.router.active
        weights, chosen = self.router(x)
        order = chosen.flatten().argsort(stable=True)
        counts = torch.histc(chosen.flatten().float(), self.router.count, 0, self.router.count - 1).long()
        arrived = all_to_all_single(counts, None, None, self.group).view(self.ranks, -1)  # for each rank and each expert of this one
        sent, received = counts.view(self.ranks, -1).sum(1).tolist(), arrived.sum(1).tolist()
        of = torch.arange(arrived.shape[1], device=x.device).repeat(self.ranks).repeat_interleave(arrived.flatten())
        by = of.argsort(stable=True)  # rows arrive by ranks, and are multiplied by experts
        y = self.exchange(self.matrices(self.exchange(x[order // active], received, sent)[by], arrived.sum(0))[by.argsort()], sent, received)
        y = (y * weights.flatten()[order, None].to(y.dtype))[order.argsort()].view(len(x), active, -1).sum(1)
        return (y if self.shared is None else y + self.shared(x)).view(shape)
