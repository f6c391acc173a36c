"""Steps of two extents in less memory than they need, on a real PyTorch: they follow no schedule, and recompute as the recorded steps did."""

import random

import torch
from gmswap_hook import extents, graph, live, remembered, samples
from torch import nn

from cpu import Memory
from real import main
from real_demand import Model, Short, WIDTH


class Pictures(nn.Module):
    """Convolutions of pictures, which are padded, halved and enlarged again."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
        self.within, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)

    def forward(self, x):
        x = nn.functional.silu(self.first(nn.functional.pad(x, (1, 1, 1, 1))))
        y = nn.functional.max_pool2d(nn.functional.silu(self.norm(x)), 2)
        y = nn.functional.interpolate(torch.relu(self.within(y) * 0.5), size=x.shape[2:])
        return self.last(torch.cat([x, y], 1)).square().mean()


def texts(draw):
    return torch.rand(draw.randint(2, 6), draw.randint(8, 40), WIDTH)


def pictures(draw):
    return torch.rand(2, 3, 4 * draw.randint(3, 12), 4 * draw.randint(3, 12))


def losses(kind, data, seed, steps=20):
    """Returns the losses, and the parameters at the end."""
    torch.manual_seed(0)
    model, out, draw = kind(), [], random.Random(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        torch.manual_seed(step)
        loss = model(data(draw))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(float(loss))
    return out, [p.tolist() for p in model.parameters()]


class Shorter(Short):
    """The same with schedules for all sizes, of one extent or of any. It counts the steps that look at operators, and the bytes that are recomputed without."""

    def __init__(self, limit, bounded=False):
        super().__init__(limit)
        self.loose, extents.Extents.LOOSE = extents.Extents.LOOSE, extents.Extents.LOOSE if bounded else 0
        self.hooked.settings.for_all_sizes = lambda: True
        self.looked = self.recalled = 0

    def remove(self):
        extents.Extents.LOOSE = self.loose
        super().remove()

    def note(self, step):
        super().note(step)
        if step.parting is not None and step.backward:
            self.looked += isinstance(step.parting.live, live.Live)
            self.recalled += step.parting.remade if isinstance(step.parting.live, remembered.Recalled) else 0


def test_extents():
    """The losses are the same to the bit, no operators are looked at once steps were recorded, and much is recomputed."""
    for kind, data, limit, share in (Model, texts, 200000, 0.5), (Pictures, pictures, 60000, 0.2):  # which ends without parameters
        for seed in range(4):
            if (kind, seed) == (Pictures, 1):
                continue  # the recorded pictures are of one height: test_renewed
            want = losses(kind, data, seed)
            short = Shorter(limit)
            got = losses(kind, data, seed)
            short.remove()
            assert got == want, (kind, seed)
            assert short.looked == 1 and short.recalled > share * short.parted, (kind, seed, short.looked, short.recalled, short.parted)


def renewed(renewals, bounded):
    """Trains on pictures of which the first ones that differ in sizes are of one height. Returns the runtime, and what served it."""
    want = losses(Pictures, pictures, 1)
    short = Shorter(60000, bounded)
    runtime = short.hooked.runtime
    runtime.renewals = renewals
    runtime.planner.anew = min(renewals, 1)
    got = losses(Pictures, pictures, 1)
    short.remove()
    assert got == want
    return runtime, short


def test_renewed():
    """Where the recorded pictures are of one height others are recorded, or operators are looked at where that was done often enough."""
    real = graph.Recording.PASSED, graph.Recording.tells_more
    graph.Recording.PASSED, graph.Recording.tells_more = 0, lambda self, step: False
    try:
        for renewals, bounded in (3, False), (0, False), (3, True):
            runtime, short = renewed(renewals, bounded)
            if renewals:
                remade = short.hooked.library.remade if bounded else short.recalled
                assert runtime.renewals == 3 and not runtime.planner.anew and short.looked == 1 and remade > 0, (runtime.renewals, runtime.planner.anew, short.looked)
            else:
                assert short.remade > short.recalled == 0 and short.looked > 4, (short.remade, short.looked)
    finally:
        graph.Recording.PASSED, graph.Recording.tells_more = real


def test_alike():
    """Two tensors are compared piece by piece as they would be at once."""
    real, samples.PIECE, memory = samples.PIECE, 7, Memory()
    nan, inf = float("nan"), float("inf")
    try:
        for n in 1, 7, 8, 40:
            for at in 0, n // 2, n - 1:
                a = torch.rand(n) - 0.5
                for there, other, near in (0, 0, True), (1, 1 + 1 / 17, True), (1, 1 + 1 / 15, False), (-1, -1.0625, True), (-1, 1, False), (0, nan, False), (nan, nan, True), (inf, inf, True):
                    a[at], b = there, a.clone()
                    b[at] = other
                    most = float(a[a.isfinite()].abs().max()) if a.isfinite().any() else 0.0
                    assert memory.alike(a, b, torch.float32) == near == torch.allclose(b, a, rtol=0, atol=most / 16, equal_nan=True), (n, at, there, other)
                    assert memory.alike(a, b, None) == torch.equal(a.view(torch.int32), b.view(torch.int32))
                    assert memory.alike(a.double(), b.double(), torch.float64) == near
        assert not memory.alike(torch.zeros(8), torch.zeros(9), None)
        for a, b in ([inf, 1], [-inf, 1]), ([-inf, 1, 2], [0, 1, 2]), ([-inf, 1, 2], [-inf, 1e30, -50]), ([0, 1, 2], [inf, 1, 2]):
            assert not memory.alike(torch.tensor(a), torch.tensor(b), torch.float32), (a, b)
    finally:
        samples.PIECE = real


class Prompted(nn.Module):
    """Normalizes a text behind a prompt, so that what it saves begins at another place for each length of that."""

    def __init__(self, d=32):
        super().__init__()
        self.norms, self.tails = (nn.ModuleList(nn.LayerNorm(d) for _ in range(4)) for _ in range(2))
        self.inner = nn.ModuleList(nn.Linear(d, d) for _ in range(4))

    def forward(self, prompt, text):
        n = prompt.shape[1]
        for norm, tail, inner in zip(self.norms, self.tails, self.inner):
            h = norm(torch.cat([prompt, text], 1))
            g = inner(nn.functional.silu(h))
            prompt, text = g[:, :n], text + tail(h[:, n:] * 0.5) + g[:, n:]
        return text.square().mean() + prompt.square().mean()


def prompts(shapes):
    torch.manual_seed(0)
    model, out = Prompted(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for step, (batch, prompt, text) in enumerate(shapes):
        torch.manual_seed(step)
        loss = model(torch.rand(batch, prompt, 32), torch.rand(batch, text, 32))
        loss.backward()
        out.append((float(loss), [float(p.grad.abs().sum()) for p in model.parameters()]))
        optimizer.step()
        optimizer.zero_grad()
    return out


def test_tied():
    """What is recomputed is what it was where two lengths are the same in the first steps, and neither in later ones nor in whose place the other was taken to be."""
    draw = random.Random(3)
    tied = [(4, 16), (4, 24), (8, 16), (6, 40), (6, 40)] + [(draw.choice((4, 6, 8)), n) for n in 2 * (32, 20, 36, 28)]
    for longest in 44, 20:
        shapes = [(b, n, n) for b, n in tied] + [(draw.choice((4, 6, 8)), draw.randrange(16, 44, 4), draw.randrange(16, longest, 4)) for _ in range(14)]
        want, short = prompts(shapes), Shorter(40000)
        got = prompts(shapes)
        short.remove()
        assert got == want and short.recalled > 0, ([step for step, pair in enumerate(zip(want, got)) if pair[0] != pair[1]], short.recalled)


def test_passed():
    """One of the same height is not recorded where heights are known to vary."""
    runtime, short = renewed(3, False)
    assert runtime.renewals == 3 and runtime.planner.anew == 1 and short.looked == 2 and short.recalled > 0, (runtime.renewals, runtime.planner.anew, short.looked)


class Branch(nn.Module):
    """Does something else in each fifth and seventh call, with the same shapes and parameters."""

    def __init__(self):
        super().__init__()
        self.layers, self.calls = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8)), 0

    def forward(self, x):
        self.calls += 1
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 3 and self.calls % 7 == 0:
                x = torch.sigmoid(x)
            x = nn.functional.silu(x)
            if i == 4 and self.calls % 5 == 0:
                x = torch.sigmoid(x)
        return x.square().mean()


def test_branches():
    """A step that does something else is recomputed as remembered up to there."""
    for seed in range(4):
        want = losses(Branch, texts, seed)
        short = Shorter(60000)
        got = losses(Branch, texts, seed)
        short.remove()
        assert got == want, seed
        assert short.recalled > 0, seed


def test_scheduled():
    """Nothing is recomputed of a step that does something else than the schedule's from just before that shows."""
    for data in lambda draw: torch.rand(48, WIDTH), lambda draw: torch.rand(draw.randint(32, 160), WIDTH):
        want = losses(Branch, data, 0)
        short, ways = Shorter(15000), []
        end = short.hooked.runtime.end_step
        short.hooked.runtime.end_step = lambda step: (ways.append(step.way()), end(step))
        got = losses(Branch, data, 0)
        short.remove()
        assert got == want
        assert "adapted" in ways and "planned" in ways and short.hooked.library.remade > 0, ways


if __name__ == "__main__":
    main(globals())
