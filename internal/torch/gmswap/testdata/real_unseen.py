"""What PyTorch's operators do not show, on a real PyTorch: memory that something else writes to, and models that are run in the middle of a backward pass."""

import _thread
import pickle
import sys
import threading
import types

import numpy
import torch
from gmswap_hook import live, nested, operators, parting, unseen
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from cpu import Hooked, Memory
from real import Program, main
from real_demand import Short

WIDTH = 32


class Turn(torch.autograd.Function):
    """Writes to its argument as a kernel does that is launched past PyTorch: no version tells."""

    @staticmethod
    def forward(ctx, x):
        numpy.from_dlpack(x.detach())[...] *= -0.5
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * -0.5


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, x):
        h = F.silu(self.up(x))
        a, b = h * 0.5, h.clone()
        Turn.apply(b)
        return x + self.down(Turn.apply(a) * b)


class Varied(Program):
    def batch(self, step):
        return super().batch(step, (32 + 5 * step % 24, WIDTH))


def losses(kind=Program, steps=24):
    torch.manual_seed(0)
    program = kind(nn.Sequential(*(Layer() for _ in range(4))))
    for step in range(steps):
        program.step(step)
    return bits(program)


def bits(program):
    """Returns the losses and gradients of a program."""
    return [(float(loss), [g if g is None else g.tolist() for g in grads]) for loss, grads in program.out]


def test_recorded():
    """What is written to by something else is not recomputed, nor made again of what was written to: all else is."""
    want, hooked = losses(), Hooked("remake")
    got, runtime = losses(), hooked.runtime
    made = [m.call.name for r in runtime.schedule.recipes if r is not None for m in r.chain.made]
    hooked.remove()
    assert got == want
    assert "addmm" in made and not {"clone", "mul"} & set(made), made


def test_demand():
    """Neither in steps that follow no schedule."""
    want, short = losses(Varied), Short(100000)
    got = losses(Varied)
    short.remove()
    assert got == want
    assert short.remade and "addmm" in short.recipes and not short.recipes & {"clone", "mul"}, short.recipes
    assert not short.hooked.memory.launches.listeners


def test_sums():
    """Any write to a storage shows, and nothing else does."""
    memory = Memory()
    for size in 1, 7, 64, 1000, 4099:
        for at in range(0, size, max(1, size // 9)):
            x, seen = torch.randn(size).to(torch.bfloat16), unseen.Sums(memory)
            same, other = x.clone(), x.clone()
            for number, t in enumerate((x, same, other)):
                seen.look(number, t)
            other.data[at] = -0.5
            for number, t in enumerate((x[:1], same.view(1, -1), other)):
                seen.look(number, t)
            assert seen.changed() == ({2}, set()), (size, at)
            assert seen.changed() == (set(), set())
    for width in 64, 128, 192:
        x = torch.randn(40, width)
        for change in lambda t: t.flip(0), lambda t: t[torch.randperm(len(t))], lambda t: t.roll(width // 2, 1), lambda t: -t, lambda t: 2 * t, lambda t: t.flip(1):
            seen, other = unseen.Sums(memory), x.clone()
            seen.look(0, other)
            other.data.copy_(change(x))
            seen.look(0, other)
            assert seen.changed() == ({0}, set()), "in another order"
        for x in x.double(), torch.view_as_complex(x.view(-1, 2)):
            seen, other = unseen.Sums(memory), x.clone()
            seen.look(0, other)
            other.data.copy_(-x if x.dtype is torch.float64 else x.conj())
            seen.look(0, other)
            assert seen.changed() == ({0}, set()), "the first bits of words"
    seen = unseen.Sums(memory)
    seen.look(0, x)
    seen.look(1, x)
    memory.sums = lambda t: None
    seen.look(1, x)
    assert seen.changed() == (set(), {1}), "there was no memory to tell"
    seen = unseen.Sums(Memory())
    seen.look(0, x)
    seen.changed()
    seen.memory.fetched = lambda sums: [None] * len(sums)
    seen.look(0, x)
    assert seen.changed() == (set(), {0}), "there was none to fetch it"


def test_launches():
    """A kernel's tensors are told to who listens, by the ways that libraries take."""
    launched, told, ways = [], [], []
    listener = lambda tensor, kept: (told.append(tensor), ways.append(kept))
    jit = types.ModuleType("triton.runtime.jit")
    jit.JITFunction = type("JITFunction", (), {"run": lambda self, *args, **kwargs: launched.append((args, kwargs))})
    launches = unseen.Launches.of(torch)
    assert unseen.Launches.of(torch) is launches, "there is one for a process"
    before, sys.modules["triton.runtime.jit"] = sys.modules.get("triton.runtime.jit"), jit
    try:
        x, y, z = (torch.rand(4) for _ in range(3))
        launches.listen(listener)
        launches.listen(listener)
        jit.JITFunction().run(x, 3, first=y)
        z.__dlpack__()
        assert len(told) == 3 and all(a is b for a, b in zip(told, (x, y, z))) and ways == [False, False, True], (told, ways)
        del told[:]
        jit.JITFunction().run([x, (y, 3)], types.SimpleNamespace(base=z), grid=(1,))
        torch.to_dlpack(x)
        torch.utils.dlpack.to_dlpack(y)
        z.data_ptr()
        assert {id(t) for t in told[:3]} == {id(t) for t in told[3:]} == set(map(id, (x, y, z))) and len(told) == 6, told
        assert torch.Tensor.__dlpack__.__name__ == "__dlpack__" and pickle.loads(pickle.dumps(torch.Tensor.__dlpack__)) is torch.Tensor.__dlpack__
        del told[:], launched[1:]
        launches.cease(listener)
        jit.JITFunction().run(x, 3)
        assert not told and [len(args) for args, _ in launched] == [2, 2] and launched[0][1].keys() == {"first"}
    finally:
        del sys.modules["triton.runtime.jit"]
        if before is not None:
            sys.modules["triton.runtime.jit"] = before


class Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        a = x.detach()
        numpy.from_dlpack(a)[...] = a.numpy() * -0.5 + 1
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * -0.5


class Half(nn.Module):
    def forward(self, x):
        return x * 0.5


class Returning(nn.Module):
    """Returns what is written to behind it."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(Block() for _ in range(4)), Half())

    def forward(self, x):
        return self.layers(x)


class Outside(Program):
    def __init__(self, model):
        super().__init__(Returning())

    def loss(self, x):
        return Written.apply(self.model(x)).pow(2).mean()


class OutsideVaried(Outside):
    def batch(self, step):
        return super().batch(step, (32 + 5 * step % 24, WIDTH))


class Scaled(nn.Module):
    """Has its factor changed by something else after its use."""

    def __init__(self, last):
        super().__init__()
        self.up, self.down, self.last = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH), last
        self.register_buffer("scale", torch.ones(64))

    def forward(self, x):
        x = x + self.down(torch.tanh(self.up(x)) * self.scale)
        for m in self.last:
            numpy.from_dlpack(m.scale)[...] *= 1.01
        return x


class Scales(Program):
    def __init__(self, model):
        layers = nn.ModuleList()
        layers.extend(Scaled([]) for _ in range(5))
        object.__setattr__(layers[-1], "last", list(layers))
        super().__init__(nn.Sequential(*layers))


class ScalesVaried(Scales):
    def batch(self, step):
        return super().batch(step, (32 + 5 * step % 24, WIDTH))


def test_outside():
    """What is written to between and behind models is seen, too, and what is made of parameters and buffers that are changed."""
    for kind, varied in (Outside, OutsideVaried), (Scales, ScalesVaried):
        want, hooked = losses(kind), Hooked("remake")
        got = losses(kind)
        hooked.remove()
        assert got == want, kind
        want = losses(varied)
        for limit in 60000, 120000, 200000:
            short = Short(limit)
            got = losses(varied)
            short.remove()
            assert got == want, (kind, limit)


class Packed(nn.Module):
    """Has one half of a storage written to behind the other one's being saved."""

    def __init__(self):
        super().__init__()
        self.qv, self.out = nn.Linear(WIDTH, 128), nn.Linear(64, WIDTH)

    def forward(self, x):
        q, v = self.qv(x).chunk(2, -1)
        v = v.sigmoid() * v
        return x + self.out(Turn.apply(q).tanh() * v * q)


class Early(Packed):
    """Keeps the address that it writes to from before anything was saved."""

    def forward(self, x):
        both = self.qv(x)
        memory = numpy.from_dlpack(both.detach())
        q, v = both.chunk(2, -1)
        v = v.sigmoid() * v
        memory[:, :64] *= -0.5
        return x + self.out(q.tanh() * v * q)


class Read(Packed):
    """Has the address of what was saved asked for, and writes nothing."""

    def forward(self, x):
        q, v = self.qv(x).chunk(2, -1)
        v = v.sigmoid() * v
        q.data_ptr()
        return x + self.out(q.tanh() * v * q)


class Halves(Program):
    layer = Packed

    def __init__(self, model):
        super().__init__(nn.Sequential(*(self.layer() for _ in range(4))))


class HalvesVaried(Halves):
    def batch(self, step):
        return super().batch(step, (32 + 5 * step % 24, WIDTH))


def test_halves():
    """What was copied before something else wrote to it is copied anew, or stands for what was saved before alone."""
    for layer in Packed, Early, Read:
        Halves.layer = layer
        want = losses(Halves)
        for how in "move", "remake":
            hooked = Hooked(how)
            got = losses(Halves)
            hooked.remove()
            assert got == want, (layer, how)
            assert layer is not Read or hooked.runtime.schedule.followed >= 10, "a kernel that reads is in the way"
        want = losses(HalvesVaried)
        for limit in 60000, 100000, 150000, 200000:
            short = Short(limit)
            got = losses(HalvesVaried)
            short.remove()
            assert got == want, (layer, limit)


def test_failing():
    """A copy that cannot be made again, or a step that ends meanwhile, is no error of the program's."""
    Halves.layer = Packed
    want = losses(Halves)
    for rate in 2, 3, 5, 7:
        hooked = Hooked("move", fail={"left": rate})
        got = losses(Halves)
        hooked.hooks.remove()
        hooked.memory.launches.cease(hooked.runtime.touched.told)
        assert got == want, rate
    hooked = Hooked("move")
    losses(Halves, 2)
    step, memory = hooked.runtime.step, hooked.memory
    step.parting = types.SimpleNamespace(launched=lambda key: None)
    memory.key = lambda tensor: setattr(step, "parting", None) or 1
    hooked.runtime.touched.told(torch.rand(4), True)
    del memory.key
    hooked.remove()


def test_told_amid():
    """What asks for the addresses of parameters between two passes, amid inference, behind an update or in another step, ends nothing."""
    def run():
        torch.manual_seed(0)
        program, kept = Varied(nn.Sequential(*(Layer() for _ in range(4)))), []
        for step in range(24):
            x = program.batch(step)
            kept.append(program.model(x[:8]).sum())  # has no backward pass
            loss = program.loss(x)
            with torch.inference_mode():
                addresses = [p.data_ptr() for p in program.model.parameters()]
            loss.backward()
            program.update(loss)
            assert addresses == [p.data_ptr() for p in program.model.parameters()]
            del kept[:-2]
        return bits(program)

    want = run()
    for limit in 60000, 100000, 150000:
        short = Short(limit)
        got = run()
        assert len(short.hooked.memory.launches.listeners) == 1
        short.remove()
        assert got == want, limit


class Forces(nn.Module):
    """Has a gradient in the middle of its forward pass."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Layer()

    def forward(self, x):
        slope, = torch.autograd.grad(self.first(x).sum(), x, create_graph=True)
        return self.second(x + slope)


def test_amid():
    """A backward pass amid a forward pass ends nothing."""
    def run():
        torch.manual_seed(0)
        program = Program(Forces())
        for step in range(12):
            program.step(step)
        return bits(program)

    want, hooked = run(), Hooked("remake")
    got, runtime = run(), hooked.runtime
    hooked.remove()
    made = [m.call.name for r in runtime.schedule.recipes if r is not None for m in r.chain.made]
    assert got == want and not {"clone"} & set(made), made


def test_gathered():
    """Parameters without memory at the end of a forward pass, as FSDP leaves them, have not changed."""
    memory = Memory()
    weights = [nn.Parameter(torch.randn(64, 64)) for _ in range(3)]
    ordinals = [memory.note(w) for w in weights]
    memory.lasting.update((ordinal, [lambda w=w: w]) for ordinal, w in zip(ordinals, weights))
    seen, aten = operators.Operators(memory, True), torch.ops.aten
    seen.begin()
    with torch.no_grad():
        for w in weights:
            aten.mul.Tensor(torch.randn(64, 64), w)
    weights[1].untyped_storage().resize_(0)
    numpy.from_dlpack(weights[2].detach())[0] = 1
    seen.end()
    assert seen.written == {ordinals[2]}, (seen.written, ordinals)


def test_checked():
    """Each entry is compared when it is recomputed for the first time, and then once in eight times."""
    costs = live.Costs()
    costs.proven.add("mul")
    recipe = types.SimpleNamespace(chain=types.SimpleNamespace(made=[types.SimpleNamespace(call=types.SimpleNamespace(name="mul"))]))
    seen = live.Live(Memory(), costs, 1 << 20)
    for index in 0, 5:
        assert [i for i in range(20) if not seen.sure(recipe, index)] == [0, 8, 16]


def test_interrupted():
    """Ctrl-C in a model that is run in a backward pass leaves nothing in effect."""
    hooked, program, out = Hooked("move"), Cached(), []
    for step in range(6):
        again = program.net[1].register_forward_hook(lambda *_: interrupt()) if step == 3 else None
        try:
            program.step(step)
        except KeyboardInterrupt:
            out.append(step)
            program.optimizer.zero_grad()
            again.remove()
    assert out == [3]
    hooked.remove()


def interrupt():
    if torch.is_grad_enabled():
        raise KeyboardInterrupt


def test_launched():
    """Parameters that a kernel is given count as written to."""
    hooked = Hooked("remake")
    memory, costs = hooked.memory, live.Costs()
    costs.rates["mul"] = 1.0
    weight = nn.Parameter(torch.randn(64, 64))
    ordinal = memory.note(weight)
    memory.lasting[ordinal] = [lambda: weight]
    seen = live.Live(memory, costs, 1 << 20)
    step = hooked.runtime.step = types.SimpleNamespace(number=0, entries=[], stream=0)
    step.parting = parting.Parting(step, seen, types.SimpleNamespace(window=1 << 20, desperate=False, tight=lambda: False))
    seen.enter()
    with torch.no_grad():
        y = torch.randn(64, 64) * weight
        assert seen.unchanged(ordinal) and len(seen.makers) == 1 and not seen.changed
        weight.detach().__dlpack__()
        y.__dlpack__()
    seen.leave()
    assert not seen.unchanged(ordinal) and seen.changed == set(seen.makers) and step.parting.touched == {-ordinal}
    hooked.remove()


class Cached(object):
    """Embeds a batch without gradients, and each part of it again, with them, when the gradient of its loss has come."""

    def __init__(self, parts=3):
        torch.manual_seed(0)
        self.net = nn.Sequential(*(Block() for _ in range(3)))
        self.optimizer, self.parts, self.out = torch.optim.SGD(self.net.parameters(), 0.1), parts, []

    def step(self, step):
        torch.manual_seed(step)
        x = torch.rand(8 * self.parts, WIDTH)
        with torch.no_grad():
            found = self.net(x)
        found.requires_grad_()
        loss = F.cross_entropy(found @ found.T, torch.arange(len(found)))
        slope, = torch.autograd.grad(loss, found)
        ready = loss.detach().requires_grad_()
        ready.register_hook(lambda grad: self.again(x, slope * grad))
        ready.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.out.append(float(loss))

    def again(self, x, slope):
        with torch.enable_grad():
            for part, s in zip(x.chunk(self.parts), slope.chunk(self.parts)):
                (self.net(part) * s).sum().backward()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 64), nn.Linear(64, WIDTH)

    def forward(self, x):
        return x + self.down(F.silu(self.up(x)))


def cached(steps=8):
    program = Cached()
    for step in range(steps):
        program.step(step)
    return program.out


def test_cached():
    """Each part is a step, which is recorded and follows a schedule."""
    want, hooked = cached(), Hooked("move")
    got, runtime = cached(), hooked.runtime
    hooked.remove()
    assert got == want
    assert runtime.steps == 8 * 3 - 1 and runtime.schedule is not None and hooked.lanes.moved > 0, runtime.steps


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.blocks, self.reentrant = nn.ModuleList(Block() for _ in range(3)), reentrant

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return x


def test_checkpoints():
    """What a backward pass recomputes is no step, and neither is a model that a hook runs while something is left of the step."""
    for reentrant in True, False:
        def run():
            torch.manual_seed(0)
            program = Program(Checkpointed(reentrant))
            for step in range(9):
                program.step(step)
            return bits(program)

        want, hooked = run(), Hooked("move")
        got, steps = run(), hooked.runtime.steps
        hooked.remove()
        assert got == want and steps <= 8, steps
    net, other, hooked = nn.Sequential(Block(), Block()), Block(), Hooked("move")
    for _ in range(4):
        x = net[0](torch.rand(4, WIDTH))
        x.register_hook(torch.enable_grad()(lambda grad: other(grad.detach().requires_grad_()).sum().backward()))
        net[1](x).sum().backward()
    assert hooked.runtime.steps <= 7, hooked.runtime.steps
    hooked.remove()


def test_owner():
    """A thread of autograd's works for the one that waits for a backward pass."""
    task, go, waits = [-1], [], threading.Event()
    stand_in = types.SimpleNamespace(_C=types.SimpleNamespace(_current_graph_task_id=lambda: task[0]))

    def _engine_run_backward():
        waits.set()
        while not go:
            pass

    def foreign(*calls):
        """Returns what some calls return in a thread that Python has not made."""
        out, done = [], threading.Event()
        _thread.start_new_thread(lambda: (out.extend(call() for call in calls), done.set()), ())
        done.wait()
        return out

    owner, other, none = (nested.Owner(stand_in) for _ in range(3))
    assert owner.here() and owner.thread is threading.current_thread()
    program = threading.Thread(target=_engine_run_backward)
    program.start()
    waits.wait()
    try:
        task[0] = 1
        assert foreign(other.here, owner.here) == [True, False] and other.thread is program, "the other one's thread does not wait"
        assert owner.here(), "a backward pass on the CPU is its own thread's"
        task[0] = -1
        assert not other.here() and owner.here()
    finally:
        go.append(True)
        program.join()
    task[0] = 1
    assert foreign(none.here) == [False] and none.thread is None, "no thread waits"


def test_proves():
    """Where operators are not proven nothing is summed up."""
    seen = operators.Operators(Memory(), True, proves=False)
    seen.run(torch.ops.aten.exp.default, (torch.randn(64, 64),), {})
    seen.settle()
    assert seen.sums is None and len(seen.makers) == 1


if __name__ == "__main__":
    main(globals())
