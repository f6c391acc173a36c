"""Programs whose parameters an optimizer changes, in ways in which early updates can take part and in others. They print the parameters."""

import torch
from torch import nn, ops, optim

from gpu import STEPS, Net, batch, cuda, digest

LATE = 7  # the step in which a program begins to do what it did not do before


def train_ahead(act, late=False, **options):
    """Trains a model; act does something between the backward pass and the update."""
    model = Net()
    optimizer = optim.SGD(model.parameters(), **options)
    for step in range(STEPS):
        ops.loss(model(batch(step))).backward()
        if not late or step == LATE:
            act(model, optimizer, step)
        optimizer.step()
        optimizer.zero_grad()
        print(digest(*model.parameters(), *(s["sum"] for s in optimizer.state.values())))


def ahead():
    """Leaves the largest part of the model out in some steps."""
    model = Net()
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad()
        x = batch(step)
        ops.loss(model.blocks[0](x) if step % 5 == 4 else model(x)).backward()
        optimizer.step()
        print(digest(*model.parameters()))


def ahead_twice():
    """Uses each parameter in several places."""
    model = Net(2)
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        ops.loss(model(model(batch(step)))).backward()
        optimizer.step()
        model.zero_grad()
        print(digest(*model.parameters()))


def ahead_frozen():
    """Has the optimizer hold parameters that have no gradients: some for ever, some until half of the steps are done."""
    model = Net()
    for i, p in enumerate(model.parameters()):
        p.requires_grad = i % 3 > 0
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        if step == STEPS // 2:
            for i, p in enumerate(model.parameters()):
                p.requires_grad = i > 0
        ops.loss(model(batch(step))).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(digest(*model.parameters()))


def clip(model, optimizer, step):
    for p in model.parameters():
        p.grad.read()


def replace(model, optimizer, step):
    next(model.parameters()).grad = cuda(4, 256, byte=step)


def again(model, optimizer, step):
    ops.loss(model(batch(step + 50))).backward()


def look(model, optimizer, step):
    with torch.no_grad():
        model(batch(step))


def warm(model, optimizer, step):
    optimizer.param_groups[0]["lr"] = step % 3 + 1


def hook(model, optimizer, step):
    if not optimizer._optimizer_step_pre_hooks:
        optimizer.register_step_pre_hook(lambda *_: None)


def drop(model, optimizer, step):
    optimizer.zero_grad()


ACTS = clip, replace, again, look, warm, hook, drop
for _act in ACTS:
    globals()["ahead_" + _act.__name__] = lambda act=_act: train_ahead(act)
    globals()["ahead_late_" + _act.__name__] = lambda act=_act: train_ahead(act, late=True)


def ahead_closure():
    model = Net()
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        optimizer.step(lambda: ops.loss(model(batch(step))).backward())
        optimizer.zero_grad()
        print(digest(*model.parameters()))


def ahead_zeros():
    model = Net()
    optimizer = optim.SGD(model.parameters())
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        ops.loss(model(batch(step))).backward()
        optimizer.step()
        print(digest(*model.parameters()))


def ahead_others():
    """Uses an optimizer that looks at all gradients together, one of the program's own, and one of a model that is averaged."""

    class Own(optim.SGD):
        pass

    for make in (optim.LBFGS, Own):
        train_with(make(Net().parameters()))
    averaged = nn.parallel.DistributedDataParallel(Net())
    train_with(optim.SGD(averaged.parameters()))


def train_with(optimizer):
    parameters = optimizer.param_groups[0]["params"]
    for step in range(STEPS):
        x = batch(step)
        for p in parameters:
            x = ops.linear(x, p)
        ops.loss(x).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(digest(*parameters))
