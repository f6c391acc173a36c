"""Steps that follow schedules which have proved right are looked at no more than these need, on a real PyTorch."""

import torch
from gmswap_hook import family
from gmswap_hook.buckets import Buckets
from gmswap_hook.measure import Clocks
from gmswap_hook.selection import PASSED, Selection, Trust
from torch import nn

from plans import Planner
from real import main
from real_alone import Spacious, trained
from real_demand import Model, WIDTH, translations


FIRST = 4 + Trust.WELL + Clocks.PACES  # step that may be looked at in part, where sizes do not vary


class Partly(Planner):
    """Moves some tensors of many."""

    SOME = 7
    device = 1

    def answer(self, graph):
        whole = super().answer(graph)
        self.actions = [action for action in self.actions if action[1] % self.SOME == 1]
        self.remade = sum(action[0] == 4 for action in self.actions)
        return dict(whole, actions=self.actions, device=self.device)


class Selected(Spacious):
    """Notes of each step its way, how many entries it has, and how many of these were looked at."""

    def __init__(self, device=1 << 30, all_sizes=True, how="remake"):
        super().__init__(1 << 30)
        runtime = self.hooked.runtime
        self.hooked.settings.for_all_sizes = lambda: all_sizes
        self.hooked.settings.device = device
        self.hooked.library = runtime.planner.library = Partly(how)
        self.looked, end = [], runtime.end_step
        runtime.outlook.leaves_alone = lambda step, instrument: False  # schedules are followed though there is room
        runtime.end_step = lambda step: (self.looked.append((step.way(), len(step.entries), sum(e is not PASSED for e in step.entries))), end(step))

    def few(self):
        """Returns the numbers of the steps of which less than half was looked at."""
        return [n for n, (_, entries, looked) in enumerate(self.looked) if 2 * looked < entries]


def run(program, **settings):
    """Returns what a program did. What comes of it is the same."""
    want, hooked = program(), Selected(**settings)
    got = program()
    hooked.remove()
    assert got == want
    assert all(looked == entries for n, (_, entries, looked) in enumerate(hooked.looked) if n % Trust.RECHECK == 0), hooked.looked
    return hooked


def same(steps=40, other=lambda number, model, x: model(x)):
    """Trains a model with inputs of one size."""
    torch.manual_seed(0)
    model = Model()

    def step(number, draw):
        torch.manual_seed(number)
        yield other(number, model, torch.rand(4, 24, WIDTH))

    return trained([model], steps, step)


def texts(steps=60):
    torch.manual_seed(0)
    model = Model()

    def step(number, draw):
        torch.manual_seed(number)
        yield model(torch.rand(4, draw.randint(8, 40), WIDTH))

    return trained([model], steps, step)


def check_few(hooked, first, but):
    """Some from a step on, but for one of many and a few others, are looked at in part."""
    whole = [n for n in range(first, len(hooked.looked)) if n % Trust.RECHECK and n not in hooked.few()]
    assert len(whole) <= but, (whole, hooked.looked)


def test_same():
    """Of steps of one size some tensors are looked at, once others have followed the schedule."""
    for how in "offload", "remake":
        hooked = run(same, all_sizes=False, how=how)
        check_few(hooked, FIRST, but=Clocks.STEPS + Clocks.PACES)
        assert all(hooked.looked[n][0] == "planned" for n in hooked.few()), hooked.looked
        assert how == "offload" or hooked.hooked.library.remade > 2


def test_sizes():
    """So it is where sizes vary, whatever tells them."""
    for program, kind, device in (texts, family.Family, 1 << 30), (lambda: translations(80), Buckets, 700000):
        hooked = run(program, device=device)
        assert isinstance(hooked.hooked.runtime.schedule, kind)
        check_few(hooked, 30, but=12)


def test_different():
    """A step that goes another way is looked at from there on, and so are some that follow it."""
    turn = torch.zeros(24, WIDTH // 4)
    others = (
        lambda model, x: model(x) + 0.1 * model.layers[0](x, turn).square().mean(), lambda model, x: model.layers[1](x.exp(), turn).square().mean(),
        lambda model, x: model(x[:3]), lambda model, x: model(x.exp().repeat(2, 1, 1)), lambda model, x: model(x) + model(x + 1),
    )
    for kind, another in enumerate(others):
        hooked = run(lambda: same(64, lambda number, model, x: (another if number in (26, 43) else Model.forward)(model, x)), all_sizes=False)  # noqa: B023
        for number in 26, 43:
            before, here, after = (hooked.looked[n] for n in (number - 1, number, number + 1))
            assert 2 * before[2] < before[1] and here[0] != "planned" and after[1] == after[2], (kind, number, hooked.looked)
        check_few(hooked, FIRST, but=16)


def test_another():
    """A model that does the same as the recorded one is looked at in whole."""
    def program():
        torch.manual_seed(0)
        models = Model(), Model()

        def step(number, draw):
            torch.manual_seed(number)
            yield models[number > 18](torch.rand(4, 24, WIDTH))

        return trained(models, 40, step)

    hooked = run(program, all_sizes=False)
    assert len(hooked.few()) > 5 and hooked.few()[-1] <= 18 and all(way == "planned" for way, _, _ in hooked.looked[23:]), hooked.looked


class Chain(nn.Module):
    """Layers with many functions of one size between their parameters. One has a function more now and then."""

    def __init__(self):
        super().__init__()
        self.layers, self.more = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(8)), False
        self.at = 1

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if self.more and i == self.at:
                x = x.sin()
            for f in torch.sin, torch.sigmoid, torch.cos, torch.tanh, torch.exp, torch.tanh, torch.sigmoid, torch.sin:
                x = f(x)
        return x


def chained(more=(), at=1, criterion=nn.functional.mse_loss, twice=lambda model, x: x):
    torch.manual_seed(0)
    model = Chain()
    model.at = at

    def step(number, draw):
        torch.manual_seed(number)
        model.more = number in more
        yield criterion(twice(model, model(torch.rand(64, WIDTH))), torch.rand(64, WIDTH))

    return trained([model], 40, step)


def test_shifted():
    """A tensor more than there was is noticed, though others of the same size take its place, in the middle of a step and at its end."""
    for how in "remake", "offload":
        hooked = run(lambda: chained(more=(26,)), all_sizes=False, how=how)
        assert hooked.looked[26][0] == "adapted" and hooked.looked[27][1] == hooked.looked[27][2] and 25 in hooked.few(), (how, hooked.looked)
        hooked = run(lambda: chained(more=(26,), at=-1, twice=lambda model, x: x.sin() if model.more else x), all_sizes=False, how=how)
        assert hooked.looked[26][0] == "adapted" and 25 in hooked.few(), (how, hooked.looked)


def test_criterion():
    """What a loss saves that is a module of its own is too small to be moved, and says nothing."""
    hooked = run(lambda: chained(criterion=nn.MSELoss()), all_sizes=False)
    assert len(hooked.few()) > 20, hooked.looked


def test_lacking():
    """A request that finds no room has something leave that is looked at for that alone."""
    want, freed = same(48), {}
    for reserve in 0, 100000:
        hooked = Selected(all_sizes=False)
        hooked.hooked.library.device = Selection.RESERVE * reserve
        runtime, pack = hooked.hooked.runtime, hooked.hooked.runtime.pack

        def packed(tensor):
            step = runtime.step
            which = step.number // 20, reserve  # noqa: B023
            if step.number > 22 and step.selected and len(step.entries) > 40 and which not in freed:  # noqa: B023
                with hooked.hooked.memory:  # noqa: B023
                    freed[which] = runtime.relief.free(1 << 20)  # noqa: B023
            return pack(tensor)  # noqa: B023

        runtime.pack = packed
        got = same(48)
        hooked.remove()
        assert got == want
        check_few(hooked, FIRST, but=Clocks.STEPS + Clocks.PACES)
    assert all(freed[part, 100000] > freed[part, 0] + 50000 for part in (1, 2)), freed


if __name__ == "__main__":
    main(globals())
