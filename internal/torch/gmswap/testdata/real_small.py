"""What is recomputed of tensors that are too small to be moved, of sums that were copied to a wider type, and by attention, on a real PyTorch."""

import torch
from gmswap_hook import rerun
from torch import nn

from cpu import Hooked
from real import main


class Norm(nn.Module):
    """RMSNorm as in transformers: its epsilon is no number of the text, and what it saves of each row is small."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.rand(width)), 1e-6

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * y.to(x.dtype)


class Layer(nn.Module):
    """A layer as a Llama's, with attention to what came before and rotations by position."""

    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.before, self.after = heads, Norm(width), Norm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cos, sin):
        b, n, _ = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1))
        q, k = (t * cos + torch.cat((-t[..., t.shape[-1] // 2 :], t[..., : t.shape[-1] // 2]), -1) * sin for t in (q, k))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, -1))
        y = self.after(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Texts(nn.Module):
    def __init__(self, layers=3, width=64):
        super().__init__()
        self.words, self.head = nn.Embedding(100, width), nn.Linear(width, 100, bias=False)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))

    def forward(self, ids):
        x = self.words(ids)
        with torch.no_grad():
            turns = torch.arange(ids.shape[1])[:, None] / 10.0 ** torch.arange(8).repeat(2)[None]
            cos, sin = (1.0 * f().to(x.dtype) for f in (turns.cos, turns.sin))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(x)


def texts(lengths):
    """Returns the losses of training with texts, and the model."""
    torch.manual_seed(0)
    model, out = Texts().bfloat16(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for n in lengths:
        ids = torch.randint(0, 100, (4, n))
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1).float(), ids.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(float(loss))
    return out, model


def test_small():
    """Of a Llama all is recomputed but one tensor or two of each layer: by what is small and stays, attention without dropout, and
    sums that had been copied to a wider type."""
    want, _ = texts([96] * 9)
    hooked = Hooked("remake", smallest=8192)
    got, _ = texts([96] * 9)
    schedule, small = hooked.runtime.schedule, hooked.memory.small
    chains = [tuple(m.call.name for m in r.chain.made) for r in schedule.recipes if r is not None]
    lacking = [i for i, r in enumerate(schedule.recipes) if r is None]
    hooked.remove()
    assert got == want and hooked.library.remade and not hooked.runtime.strayed, (got, want)
    assert len(lacking) <= 3, [(i, schedule.sizes[i], schedule.layouts[i]) for i in lacking]
    assert any("_scaled_dot_product_flash_attention_for_cpu" in names for names in chains), chains
    assert ("_to_copy", "mm", "add", "_to_copy") in chains, chains
    assert small.wanted and small.kept and not any(map(small.there, small.kept)), "what is small is kept no longer than by autograd"


def test_small_of_all_sizes():
    """So it is in texts of all lengths."""
    lengths = [96, 64, 80, 96, 48, 112, 72, 96, 56, 88, 104, 64]
    want, _ = texts(lengths)
    hooked = Hooked("remake", smallest=8192)
    got, _ = texts(lengths)
    made = hooked.library.remade
    hooked.remove()
    assert got == want and made, (got, want)


def test_small_changed():
    """What is made of a small tensor that was changed since is an error, as it is for autograd."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.changes = nn.ModuleList(nn.Linear(64, 64) for _ in range(3)), False

        def forward(self, x):
            for layer in self.layers:
                y = layer(x)
                turn = torch.cumsum(torch.ones(64), 0)
                x = torch.tanh(y * turn)
                if self.changes:
                    turn.add_(1)
            return x

    hooked, net = Hooked("remake"), Net()
    for step in range(9):
        net.changes = step == 8
        try:
            net(torch.rand(96, 64)).sum().backward()
            failed = False
        except RuntimeError as e:
            failed = "modified by an inplace operation" in str(e)
        assert failed == net.changes, step
    hooked.remove()


def trained(net, forward, steps=14):
    """Returns the losses and the gradients of a model."""
    torch.manual_seed(0)
    model, out = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0001)
    for step in range(steps):
        loss = forward(model, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append((float(loss), [p.grad.clone() for p in model.parameters() if p.grad is not None]))
    return out


def check(net, forward=lambda model, step: model(torch.rand(96, 64), step), small=True, smallest=8192, other=lambda hooked: None):
    """Trains a model, in which something is recomputed and all comes out the same."""
    want, hooked = trained(net, forward), Hooked("remake", smallest=smallest)
    other(hooked)
    runtime, ways = hooked.runtime, []
    end = runtime.end_step
    runtime.end_step = lambda step: (ways.append(step.way()), end(step))
    try:
        got = trained(net, forward)
        hooked.memory.samples.answer(wait=True)
    finally:
        hooked.remove()
    for step, ((a, b), (c, d)) in enumerate(zip(want, got)):
        assert a == c and all(map(torch.equal, b, d)), "step %d" % step
    assert hooked.library.remade and ways.count("planned") > 5 and ways[-1] == "planned", ways
    assert small == any(r.small for r in runtime.schedule.recipes if r is not None)


class Turned(nn.Module):
    """Layers whose results are multiplied by numbers for their columns."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.table = torch.linspace(0.5, 2, 1000)

    def forward(self, x, step):
        for layer in self.layers:
            x = torch.tanh(layer(x) * self.turn(step))
        return x.sum()

    def turn(self, step):
        return torch.cumsum(torch.ones(64), 0) / 10


def test_other_layouts():
    """Each step has its own small tensors, wherever these lie and whatever sizes they have."""

    class Moving(Turned):
        def turn(self, step):
            at = 7 * step if step >= 8 else 0
            return self.table[at : at + 64]

    class Single(Turned):
        def turn(self, step):
            return torch.cumsum(torch.ones(64 if step < 8 else 1), 0)

    check(Moving)
    check(Single)


def test_conjugated():
    """A storage that is seen in two ways is used as the operator saw it."""

    class Net(Turned):
        def forward(self, x, step):
            for layer in self.layers:
                f = torch.polar(torch.ones(32), torch.arange(32.0) / 10)
                y = torch.view_as_complex(layer(x).view(-1, 32, 2))
                z = torch.view_as_real(y * f.conj()).flatten(1) + torch.view_as_real(y * f).flatten(1) / 2
                x = nn.functional.silu(torch.view_as_real(y * f).flatten(1)) + z.tanh()
            return x.square().mean()

    check(Net)


def test_overwritten():
    """What was written to in place is another tensor from then on."""

    class Net(Turned):
        def forward(self, x, step):
            y = x
            for layer in self.layers:
                turn = self.turn(step)
                self.log = layer.bias * turn
                z = torch.tanh(y * turn)
                x = torch.tanh(layer(x)) * z
                turn.mul_(2)
            return x.sum()

    check(Net, small=False)


def test_elsewhere():
    """What was copied to another device is no source."""

    class Net(Turned):
        def forward(self, x, step):
            self.log = []
            for layer in self.layers:
                y = layer(x) + x * 1.0
                self.log.append(y.detach().to("meta", torch.float32))
                x = nn.functional.silu(y * 1.0)
            return x.float().sum()

    def only_here(hooked):
        memory, movable = hooked.memory, hooked.memory.movable
        memory.here = lambda x: isinstance(x, torch.Tensor) and x.layout == torch.strided and not x.is_meta
        memory.movable = lambda x: not x.is_meta and movable(x)

    check(lambda: Net().bfloat16(), lambda model, step: model(torch.rand(64, 64).bfloat16(), step), small=False, other=only_here)


def test_replicas():
    """Copies of a model that are made for each step follow its schedule."""
    copies = []  # no two at one address

    def forward(model, step):
        copies.append(model._replicate_for_data_parallel())
        return copies[-1](torch.rand(96, 64), step)

    check(Turned, forward)


def test_gradient_within():
    """Gradients within the forward pass end nothing that what comes after them needs."""

    class Net(Turned):
        def forward(self, x, step):
            turn = self.turn(step)
            x = torch.tanh(self.layers[0](x) * turn)
            y = x.detach().requires_grad_()
            x = x + torch.autograd.grad(torch.tanh(y.sin() * y).sum(), y)[0]
            for layer in self.layers:
                x = torch.tanh(layer(x) * turn)
            return x.sum()

    hooked, there = Hooked("remake", smallest=8192), []
    runtime, pack = hooked.runtime, hooked.runtime.pack_storage

    def pack_storage(*args):
        saved = pack(*args)
        recipe = runtime.schedule.recipes[saved.entry.index] if runtime.schedule is not None else None
        there.extend(map(hooked.memory.small.there, recipe.small if recipe is not None else ()))
        return saved

    runtime.pack_storage = pack_storage
    trained(Net, lambda model, step: model(torch.rand(96, 64), step))
    hooked.remove()
    assert len(there) > 10 and all(there), there


def test_grown():
    """A tensor that was small and is moved in larger steps is not held there."""
    hooked, held = Hooked("remake", smallest=8192), []

    class Net(Turned):
        def turn(self, step):
            return torch.rand(96 if step < 8 else 960, 1)

        def forward(self, x, step):
            loss = super().forward(x, step)
            if step >= 8:
                kept = (reference() for reference, _ in hooked.memory.small.kept.values())
                held.extend(t for t in kept if t is not None and any(e.key == t.untyped_storage()._cdata for e in hooked.runtime.step.entries))
            return loss

    trained(Net, lambda model, step: model(torch.rand(96 if step < 8 else 960, 64), step))
    hooked.remove()
    assert not held


def test_attention_drops():
    """Attention that drops some at random is not made again."""
    aten, hooked = torch.ops.aten, Hooked("remake")
    function = aten._scaled_dot_product_flash_attention_for_cpu.default
    again = rerun.rerun(function, False)
    q = torch.rand(1, 2, 8, 4)
    assert again.suits(function, (q, q, q)) and again.suits(function, (q, q, q, 0.0, True)) and not again.suits(function, (q, q, q, 0.1))
    hooked.remove()


if __name__ == "__main__":
    main(globals())
