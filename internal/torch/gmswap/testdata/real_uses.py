"""Uses of PyTorch that few programs make, on a real PyTorch."""

import copy
import io
import threading
import warnings

import torch
from torch import nn
from torch.autograd import graph
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from cpu import Hooked
from real import main
from real_between import Program, Transformed


class Anomalies(Program):
    """Anomaly detection, with backward hooks of modules."""

    def __init__(self):
        self.norms = []
        with torch.autograd.set_detect_anomaly(True, check_nan=True):
            super().__init__()

    def step(self, x):
        handles = [layer.register_full_backward_hook(lambda m, ins, outs: self.norms.append(float(outs[0].norm()))) for layer in self.layers]
        loss = super().step(x)
        for handle in handles:
            handle.remove()
        return loss + self.norms[-1]


class Alone(Program):
    """Backward passes in the thread that calls them."""

    def step(self, x):
        with torch.autograd.set_multithreading_enabled(False):
            return super().step(x)


class Mutations(Program):
    """Saved tensors that are changed in place, of which PyTorch keeps copies. It takes a tensor that comes to the address of one that is gone for that."""

    def step(self, x):
        self.held = []
        with graph.allow_mutation_on_saved_tensors():
            return super().step(x)

    def between(self, x):
        y = torch.sin(x @ self.table)
        self.held.append(y)
        z = y * torch.tanh(x)
        y.mul_(2)
        return z + y


class Parametrized(Program):
    """Weights that are computed: a norm, a mask, a spectral norm; a weight of two layers; buffers that change."""

    def step(self, x):
        if not hasattr(self, "norm"):
            nn.utils.parametrizations.weight_norm(self.layers[0])
            nn.utils.parametrizations.spectral_norm(self.layers[1])
            prune.random_unstructured(self.layers[2], "weight", 0.5)
            self.norm = nn.BatchNorm1d(64)
            self.last = nn.Linear(64, 64)
            self.last.weight = self.layers[3].weight
            parameters = {id(p): p for m in (self.layers, self.norm, self.last) for p in m.parameters()}
            self.optimizer = torch.optim.AdamW([*parameters.values(), self.table], lr=0.01)
        return super().step(x)

    def loss(self, x):
        return self.last(self.norm(x)).square().mean()


class Copies(Program):
    """Copies and files of models, taken amid training."""

    def step(self, x):
        loss = super().step(x)
        other = copy.deepcopy(self.layers)
        file = io.BytesIO()
        torch.save(self.layers, file)
        file.seek(0)
        again = torch.load(file, weights_only=False)
        with torch.no_grad():
            return loss + float(other[0](x).sum() + again[1](x).sum())


class Kinds(Program):
    """Tensors of all kinds: of a class of their own, sparse, complex, expanded, empty, of a number, of other types."""

    class Own(torch.Tensor):
        pass

    def between(self, x):
        sparse = (torch.eye(64) * self.table).to_sparse()
        wave = torch.fft.rfft(x @ self.table)
        own = torch.sin(x).as_subclass(self.Own) * 2
        none = torch.sin(x[:0]).sum()
        return (torch.sparse.mm(sparse, x.t()).t() + torch.fft.irfft(wave * wave.conj(), n=64) * x[:, :1].expand(-1, 64) * 1e-3
                + own.as_subclass(torch.Tensor) + none + torch.tanh(x.double()).float() + torch.sigmoid(x.bfloat16()).float() + torch.cos(x.mean()))


class Truncated(Program):
    """A state that goes from step to step, with a graph that is kept for two of them, and passes for some inputs alone."""

    def step(self, x):
        state = getattr(self, "state", torch.zeros(len(x), 64)).detach()
        for _ in range(2):
            for layer in self.layers:
                state = torch.tanh(layer(state) + x @ self.table)
            loss = self.loss(state)
            loss.backward(inputs=[*self.layers[1].parameters(), self.table], retain_graph=True)
            torch.autograd.backward([loss, state.sum()], retain_graph=False)
            self.optimizer.step()
            self.optimizer.zero_grad()
            state = state.detach()
        self.state = state
        return float(loss)


class Modes(Program):
    """Modes of the program's own, which see operators; a model that runs on tensors without contents first."""

    def step(self, x):
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils.flop_counter import FlopCounterMode

        with FakeTensorMode() as fake:
            layer = nn.Linear(64, 64)
            torch.tanh(layer(fake.from_tensor(x))).sum().backward()
        with FlopCounterMode(display=False) as counted:
            loss = super().step(x)
        assert counted.get_total_flops() > 0
        return loss


class Elsewhere(Program):
    """Defaults of types and devices, and a model that only another thread runs."""

    def __init__(self):
        torch.set_default_dtype(torch.float64)
        try:
            worker = threading.Thread(target=lambda: super(Elsewhere, self).__init__())
            worker.start()
            worker.join()
        finally:
            torch.set_default_dtype(torch.float32)


class Nested(Program):
    """Checkpoints within checkpoints, and an exception in a backward pass."""

    def __init__(self):
        self.fails = 0
        super().__init__()

    def between(self, x):
        inner = lambda y: checkpoint(super(Nested, self).between, y, use_reentrant=False) * torch.sin(y)
        return checkpoint(inner, x, use_reentrant=False)

    def step(self, x):
        y = self.between(self.layers[0](x))
        y.register_hook(self.fail)
        try:
            y.sum().backward()
        except ArithmeticError:
            self.optimizer.zero_grad()
        return super().step(x)

    def fail(self, grad):
        self.fails += 1
        if self.fails % 2:
            raise ArithmeticError("as asked")


class Scripted(Program):
    """Layers that torch.jit has made, and traced ones, none of which are said to be wrong."""

    def step(self, x):
        if not hasattr(self, "script"):
            self.script = torch.jit.script(nn.Sequential(self.layers[0], nn.Tanh()))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", torch.jit.TracerWarning)
                self.trace = torch.jit.trace(nn.Sequential(self.layers[1], nn.SiLU()), x)
            assert not [w for w in said if w.category is torch.jit.TracerWarning], said
        return super().step(self.trace(self.script(x)))


PROGRAMS = Anomalies, Alone, Mutations, Parametrized, Copies, Kinds, Truncated, Modes, Elsewhere, Nested, Scripted
if not hasattr(torch, "func"):
    PROGRAMS = ()


def test_uses():
    """Losses and parameters are the same, and nothing is left behind."""
    for program in PROGRAMS:
        want = program().out
        for how in "offload", "remake":
            hooked = Hooked(how)
            got = program().out
            hooked.remove()
            assert str(got) == str(want), (program.__name__, how)


def test_unreal():
    """No step begins within torch.func, or on tensors without contents, where memory cannot be taken."""
    for program in (Transformed, Modes) if PROGRAMS else ():
        hooked, kinds = Hooked("offload"), set()
        begin = hooked.runtime.begin

        def seen(*args):
            kinds.add(type(torch.empty(1)) if torch._C._functorch.peek_interpreter_stack() is None else "another one")
            return begin(*args)

        hooked.runtime.begin = seen
        program()
        hooked.remove()
        assert kinds == {torch.Tensor}, (program.__name__, kinds)


if __name__ == "__main__":
    main(globals())
