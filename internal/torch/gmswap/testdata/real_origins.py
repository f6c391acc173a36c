"""Where numbers come from that operators are given, and what is recomputed with them or with what an operator drew, on a real PyTorch."""

import math
import sys
import types

import torch
from gmswap_hook import literals, live, origins
from torch import nn
from torch.nn import functional as F

from cpu import Hooked
from real import Program, main


def drop(x, p, training=True):
    """What nn.functional.dropout runs on GPUs."""
    return torch.native_dropout(x, p, True)[0] if training else x


class Dropped(nn.Module):
    """A block as BERT has it, whose attention is put together of single operators."""

    def __init__(self, d=32, heads=2, p=0.25):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)
        self.up, self.down, self.last = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.LayerNorm(d)
        self.heads, self.config = heads, types.SimpleNamespace(p=p)
        self.scale = (d // heads) ** -0.5

    def attend(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) * self.scale
        near = torch.arange(x.shape[1])
        scores = torch.where(near[:, None] >= near[None], scores, torch.finfo(scores.dtype).min)
        return (drop(scores.softmax(-1), self.config.p) @ v).transpose(1, 2).flatten(2)

    def forward(self, x):
        x = self.norm(x + drop(self.out(self.attend(x)), self.config.p))
        return self.last(x + drop(self.down(F.gelu(self.up(x))), self.config.p))


class Blocks(Program):
    def __init__(self, change=lambda model, step: None, **how):
        torch.manual_seed(0)
        super().__init__(nn.Sequential(*(Dropped(**how) for _ in range(3))))
        self.change = change

    def batch(self, step, shape=(4, 16, 32)):
        return super().batch(step, shape)

    def step(self, step):
        self.change(self.model, step)
        super().step(step)


class Longer(Blocks):
    """Of other lengths from step to step."""

    def batch(self, step, shape=None):
        return super().batch(step, (4, 8 * (1 + step % 3), 32))


def trained(make, steps=14):
    """Returns what comes out of training, losses and gradients."""
    program = make()
    for step in range(steps):
        program.step(step)
    return program.out


def equal(a, b):
    return len(a) == len(b) and all(x == y and all(map(torch.equal, g, h)) for (x, g), (y, h) in zip(a, b))


def recomputed(make, steps=14, how="remake"):
    """Trains with all recomputed that can be, and returns the names of the operators that make each entry again, None for none."""
    want, hooked = trained(make, steps), Hooked(how)
    got = trained(make, steps)
    schedule, told = hooked.runtime.schedule, hooked.runtime.planner.graph["tensors"]
    hooked.remove()
    assert [t.get("scratch", 0) for t in told] == [r.chain.extra() if r else 0 for r in schedule.recipes] and any(t.get("scratch", 0) for t in told)
    assert equal(got, want), "other losses or gradients"
    assert hooked.library.remade, "nothing was recomputed"
    return [r and [m.call.name for m in r.chain.made] for r in schedule.recipes]


def test_drawn():
    """Of a block with dropout all that is as large as its input is recomputed of that, of what was drawn and of attention's parts."""
    made = recomputed(Blocks)
    names = {names[-1] for names in made if names}
    assert {"native_dropout", "_softmax", "native_layer_norm", "gelu", "addmm"} <= names, names
    assert any("where" in names and "mul" in names for names in made if names), made  # the scores, of what the program's mask is
    assert sum(names is None for names in made) < len(made) / 2, made


def test_drawn_sizes():
    """The same in steps of other lengths."""
    want, hooked = trained(Longer, 24), Hooked("remake")
    got = trained(Longer, 24)
    remade = hooked.library.remade
    hooked.remove()
    assert equal(got, want) and remade, remade


def test_drawn_alone():
    """What an operator is to have kept is as it drew that, in a step that is seen as it goes, too. Where it keeps all nothing is drawn."""
    aten, hooked = torch.ops.aten, Hooked("remake")
    memory, costs = hooked.memory, live.Costs()
    costs.rates.update(native_dropout=1.0, mul=1.0)
    seen, x = live.Live(memory, costs, 1 << 20), torch.randn(64, 64)
    kept, mask = seen.run(aten.native_dropout.default, (x, 0.25, True), {})
    seen.run(aten.native_dropout.default, (x, 0.25, False), {})
    number = lambda t: seen.numbers[memory.key(t)]
    call = seen.makers[number(kept)].call
    taken = {number(x): x, number(mask): mask}
    args, kwargs = call.given(lambda x: taken[x.number])
    assert torch.equal(call.function(*args, **kwargs), kept) and len(seen.makers) == 1
    hooked.remove()


def test_changed():
    """A number that comes from a module's attribute is looked at in each step: where it is another one, nothing is recomputed with it."""

    def cool(model, step):
        for block in model:
            block.scale = 0.25 if step < 8 else 0.5 - step / 64

    def less(model, step):
        for block in model:
            block.config.p = 0.25 if step % 4 else 0.125

    for change in cool, less:
        want, hooked = trained(lambda: Blocks(change), 20), Hooked("remake")
        got = trained(lambda: Blocks(change), 20)
        hooked.remove()
        assert equal(got, want) and hooked.library.remade


def test_unknown():
    """A number that comes from elsewhere may be another one in the next step, also where an attribute is the same by chance."""
    factor = [1.0]

    class Cooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down, self.one = nn.Linear(32, 64), nn.Linear(64, 32), 1.0

        def forward(self, x):
            x = x.mul(self.one)
            return self.down(torch.tanh(self.up(x) * factor[0]))

    def train():
        torch.manual_seed(0)
        program = Program(nn.Sequential(Cooled(), Cooled()))
        for step in range(14):
            factor[0] = 1.0 if step < 8 else 0.5
            program.step(step)
        return program.out

    want, hooked = train(), Hooked("remake")
    got = train()
    hooked.remove()
    assert equal(got, want)


def test_computed():
    """A number that is computed of an attribute, a large one, and a diagonal may change, slowly, too; and what a program has among its variables is its own."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
            self.alpha, self.large, self.long, self.diagonal, self.slow = 0.75, 131072.0, 10**400, 60, 1.0
            self.parts = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)]) if hasattr(torch, "nested") else None

        def forward(self, x):
            parts, none = self.parts, self.long
            y = torch.tanh(self.up(x) * (self.alpha * self.slow))
            y = y + torch.sigmoid(self.up(x).tril(self.diagonal)) * 1e-5 * self.large
            return self.down(y)

    def slower(model, step):
        for block in model:
            if step >= 9:
                block.slow, block.large, block.diagonal = 1 - step / 1024.0, 131072.0 - 64 * step, 59

    def make():
        torch.manual_seed(0)
        program = Blocks(slower)
        program.model = nn.Sequential(Scaled(), Scaled())
        program.optimizer = torch.optim.SGD(program.model.parameters(), lr=0.05)
        program.batch = lambda step: Program.batch(program, step, (64, 32))
        return program

    want, hooked = trained(make, 20), Hooked("remake")
    got = trained(make, 20)
    hooked.remove()
    assert equal(got, want)


def test_origins():
    """Origins are attributes from which numbers are made in the call, or which are passed on to it, sizes, and numbers that masks fill in."""

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.width, self.p, self.other, self.unit = 48, 0.3, 0.7, 1.0
            self.config = types.SimpleNamespace(rate=0.15)

    holder = Holder()

    known = origins.Origins(torch)

    class Calls(object):
        """Stands for a tensor that is multiplied."""

        def mul(self, number):
            found = known.of("mul", number, sys._getframe(1), literals.Literals())
            return found if not found else [o.names for o in found]

    x = Calls()

    def scaled(self):
        return x.mul(self.width**-0.5), x.mul(1 / math.sqrt(self.width)), x.mul(math.sqrt(self.width**-0.5)), x.mul(1 - self.p)

    def named(self):
        return [x.mul(n) for n in (self.p, self.config.rate)]

    def computed(self, factor=1.0):
        scale = self.width**-0.5
        p = self.p
        return x.mul(self.p * factor), x.mul(scale), x.mul(self.p * self.unit), x.mul(p * factor)

    def unit(self):
        one = self.unit
        return x.mul(one + 0.0), x.mul(one)

    def shaped(q):
        return x.mul(q.size(-1) ** -0.5), x.mul(math.sqrt(q.size(-1)))

    def both(self, q):
        return x.mul(self.width**-0.5 * len(q.shape) / 2), math.sqrt(4)

    assert scaled(holder) == ([("width",)],) * 3 + ([("p",)],)
    assert named(holder) == [[("p",)], [("config", "rate")]]
    assert computed(holder) == (None,) * 4, "something else may be in it, which was 1"
    assert unit(holder) == (None, [("unit",)])
    assert shaped(torch.rand(2, 80)) == ((), ())
    assert both(holder, torch.rand(2, 48))[0] == [("width",)], "a size, and maybe an attribute"
    assert x.mul(48**-0.5) is None and x.mul(0.123) is None, "the code names no such attribute"
    of = lambda packet, number: known.of(packet, number, sys._getframe(0), literals.Literals())
    assert of("masked_fill", -1e9) == of("mul", float("-inf")) == of("mul", torch.finfo(torch.float16).min) == ()
    assert of("mul", -1e9) is None and of("mul", float("nan")) is None and of("mul", 1j) is None
    holder.width = 10**400
    assert x.mul(2.5) is None, "a number that has no roots"
    holder.width = 48

    def found(self, number):
        values = self.p, self.config.rate
        number = next((v for v in values if v == number), number)
        return known.of("native_dropout", number, sys._getframe(0), literals.Literals())

    for number, change in ((0.3, lambda: setattr(holder, "p", 0.4)), (0.15, lambda: setattr(holder, "config", None))):
        there = found(holder, number)
        assert known.same(there) and not known.varying.intersection(o.kind for o in there)
        change()
        assert not known.same(there)
    holder.p, holder.config = 0.3, types.SimpleNamespace(rate=0.15)
    assert found(holder, 0.3) is None, "it was another one in another step"


if __name__ == "__main__":
    main(globals())
