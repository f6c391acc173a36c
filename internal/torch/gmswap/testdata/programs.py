"""Programs that train on the stand-in for PyTorch: python programs.py NAME."""

import copy
import gc
import pickle
import sys
import time

import torch
from torch import nn, ops

from ahead import *  # noqa: F401,F403
from beside import forked, helpers, overlapped, replicated, replicated_large, spread, spread_large, streams, threads, unordered  # noqa: F401
from gpu import STEPS, Block, Net, batch, cuda, digest, finish, peaks, runtimes, train, update, weight
from laid import laid  # noqa: F401
from limited import exhausted, fits, lengths, limited, limited_streams, loaded, refused, successive, translations, tried, tried_beside, unmodelled  # noqa: F401
from sharded import fsdp, resized  # noqa: F401
from moments import homing, lodging, lodging_at_random, moments, moments_compiled, moments_failing, moments_read, moments_unfit, weights  # noqa: F401


def plain():
    model = Net()
    for step in range(STEPS):
        train(model, step)


def accumulated():
    model = Net()
    for step in range(STEPS):
        for i in range(3):
            loss = ops.loss(model(batch(3 * step + i)))
            loss.backward()
        update(model, loss)


def stateful():
    """An optimizer makes its state when it runs for the first time, behind three passes. The program looks for its peaks by itself."""
    model, state = Net(), None
    for step in range(STEPS):
        for i in range(3):
            torch.cuda.reset_peak_memory_stats()
            loss = ops.loss(model(batch(3 * step + i)))
            loss.backward()
            peaks.append(torch.cuda.max_memory_allocated())
        state = state or cuda(300, 256)
        update(model, loss)


def retained():
    """Backward passes over a graph that is kept, two or three of them."""
    model = Net()
    for step in range(STEPS + 4):
        y = model(batch(step))
        loss = ops.loss(y)
        loss.backward(retain_graph=True)
        if step % 4 == 3:
            ops.sigmoid(y).backward(retain_graph=True)
        loss.backward()
        update(model, loss)


def siamese():
    """Two forward passes before a backward pass."""
    model = Net(2)
    for step in range(STEPS):
        loss = ops.loss(model(batch(step)) * model(batch(step + 100)))
        loss.backward()
        update(model, loss)


def pipelined():
    """The backward pass of one batch after the forward pass of the next."""
    model = Net(2)
    for step in range(STEPS):
        before = ops.loss(model(batch(step)))
        for i in range(3):
            loss = ops.loss(model(batch(step + i)))
            before.backward()
            before = loss
        loss.backward()
        update(model, loss)


def evaluated():
    """Evaluations between steps: without gradients, with some that nobody asks for, of other sizes, and with results that are kept."""
    model, kept = Net(2), []
    for step in range(STEPS):
        train(model, step)
        with torch.no_grad():
            print(digest(model(batch(step + 50))))
        print(digest(model(batch(step + 60))))
        if step > 5:
            model(batch(step + 70, 96))
        kept = [model(batch(step + 80, 96)) for _ in range(2)] if step == 3 else []
    del kept


def varied():
    """Batches of other shapes: larger, smaller, so small that nothing is moved, of as many bytes, and larger from some step on."""
    model = Net()
    for step in range(STEPS + 16):
        if step == 8:
            model.forward = lambda x: Net.forward(model, x.reshape(128, 128))
        train(model, step, {5: 96, 6: 32, 7: 4}.get(step, 64 if step < 9 else 80))
        vars(model).pop("forward", None)


class Shaken(Net):
    """Another order, more layers, one of them twice, and other parameters, now and then."""

    order = None

    def forward(self, x):
        for i in self.order or range(len(self.blocks)):
            x = self.blocks[i](x)
        return x


def shaken():
    model = Shaken()
    for step in range(STEPS + 8):
        model.order = {5: (1, 0, 2), 6: (0, 1, 2, 2), 7: (0, 1), 8: (0, 0, 0), 10: (2, 1, 0, 2)}.get(step)
        train(model, step)


def unequal():
    """No two steps are alike."""
    model = Shaken()
    for step in range(STEPS + 8):
        model.order = [step % 3] * (1 + step % 4)
        train(model, step)


def raised():
    """Errors in forward and backward passes, of which some pass by hooks."""
    model, fail = Net(), []

    def forward(x):
        if fail:
            raise fail.pop()
        return Block.forward(model.blocks[1], x)

    model.blocks[1].forward = forward
    for step in range(STEPS):
        if step % 3 == 1:
            for error in ValueError(), KeyboardInterrupt(), SystemExit():
                fail.append(error)
                try:
                    model(batch(step))
                except type(error):
                    pass
        train(model, step)
    del model.blocks[1].forward


def changed():
    """What is changed in place after it was saved: an error where it is needed, unless it went to the host before, and none where it is not."""

    class Bad(nn.Module):
        def forward(self, x, w, change, use):
            y = ops.silu(ops.linear(x, w))
            z = y * y
            if change:
                ops.add_(y, x)
            return z if use else ops.sigmoid(y)

    model, w = Bad(), weight(5)

    def gradient(rows, *how):
        y = model(batch(3, rows), w, *how)
        try:
            y.backward()
            return digest(w.grad)
        except RuntimeError as e:
            return str(e)[:89]
        finally:
            w.grad = None

    for rows in 64, 4:  # moved, and not
        for _ in range(4):
            want, got = gradient(rows, False, True), gradient(rows, True, True)
            print(want, got.startswith("one of the variables needed") or got == want and rows == 64, gradient(rows, True, False))


def inplace():
    """What is saved after it was changed in place, and a buffer of the program's that each step writes to while something holds on to what was
    saved of it before."""

    class Relu(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = [weight(i) for i in range(4)]

        def forward(self, x):
            for w in self.weights:
                x = ops.relu_(ops.linear(x, w))
            return x

    model, static = Relu(), cuda(64, 256)
    for step in range(STEPS):
        static.copy_(batch(step))
        kept = model(static)
        static.copy_(batch(step + 1))
        loss = ops.loss(model(static))
        loss.backward()
        update(model, loss)
    del kept


def inner():
    """A backward pass within a forward pass."""

    class Inner(Net):
        def forward(self, x):
            for block in self.blocks[:2]:
                x = block(x)
                h = ops.sigmoid(x)
                h.backward(retain_graph=True)
            return self.blocks[2](x)

    model = Inner()
    for step in range(STEPS):
        train(model, step)


def numbers():
    """Numbers that are others in each step, of Python, of the host and in buffers, in what could be recomputed."""

    class Numbers(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.n, self.buffer = [weight(i) for i in range(3)], 0, cuda(4, 256, byte=9)

        def forward(self, x):
            self.n += 1
            host = torch.full((4, 256), self.n)
            for w in self.weights:
                h = ops.linear(x, w)
                x = ops.silu(h) + ops.silu(h * self.n) + ops.silu(ops.add(h, host)) + ops.silu(ops.add(h, self.buffer)) + ops.sigmoid(h)
                with torch.no_grad():
                    ops.add_(self.buffer, w)
            return x

    model = Numbers()
    for step in range(STEPS):
        train(model, step)


def late_source():
    """A result that is saved before what it was made of."""

    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = [weight(i) for i in range(4)]

        def forward(self, x):
            for w in self.weights:
                h = ops.linear(x, w)
                x = ops.sigmoid(h) + ops.silu(h)
                x = ops.silu(x) * ops.sigmoid(x)
            return x

    model = Late()
    for step in range(STEPS):
        train(model, step)


def dropped():
    """Parts of the graph that nobody runs backward, so that what others are made of is let go of before."""

    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = [weight(i) for i in range(4)]

        def forward(self, x):
            parts = []
            for w in self.weights:
                h = ops.linear(x, w)
                parts.append(ops.silu(h))
                x = ops.sigmoid(h)
            return parts, x

    model = Parts()
    for step in range(STEPS + 4):
        parts, y = model(batch(step))
        if step % 4 != 3:
            for p in parts:
                y = y + p
        del parts
        loss = ops.loss(y)
        del y
        loss.backward()
        update(model, loss)


def abandoned():
    """Backward passes that end in the middle, and evaluations, whose memory is used again at once, and returned to the driver."""

    class Fragile(Net):
        fail = False

        def forward(self, x):
            x = self.blocks[1](self.blocks[0](x))
            return ops.failing(x) if self.fail else self.blocks[2](x)

    model, host = Fragile(), [torch.full((64, 256), i) for i in range(24)]
    for step in range(STEPS):
        train(model, step)
        for model.fail in (True, False) if step > 4 else ():
            loss = ops.loss(model(batch(step)))
            if model.fail:
                try:
                    loss.backward()
                except ZeroDivisionError:
                    pass
            del loss
            again = [torch.empty(64, 256, device=torch.device("cuda")).copy_(t) for t in host]
            time.sleep(0.02)
            print(digest(*again))
            del again
        if step == 7:
            model.fail = False
            model(batch(step, 4096))
            torch.cuda.empty_cache()
        model.fail = False
        for p in model.parameters():
            p.grad = None


class Branch(nn.Module):
    """Takes the one way or the other, with tensors of the same sizes and no parameters in it."""

    other = False

    def __init__(self):
        super().__init__()
        self.weights = [weight(i) for i in range(3)]

    def forward(self, x):
        for w in self.weights:
            h = ops.linear(x, w)
            s = ops.silu(h)
            x = s + ops.sigmoid(h * 3 if self.other else h)
            x = ops.silu(x) * x
        return x


def branch():
    model = Branch()
    for step in range(STEPS):
        train(model, step)
        model.other = step == 6
        if step == 6:
            train(model, step)


def moved_parameters():
    """Parameters whose memory is another one in each step."""
    model = Net()
    for step in range(STEPS):
        train(model, step)
        for block in model.blocks:
            block.up, block.gate = (nn.Parameter(p.detach().clone()) for p in (block.up, block.gate))


def late_change():
    """A parameter that is changed between forward and backward pass, after what it made was given up."""
    model = Net()
    for step in range(10):
        train(model, step)
    loss = ops.loss(model(batch(9)))
    with torch.no_grad():
        for p in model.parameters():
            ops.add_(p, p)
    try:
        loss.backward()
    except RuntimeError as e:
        print(str(e)[:89])


def late_bias():
    """The same with one that autograd does not save."""

    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.biases = [weight(i) for i in range(3)], [weight(9 + i) for i in range(3)]

        def forward(self, x):
            for w, b in zip(self.weights, self.biases):
                h = ops.linear(x, w)
                x = ops.silu(h) * ops.silu(ops.add(h, b))
            return x

    model = Biased()
    for step in range(10):
        train(model, step)
    loss = ops.loss(model(batch(9)))
    with torch.no_grad():
        for p in model.biases:
            ops.add_(p, p)
    loss.backward()


def temporary():
    """A loss that is a module, another one in each step."""

    class Loss(nn.Module):
        def forward(self, x):
            return ops.loss(ops.sigmoid(x))

    model = Net()
    for step in range(STEPS):
        loss = Loss()(model(batch(step)))
        loss.backward()
        update(model, loss)


def copies():
    """Copies of the model, which are not watched."""
    model = Net()
    for step in range(STEPS):
        train(model, step)
        if step > 6:
            other = copy.deepcopy(model.blocks[0]._forward_hooks)
            pickle.loads(pickle.dumps((model._forward_hooks, model._forward_pre_hooks)))
            for called in list(other.values()):
                assert called(model, ()) is None
    if runtimes:
        assert model._forward_hooks and not runtimes[0].watching()


def own_hooks():
    """Hooks of the program's own, around the model, within it, and forbidden."""
    model, packed = Net(), []

    def keep(tensor):
        packed.append(0)
        return tensor.detach()

    class Within(Net):
        def forward(self, x):
            x = self.blocks[0](x)
            with torch.autograd.graph.disable_saved_tensors_hooks("no hooks"), torch.no_grad():
                with torch.autograd.graph.disable_saved_tensors_hooks("none"):
                    ops.silu(x)
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
                x = self.blocks[1](x)
            return self.blocks[2](x)

    within = Within()
    for step in range(STEPS):
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            train(model, step)
        train(within, step)
        with torch.autograd.graph.disable_saved_tensors_hooks("no hooks"):
            train(model, step)
    print(len(packed))


def uncounted():
    """No collector of circles: what nobody runs backward ends all the same."""
    gc.disable()
    model = Net()
    for step in range(STEPS):
        train(model, step)
    x, small = batch(0), batch(0, 4)
    before = torch.cuda.memory_allocated()
    model(x)  # saves results, which know what saved them
    model(small)
    assert abs(torch.cuda.memory_allocated() - before) < 1000
    gc.enable()


def whole():
    """All of the model is compiled."""
    from torch._dynamo.eval_frame import OptimizedModule

    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def forward(self, x):
            return self.module(x)

    model = Wrapper(OptimizedModule(Net()))
    for step in range(STEPS):
        train(model, step)


def watching():
    """The program has a mode of its own, which sees each operator."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += 1
            return function(*args, **(kwargs or {}))

    model = Net()
    for step in range(STEPS):
        with Mode() as mode:
            train(model, step)
        print(mode.count)


def parts():
    """The layers of a model are compiled: hooks are seen when they are, and do nothing then. Modes would end the use of compiled code."""
    from torch._dynamo.eval_frame import OptimizedModule
    from torch.utils._python_dispatch import modes

    class Compiled(OptimizedModule):
        compiled = False

        def forward(self, x):
            if self.compiled:
                assert all(mode.ignore_compile_internals() for mode in modes()), "compiled code is left"
                return self._orig_mod(x)
            torch.compiler.compiling = self.compiled = True
            sys.setprofile(seen)
            try:
                return self._orig_mod(x)
            finally:
                sys.setprofile(None)
                torch.compiler.compiling = False

    def seen(frame, event, arg):
        assert frame.f_code.co_name not in ("enter", "leave"), "hooks are compiled"

    model = Net()
    model.blocks = [Compiled(b) for b in model.blocks]
    for step in range(STEPS):
        train(model, step)


def main():
    globals()[sys.argv[1]]()
    finish()


main()
