"""Steps of all lengths that follow schedules made of three of them, on a real PyTorch."""

import contextlib
import functools
import random

import torch
from gmswap_hook import entry, family, memory, model, planner
from gmswap_hook.between import Unlike

import real_remembered
from cpu import Hooked
from real import main
from real_demand import Model, WIDTH
from real_remembered import Pictures, pictures

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


def started(how, smallest=64):
    """Returns the hook, and a list that gets the ways that steps went."""
    h, ways = Hooked(how, smallest=smallest), []
    end = h.runtime.end_step
    h.runtime.end_step = lambda step: (ways.append(step.way()), end(step))
    return h, ways


def hooked(how, lengths, width=4, smallest=64):
    """Returns the ways that steps went, the schedule at the end, and how many tensors schedules recompute."""
    want, (h, ways) = losses(lengths, width), started(how, smallest)
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


def test_few():
    """Neither a size that comes again and again at first, nor two that take turns now and then, are taken for all that there are."""
    draw = random.Random(1)
    for lengths in [20] * 10 + [n for _ in range(14) for n in 2 * [draw.choice((20, 36))]], 5 * ([12] * 4 + [36] * 4):
        ways, schedule, _ = hooked("offload", lengths)
        assert isinstance(schedule, family.Family) and set(ways[-6:]) == {"planned"}, ways
    for lengths in [20] * 10 + [36] * 14, 4 * ([36] * 3 + [12] * 3):
        ways, schedule, _ = hooked("offload", lengths)
        assert not isinstance(schedule, family.Family) and set(ways[-4:]) == {"planned"}, "the larger one's is for both, or for all that come: %s" % ways


def test_hosted():
    """What is in memory of the host when it is saved, as no other was free, makes no step another one than those without: it leaves it and comes back as others
    do."""
    want, ways = losses(LENGTHS), {}
    for part in 0, 0.3, 1:
        draw, (h, ways[part]) = random.Random(part), started("offload")
        h.memory.borrowed = lambda address: draw.random() < part
        got, counts = losses(LENGTHS), h.memory
        h.remove()
        assert got == want and counts.present == counts.absent == 0, (part, counts.present, counts.absent)
    assert ways[0] == ways[0.3] == ways[1] and "planned" in ways[0], ways


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


def counted(losses, how, device=0):
    """Returns the ways that steps went, the schedule at the end, and how many tensors were recomputed in steps that followed one. Losses are the same with
    the hook as without. A schedule may use so many bytes of the device, 0 for any number."""
    want, (h, ways), made = losses(), started(how), []
    h.settings.device = device or h.settings.device
    real = entry.Entry.make
    entry.Entry.make = lambda e, stream: (made.append(e) if not e.resident() and h.runtime.step.way() == "planned" else None, real(e, stream))
    try:
        got = losses()
    finally:
        entry.Entry.make = real
    h.remove()
    assert got == want, how
    return ways, h.runtime.schedule, len(made)


@contextlib.contextmanager
def no_shapes():
    """Has the shapes of inputs tell nothing, as where too many vary."""
    def shapes(*args):
        raise Unlike("inputs")

    real, planner.Buckets = planner.Buckets, shapes
    try:
        yield
    finally:
        planner.Buckets = real


def test_extents():
    """Where sizes vary in two ways, steps follow schedules that are for the most that tensors get, and what is recomputed is what it was."""
    texts = lambda: losses(LENGTHS, width=lambda step: 2 + step * 7 % 5)
    images = [functools.partial(real_remembered.losses, Pictures, pictures, seed) for seed in (0, 2, 3, 4)]
    for one in [texts] + images:
        for how in "offload", "remake":
            with no_shapes():
                ways, schedule, remade = counted(one, how)
            assert schedule.model.bounded and ways.count("recorded") == 3, (how, ways)
            assert ways.count("planned") >= len(ways) - 6, (how, ways)
            assert (remade > 5) == (how == "remake"), (how, remade)


def test_wrong():
    """What comes out otherwise than it was is copied from then on."""
    real = memory.Memory.alike
    memory.Memory.alike = lambda *args: False
    try:
        with no_shapes():
            ways, schedule, remade = counted(functools.partial(real_remembered.losses, Pictures, pictures, 0), "remake")
    finally:
        memory.Memory.alike = real
    assert ways.count("planned") > len(ways) - 6 and remade == 0 and schedule.model.remembered.wrong, (ways, remade)
    assert all(ns == model.NEVER for i, ns in enumerate(schedule.model.sized(1.0)["recompute_ns"]) if i in schedule.model.remembered.wrong)


def test_other():
    """A step of another batch is handed over, among steps that follow schedules."""
    lengths = LENGTHS[:8]
    ways, schedule, _ = hooked("remake", lengths + [19] * 2, width=lambda step: 3 if step == 8 else 4)
    assert ways[6:8] == ["planned"] * 2 and ways[8] != "planned", ways


if __name__ == "__main__":
    main(globals())
