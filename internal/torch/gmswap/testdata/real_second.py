"""Gradients of gradients in less memory than they need, on a real PyTorch: what a backward pass saves for another one leaves, and comes back."""

import random

import torch
from gmswap_hook.second import Later
from torch import nn

from real import main
from real_demand import Short

WIDTH, LIMIT = 32, 20000


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, WIDTH), nn.Tanh(), *[m for _ in range(4) for m in (nn.Linear(WIDTH, WIDTH), nn.Tanh())], nn.Linear(WIDTH, 1))


def equation(model, step):
    """A loss of second derivatives, as of a differential equation, and one of its border."""
    x = torch.rand(24 + 8 * (step % 3), 4, requires_grad=True)
    first, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)
    return (first[:, 1] - second[:, 0]).square().mean() + model(torch.rand(8, 4).round()).square().mean()


def penalty(model, step):
    x = torch.rand(32, 4, requires_grad=True)
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean() - model(x.detach() + 1).mean()


def inner(model, step):
    """A step of an optimizer that is differentiated, as MAML has."""
    parameters = dict(model.named_parameters())
    error = lambda p, x: torch.func.functional_call(model, p, (x,)).sub(x.sum(1, keepdim=True)).square().mean()
    slopes = torch.autograd.grad(error(parameters, torch.rand(24, 4)), list(parameters.values()), create_graph=True)
    moved = {name: p - 0.1 * s for (name, p), s in zip(parameters.items(), slopes)}
    return error(moved, torch.rand(24, 4))


class Forces(nn.Module):
    """A model of energies, whose forward pass differentiates them."""

    def __init__(self, model):
        super().__init__()
        self.energy = model

    def forward(self, x):
        forces, = torch.autograd.grad(self.energy(x).sum(), x, create_graph=True)
        return forces


def forces(model, step):
    x = torch.rand(32, 4, requires_grad=True)
    return (Forces(model)(x) - x.detach().cos()).square().mean()


def losses(loss_of, steps=10):
    """Returns the losses, and the parameters at the end."""
    model, out = net(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        torch.manual_seed(step)
        loss = loss_of(model, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(float(loss))
    return out, [p.tolist() for p in model.parameters()]


class Full(Short):
    """Has what was saved leave at each tensor that a backward pass saves, down to a limit, or some of it at random."""

    def __init__(self, limit, draw=None):
        super(Full, self).__init__(1 << 40)
        runtime = self.hooked.runtime
        self.relief, self.memory, self.left, self.draw = runtime.relief, self.hooked.memory, 0, draw
        self.limit, pack = limit, runtime.pack_backward
        runtime.second.packs = True

        def packed(tensor):
            saved = pack(tensor)
            self.leave()
            return saved

        self.hooked.hooks.runtime.pack_backward = packed

    def leave(self):
        with self.memory:
            entries = list(self.memory.entries.values())
            before = sum(isinstance(e, Later) and e.resident() for e in entries)
            over = sum(e.nbytes for e in entries if e.resident()) - self.limit
            if self.draw is not None:
                over = self.draw.randrange(1, 1 << 14) if self.draw.random() < 0.3 else 0
            if over > 0:
                self.relief.evict(over)
            self.left += before - sum(isinstance(e, Later) and e.resident() for e in entries)


def check(memory):
    """Nothing is kept of graphs that are gone."""
    memory.settle()
    assert not memory.entries and not memory.copies and memory.present == memory.absent == 0, (memory.entries, memory.copies, memory.present, memory.absent)


def test_second():
    for loss_of in equation, penalty, inner, forces:
        want = losses(loss_of)
        full = Full(LIMIT)
        got = losses(loss_of)
        full.hooked.runtime.next_step(())
        check(full.memory)
        full.remove()
        assert got == want, loss_of.__name__
        assert full.left > 0 or loss_of in (inner, forces), "%s: nothing that a backward pass saved has left" % loss_of.__name__


def test_random():
    """Whatever leaves, and whenever."""
    for seed in range(12):
        loss_of = (equation, penalty, inner, forces)[seed % 4]
        want = losses(loss_of)
        full = Full(0, random.Random(seed))
        got = losses(loss_of)
        full.remove()
        assert got == want, seed


class Tripled(torch.autograd.Function):
    """Changes what it saved, and returns that."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        saved, = ctx.saved_tensors
        return saved.mul_(3)


def slope(full):
    """Returns a second derivative, all that can having left before each pass."""
    torch.manual_seed(0)
    w = torch.rand(64, WIDTH, requires_grad=True)
    nn.Linear(WIDTH, WIDTH)(w)  # begins a step
    z = Tripled.apply(w * w)
    for loss in z.sum(), None:
        if full is not None:
            with full.memory:
                full.relief.evict(1 << 40)
        if loss is not None:
            first, = torch.autograd.grad(loss, w, create_graph=True)
    return torch.autograd.grad(first.sum(), w)[0].tolist()


def test_written():
    """A copy that was written to is not taken for what was saved."""
    want = slope(None)
    full = Full(1 << 40)
    got = slope(full)
    full.remove()
    assert got == want


def test_held():
    """Nor is a tensor that the program holds and has written to, though a copy of what it was is there."""
    full = Full(1 << 40)
    v, x = torch.ones(64, WIDTH), torch.rand(64, WIDTH, requires_grad=True)
    kept = (nn.Linear(WIDTH, WIDTH)(x) * v).sum()
    entry = full.memory.entries[v.untyped_storage()._cdata]
    with full.memory:
        assert entry.offload() and entry.free()
        entry.load(0)
        entry.wait()
    v.mul_(5)
    w = torch.rand(64, WIDTH, requires_grad=True)
    first, = torch.autograd.grad(w * w, w, v, create_graph=True)
    second, = torch.autograd.grad(first.sum(), w)
    assert float(second[0, 0]) == 10, float(second[0, 0])
    del kept, first, entry
    full.remove()


def test_begins():
    """What backward passes save is packed once a request has found no room, and what was recorded before is dropped."""
    want = losses(penalty, steps=24)
    short = Short(1 << 40)
    runtime, renewed = short.hooked.runtime, []
    over = runtime.start_over
    runtime.start_over = lambda: (renewed.append(runtime.steps), over())
    end = runtime.end_step

    def ended(step):
        if step.number == 10:
            assert short.hooked.memory.copies is None
            runtime.relief.asked = 1
        end(step)

    runtime.end_step = ended
    assert losses(penalty, steps=24) == want
    short.remove()
    assert renewed == [10] and runtime.second.packs and short.hooked.memory.copies is not None, renewed


def test_room():
    """Where requests find room, what a backward pass saves is left alone."""
    short = Short(1 << 40)
    losses(equation, steps=4)
    assert short.hooked.memory.copies is None
    short.remove()


if __name__ == "__main__":
    main(globals())
