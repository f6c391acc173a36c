"""Which memory gradients, parameters and states of optimizers have, on a real PyTorch: what is put on the host is the same tensors with other memory."""

import types

import torch
from gmswap_hook.home import Home, fitting
from torch import nn

from cpu import Memory
from real import main

WIDTH = 1024  # a weight of which is 4 MiB


class Lanes(object):
    """Has memory of the host for the next tensor that is taken, until there is no more."""

    def __init__(self, memory, room):
        self.memory, self.room, self.next = memory, room, False
        self.host = set()  # addresses
        memory.take, self.real = self.take, memory.take
        memory.borrowed = self.host.__contains__

    def lodge(self, size, stream):
        self.next = self.room >= size
        self.room -= size if self.next else 0
        return self.next

    def take(self, nbytes):
        tensor = self.real(nbytes)
        (self.host.add if self.next else self.host.discard)(self.memory.address(tensor))
        self.next = False
        return tensor

    def stats(self):
        return types.SimpleNamespace(borrowed_bytes=len(self.host))


class Case(object):
    def __init__(self, model, host=1 << 40, room=1 << 40):
        self.memory = memory = Memory()
        self.lanes, self.room = Lanes(memory, host), room
        runtime = types.SimpleNamespace(lanes=self.lanes, steps=0)
        library = types.SimpleNamespace(had_pools=lambda device: False)
        states = types.SimpleNamespace(on_host=lambda: ())
        self.relief = types.SimpleNamespace(runtime=runtime, memory=memory, library=library, lends=True, borrows=True, states=states, room=lambda: self.room)
        self.home, self.model = Home(self.relief), model
        memory.note_storages(model)

    def on_host(self):
        """Returns the numbers of the parameters whose gradients are on the host."""
        return [i for i, p in enumerate(self.model.parameters()) if p.grad is not None and self.memory.lies_on_host(p.grad)]

    def step(self):
        self.relief.runtime.steps += 1
        self.home.begin_step()


def model(*more):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(3)), *more)


def backward(net, seed=0):
    torch.manual_seed(seed)
    net(torch.rand(4, WIDTH)).square().sum().backward()


def test_gradients_stay_the_same_objects():
    net, plain = model(), model()
    for n in net, plain:
        backward(n)
    case = Case(net)
    held = [p.grad for p in net.parameters()]
    assert case.home.lodge(1) == 4 * WIDTH * WIDTH and case.on_host() == [0], "one will do"
    assert case.home.lodge(9 << 20) == 8 * WIDTH * WIDTH and case.on_host() == [0, 2, 4], "as many as there are; biases are small"
    assert case.home.lodge(1) == 0
    assert all(p.grad is g for p, g in zip(net.parameters(), held))
    for n in net, plain:
        backward(n, 1)  # is added
        torch.optim.SGD(n.parameters(), lr=0.1, momentum=0.9).step()
    assert case.on_host() == [0, 2, 4]
    for a, b in zip(net.parameters(), plain.parameters()):
        assert torch.equal(a, b) and torch.equal(a.grad, b.grad)


def test_layout():
    net = nn.Sequential(nn.Conv2d(256, 256, 3).to(memory_format=torch.channels_last))
    net(torch.rand(1, 256, 5, 5).to(memory_format=torch.channels_last)).sum().backward()
    g = net[0].weight.grad
    before, case = g.clone(), Case(net)
    strides = g.stride()
    assert case.home.lodge(1) and case.on_host() == [0]
    assert net[0].weight.grad is g and g.stride() == strides and torch.equal(g, before)


def test_others_stay():
    """Gradients that something else may know the memory of."""
    net = model()
    backward(net)
    case, weights = Case(net), [m.weight for m in net]
    view = weights[0].grad.view(-1)
    weights[1].grad.requires_grad_()
    case.memory.exported[case.memory.key(weights[2].grad)] = None
    assert not case.home.lodge(1) and not case.on_host()
    del view
    assert case.home.lodge(1 << 30) and case.on_host() == [0]
    weights[1].grad.requires_grad_(False)
    for name, value in ("lends", False), ("library", types.SimpleNamespace(had_pools=lambda device: True)):
        real = getattr(case.relief, name)
        setattr(case.relief, name, value)
        case.home.library = case.relief.library
        assert not case.home.lodge(1)
        setattr(case.relief, name, real)
    case.home.library = case.relief.library
    case.memory.capturing = lambda: True
    assert not case.home.lodge(1)
    case.memory.capturing = lambda: False
    assert case.home.lodge(1) and case.on_host() == [0, 2]


def test_host_is_full():
    net = model()
    backward(net)
    case = Case(net, host=6 << 20)
    assert case.home.lodge(1 << 30) == 4 << 20 and case.on_host() == [4]
    assert case.home.lodge(1 << 30) == 0 and case.on_host() == [4]


def test_forward():
    """What lacked in a forward pass leaves when the next step begins, and less and less of it."""
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    assert not case.on_host()
    case.home.lack(3 << 20)
    case.home.pack()
    case.home.pack()
    assert case.on_host() == [0]
    found = []
    for _ in range(12):
        net.zero_grad()
        backward(net)
        case.step()
        found.append(case.on_host())
    assert found[0] == [0] and found[-1] == [], found


def test_backward():
    """What lacked for an operator of a backward pass leaves before the same one of the next step."""
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    for index in 9, 8, 7:
        case.home.unpack(index)
    case.home.lack(3 << 20)  # for what has asked for entry 7
    assert not case.on_host()
    case.home.unpack(6)
    assert case.on_host() == [0]
    net.zero_grad()
    backward(net)
    case.step()
    for index, found in (9, []), (8, []), (7, [0]), (6, [0]):
        case.home.unpack(index)
        assert case.on_host() == found, index


def test_vain():
    """Where there are no gradients they are not looked for at each request."""
    case, looks = Case(model()), []
    case.home.gradients = lambda: looks.append(0) or ()
    for _ in range(2):
        case.step()
        for _ in range(100):
            case.home.lack(1)
            case.home.pack()
    assert len(looks) == 2 * Home.VAIN, len(looks)


def test_homing():
    net = model()
    backward(net)
    case, before = Case(net), [p.grad.clone() for p in net.parameters()]
    case.home.lodge(1 << 30)
    assert case.on_host() == [0, 2, 4]
    for step in range(Home.REST):
        case.step()
        assert case.on_host() == [0, 2, 4], "they would have to leave again"
    case.room = 5 << 20
    parameter = net[0].weight.data
    case.lanes.host.add(case.memory.address(parameter))
    del parameter
    case.step()
    assert not case.on_host() and not case.memory.lies_on_host(net[0].weight)
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), before))
    case.home.lodge(1 << 30)
    case.relief.runtime.steps += Home.REST
    case.room = 3 << 20
    case.step()
    assert case.on_host() == [0, 2, 4], "there is no room"


def test_fitting():
    for sizes, nbytes, found in (
        ((4, 2, 8), 1, [2]), ((4, 2, 8), 3, [4]), ((4, 2, 8), 9, [8, 2]), ((4, 2, 8), 11, [8, 4]), ((4, 2, 8), 99, [8, 4, 2]), ((), 1, []), ((4, 4), 5, [4, 4]), ((4,), 0, []),
    ):
        assert fitting([(n, [n]) for n in sizes], nbytes) == [[n] for n in found], (sizes, nbytes)


if __name__ == "__main__":
    main(globals())
