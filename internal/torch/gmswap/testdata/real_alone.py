"""Steps that have room are left alone, on a real PyTorch, but for those that only seem to have it."""

import random

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef

from real import main
from real_demand import Model, Short, WIDTH, translations


class Spacious(Short):
    """Has schedules for all sizes, and a device on which all that is saved counts, looked at or not. It makes room as the library would, and notes the way of each
    step, how many tensors were looked at, and the steps in which there was no room."""

    def __init__(self, limit):
        super().__init__(limit)
        hooked, runtime = self.hooked, self.hooked.runtime
        hooked.settings.for_all_sizes = lambda: True
        hooked.settings.device, self.limit = limit, limit
        self.steps, self.lacked, self.others = [], set(), {}
        runtime.relief.library.asked_last = lambda: False
        runtime.relief.library.allocated = lambda device: self.used()
        hooked.memory.allocated = hooked.memory.peak.bytes = self.used
        end, self.pack = runtime.end_step, runtime.pack
        runtime.end_step = lambda step: (self.steps.append((step.way(), len(step.entries))), end(step))
        runtime.pack = self.packed

    def used(self):
        self.others = {key: (weak, nbytes) for key, (weak, nbytes) in self.others.items() if not weak.expired()}
        memory = self.hooked.memory
        return memory.present + sum(nbytes for key, (_, nbytes) in self.others.items() if key not in memory.entries)

    def packed(self, tensor):
        runtime, storage = self.hooked.runtime, tensor.untyped_storage()
        packed = self.pack(tensor)
        if type(packed) is tuple and not tensor.is_leaf and storage._cdata not in self.hooked.memory.entries:
            self.others[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        del storage
        while self.used() > self.limit and runtime.relief.make_room(self.used() - self.limit, 0):
            pass
        if self.used() > self.limit:
            self.lacked.add(runtime.step.number)
        return packed


def run(program, limit):
    """Returns what a program did under a limit. What comes of it is the same."""
    want, short = program(), Spacious(limit)
    got = program()
    short.remove()
    assert got == want
    return short


def trained(models, steps, step):
    """Returns the losses of some steps, and the parameters at the end."""
    out, draw, parameters = [], random.Random(0), [p for model in models for p in model.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    for number in range(steps):
        for loss in step(number, draw):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            out.append(float(loss))
    return out, [p.tolist() for p in parameters]


def test_alone():
    """Of steps that have room nothing is looked at but for a tensor of each call, and for all of them now and then."""
    short = run(translations, 1500000)
    alone = [n for way, n in short.steps if way == "left alone"]
    assert len(alone) > 8 and max(alone) <= 2, short.steps
    assert all(short.steps[n][1] > 80 for n in (16, 32)) and not short.lacked, short.steps


def test_lacking():
    """A step that lacks memory, though it was known to have room, is looked at from then on, and so are some more."""
    want, short = translations(), Spacious(1500000)
    runtime, lacked, pack = short.hooked.runtime, [], short.hooked.runtime.pack

    def packed(tensor):
        step = runtime.step
        if not lacked and step.number > 16 and step.alone and step.entries and tensor.dim() > 2:
            with short.hooked.memory:
                runtime.relief.serve(1000, 0)
            lacked.append(step.number)
        return pack(tensor)

    runtime.pack = packed
    got = translations()
    short.remove()
    assert got == want and len(lacked) == 1
    before, steps = short.steps[: lacked[0]], short.steps[lacked[0] :]
    assert any(way == "left alone" for way, _ in before) and all(way != "left alone" for way, _ in steps[:5]), short.steps
    assert steps[0][0] == "on demand" and 5 < steps[0][1] < max(n for _, n in before), steps[0]


def test_batches():
    """A dimension that has not varied before may be any."""
    def program():
        torch.manual_seed(0)
        model = Model()

        def step(number, draw):
            torch.manual_seed(number)
            yield model(torch.rand(12 if number > 30 and number % 3 == 0 else 4, draw.randint(8, 40), WIDTH))

        return trained([model], 60, step)

    for limit in 1200000, 900000:
        short = run(program, limit)
        assert not short.lacked and any(way == "left alone" for way, _ in short.steps), (limit, short.lacked, short.steps)


class Stack(nn.Module):
    """Layers that save as much for each of their inputs."""

    def __init__(self, layers, times):
        super().__init__()
        self.layers, self.times = nn.ModuleList(nn.Linear(64, 64) for _ in range(layers)), times

    def forward(self, x):
        x = x.repeat(self.times, 1)
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
        return x.square().mean()


def test_models():
    """A model with the same inputs as another one needs more."""
    def program():
        torch.manual_seed(0)
        critic, generator = Stack(6, 1), Stack(12, 3)

        def step(number, draw):
            for model in [generator] + [critic] * 6:
                yield model(torch.rand(draw.randint(20, 60), 64))

        return trained([critic, generator], 20, step)

    for limit in 800000, 600000:
        short = run(program, limit)
        assert not short.lacked and any(way == "left alone" for way, _ in short.steps), (limit, short.lacked, short.steps)


class Branched(nn.Module):
    """What is saved first is of a branch that the program holds, and never runs backward."""

    def __init__(self):
        super().__init__()
        self.first, self.rest = Model(), Model()

    def forward(self, x):
        return self.first(x), self.rest(x)


def test_held():
    """A step ends though what it saved first is held."""
    def program():
        torch.manual_seed(0)
        model, held = Branched(), []

        def step(number, draw):
            torch.manual_seed(number)
            aside, loss = model(torch.rand(draw.randint(2, 6), draw.randint(8, 40), WIDTH))
            held[:] = [aside]
            yield loss

        return trained([model], 60, step)

    for limit in 2500000, 2000000:
        short = run(program, limit)
        assert not short.lacked and len(short.steps) > 55, (limit, short.lacked, short.steps)


if __name__ == "__main__":
    main(globals())
