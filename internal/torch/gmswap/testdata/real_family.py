"""Steps of all lengths that follow schedules made of three of them, on a real PyTorch."""

import random

import torch
from gmswap_hook import family

from cpu import Hooked
from real import main
from real_demand import Model, WIDTH

LENGTHS = [13, 29, 17, 40, 21, 8, 33, 11, 45, 26, 9, 38, 52, 14]


def losses(lengths, width=4):
    """Returns the losses, and the parameters at the end."""
    torch.manual_seed(0)
    model, out = Model(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step, n in enumerate(lengths):
        torch.manual_seed(step)
        loss = model(torch.rand(width(step) if callable(width) else width, n, WIDTH))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(float(loss))
    return out, [p.tolist() for p in model.parameters()]


def hooked(how, lengths, width=4, smallest=64):
    """Returns the ways that steps went, the schedule at the end, and how many tensors schedules recompute."""
    want = losses(lengths, width)
    h, ways = Hooked(how, smallest=smallest), []
    end = h.runtime.end_step
    h.runtime.end_step = lambda step: (ways.append(step.way()), end(step))
    got = losses(lengths, width)
    h.remove()
    assert got == want, how
    return ways, h.runtime.schedule, h.library.remade


def test_family():
    """All steps but the recorded ones follow schedules, with the same losses to the bit."""
    for how in "offload", "remake":
        ways, schedule, remade = hooked(how, LENGTHS)
        assert ways.count("recorded") == 3 and ways.count("planned") >= len(LENGTHS) - 7, (how, ways)
        assert schedule.extent.first is not None and (remade > 10) == (how == "remake"), (how, remade)


def test_any():
    """So they do whatever the lengths are, and whichever was recorded."""
    draw = random.Random(7)
    for _ in range(6):
        lengths = [draw.randint(3, 60) for _ in range(10)]
        ways, _, _ = hooked("remake", lengths)
        assert "planned" in ways and "adapted" not in ways, (lengths, ways)


def test_two():
    """Where there are two lengths, schedules are for both."""
    for lengths in [13, 29] * 6, [29, 13] * 6, [13, 13, 29, 13, 13, 29] * 2, [29, 29, 13] * 4, [13, 29, 29, 29] * 3:
        ways, _, _ = hooked("remake", lengths)
        assert "planned" in ways, (lengths, ways)


def test_small():
    """What is moved does not change with the length, though in some steps it is smaller than what else is too small to be moved."""
    for smallest in 1000, 4000, 16000:
        ways, _, _ = hooked("remake", LENGTHS, smallest=smallest)
        assert ways.count("recorded") == 3 and "adapted" not in ways and ways.count("planned") >= len(LENGTHS) - 7, (smallest, ways)


def test_evicted():
    """What is saved before a step's size shows may be gone by then."""
    real, gone = family.Chooser.choose, []

    def choose(chooser, entry, stream):
        gone.extend(e.index for e in chooser.step.entries[: entry.index] if e.evict())
        return real(chooser, entry, stream)

    family.Chooser.choose = choose
    try:
        hooked("remake", LENGTHS, smallest=16000)
    finally:
        family.Chooser.choose = real
    assert gone


def test_beside():
    """Steps whose sizes lie on no line are trained as well, without."""
    ways, _, _ = hooked("remake", LENGTHS, width=lambda step: 2 + step * 7 % 5)
    assert ways.count("planned") < len(ways) / 2, ways


def test_other():
    """A step of another batch is handed over, among steps that follow schedules."""
    lengths = LENGTHS[:8]
    ways, schedule, _ = hooked("remake", lengths + [19] * 2, width=lambda step: 3 if step == 8 else 4)
    assert ways[6:8] == ["planned"] * 2 and ways[8] != "planned", ways


if __name__ == "__main__":
    main(globals())
