"""Trains small models with and without the hook, and compares losses and gradients to the bit."""

import contextlib
import copy
import functools
import gc
import io
import pickle
import sys

import torch
from torch import nn
from torch.nn import functional as F
from gmswap_hook import graph, hooks
from torch.utils.checkpoint import checkpoint

from cpu import Hooked


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.gate, self.down = nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Checkpointed(nn.Module):
    def __init__(self, block, reentrant):
        super().__init__()
        self.block, self.reentrant = block, reentrant

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=self.reentrant)


def mlp(wrap=lambda block: block, d=32, n=3):
    torch.manual_seed(0)
    return nn.Sequential(*[wrap(Block(d)) for _ in range(n)], nn.Linear(d, d))


def conv():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.MaxPool2d(2),
        nn.Dropout(0.1), nn.Flatten(), nn.Linear(8 * 64, 10))


class Program(object):
    """What a test trains: its steps, and what comes out of each."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        self.out = []

    def batch(self, step, shape=(32, 32)):
        torch.manual_seed(step)
        return torch.randn(*shape, requires_grad=True)

    def loss(self, x):
        return self.model(x).pow(2).mean()

    def update(self, loss):
        self.out.append((loss.item(), [None if p.grad is None else p.grad.clone() for p in self.model.parameters()]))
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self, step):
        loss = self.loss(self.batch(step))
        loss.backward()
        self.update(loss)


class Conv(Program):
    def __init__(self):
        super().__init__(conv())

    def step(self, step):
        x = self.batch(step, (4, 3, 16, 16))
        loss = F.cross_entropy(self.model(x), torch.arange(4))
        loss.backward()
        self.update(loss)


class Accumulated(Program):
    def step(self, step):
        for i in range(3):
            loss = self.loss(self.batch(3 * step + i))
            (loss / 3).backward()
        self.update(loss)


class Retained(Program):
    def step(self, step):
        y = self.model(self.batch(step))
        loss, other = y.pow(2).mean(), y.abs().mean()
        loss.backward(retain_graph=True)
        other.backward(retain_graph=step % 4 == 3)
        if step % 4 == 3:
            (loss + other).backward()
        self.update(loss)


class Siamese(Program):
    """Two forward passes before one backward pass, and in some steps a third one between."""

    def step(self, step):
        a, b = self.model(self.batch(step)), self.model(self.batch(step + 100))
        loss = (a * b).mean()
        loss.backward()
        self.update(loss)


class Pipelined(Program):
    """A forward pass before the backward pass of the one before it, as pipelines have it."""

    def step(self, step):
        before = self.loss(self.batch(4 * step))
        for i in range(1, 4):
            loss = self.loss(self.batch(4 * step + i))
            before.backward()
            before = loss
        loss.backward()
        self.update(loss)


class Evaluated(Program):
    """Evaluations between steps: with and without gradients, with results that are kept, and with others shapes."""

    kept = ()

    def step(self, step):
        super().step(step)
        with torch.no_grad():
            self.out.append((self.loss(self.batch(step + 50)).item(), []))
        if step % 2:
            self.out.append((self.loss(self.batch(step + 60)).item(), []))
        if step % 3 == 0:
            self.kept = [self.loss(self.batch(step + 70, (48, 32))) for _ in range(2)]

    def end(self):
        self.kept = ()


class Varied(Program):
    """Batches of other sizes now and then, larger and smaller, and for good from some step on."""

    def step(self, step):
        size = {5: 48, 6: 24, 8: 8}.get(step, 32 if step < 13 else 40)
        loss = self.loss(self.batch(step, (size, 32)))
        loss.backward()
        self.update(loss)


class Shaken(Program):
    """A model that runs its layers in another order in some steps, or more of them, or calls one twice, or fails."""

    def loss(self, x):
        return self.model(x).pow(2).mean()

    def __init__(self, model):
        super().__init__(model)
        program, real = self, model.forward

        def forward(x):
            step = program.now
            if step == 6:
                x = model[1](model[0](x))
            if step == 8:
                x = model[2](x)
            if step == 9:
                x = model[2](model[2](x))
            return real(x)

        model.forward = forward

    def step(self, step):
        self.now = step
        if step % 5 == 4:
            for error in (ValueError, KeyboardInterrupt):
                try:
                    self.fail(error)
                except error:
                    pass
        super().step(step)

    def fail(self, error):
        def hook(module, args):
            raise error()

        handle = self.model[2].norm.register_forward_pre_hook(hook)
        try:
            self.model(self.batch(0))
        finally:
            handle.remove()


class Penalized(Program):
    """A gradient of a gradient."""

    def step(self, step):
        x = self.batch(step)
        y = self.model(x)
        gradient, = torch.autograd.grad(y.sum(), x, create_graph=True)
        loss = y.pow(2).mean() + gradient.pow(2).mean()
        loss.backward()
        self.update(loss)


class Inner(nn.Module):
    """Runs a backward pass within its forward pass."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = Block(32), Block(32)

    def forward(self, x):
        h = self.a(x)
        g, = torch.autograd.grad(h.pow(2).sum(), x, retain_graph=True)
        return self.b(h + g.detach())


class Temporary(Program):
    """A loss that is a module, another one in each step, and buffers of the program's that it uses again."""

    static = None

    def step(self, step):
        x = self.batch(step)
        if self.static is None:
            self.static = torch.empty(32, 32)
        self.static.copy_(x.detach())
        self.kept = self.model(self.static)  # holds on to what was saved of the buffer
        self.static.copy_(x.detach() * 2)
        loss = nn.MSELoss()(self.model(self.static), x.detach())
        loss.backward()
        self.update(loss)

    def end(self):
        self.kept = None


class Scaled(nn.Module):
    """A number that is another one in each step, as Python has it, as a tensor of the host, and as a buffer that is written to."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks, self.heat = nn.ModuleList([Block(32) for _ in range(3)]), 1.0
        self.register_buffer("tau", torch.ones(32))

    def forward(self, x):
        self.heat *= 0.99
        for i, block in enumerate(self.blocks):
            x = block(x)
            x = torch.sigmoid(x * self.heat)
            x = torch.sin(x / torch.tensor(self.heat))
            x = torch.sin(x + self.tau)
            with torch.no_grad():
                self.tau.mul_(0.99)
        return x


class Complex(Program):
    def __init__(self):
        torch.manual_seed(0)
        super().__init__(nn.ParameterList([nn.Parameter(torch.randn(32, 32, dtype=torch.complex64)) for _ in range(3)]))
        weights = list(self.model)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = nn.ParameterList(weights)

            def forward(self, x):
                for w in self.weights:
                    x = (x @ w).conj() * x
                    x = x.imag.exp() * 1e-2 + x
                return x

        self.net = Net()

    def step(self, step):
        torch.manual_seed(step)
        x = torch.randn(32, 32, dtype=torch.complex64) * 0.1
        loss = self.net(x).abs().mean()
        loss.backward()
        self.update(loss)


class Frozen(Program):
    """Parameters that are replaced between steps."""

    def step(self, step):
        super().step(step)
        with torch.no_grad():
            for p in self.model.parameters():
                p.data = p.data.clone() * 0.99


def lazy():
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(64), nn.GELU(), nn.LazyLinear(64), nn.Tanh(), nn.LazyLinear(32), nn.SiLU(), nn.Linear(32, 32))
    model(torch.zeros(2, 32))  # makes the parameters, which have no storage before
    return model


PROGRAMS = {
    "mlp": lambda: Program(mlp()),
    "lazy": lambda: Program(lazy()),
    "conv": Conv,
    "accumulated": lambda: Accumulated(mlp()),
    "checkpoint": lambda: Program(mlp(lambda b: Checkpointed(b, False))),
    "reentrant": lambda: Program(mlp(lambda b: Checkpointed(b, True))),
    "retained": lambda: Retained(mlp()),
    "siamese": lambda: Siamese(mlp()),
    "pipelined": lambda: Pipelined(mlp()),
    "evaluated": lambda: Evaluated(mlp()),
    "varied": lambda: Varied(mlp()),
    "shaken": lambda: Shaken(mlp()),
    "penalized": lambda: Penalized(mlp()),
    "inner": lambda: Program(Inner()),
    "temporary": lambda: Temporary(mlp()),
    "scaled": lambda: Program(Scaled()),
    "complex": Complex,
    "frozen": lambda: Frozen(mlp()),
}
# Where no two steps are alike, where some versions leave nothing to be moved, and where the last steps are larger for good.
SCHEDULES = {"pipelined": (0,), "checkpoint": (1, 2), "varied": (2, 3)}
NOT_REMADE = {"pipelined", "complex"}
if not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"):
    NOT_REMADE.add("checkpoint")  # and what its loss saves is not moved


def run(name, steps=19):
    program = PROGRAMS[name]()
    for step in range(steps):
        program.step(step)
    if hasattr(program, "end"):
        program.end()
    return program.out


def same(a, b):
    if a is None or b is None:
        return a is b
    return torch.equal(torch.view_as_real(a) if a.is_complex() else a, torch.view_as_real(b) if b.is_complex() else b)


@functools.lru_cache(maxsize=None)
def plain(name):
    return run(name)


def train(name, how, **lanes):
    want = plain(name)
    hooked = Hooked(how, **lanes)
    got = run(name)
    gc.collect()
    hooked.remove()
    for step, (a, b) in enumerate(zip(want, got)):
        assert a[0] == b[0], "step %d: loss %r, want %r" % (step, b[0], a[0])
        assert all(map(same, a[1], b[1])), "step %d: other gradients" % step
    assert len(want) == len(got)
    return hooked


def test_programs():
    for name in PROGRAMS:
        for how in ("offload", "remake", "rows"):
            hooked = train(name, how)
            assert hooked.lanes.moved > 0, "%s: nothing was moved" % name
            assert hooked.library.made in SCHEDULES.get(name, (2,)), "%s: %d schedules" % (name, hooked.library.made)
            assert (hooked.runtime.schedule is None) == (name == "pipelined"), "%s: no schedule" % name
            assert bool(hooked.library.remade) == (how != "offload" and name not in NOT_REMADE), "%s: %d recomputed" % (name, hooked.library.remade)


def test_failures():
    """Copies that fail, and a host that is full, cost nothing but memory."""
    for lanes in {"room": 20000}, {"fail": {"out": 3}}, {"fail": {"left": 3}}:
        for how in ("offload", "remake", "rows"):
            train("mlp", how, **lanes)


def expect(error, text, call):
    try:
        call()
    except error as e:
        assert text in str(e), e
        return
    raise AssertionError("no %s" % error.__name__)


def test_lost():
    """What does not come back ends the program."""
    for call in "back", "ready":
        hooked = Hooked("offload", fail={call: 1})
        program = Program(mlp())
        expect(Exception, "%s fails" % call, lambda: program.step(0))
        hooked.lanes.fail = {}
        hooked.hooks.remove()


def test_changed():
    """What is changed in place is an error, moved or not, as it is without the hook."""

    class Net(nn.Module):
        def forward(self, x):
            y = x * 2
            z = y * y
            y.add_(1)
            return z

    for size in 4, 64:
        for hook in False, True:
            hooked = Hooked() if hook else None
            x = torch.randn(size, size, requires_grad=True)
            expect(RuntimeError, "modified by an inplace operation", lambda: Net()(x).sum().backward())
            if hook:
                gc.collect()
                hooked.remove()


def test_parameter_changed():
    """So is a parameter that is changed before what it made has been recomputed."""
    hooked = Hooked("remake")
    program = Program(mlp())
    for step in range(6):
        program.step(step)
    assert hooked.library.remade
    loss = program.loss(program.batch(7))
    with torch.no_grad():
        for p in program.model.parameters():
            p.add_(1)
    expect(RuntimeError, "modified by an inplace operation", loss.backward)
    del loss
    gc.collect()
    hooked.remove()


def test_branch():
    """A step that does something else with tensors of the same sizes is found out."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers, self.other = nn.ModuleList([nn.Linear(32, 32) for _ in range(4)]), False

        def forward(self, x):
            for layer in self.layers:
                h = torch.sinh(layer(x))
                x = torch.sin(h) * (torch.tanh if self.other else torch.sigmoid)(h)
            return x

    hooked = Hooked("remake")
    program = Program(Net())
    for step in range(6):
        program.step(step)
    assert hooked.library.remade
    program.model.other = True
    program.step(6)
    expect(RuntimeError, "its gradients are wrong", lambda: [program.step(step) for step in (7, 8)])
    gc.collect()
    hooked.hooks.remove()


def test_copies():
    """Copies and pickles of a model have no hooks that work."""
    hooked = Hooked()
    program = Program(mlp())
    for step in range(6):
        program.step(step)
    assert hooked.hooks.watched == hooks.ROOTS and program.model._forward_hooks
    hooked.runtime.smallest = 1 << 40  # or what they save begins a step
    for other in copy.deepcopy(program.model), pickle.loads(pickle.dumps(program.model)):
        x = program.batch(1)
        steps = hooked.runtime.steps
        other(x).sum().backward()
        assert hooked.runtime.steps == steps
    gc.collect()
    hooked.remove()


def test_own_hooks():
    """The program's own hooks go before."""
    hooked = Hooked()
    program = Program(mlp())
    autograd = torch._C._autograd
    if not hasattr(autograd, "_top_saved_tensors_default_hooks"):
        return
    packed = []
    for step in range(6):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(0) or t, lambda t: t):
            program.step(step)
    assert packed and hooked.lanes.moved == 0
    hooked.remove()


def test_functional():
    """torch.func.grad, which refuses to work below hooks, works within a model."""
    try:
        from torch.func import grad
    except ImportError:
        try:
            from functorch import grad
        except ImportError:
            return

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block(32)

        def forward(self, x):
            x = self.block(x)
            return self.block(x + grad(lambda y: y.pow(2).sum())(x.detach()))

    hooked = Hooked()
    program = Program(Net())
    for step in range(6):
        program.step(step)
    assert hooked.lanes.moved
    gc.collect()
    hooked.remove()


def test_swept():
    """What a request for memory finds to be garbage, in the middle of a backward pass, is looked at no more, also where steps are recorded."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.side = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            ring = [torch.tanh(self.side(x)).exp()]
            ring.append(ring)
            for _ in range(3):
                x = torch.tanh(self.first(x))
            return x

    class Sweeping(object):
        def __init__(self, step):
            self.swept = False

        def pack(self, entry, new, stream):
            pass

        def unpack(self, entry, stream):
            if not self.swept:
                self.swept = True
                gc.collect()
                hooked.memory.settle()

        def end(self):
            pass

    hooked, model, ways = Hooked(), Net(), []
    real, graph.Recording.mover = graph.Recording.mover, lambda self, step: Sweeping(step)
    gc.disable()
    try:
        for _ in range(5):
            model(torch.ones(64, 64)).sum().backward()
            ways.append(hooked.runtime.step.way())
    finally:
        gc.enable()
        graph.Recording.mover = real
    assert ways.count("recorded") >= 2, ways
    gc.collect()
    hooked.remove()


def main(names):
    """Runs the tests among some names, or those that the arguments give."""
    tests = [f for name, f in sorted(names.items()) if name.startswith("test_") and (len(sys.argv) < 2 or name in sys.argv[1:])]
    for test in tests:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            test()
    print("PyTorch %s: %d tests" % (torch.__version__, len(tests)))


if __name__ == "__main__":
    main(globals())
