"""Programs whose optimizer keeps as much as there are parameters, in which few activations are saved."""

import os
import random
import sys

from torch import nn, ops, optim

from gpu import STEPS, batch, cuda, digest, runtimes, weight

ROWS = 256  # of a weight: 256 KiB


class Wide(nn.Module):
    def __init__(self, weights=12):
        super().__init__()
        self.weights = [weight(i, ROWS) for i in range(weights)]

    def forward(self, x):
        for w in self.weights:
            x = x + ops.silu(ops.linear(x, w))
        return x


def update(model, optimizer, step):
    ops.loss(model(batch(step, ROWS))).backward()
    optimizer.step()
    optimizer.zero_grad()
    print(digest(*model.parameters()))


def moments():
    model = Wide()
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        update(model, optimizer, step)
    print(digest(*(state["sum"] for state in optimizer.state.values())))


def moments_compiled():
    """The model is compiled as a whole: states alone can be moved."""
    from torch._dynamo.eval_frame import OptimizedModule

    model = OptimizedModule(Wide())
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        update(model, optimizer, step)


def moments_read():
    """Reads states, one after the other, and holds some of them for a while."""
    model = Wide()
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        update(model, optimizer, step)
        if step % 4 == 2:
            print([digest(state["sum"]) for state in optimizer.state.values()])
        held = [optimizer.state[w]["sum"] for w in model.weights[step % 5 :: 7]]
        update(model, optimizer, step + 100)
        print(digest(*held))
        del held


def moments_failing():
    """Has updates end in the middle."""
    model = Wide()
    optimizer = optim.SGD(model.parameters())
    real = optim.SGD.update

    def failing(self, group, p):
        if self.fails is p:
            raise ValueError("in the middle")
        real(self, group, p)

    optim.SGD.update = failing
    for step in range(STEPS):
        optimizer.fails = model.weights[step] if step % 3 == 2 else None
        try:
            update(model, optimizer, step)
        except ValueError:
            optimizer.zero_grad()
            print(digest(*model.parameters()))
    print(digest(*(state["sum"] for state in optimizer.state.values())))


def moments_unfit():
    """Has an optimizer whose updates have gradients."""
    model = Wide()
    optimizer = optim.SGD(model.parameters())
    optimizer.param_groups[0]["differentiable"] = True
    for step in range(STEPS):
        update(model, optimizer, step)


def homing():
    """Holds so much for a while that the gradient of a weight, which nobody adds to, finds no room."""
    model, kept, seen = Wide(), [], 0
    spare = model.weights[0]
    for step in range(STEPS):
        loss = ops.loss(model(batch(step, ROWS)))
        if step == 0:
            kept.extend(batch(i, 4 * ROWS) for i in range(8))
            spare.grad = batch(99, 4 * ROWS)
        gradient = spare.grad
        spare.grad = None
        loss.backward()
        spare.grad = gradient
        print(digest(gradient))
        on_host = sum(r.memory.borrowed(r.memory.address(gradient)) for r in runtimes)
        del gradient
        seen += on_host
        if step == 2:
            kept.clear()
    assert not runtimes or seen > 0 == on_host, (seen, on_host)


class Fan(nn.Module):
    """Layers whose weights are larger than what passes between them."""

    def __init__(self, layers=4, width=2048):
        super().__init__()
        self.up = [weight(i, width) for i in range(layers)]
        self.down = [nn.Parameter(cuda(256, width, byte=90 + i)) for i in range(layers)]

    def forward(self, x):
        for up, down in zip(self.up, self.down):
            x = x + ops.linear(ops.silu(ops.linear(x, up)), down)
        return x


def lodging_at_random():
    """Does so now and then, adds up the gradients of several passes, holds and reads some, and makes others anew. SEED says when."""
    rng, model, held = random.Random(int(os.environ["SEED"])), Fan(), []
    optimizer = optim.SGD(model.parameters())
    for step in range(2 * STEPS):
        early = rng.random() < 0.4
        if early:
            optimizer.zero_grad()
        for part in range(rng.choice((1, 1, 1, 2, 3))):
            loss = ops.loss(model(batch(step + 7 * part, rng.choice((1024, 1024, 768)))))
            gradients = [w.grad for w in model.parameters() if w.grad is not None]
            if gradients and rng.random() < 0.3:
                held = rng.sample(gradients, 2)
                held.append(held[0][: 100])
            if gradients and rng.random() < 0.2:
                print(digest(*gradients))
            del gradients
            if not early and not part:
                optimizer.zero_grad()
            loss.backward()
        print(digest(*held))
        if rng.random() < 0.5:
            held = []
        w = rng.choice(list(model.parameters()))
        if rng.random() < 0.2:
            w.grad = w.grad.clone()
        optimizer.step()
        print(digest(*model.parameters()))


def lodging():
    """Keeps gradients until a step's loss is there, as programs do that zero them before they run backward."""
    model, seen = Fan(), []
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        loss = ops.loss(model(batch(step, 1024)))
        if step % 4 == 3:
            print([digest(w.grad) for w in model.parameters()])
        for runtime in runtimes:
            borrowed = runtime.memory.borrowed or (lambda address: False)
            on_host = sum(w.grad is not None and borrowed(runtime.memory.address(w.grad)) for w in model.parameters())
            seen.append([on_host, runtime.lanes.stats().borrowed_bytes])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(digest(*model.parameters()))
    if runtimes:
        print("lodged %s" % seen, file=sys.stderr)


class Layer(Fan):
    """One with weights of its own."""

    def __init__(self, number):
        super().__init__(1)
        for w in (*self.up, *self.down):
            w.data = cuda(*w.size(), byte=100 + 7 * number)


class Tower(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        self.layers = [Layer(i) for i in range(layers)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def weights():
    """Has parameters that are more than the device has, of which an optimizer without states changes each in every second step."""
    model, most = Tower(), 0
    optimizer = optim.SGD(model.parameters())
    for step in range(2 * STEPS):
        loss = ops.loss(model(batch(step, 256)))
        for runtime in runtimes:
            most = max(most, runtime.relief.lodging.home.weights.nbytes)
        loss.backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
        print(digest(*model.parameters()))
    if runtimes:
        print("waiting %d" % most, file=sys.stderr)
