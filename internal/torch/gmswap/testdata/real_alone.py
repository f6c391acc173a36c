"""Steps that have room are left alone, on a real PyTorch, but for those that only seem to have it."""

import random

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.checkpoint import checkpoint

from plans import Planner
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
        runtime.rest = lambda: None  # all that is saved is to be seen here
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


class Idle(Planner):
    """Moves nothing."""

    def answer(self, graph):
        return dict(super().answer(graph), actions=[])


class Resting(Spacious):
    """Packs no more than it would in a program. Notes of each step how many tensors were packed."""

    def __init__(self, limit, all_sizes=True):
        super().__init__(limit)
        hooked, runtime = self.hooked, self.hooked.runtime
        runtime.rest, runtime.pack = hooked.hooks.rest, self.counted
        hooked.settings.for_all_sizes = lambda: all_sizes
        hooked.library = runtime.planner.library = Idle("offload")
        self.count, self.counts, end = 0, [], runtime.end_step
        runtime.end_step = lambda step: (self.counts.append((step.way(), self.count)), setattr(self, "count", 0), end(step))

    def counted(self, tensor):
        self.count += 1
        return self.pack(tensor)

    def few(self):
        """Returns the numbers of the steps that were left alone. Next to nothing was packed in these."""
        steps = [n for n, (way, _) in enumerate(self.counts) if way == "left alone"]
        assert all(self.counts[n][1] < 12 for n in steps), self.counts
        return steps


def rests(program, limit=1 << 30, **settings):
    """Returns the steps of a program that are left alone. What comes of it is the same."""
    want, short = program(), Resting(limit, **settings)
    got = program()
    short.remove()
    assert got == want
    return short.few()


def test_rest():
    """Of a step that is left alone nothing is packed but the first tensors of each call."""
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
        return
    assert len(rests(translations)) > 8


def fixed(steps=40, run=lambda number, model, x: model(x), wrap=lambda model: model):
    torch.manual_seed(0)
    model = wrap(Model())

    def step(number, draw):
        torch.manual_seed(number)
        yield run(number, model, torch.rand(4, 24, WIDTH))

    return trained([model], steps, step)


class Checkpoints(nn.Module):
    """Has hooks of its own on what is saved, or none."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        with torch.autograd.graph.save_on_cpu():
            y = self.model(x)
        return y + checkpoint(self.model, x, use_reentrant=False) + self.model(x)


def test_ample():
    """Steps that save the same, of which nothing has to be moved, are left alone as well, but for one of many. Hooks of the program are put on and taken off
    meanwhile, and models fail and are called again."""
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
        return

    def failed(number, model, x):
        if number % 7 == 3:
            try:
                model(x.double())
            except RuntimeError:
                pass
        return model(x)

    for how in {}, {"wrap": Checkpoints}, {"run": failed}, {"run": failed, "wrap": Checkpoints}:
        steps = rests(lambda: fixed(**how), all_sizes=False)  # noqa: B023
        assert len(steps) > 20 and not any(n % 16 == 0 for n in steps), (how, steps)


def test_peak():
    """None is left alone where something takes far more memory for a moment, which no step is known to save."""
    short = Resting(1 << 30, all_sizes=False)
    short.hooked.runtime.relief.library.peak = lambda device: 15 << 26
    fixed()
    short.remove()
    assert len(short.counts) == 39 and not short.few(), short.counts


class Forces(nn.Module):
    """Takes a gradient in its forward pass, of which something is saved."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        x = x.requires_grad_()
        force, = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
        return torch.tanh(self.linear(force)).square().sum()


def test_left():
    """Hooks are off in a model alone, and not in a backward pass, which would put them on again: what comes behind is seen, as are models that nobody has met."""
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
        return
    assert len(rests(lambda: fixed(wrap=lambda model: Forces()), all_sizes=False)) > 20
    short = Resting(1 << 30, all_sizes=False)
    fixed()
    before, phase = len(short.counts), short.hooked.runtime.step.way()
    fixed(steps=8)
    short.remove()
    assert phase == "left alone" and len(short.counts) >= before + 8 and short.counts[before + 3][1] > 40, short.counts


def test_wake():
    """Of a step that was left alone and lacks memory after all the rest is packed."""
    if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
        return
    short = Resting(1 << 30, all_sizes=False)
    runtime, woken = short.hooked.runtime, []

    def run(number, model, x):
        def lack(module, args):
            if runtime.step.alone and number == 20:
                with short.hooked.memory:
                    runtime.relief.serve(1000, 0)
                woken.append(runtime.step.number)

        handle = model.layers[1].register_forward_pre_hook(lack)
        try:
            return model(x)
        finally:
            handle.remove()

    fixed(run=run)
    short.remove()
    assert len(woken) == 1 and short.counts[woken[0]][0] == "on demand" and short.counts[woken[0]][1] > 40, (woken, short.counts)
    assert all(way != "left alone" for way, _ in short.counts[woken[0] : woken[0] + 4]) and short.few()[-1] > woken[0], short.counts


if __name__ == "__main__":
    main(globals())
