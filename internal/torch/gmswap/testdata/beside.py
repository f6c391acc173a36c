"""Programs in which other streams, threads and processes, and other modules, work beside the model that is trained."""

import gc
import os
import sys
import threading

import torch
from torch import nn, ops

from gpu import STEPS, Block, Net, batch, cuda, digest, runtimes, train, update


def peek(model, side):
    """Looks at what is saved on another stream than that which saved it, the last first, and at once on the first stream again."""
    for _ in range(3):
        nodes, more = {}, [ops.loss(model(batch(3))).grad_fn]
        while more:
            node = more.pop()
            nodes[node.number] = node
            more.extend(edge for edge, _ in node.inputs if edge is not None and edge.number not in nodes)
        found = []
        for _, node in sorted(nodes.items(), reverse=True):
            with torch.cuda.stream(side):
                for s in node.saved:
                    s.get()
            found.append((digest(*(s.get() for s in node.saved)), node))
        torch.cuda.synchronize()
        assert [d for d, _ in found] == [digest(*(s.get() for s in n.saved)) for _, n in found]
        del node, nodes, more, found


def streams():
    """A second stream, in a part of the forward pass and in a backward pass, and tensors of another device and of the host."""
    side = torch.cuda.Stream()

    class Side(Net):
        def forward(self, x):
            x = self.blocks[0](x)
            main = torch.cuda.current_stream()
            side.wait_stream(main)
            with torch.cuda.stream(side):
                y = self.blocks[1](x)
            main.wait_stream(side)
            y.record_stream(main)
            return self.blocks[2](x + y)

    model = Side()
    other, host = (nn.Parameter(torch.full((64, 256), 3, device=d)) for d in (torch.device("cuda", 1), torch.device("cpu")))
    far = nn.Module()
    far.forward = lambda: (ops.silu(ops.silu(other)), ops.silu(ops.silu(host)))
    for step in range(STEPS):
        out = far()
        train(model, step)
        for y in out:
            y.backward()
        print(digest(other.grad), digest(host.grad))
        other.grad = host.grad = None
    if runtimes:
        peek(model, side)
    side.wait_stream(torch.cuda.current_stream())
    for step in range(STEPS):  # all on the second one
        with torch.cuda.stream(side):
            train(model, step)
    del far.forward, y, out


def overlapped():
    """A second stream that goes on while the first one uses what came of it, which autograd keeps until both have met: nothing says more of it."""
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()

    class Both(Net):
        def forward(self, x):
            side.wait_stream(main)
            with torch.cuda.stream(side):
                y = self.blocks[0](x)
            main.wait_stream(side)
            z = self.blocks[1](y)
            del y
            with torch.cuda.stream(side):
                y = self.blocks[2](x)
            main.wait_stream(side)
            return z + y

    model = Both()
    for step in range(STEPS):
        train(model, step)


def unordered():
    """A second stream uses what the first one makes, and does not wait for it."""
    x = cuda(64, 256, byte=1)
    y = x * 3
    with torch.cuda.stream(torch.cuda.Stream()):
        print(digest(y * 3))


class Spread(nn.Module):
    """Some layers on one device, the others on another one."""

    def __init__(self, blocks=2):
        super().__init__()
        self.here, self.there = Net(blocks), [Block(50 + 10 * i, index=1) for i in range(blocks)]

    def forward(self, x):
        x = ops.to(1)(self.here(x))
        for block in self.there:
            x = block(x)
        return ops.to(0)(x)


def spread(rows=64, steps=STEPS):
    """A model on two devices, and two models, one after the other, that are on one each."""
    model, first, second = Spread(), Net(2), Block(90, index=1)
    for step in range(steps):
        train(model, step, rows)
    for step in range(steps):
        loss = ops.loss(second(ops.to(1)(first(batch(step, rows)))))
        loss.backward()
        update(first, loss, digest(*(p.grad for p in second.parameters())))
        for p in second.parameters():
            p.grad = None


def spread_large():
    """The same where neither device has room for what is saved on it."""
    spread(rows=4096, steps=5)


def replicated(rows=64, steps=STEPS):
    """A model of which each device has a copy."""
    model = nn.DataParallel(Net())
    for step in range(steps):
        train(model, step, rows)


def replicated_large():
    """The same where neither device has room for what is saved on it."""
    replicated(rows=4096, steps=9)


def threads():
    """A second model that another thread trains meanwhile."""

    def work(model, out):
        for step in range(STEPS):
            loss = ops.loss(model(batch(step)))
            loss.backward()
            out.append(digest(loss, *(p.grad for p in model.parameters())))
            for p in model.parameters():
                p.grad = None

    model, other, out = Net(), Net(2), []
    train(model, 0)
    thread = threading.Thread(target=work, args=(other, out))
    thread.start()
    for step in range(STEPS):
        train(model, step)
    thread.join()
    print(*out)


def forked():
    """Children that run modules on the host, as loaders of data do, at all times."""

    def child(held):
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            held.clear()
            host = nn.Module()
            host.forward = lambda x: ops.silu(ops.silu(x))
            x = nn.Parameter(torch.full((64, 256), 3))
            host(x).backward()
            gc.collect()
            os._exit(0 if x.grad is not None else 1)
        if os.waitpid(pid, 0)[1]:
            sys.exit("a child failed")

    class Forking(Net):
        def forward(self, x):
            x = self.blocks[0](x)
            child([])
            return self.blocks[1](x)

    model = Forking()
    for step in range(6):
        train(model, step)
        child([])
        held = [ops.loss(model(batch(step)))]
        child(held)
        held[0].backward()
        update(model, held.pop())


def helpers():
    """Modules of the host, and models that save little, before and between."""

    class Small(nn.Module):
        def __init__(self, place):
            super().__init__()
            self.weight = nn.Parameter(torch.full((4, 256), 3, device=torch.device(place)))

        def forward(self, x):
            return ops.silu(ops.linear(x, self.weight))

    model, small, host = Net(), Small("cuda"), Small("cpu")
    for step in range(STEPS):
        for _ in range(3):
            host(torch.full((64, 256), step))
            small(batch(step, 4)).backward()
        train(model, step)
