"""Parameters that wait on what stands for the host, for tests on a real PyTorch."""

import contextlib
import types

import torch

from real_demand import Short
from real_home import WIDTH, Case

BYTES = 4 * WIDTH * WIDTH


class Hosted(object):
    """Has the next tensor that memory takes be on the host."""

    def __init__(self, memory):
        self.memory, self.next, self.storages = memory, False, {}
        self.real, memory.take = memory.take, self.take
        memory.borrowed, memory.lies_on_host = lambda address: False, self.has

    def take(self, nbytes, dtype=None):
        tensor = self.real(nbytes)
        if self.next:
            self.storages[self.memory.key(tensor)] = self.memory.weak(tensor.untyped_storage())
        self.next = False
        return tensor

    def has(self, tensor):
        weak = self.storages.get(self.memory.key(tensor))
        return weak is not None and not self.memory.expired(weak)

    def lodge(self, size, stream):
        self.next = True
        return True

    def lodge_none(self):
        self.next = False

    def stats(self):
        alive = [key for key, weak in self.storages.items() if not self.memory.expired(weak)]
        return types.SimpleNamespace(borrowed_bytes=len(alive) << 20)


class Weighed(Case):
    """A case in which operators were given all parameters but those of some modules."""

    def __init__(self, model, unused=(), **more):
        super(Weighed, self).__init__(model, **more)
        hosted = Hosted(self.memory)
        self.lanes.lodge, self.lanes.lodge_none, self.lanes.stats = hosted.lodge, hosted.lodge_none, hosted.stats
        idle = {id(p) for m in unused for p in m.parameters()}
        self.memory.used = {id(p) for p in model.parameters() if id(p) not in idle}
        self.memory.ran = {id(m) for m in model.modules() if m not in unused}
        runtime = self.relief.runtime
        runtime.recording, self.renewed = None, 0
        runtime.renew = self.renew
        runtime.step.stream = self.memory.stream()
        self.weights = self.home.weights
        self.weights.LATER = 1

    def renew(self):
        self.renewed += 1

    def step(self, lacked=0, short=None, kind=()):
        runtime = self.relief.runtime
        runtime.steps += 1
        self.weights.begin_step(lacked, lacked if short is None else short, kind)

    def waiting(self):
        """Returns the names of the parameters that are on the host."""
        return [name for name, p in self.model.named_parameters() if self.memory.lies_on_host(p)]


def watched(module, case):
    """Has it be noted where the weight of a module is while that runs."""
    seen, forward = [], module.forward

    def run(x):
        seen.append(case.memory.lies_on_host(module.weight))
        return forward(x)

    module.forward = run
    return seen


def train(net, steps, between=lambda i: None, run=None, moves=True):
    """Returns the losses. What is saved for the backward pass moves, or is held where it is."""
    torch.manual_seed(1)
    optimizer, losses = torch.optim.AdamW(net.parameters(), 1e-3), []
    for i in range(steps):
        between(i)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t) if moves else contextlib.nullcontext():
            loss = (run or net)(torch.rand(4, WIDTH)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Lodged(Short):
    """A hook with less memory than steps need, under which all parameters wait from the third step on."""

    def __init__(self, limit):
        super(Lodged, self).__init__(limit)
        runtime, hosted = self.hooked.runtime, Hosted(self.hooked.memory)
        self.ever, weights = 0, runtime.relief.lodging.home.weights
        runtime.smallest = self.hooked.settings.smallest = 256
        weights.SMALLEST, weights.LATER, weights.APART, weights.REST = 0, 1, 1, 1
        begin = weights.begin_step

        def begin_step(lacked, short, kind):
            if runtime.steps > 2:
                begin(1 << 20, 1 << 20)
                self.ever = max(self.ever, weights.nbytes)

        runtime.lanes.lodge, runtime.lanes.lodge_none, runtime.lanes.lodged = hosted.lodge, hosted.lodge_none, 0
        runtime.lanes.stats = hosted.stats
        runtime.relief.library.had_pools = lambda device: False
        weights.begin_step = begin_step
