"""Steps whose inputs vary in three ways follow schedules that were made for others, on a real PyTorch."""

import functools

import torch
from gmswap_hook import buckets, family, runtime
from torch import nn

import real_remembered
from real import main
from real_demand import Short, translations
from real_family import counted

LIMIT = 300000  # bytes: most steps need more
PICTURES = 600000
ROOM = 1500000  # few need more


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


class Spacious(Short):
    """Has schedules for all sizes, and notes the ways that steps went and how many tensors were looked at in each."""

    def __init__(self, limit):
        super().__init__(limit)
        self.hooked.settings.for_all_sizes = lambda: True
        self.hooked.settings.device, self.steps = limit, []
        runtime = self.hooked.runtime
        runtime.relief.library.asked_last = lambda: False
        self.hooked.memory.peak.bytes = lambda: self.hooked.memory.present
        end = runtime.end_step
        runtime.end_step = lambda step: (self.steps.append((step.way(), len(step.entries))), end(step))


def test_alone():
    """Of steps that have room nothing is looked at but for one tensor, and for all of them now and then."""
    want, short = translations(), Spacious(ROOM)
    got = translations()
    short.remove()
    assert got == want
    alone = [n for way, n in short.steps if way == "left alone"]
    assert len(alone) > 10 and set(alone) == {1}, short.steps
    assert all(short.steps[n][1] > 10 for n in (16, 32)), short.steps


def test_look_again():
    """A step that lacks memory, though it was known to have room, is looked at from then on, and so are some more."""
    want, short = translations(), Spacious(ROOM)
    runtime, lacked = short.hooked.runtime, []
    pack = runtime.pack

    def packed(tensor):
        step = runtime.step
        if not lacked and step.number > 20 and step.alone and step.entries and tensor.dim() > 2:
            with short.hooked.memory:
                runtime.relief.serve(1000, 0)
            lacked.append(step.number)
        return pack(tensor)

    runtime.pack = packed
    got = translations()
    short.remove()
    assert got == want and len(lacked) == 1
    before, steps = short.steps[: lacked[0]], short.steps[lacked[0] :]
    assert ("left alone", 1) in before and ("left alone", 1) not in steps[: buckets.Buckets.SURE + 1], short.steps
    assert steps[0][0] == "on demand" and 5 < steps[0][1] < max(n for _, n in before), steps[0]


def test_turned():
    """So do those whose sizes turn out to vary by themselves, where they did not seem to."""
    real, turned = runtime.Runtime.follow_turned, []

    def turn(self, planning):
        self.deviated, old = 7, self.schedule
        real(self, planning)
        turned.append(type(old))
        assert not self.doubted() and self.schedule.most >= old.most and self.schedule.model.bases.start >= old.model.bases.start

    runtime.Runtime.follow_turned = turn
    try:
        ways, schedule, _ = followed("remake", steps=50, alike=8)
    finally:
        runtime.Runtime.follow_turned = real
    assert turned == [family.Family] and isinstance(schedule, buckets.Buckets), (turned, schedule)
    assert ways[-20:].count("planned") > 15, ways


if __name__ == "__main__":
    main(globals())
