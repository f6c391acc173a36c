"""Operators while a step is recorded, what makes their results again, and models that are compiled, on a real PyTorch."""

import contextlib
import gc
import io
import math
import sys
import types
import weakref

import torch
from gmswap_hook import hooks, literals, live, measure, operators, pace, planner, remake, rerun, samples, whole
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from cpu import Hooked, Memory
from real import Block, Program, main, mlp


HALF = 0.5


def losses(make, steps=9):
    """Returns the losses of training a model."""
    torch.manual_seed(0)
    program = Program(make())
    for step in range(steps):
        program.step(step)
    return [loss for loss, _ in program.out]


def test_targets():
    """What an operator writes to is known from what it reads."""
    aten, hooked = torch.ops.aten, Hooked("remake")
    seen = operators.Operators(hooked.memory, True)
    a, b, c = (seen.run(aten.exp.default, (torch.randn(64, 64),), {}) for _ in range(3))
    number = lambda t: seen.numbers[hooked.memory.key(t)]
    seen.run(aten.exp_.default, (a,), {})
    assert seen.changed == {number(a)}, seen.changed
    seen.run(aten.mul.out, (a, b), {"out": c})
    assert seen.changed == {number(a), number(c)}, seen.changed
    hooked.remove()


def by_hand(x):
    """GELU as GPT-2 has it."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def test_literals():
    """A number that stands in the program's text is the same in each step. Any other may be another one."""
    found, known, hooked = [], literals.Literals(), Hooked("remake")

    def run(function, args, kwargs):
        frame = sys._getframe(1)
        name = function.overloadpacket.__name__
        found.extend(known.written(name, n, frame) for n in (*args, *kwargs.values()) if isinstance(n, (int, float)))
        return function(*args, **kwargs)

    x, k, holder = torch.rand(4), 2, types.SimpleNamespace(factor=0.5)
    for number, expressions in (
        (True, (lambda: x * 3, lambda: 3 * x, lambda: 1 - x, lambda: x / -2.0, lambda: x**2, lambda: x.pow(2), lambda: torch.add(x, 2), lambda: x * (1 + 2),
                lambda: x * math.sqrt(2.0), lambda: (2 if x is None else x) + 1)),
        (False, (lambda: x * k, lambda: k * x, lambda: x * holder.factor, lambda: holder.factor * x, lambda: x * HALF, lambda: x * (k + 1), lambda: x.pow(k),
                 lambda: torch.pow(x, k), lambda: [x * (k if k == 2 else 2)], lambda: [x.mul(k or 2)], lambda: x * max(2, k), lambda: k - x,
                 lambda: torch.mul(*[x, 3]), lambda: x * float(k))),
    ):
        for at, expression in enumerate(expressions):
            del found[:]
            with hooked.memory.mode(run):
                expression()
            assert found == [number], (number, at, found)
    del found[:]
    with hooked.memory.mode(run):
        by_hand(x)
    hooked.remove()
    assert found == [True] * 5, found


def test_numbers():
    """What is made with such numbers is recomputed."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = by_hand(layer(x))
            return x

    want, hooked = losses(Net), Hooked("remake")
    got = losses(Net)
    made = [tuple(m.call.name for m in r.chain.made) for r in hooked.runtime.schedule.recipes if r is not None]
    hooked.remove()
    assert got == want and hooked.library.remade, (got, want)
    assert ("pow", "mul", "add", "mul", "tanh") in made and any(names[-1] == "add" for names in made), made


def test_live():
    """Operators are seen until enough is known, at the end of a module. What is written to a parameter then is known from its version."""
    aten, hooked = torch.ops.aten, Hooked("remake")
    memory, costs = hooked.memory, live.Costs()
    weight = nn.Parameter(torch.randn(64, 64))
    ordinal = memory.note(weight)
    memory.lasting[ordinal] = [weakref.ref(weight)]
    costs.rates["mul"] = 1.0
    seen = live.Live(memory, costs, 1 << 20)
    seen.enter()
    seen.enter()
    x = torch.randn(64, 64)
    with torch.no_grad():
        x * weight
    assert memory.innermost_mode() is seen.mode and len(seen.makers) == 1
    seen.over = True
    with torch.no_grad():
        x * weight
    assert memory.innermost_mode() is seen.mode and len(seen.makers) == 1, "within a module operators run as they are"
    with Sizes() as other:
        seen.leave()
        assert memory.innermost_mode() is other and seen.mode is not None, "a mode of the program's is in the way"
    seen.enter()
    assert memory.innermost_mode() is None and seen.mode is None
    assert seen.unchanged(ordinal)
    with torch.no_grad():
        weight += 1
    assert not seen.unchanged(ordinal)
    seen.leave()
    seen.leave()
    hooked.remove()


def test_live_trained():
    """Parameters that were updated before the step are as they were, whatever operators are seen in it."""
    hooked = Hooked("remake")
    memory, costs, x = hooked.memory, live.Costs(), torch.randn(64, 64)
    weights = nn.ParameterList([torch.randn(64, 64) for _ in range(6)])
    with torch.no_grad():
        for w in weights:
            w += 1
    memory.note_storages(weights)
    costs.rates["mul"] = 1.0
    seen = live.Live(memory, costs, 1 << 20)
    seen.enter()
    with torch.no_grad():
        for w in weights:
            x = x * x * w
    seen.leave()
    assert len(seen.makers) == 12 and all(seen.unchanged(memory.parameter(memory.key(w))) for w in weights), seen.written
    hooked.remove()


def test_transposed():
    """Results whose dimensions are in another order, as those of attention's heads, can be made again. Bytes are compared in their order."""
    aten, hooked = torch.ops.aten, Hooked("remake")
    seen = operators.Operators(hooked.memory, True)
    heads, turn = torch.randn(2, 48, 4, 16).transpose(1, 2), torch.randn(48, 16)
    out = seen.run(aten.mul.Tensor, (heads, turn), {})
    made = seen.makers[seen.numbers[hooked.memory.key(out)]]
    assert not out.is_contiguous() and made.call.name == "mul" and not seen.unsure, seen.unsure
    assert hooked.memory.same(out, heads * turn) and not hooked.memory.same(out, (heads * turn).contiguous())
    assert not hooked.memory.same(out, heads) and not hooked.memory.same(out[:, :2], out[:, :2])
    hooked.remove()


def test_in_place_order():
    """What is written in place comes out in the same order and of the same type again, whatever the other arguments are."""
    aten = torch.ops.aten
    for name, args in (
            ("masked_fill_", (torch.rand(12) > 0.5, torch.tensor(2.0))), ("add_", (torch.rand(12),)), ("mul_", (torch.rand(1, 12, dtype=torch.float64),)),
            ("div_", (torch.rand(12),)), ("relu_", ()), ("silu_", ())):
        overload = {"masked_fill_": "Tensor", "relu_": "default", "silu_": "default"}.get(name, "Tensor")
        function = getattr(getattr(aten, name), overload)
        for x in torch.randn(4, 5, 12), torch.randn(5, 12, 4).permute(2, 0, 1), torch.randn(12, 4, 5).permute(1, 2, 0).half():
            again = rerun.rerun(function, True)
            made = again.function(x, *args)
            function(x, *args)
            assert again.in_place and (made.dtype, made.stride()) == (x.dtype, x.stride()) and torch.equal(made, x), name


class Sizes(TorchDispatchMode):
    """Notes the bytes of each result that is no argument."""

    def __init__(self):
        super().__init__()
        self.taken = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        given = {x.storage().data_ptr() for x in (*args, *(kwargs or {}).values()) if isinstance(x, torch.Tensor)}
        for x in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(x, torch.Tensor) and x.storage().data_ptr() not in given:
                self.taken.append(x.numel() * x.element_size())
        return result


class Remake(remake.Remake):
    def input(self, x, stream):
        return self.given[x]


def test_samples():
    """Numbers may differ a little where a library chooses the arithmetic, bits of others may not, and none is a number in one of the two alone."""
    hooked = Hooked("remake")
    x = torch.randn(200, 64)
    nan = x.clone()
    nan[::2] = float("nan")
    kinds = [torch.bfloat16, torch.float16, torch.float32]
    for near, before, after, differ in (
            (True, x, x, False), (True, x, x * (1 + 1e-3), False), (True, x, x.flip(0) + 1, True), (True, x, torch.zeros_like(x), True),
            (True, x, nan, True), (True, nan, x, True), (True, nan, nan, False), (False, x, x, False), (False, x, x * (1 + 1e-2), True), (False, nan, nan, False)):
        for odd in range(len(kinds)):  # the tensor that is compared with after, the others are as they were
            compared = samples.Samples(hooked.memory)
            taken = [compared.take(before.to(kind), kind if near else None) for kind in kinds]
            for i, kind in enumerate(kinds):
                compared.compare(taken[i], (after if i == odd else before).to(kind))
            compared.ask(0)
            try:
                compared.answer(wait=True)
                wrong = False
            except samples.Wrong:
                wrong = True
            assert wrong == differ, (near, kinds[odd], differ)
    hooked.remove()


def test_written():
    """What is written to an argument is written once."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(32, 32), nn.Linear(32, 32)

        def forward(self, x):
            with torch.no_grad():
                shift = x.detach().clone()
                torch.add(shift, shift, out=shift)
                torch.mul(shift, shift, out=shift)
            return self.down(torch.tanh(self.up(x) * shift))

    want = losses(Net)
    hooked = Hooked("remake")
    got = losses(Net)
    hooked.remove()
    assert got == want, (got, want)


def test_in_place():
    """What is written in place is made again without, and norms leave their running statistics alone."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.second = nn.Conv2d(2, 16, 3, padding=1), nn.BatchNorm2d(16), nn.Conv2d(16, 16, 3, padding=1)
            self.act, self.head = nn.ReLU(inplace=True), nn.Sequential(nn.Linear(256, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 32))

        def forward(self, x):
            y = self.act(self.norm(self.first(x.reshape(-1, 2, 4, 4))))
            z = self.second(y)
            z += y
            return self.head(torch.sigmoid(z).reshape(-1, 256))

    def run():
        torch.manual_seed(0)
        program = Program(Net())
        for step in range(9):
            program.step(step)
        return [loss for loss, _ in program.out], program.model.norm.running_mean.tolist(), int(program.model.norm.num_batches_tracked)

    want = run()
    hooked = Hooked("remake")
    got = run()
    recipes = [r for r in hooked.runtime.schedule.recipes if r is not None]
    hooked.remove()
    chains = {tuple(m.call.name for m in r.chain.made) for r in recipes}
    assert got == want, (got, want)
    assert any(names[-1] == "relu_" and "batch_norm" in names[-2] for names in chains), chains
    assert any(names[-2:] == ("add_", "sigmoid") for names in chains), chains
    assert hooked.library.remade and not hooked.runtime.strayed, "%d recomputed" % hooked.library.remade


def test_compiled():
    """Layers that are compiled stay so."""
    if not hasattr(nn.Module, "compile"):
        return  # before PyTorch 2.3

    class Layer(Block):
        eager = 0

        def forward(self, x):
            if not torch.compiler.is_compiling():
                Layer.eager += 1
            return super().forward(x)

    def make():
        model = nn.Sequential(Layer(32), Layer(32), nn.Linear(32, 32))
        for layer in list(model)[:2]:
            layer.compile(backend="aot_eager")
        return model

    want = losses(make, 12)
    hooked = Hooked("offload")
    got = losses(make, 12)
    hooked.remove()
    assert got == want and hooked.library.made == 2, "%d schedules" % hooked.library.made
    assert not Layer.eager and not hooked.runtime.deviated, "%d runs as if not compiled, %d steps deviated" % (Layer.eager, hooked.runtime.deviated)


def test_rest():
    """Rows are recomputed in their place, or in pieces."""
    aten, x, model = torch.ops.aten, torch.randn(96, 64), nn.ParameterList([torch.randn(64), torch.randn(64, 32)])
    weight, matrix = model
    for name in operators.INTO:
        assert "out" in getattr(aten, name).overloads(), name
    for function, args, limit in (
            (aten.silu.default, (x,), 0), (aten.mul.Tensor, (x, weight), 0), (aten.mm.default, (x, matrix), 0),
            (aten.native_layer_norm.default, (x, [64], weight, weight, 1e-5), remake.PIECE), (aten.clone.default, (x,), remake.PIECE)):
        hooked = Hooked("rows")
        hooked.memory.note_storages(model)
        seen = operators.Operators(hooked.memory, True)
        want = seen.run(function, args, {})
        whole = want[0] if isinstance(want, tuple) else want
        call = next(made.call for made in seen.makers.values())
        assert call.rows == 96, "%s: %d rows" % (function, call.rows)
        entry = types.SimpleNamespace(memory=hooked.memory, nbytes=hooked.memory.size(whole), home=0, alias=whole)
        recipe = types.SimpleNamespace(call=call, output=0, row=entry.nbytes // 96, sources=(), small=(), lasting=(), near=None)
        again = Remake(recipe, [], entry)
        again.given = {i: a.detach() for i, a in zip(call.args, args) if isinstance(i, operators.Input)}
        buffer = whole.detach().clone()
        buffer[37:] = 0
        with Sizes() as sizes:
            again.rest(buffer, 37 * recipe.row, 0)
        assert torch.equal(buffer, whole), function
        assert max(sizes.taken, default=0) <= limit, "%s takes %s" % (function, sizes.taken)
        hooked.remove()


def test_chains():
    """What was not saved is made on the way, under autocast, too: norms whose results are cast, sums, rotations."""

    class Rotated(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 128), nn.Linear(128, 64)
            self.register_buffer("turn", torch.rand(64))

        def forward(self, x):
            y = self.up(self.norm(x))
            y = torch.cat((-y[..., 64:] * self.turn, y[..., :64] * self.turn.neg()), -1)
            return x + self.down(nn.functional.gelu(y))

    def losses():
        torch.manual_seed(0)
        model, out = nn.Sequential(*(Rotated() for _ in range(3))), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(9):
            torch.manual_seed(step)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.rand(96, 64)).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            out.append(float(loss))
        return out

    want = losses()
    hooked = Hooked("remake")
    got = losses()
    recipes = [r for r in hooked.runtime.schedule.recipes if r is not None]
    hooked.remove()
    chains = sorted({tuple(m.call.name for m in r.chain.made) for r in recipes}, key=len)
    assert got == want, (got, want)
    for expected in ("native_layer_norm", "_to_copy"), ("_to_copy", "addmm", "neg", "mul", "mul", "cat"):
        assert expected in chains, chains
    assert hooked.library.remade and not hooked.runtime.strayed, "%d recomputed" % hooked.library.remade


def test_long_chains():
    """What is far from anything that was saved is not recomputed, and that costs no schedule."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.shifts, self.down = nn.Parameter(torch.rand(32) / 1000), nn.Linear(32, 32)

        def forward(self, x):
            for _ in range(1200):
                x = x + self.shifts
            return self.down(torch.tanh(x))

    want = losses(Net, 4)
    hooked = Hooked("remake")
    got = losses(Net, 4)
    hooked.remove()
    assert got == want and hooked.runtime.schedule is not None


def test_changed_between():
    """What a program changes in place between two models is not taken for what the first one made."""

    class Tanh(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(32, 32)

        def forward(self, x):
            return torch.neg(torch.tanh(self.up(x)))

    class Exp(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = mlp(n=2)

        def forward(self, x):
            return self.down(torch.exp(x))

    class Both(Program):
        def loss(self, x):
            first, second = self.model
            return second(first(x).mul_(2)).pow(2).mean()

    def run():
        torch.manual_seed(0)
        program = Both(nn.ModuleList([Tanh(), Exp()]))
        for step in range(9):
            program.step(step)
        return [loss for loss, _ in program.out]

    want = run()
    hooked = Hooked("remake")
    got = run()
    hooked.remove()
    assert got == want, (got, want)


def test_rows_of_parameters():
    """Operators whose parameters are not the same for all rows do not make rows one by one."""
    aten, x = torch.ops.aten, torch.randn(2, 48, 64)
    for shape, rows in ((64,), 96), ((1, 64), 96), ((1, 1, 64), 0), ((48, 64), 0), ((1, 48, 64), 0), ((2, 48, 64), 0):
        hooked, model = Hooked("rows"), nn.ParameterList([torch.randn(shape)])
        hooked.memory.note_storages(model)
        seen = operators.Operators(hooked.memory, True)
        seen.run(aten.add.Tensor, (x, model[0]), {})
        call = next(made.call for made in seen.makers.values())
        assert call.rows == rows, "%s: %d rows" % (shape, call.rows)
        hooked.remove()


def test_clocks():
    """Of each operator's times in three steps the median counts. Then it is measured how long the program takes."""
    clocks, times = measure.Clocks(), ([1, 9, 6], [5, 2, 6], [3, 4, 6])
    enough = [clocks.add(types.SimpleNamespace(saved=0, late=(), nanoseconds=lambda ns=ns: ns)) for ns in times]
    graph = {"ops": [{"ns": 1}, {"ns": 2}, {"ns": 3}], "tensors": [{"recompute_ns": 100}, {}]}
    clocks.correct(graph)
    assert not any(enough) and [clocks.add(pace.Pace(None)) for _ in range(clocks.PACES)] == [False, True]
    assert [op["ns"] for op in graph["ops"]] == [3, 4, 6] and [t["recompute_ns"] for t in graph["tensors"]] == [216, 0], graph


def test_timed_again():
    """Steps are timed again later, and a schedule is made anew where operators take another time by then, and not where they do not."""
    for slower, schedules in (1, 2), (2, 3):
        hooked, model, times = Hooked("offload"), mlp(), [1000]
        hooked.runtime.planner.DRIFT = planner.Planner.DRIFT
        real, lasting = measure.Clock.nanoseconds, pace.Launches.lasting
        measure.Clock.nanoseconds, pace.Launches.lasting = lambda clock: [times[0]] * len(clock.stretches), lambda known, ns: ns
        for step in range(40):
            if step == 12:
                times[0] *= slower
            model(torch.randn(32, 32, requires_grad=True)).sum().backward()
        measure.Clock.nanoseconds, pace.Launches.lasting = real, lasting
        hooked.remove()
        assert hooked.library.made == schedules, (slower, hooked.library.made)


def test_script():
    """ScriptModules take no hooks."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(32, 64), torch.jit.script(nn.Sequential(nn.Linear(64, 32), nn.Tanh()))

        def forward(self, x):
            return self.down(torch.sigmoid(self.up(x)))

    for make in Net, lambda: torch.jit.script(nn.Sequential(nn.Linear(32, 64), nn.Sigmoid(), nn.Linear(64, 32))):
        with torch.jit.optimized_execution(False):
            want = losses(make)
            hooked = Hooked("offload")
            got = losses(make)
        gc.collect()
        hooked.remove()
        assert got == want and hooked.library.made and hooked.lanes.moved


def test_whole():
    """A model that is compiled as a whole is told of, its layers are not."""
    if not hasattr(nn.Module, "compile"):
        return  # before PyTorch 2.3
    real, hooked = nn.Module.compile, Hooked()
    seen = whole.Whole(torch, hooks.compiling(torch))
    seen.outermost = hooked.hooks.outermost
    parts, model = mlp(), mlp()
    for layer in parts[0], parts[1]:
        layer.compile(backend="eager")
    model.compile(backend="eager")
    for told, program in (False, Program(parts)), (True, Program(model)):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            for step in range(2):
                program.step(step)
        assert said.getvalue() == ("gmswap: %s\n" % whole.UNSUPPORTED if told else ""), said.getvalue()
    nn.Module.compile = real
    gc.collect()
    hooked.hooks.remove()


def test_denied():
    """A convolution is not run a second time where there is no room for what the first needed: a library might take another way from then on."""
    for room in True, False:
        memory = Memory()
        take = memory.take
        memory.take = lambda nbytes: take(nbytes) if room else torch.empty(1 << 60)  # which no machine has
        seen, net, x = operators.Operators(memory, False), nn.Conv2d(2, 2, 3), torch.randn(1, 2, 8, 8)
        seen.begin()
        try:
            net(x)
        finally:
            seen.end()
        made = [m.call.name for m in seen.makers.values()]
        assert ("convolution" in made) == room and not seen.unsure, (room, made, seen.unsure)


def test_streams():
    """To say that a stream uses a tensor is not to write to it, though its schema says so."""
    assert operators.writes(torch.ops.aten.add_.Tensor) and not operators.writes(torch.ops.aten.record_stream.default)


main(globals())
