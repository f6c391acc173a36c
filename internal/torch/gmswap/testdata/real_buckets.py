"""Steps whose inputs vary in three ways follow schedules that were made for others, on a real PyTorch."""

import functools
import random

import torch
from gmswap_hook import buckets, family, remembered, runtime
from torch import nn

import real_remembered
from real import main
from real_demand import translations
from real_family import counted

LIMIT = 300000  # bytes: most steps need more
PICTURES = 600000


def followed(how, steps=40, alike=0):
    return counted(lambda: translations(steps, alike), how, LIMIT)


def test_followed():
    """Steps follow schedules but for some of the first, and what is recomputed is what it was."""
    for how in "offload", "remake":
        ways, schedule, made = followed(how)
        assert isinstance(schedule, buckets.Buckets) and ways.count("recorded") == 3, (schedule, ways)
        assert "adapted" not in ways and ways.count("planned") > len(ways) / 2, ways
        assert (made > 5) == (how == "remake"), (how, made)


class Unpadded(real_remembered.Pictures):
    """Has sizes that are in proportion to those of the pictures."""

    def forward(self, x):
        y = nn.functional.max_pool2d(nn.functional.silu(self.norm(nn.functional.silu(self.first(x)))), 2)
        y = nn.functional.interpolate(torch.relu(self.within(y) * 0.5), size=x.shape[2:])
        return self.last(torch.cat([self.first(x), y], 1)).square().mean()


def test_pictures():
    """So do those of pictures of all heights and widths, but where bounds allow for less."""
    for kind, shapes in (Unpadded, True), (real_remembered.Pictures, False):
        for how in "offload", "remake":
            ways, schedule, made = counted(functools.partial(real_remembered.losses, kind, real_remembered.pictures, 0), how, PICTURES)
            assert isinstance(schedule, buckets.Buckets) == shapes and "adapted" not in ways, (kind, schedule, ways)
            assert ways.count("planned") > len(ways) / 2 and (made > 5) == (how == "remake"), (kind, how, ways, made)


class Attention(nn.Module):
    """Has the lengths of texts squared."""

    def __init__(self, d=32):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(4))
        self.inner = nn.ModuleList(nn.Linear(d, 3 * d) for _ in range(4))

    def forward(self, x):
        for norm, inner in zip(self.norms, self.inner):
            q, k, v = inner(norm(x)).chunk(3, -1)
            x = x + torch.softmax(q @ k.transpose(1, 2), -1) @ nn.functional.silu(v)
        return x.square().mean()


def texts(shapes):
    torch.manual_seed(0)
    model, out = Attention(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch, length in shapes:
        loss = model(torch.rand(batch, length, 32))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(float(loss))
    return out, [p.tolist() for p in model.parameters()]


def test_alike():
    """Steps of which two have other batches and other lengths by the same factor, or the same number, tell what is recomputed; one that has another length alone
    is not recorded where batches are known to vary."""
    draw = random.Random(0)
    others = [(draw.choice([4, 8, 12, 16]), draw.randrange(16, 44, 4)) for _ in range(20)]
    for first, recorded in ([(12, 28), (8, 32), (4, 16), (8, 24)], [1, 2, 3]), ([(16, 24), (12, 36), (4, 28), (12, 20)], [1, 2, 3]), (
            [(8, 24), (12, 36), (12, 40), (12, 28), (16, 32), (8, 28)], [1, 4, 5]):
        ways, schedule, made = counted(lambda: texts(first + others), "remake", LIMIT)
        assert [step for step, way in enumerate(ways) if way == "recorded"] == recorded, (first, ways)
        assert isinstance(schedule, buckets.Buckets) and ways.count("planned") > len(others) / 2 and made > 5, (first, schedule, ways, made)


def test_tells_more():
    """Where a dimension varies only once two steps are recorded, the next one is what the first is compared with; one like either of these is not recorded."""
    draw, first = random.Random(1), [(12, 24), (8, 24)] + 6 * [(8, 32)] + 2 * [(16, 32)]
    others = [(draw.choice([8, 12, 16]), draw.choice([24, 32])) for _ in range(20)]
    ways, schedule, made = counted(lambda: texts(first + [(12, 24)] + others), "remake", LIMIT)
    assert [step for step, way in enumerate(ways) if way == "recorded"] == [1, 5, 8, 10], ways
    assert isinstance(schedule, buckets.Buckets) and ways[-20:].count("planned") > 14 and made > 5, (schedule, ways, made)


def test_area():
    """Steps whose inputs have one area are like others in that, and where the first three are of one size they are recorded anew once three have not been."""
    draw = random.Random(2)
    shapes = [(6, 32), (8, 24), (12, 16), (16, 12), (24, 8)]
    for first in [], 3 * shapes[:1]:
        all_ = first + shapes[1:4] + [draw.choice(shapes) for _ in range(20)]
        ways, schedule, made = counted(lambda: texts(all_), "remake", LIMIT // 2)
        assert isinstance(schedule, buckets.Buckets) and ways[-15:].count("planned") > 12 and made > 5, (first, schedule, ways, made)


def test_unsolved():
    """Steps that do not tell what numbers there are in operators for other sizes are recorded anew, twice at most."""
    real, remembered.Remembered.solves = remembered.Remembered.solves, lambda self, index, watched: False
    try:
        ways, schedule, made = followed("remake")
    finally:
        remembered.Remembered.solves = real
    assert 9 <= ways.count("recorded") < 16 and not isinstance(schedule, buckets.Buckets), (schedule, ways)
    assert "recorded" not in ways[20:], ways


def test_turned():
    """So do those whose sizes turn out to vary by themselves, where they did not seem to."""
    real, turned = runtime.Runtime.follow_turned, []

    def turn(self, planning):
        self.deviated, old = 7, self.schedule
        real(self, planning)
        turned.append(type(old))
        assert self.deviated < self.patience and self.schedule.most >= old.most and self.schedule.model.bases.start >= old.model.bases.start

    runtime.Runtime.follow_turned = turn
    try:
        ways, schedule, _ = followed("remake", steps=50, alike=8)
    finally:
        runtime.Runtime.follow_turned = real
    assert turned == [family.Family] and isinstance(schedule, buckets.Buckets), (turned, schedule)
    assert ways[-20:].count("planned") > 15, ways


if __name__ == "__main__":
    main(globals())
