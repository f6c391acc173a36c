"""Which steps are recorded, of programs that do not begin as they go on, or do other things between their steps, on a real PyTorch."""

import functools
import random

import torch
from torch import nn

from real import main
from real_demand import Model, WIDTH
from real_family import started

FIRST = 12  # steps in which layers are left out


class Both(nn.Module):
    """Has two inputs, each padded to one length."""

    def __init__(self):
        super().__init__()
        self.inner = Model()
        self.layers = self.inner.layers

    def forward(self, a, b):
        pad = lambda t: nn.functional.pad(t, (0, 0, 0, 40 - t.shape[1]))
        return self.inner(pad(a) + pad(b))


def trained(inputs, steps, model=Model, first=FIRST, between=lambda model, step: 0):
    """Trains a model that leaves out some of its layers in its first steps. Returns its losses and gradients, and what is computed between two steps."""
    torch.manual_seed(0)
    net, out, draw = model(), [], random.Random(0)
    holder = getattr(net, "inner", net)
    layers = list(net.layers)
    for step in range(steps):
        torch.manual_seed(step)
        holder.layers = nn.ModuleList(draw.sample(layers, 2 + step % 2) if step < first else layers)
        loss = net(*inputs(step))
        loss.backward()
        out.append([float(loss), *(float(p.grad.sum()) for layer in layers for p in layer.parameters() if p.grad is not None)])
        net.zero_grad()
        out.append(between(net, step))
    return out


def hooked(train, smallest=64):
    """Returns the ways that steps went, with the losses that there are without the hook, and the hook."""
    want, (h, ways) = train(), started("remake", smallest)
    got = train()
    h.remove()
    assert got == want
    return ways, h


def texts(*lengths):
    return lambda step: (torch.rand(4, random.Random(step).choice(lengths), WIDTH),)


def test_settled():
    """Steps are recorded again once many have done the same, where the first ones leave out layers as they like, whatever their sizes and how much they save."""
    ways, _ = hooked(functools.partial(trained, texts(24), 36))
    assert ways.count("recorded") == 8 and set(ways[-9:]) == {"planned"}, ways
    ways, h = hooked(functools.partial(trained, lambda step: (torch.rand(4, 17 + step % 2 * 23, WIDTH),), 60), smallest=1024)
    assert ways[-20:].count("planned") > 15 and not h.runtime.given_up, ways


def test_padded():
    """Inputs that vary in turn, where all steps save the same, are recorded in the end as they come."""
    lengths = [(24, 12), (30, 12), (24, 20)]
    ways, h = hooked(functools.partial(trained, lambda step: [torch.rand(4, n, WIDTH) for n in lengths[step % 3]], 80, Both), smallest=1024)
    assert ways.count("recorded") < 16 and set(ways[-20:]) == {"planned"}, ways


def test_between():
    """So are steps between which models run that no backward pass follows, or that save too little."""
    other = nn.Linear(WIDTH, 2)

    def small(net, step):
        other.zero_grad()
        loss = other(torch.rand(1, 2, WIDTH)).square().mean()
        loss.backward()
        return float(loss)

    lengths = texts(13, 17, 21, 26, 29, 33, 38, 40)
    for between in lambda net, step: float(net(torch.rand(8, 50, WIDTH))), small:
        ways, h = hooked(functools.partial(trained, lengths, 40, first=0, between=between), smallest=1024)
        assert h.runtime.schedule is not None and ways[-20:].count("planned") > 5 and ways.count("recorded") < 8, ways


def test_evaluated():
    """Evaluations with gradients, of the sizes of recorded steps, do not stand for steps that tell nothing new."""
    lengths = lambda step: (torch.rand(4, [13, 17, 29][step] if step < 3 else random.Random(step).choice((17, 29, 40)), WIDTH),)
    evaluate = lambda net, step: [float(net(torch.rand(4, 17, WIDTH))) for _ in range(2)]
    ways, h = hooked(functools.partial(trained, lengths, 30, first=0, between=evaluate), smallest=1024)
    assert "adapted" not in ways and not h.runtime.given_up and ways[-20:].count("planned") > 5, ways


if __name__ == "__main__":
    main(globals())
