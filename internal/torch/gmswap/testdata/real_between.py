"""What is saved between models, and tensors that consist of others, on a real PyTorch."""

import torch
from torch import nn
from torch.autograd import graph
from torch.utils.checkpoint import checkpoint

from cpu import Hooked
from real import main

SEEN = hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks")  # what is saved between models


class Program(object):
    """Layers that are called one by one, with functions of its own between them."""

    def __init__(self, steps=12):
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.table = nn.Parameter(torch.randn(64, 64) / 8)  # of no model
        self.optimizer = torch.optim.SGD([*self.layers.parameters(), self.table], lr=0.1)
        self.out = [self.step(torch.randn(32, 64)) for _ in range(steps)] + [whole(p).tolist() for p in self.layers.parameters()]

    def step(self, x):
        for layer in self.layers:
            x = self.between(layer(x))
        loss = self.loss(x)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss)

    def between(self, x):
        return torch.sin(x @ self.table) * torch.tanh(x)

    def loss(self, x):
        return x.square().mean()


class Slope(Program):
    """The loss has the gradient of a function, with a graph."""

    def loss(self, x):
        slope, = torch.autograd.grad(torch.sin(x).sum(), x, create_graph=True)
        return x.square().mean() + slope.cos().mean()


class Functions(Program):
    """torch.func between models, which forbids hooks, and in the backward pass."""

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * torch.func.grad(lambda t: (t * t).sum())(x)

    def between(self, x):
        weights = torch.func.grad(lambda t: torch.cos(t).sum())(self.table.detach())
        return self.Square.apply(torch.sin(x @ weights)) + torch.func.vmap(torch.sin)(x)


class Transformed(Program):
    """Models within torch.func, the first call of each step among them, and gradients of gradients."""

    def error(self, weights, x):
        return torch.func.functional_call(self.layers[0], weights, (x,)).square().mean()

    def step(self, x):
        weights = {name: p.detach() for name, p in self.layers[0].named_parameters()}
        each = torch.func.vmap(torch.func.grad(self.error), in_dims=(None, 0))(weights, x)
        _, pull = torch.func.vjp(torch.func.grad(lambda w: self.error(w, x)), weights)
        curve, = pull(weights)
        _, slope = torch.func.jvp(self.layers[1], (x,), (torch.ones_like(x),))
        return super().step(x) + sum(float(g.norm()) for g in [*each.values(), *curve.values(), slope])


class Batched(Program):
    """Backward passes of many gradients at once."""

    def loss(self, x):
        rows = torch.autograd.grad(x, self.table, torch.eye(64).view(64, 1, 64).expand(64, len(x), 64), is_grads_batched=True, retain_graph=True)[0]
        slopes = torch.autograd.functional.jacobian(self.layers[3], x.detach()[0], vectorize=True)
        return x.square().mean() + float(rows.norm() + slopes.norm())


class Checkpoints(Program):
    def between(self, x):
        x = checkpoint(super().between, x, use_reentrant=True)
        return checkpoint(super().between, x, use_reentrant=False)


class Own(Program):
    """Hooks of the program above ours, which end behind the next model."""

    def step(self, x):
        x = self.between(self.layers[0](x))
        with graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            x = self.between(self.layers[1](x))
        with graph.save_on_cpu():
            x = self.between(x)
        loss = self.loss(self.layers[2](x))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss)


class Evaluations(Program):
    """Models that run without gradients, and steps that end without a backward pass."""

    def between(self, x):
        with torch.no_grad():
            scale = self.layers[0](x).std()
        return super().between(x) / (1 + scale)

    def step(self, x):
        if len(x) and float(x[0, 0]) > 0:
            self.between(self.layers[0](x))
        with torch.inference_mode():
            self.layers[1](x)
        return super().step(x)


class Compiled(Program):
    """A function between models that torch.compile has made."""

    def __init__(self):
        self.made = torch.compile(lambda x, table: torch.sin(x @ table) * torch.tanh(x), backend="aot_eager")
        super().__init__()

    def between(self, x):
        return self.made(x, self.table)


class Jagged(Program):
    """Sequences of all lengths in one tensor."""

    def step(self, x):
        parts = x.split([5, 9, 1, 17])
        return super().step(torch.nested.nested_tensor(list(parts), layout=torch.jagged))

    def between(self, x):
        return torch.sin(x) * torch.nn.functional.silu(x)

    def loss(self, x):
        return x.values().square().mean()


class Distributed(Program):
    """Tensors in parts on a mesh of one device."""

    def __init__(self):
        from torch import distributed
        from torch.distributed.device_mesh import init_device_mesh

        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        try:
            self.mesh = init_device_mesh("cpu", (1,))
            super().__init__()
        finally:
            distributed.destroy_process_group()

    def step(self, x):
        from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

        if not hasattr(self, "spread"):
            self.spread = [distribute_module(layer, self.mesh) for layer in self.layers]
            self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=0.1)
        return super().step(distribute_tensor(x, self.mesh, [Shard(0)]))

    def between(self, x):
        return torch.sin(x) * torch.tanh(x)

    def loss(self, x):
        return x.to_local().square().mean()


def whole(p):
    return p.full_tensor() if hasattr(p, "full_tensor") else p


def test_between():
    """Losses and parameters are the same, and what is saved between models is moved; nothing is left behind."""
    for program in (Program, Slope, Functions, Transformed, Batched, Checkpoints, Own, Evaluations, Compiled, Jagged, Distributed)[: 11 if SEEN else 8]:
        want = program().out
        for how in "offload", "remake":
            hooked = Hooked(how)
            got = program().out
            hooked.remove()
            assert graph_hooks() is None, program.__name__
            assert str(got) == str(want), program.__name__
            assert hooked.lanes.moved > 0, program.__name__


def graph_hooks():
    return torch._C._autograd._top_saved_tensors_default_hooks(False) if SEEN else None


def test_moved():
    """Of a step that saves four tensors in models and eight or more between them, most bytes leave."""
    if not SEEN:
        return

    class Counted(Program):
        def step(self, x):
            loss = super().step(x)
            entries.append(len(hooked.runtime.step.entries))
            return loss

    entries, hooked = [], Hooked("offload")
    Counted()
    hooked.remove()
    assert min(entries) >= 12, entries


class Nested(Program):
    """The layers are in a model of their own, and so are those."""

    def __init__(self):
        self.model = None
        super().__init__(14)

    def step(self, x):
        self.model = self.model or nn.Sequential(*(nn.Sequential(layer, nn.GELU()) for layer in self.layers))
        loss = self.loss(self.model(x))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss)


class Penalty(Program):
    """A loss of the program's own between steps, with a backward pass of its own."""

    def step(self, x):
        loss = super().step(x)
        (torch.tanh(x @ self.table).square().mean() * 0.1).backward()
        return loss


class Offset(Program):
    """What goes into the first layer is made with gradients."""

    def step(self, x):
        return super().step(torch.clamp(x + torch.sin(x @ self.table), -2, 2))


class Inline(Program):
    """A module that is made anew in each step, for the loss."""

    def loss(self, x):
        return nn.MSELoss()(torch.sin(x), torch.cos(x.detach()))


def test_strangers():
    """What no model that is watched saves between steps does not keep these from following a schedule, nor does a module that is new in each of them; a new model
    has schedules as well."""
    if not SEEN:
        return
    for kinds in [Penalty], [Offset], [Inline], [Program, Nested, Program]:
        want = [kind().out for kind in kinds]
        hooked, ways = Hooked("remake"), []
        end = hooked.runtime.end_step
        hooked.runtime.end_step = lambda step: (ways.append(step.way()), end(step))
        got = [kind().out for kind in kinds]
        hooked.remove()
        assert got == want, kinds
        assert ways[-4:].count("planned") >= 2, (kinds, ways)
        assert hooked.hooks.watched == "roots", hooked.hooks.watched


def test_parts():
    """The parts of jagged and of distributed tensors are moved."""
    for program in (Jagged, Distributed) if SEEN else ():
        hooked = Hooked("offload")
        program()
        hooked.remove()
        assert hooked.lanes.moved >= 12 * 4 * 32 * 64 * 4, "%s: %d bytes" % (program.__name__, hooked.lanes.moved)


if __name__ == "__main__":
    main(globals())
