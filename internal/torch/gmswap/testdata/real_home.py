"""Which memory gradients, parameters and states of optimizers have, on a real PyTorch: what is put on the host is the same tensors with other memory."""

import threading
import types

import torch
from gmswap_hook import home
from gmswap_hook.home import Home, fitting
from gmswap_hook.lodging import Lodging
from gmswap_hook.step import Step
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

    def lodge_none(self):
        self.next = False

    def stats(self):
        return types.SimpleNamespace(borrowed_bytes=len(self.host))


class Case(object):
    def __init__(self, model, host=1 << 40, room=1 << 40):
        self.memory = memory = Memory()
        self.lanes, self.room = Lanes(memory, host), room
        runtime = types.SimpleNamespace(lanes=self.lanes, steps=0, step=Step(0), recording=None, renew=lambda: None)
        library = types.SimpleNamespace(had_pools=lambda device: False)
        states = types.SimpleNamespace(on_host=lambda: (), gradient=torch.Tensor.grad.__get__)
        self.relief = types.SimpleNamespace(runtime=runtime, memory=memory, library=library, lends=True, borrows=True, states=states, room=lambda: self.room,
                                            weighed=True, most=0, spacious=lambda more: self.fits)
        self.home, self.model, self.fits = Home(self.relief), model, False
        self.lodging = Lodging(runtime, self.home)
        memory.note_storages(model)

    def on_host(self):
        """Returns the numbers of the parameters whose gradients are on the host."""
        return [i for i, p in enumerate(self.model.parameters()) if p.grad is not None and self.memory.lies_on_host(p.grad)]

    def step(self, dims=()):
        """Begins a step, with inputs of some dimensions."""
        self.relief.runtime.steps += 1
        self.lodging.begin_step(dims)
        self.relief.runtime.step.dims = dims


def model(*more):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(3)), *more)


def asked(lodging, index):
    """Has an entry be asked for."""
    step = Step(0)
    step.lodging, step.conduct = lodging, types.SimpleNamespace(unpack=lambda entry, stream: None)
    step.unpack(types.SimpleNamespace(index=index), 0)


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
    view, kept = weights[0].grad.view(-1), torch.utils.dlpack.to_dlpack(weights[2].grad)
    weights[1].grad.requires_grad_()
    assert not case.home.lodge(1) and not case.on_host()
    del view
    assert case.home.lodge(1 << 30) and case.on_host() == [0]
    kept = torch.from_dlpack(kept)
    assert not case.home.lodge(1)
    del kept
    weights[1].grad.requires_grad_(False)
    storage = weights[1].grad.untyped_storage()
    case.memory.addresses[storage._cdata] = case.memory.weak(storage)
    del storage
    assert case.home.lodge(1 << 30) and case.on_host() == [0, 4]
    weights[1].grad = weights[1].grad.clone()
    for owner, name, value in (
        (case.relief, "lends", False), (case.home.library, "had_pools", lambda device: True), (case.memory, "capturing", lambda: True), (case.memory, "counts", False),
        (case.memory, "stream", lambda: 7), (case.relief.runtime.step, "strays", True),
    ):
        real = getattr(owner, name)
        setattr(owner, name, value)
        assert not case.home.lodge(1), name
        setattr(owner, name, real)
    assert case.home.lodge(1) and case.on_host() == [0, 2, 4]


def test_backward_passes():
    """None leaves while a backward pass is under way, but in autograd's thread of the device, where gradients come one after the other."""
    net, other = model(), nn.Linear(4, 4)
    backward(net)
    case, freed = Case(net), []
    lodge = lambda: freed.append(case.home.lodge(1))

    def look(x):
        lodge()
        thread = threading.Thread(target=lodge)
        thread.start()
        thread.join()

    y = other(torch.rand(4, 4))
    y.register_hook(look)
    y.sum().backward()
    assert freed == [0, 0] and not case.on_host()
    real, home.foreign = home.foreign, lambda thread: True
    current, device = torch.cuda.current_device, []
    torch.cuda.current_device = lambda: device[0]
    try:
        for device[:], found in ([1], []), ([0], [0]):
            lodge()
            assert case.on_host() == found
    finally:
        home.foreign, torch.cuda.current_device = real, current


def test_ranks():
    """None leaves where there are other ranks."""
    net = model()
    backward(net)
    case, real = Case(net), torch.distributed
    torch.distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: ranks[0])
    try:
        for ranks, found in ([2], []), ([1], [0]):
            case.home.lodge(1)
            assert case.on_host() == found
    finally:
        torch.distributed = real


def test_changed_meanwhile():
    """Another thread adds to a gradient that is being copied."""
    net = model()
    backward(net)
    case, weights = Case(net), [m.weight for m in net]
    waits = []

    def wait():
        waits.append(0)
        if len(waits) == 2:
            weights[0].grad.add_(1)

    case.memory.synchronize = wait
    before = weights[0].grad.clone()
    case.home.lodge(1 << 30)
    assert case.on_host() == [2, 4] and torch.equal(weights[0].grad, before + 1)


def test_early_updates():
    """The hook's own looks at gradients are none of the program's."""
    from gmswap_hook import gradients, stepping

    net, hook = model(), stepping.Stepping(torch)
    backward(net)
    case = Case(net)
    case.relief.states.gradient = hook.gradient
    read, looks = torch.Tensor.grad, []
    torch.Tensor.grad = property(lambda t: looks.append(t) or read.__get__(t), read.__set__)
    try:
        assert case.home.lodge(1) == 4 << 20
        case.relief.runtime.steps += 100
        case.step()
    finally:
        torch.Tensor.grad = read
    assert not looks and not case.on_host()


def test_failure():
    """Memory runs out in the middle: what there is room for has moved."""
    net, plain = model(), model()
    backward(net)
    backward(plain)
    case = Case(net)
    take, left = case.memory.take, [1]

    def fail(nbytes):
        if not left:
            raise torch.cuda.OutOfMemoryError("no room")
        left.pop()
        return take(nbytes)

    case.memory.take = fail
    assert case.home.lodge(1 << 30) == 4 << 20 and case.on_host() == [4]
    assert all(torch.equal(p.grad, q.grad) for p, q in zip(net.parameters(), plain.parameters()))


def test_unseen():
    """The program's own modes see nothing of it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    net = model()
    backward(net)
    case = Case(net)
    with Mode():
        assert case.home.lodge(1)
    assert not seen and case.on_host() == [0]


def test_host_is_full():
    net = model()
    backward(net)
    case = Case(net, host=6 << 20)
    assert case.home.lodge(1 << 30) == 4 << 20 and case.on_host() == [4]
    assert case.home.lodge(1 << 30) == 0 and case.on_host() == [4]


def test_forward():
    """What lacked in a forward pass leaves when the next steps begin, until that was not needed for long."""
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    assert not case.on_host()
    case.lodging.lack(3 << 20)
    case.lodging.pack()
    assert case.on_host() == [0] and not case.lodging.lacks
    found = []
    for _ in range(4 * Lodging.REST):
        net.zero_grad()
        backward(net)
        case.step()
        found.append(case.on_host())
    assert found[0] == found[Lodging.REST - 1] == [0] and found[-1] == [], found


def test_kept():
    """Gradients that are added to for several steps: no more leave than lacked, and they come home."""
    net = model()
    backward(net)
    for lacking in (lambda case: case.lodging.pack(), lambda case: (asked(case.lodging, 5), asked(case.lodging, 4))):
        case = Case(net)
        case.step()
        asked(case.lodging, 7)
        case.lodging.lack(3 << 20)
        lacking(case)
        for step in range(Lodging.REST):
            assert case.on_host() == [0], step
            case.step()
            for index in 7, 6, 5:
                asked(case.lodging, index)
        case.lodging.start, case.lodging.points = 0, {}
        case.step()
        assert not case.on_host()


def test_backward():
    """What lacked for an operator of a backward pass leaves before the same one of the next step."""
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    for index in 9, 8, 7:
        asked(case.lodging, index)
    case.lodging.lack(3 << 20)  # for what has asked for entry 7
    assert not case.on_host()
    asked(case.lodging, 6)
    assert case.on_host() == [0]
    net.zero_grad()
    backward(net)
    case.step()
    for index, found in (9, []), (8, []), (7, [0]), (6, [0]):
        asked(case.lodging, index)
        assert case.on_host() == found, index


def test_before_backward():
    """What lacks between the last that is saved and the first that is asked for leaves when the next step begins."""
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    case.lodging.lack(3 << 20)
    asked(case.lodging, 9)
    assert case.on_host() == [0]
    net.zero_grad()
    backward(net)
    case.step()
    assert case.on_host() == [0]


def test_one_by_one():
    """Gradients come in the backward pass: those that are due leave as they come."""
    net = model()
    backward(net)
    gradients = [m.weight.grad for m in net]
    case = Case(net)
    lacks = []
    for step in range(3):
        net.zero_grad()
        case.step()
        lacked = 0
        for index in range(20, 0, -1):
            asked(case.lodging, index)
            if index in (16, 12, 8):
                net[index // 4 - 2].weight.grad = gradients[index // 4 - 2].clone()
            if index < 15 and len(case.on_host()) < (16 - index) // 4:
                case.lodging.lack(3 << 20)
                lacked += 1
        lacks.append(lacked)
        assert len(case.on_host()) == 3, step
    assert lacks[0] > lacks[-1], lacks


def test_no_help():
    """What lacks does so whatever leaves: no more leave for that, but now and then."""
    net, most = model(), 0
    for step in range(5 * Lodging.REST):
        backward(net)
        if step == 0:
            case = Case(net)
        case.step()
        case.lodging.lack(3 << 20)
        case.lodging.pack()
        most = max(most, len(case.on_host()))
        net.zero_grad()
    assert case.lodging.start <= 6 << 20 and most <= 2, (case.lodging.start, most)


def test_little_lacks():
    net = model()
    backward(net)
    case = Case(net)
    case.step()
    for _ in range(40):
        case.lodging.lack(300 << 10)
        case.lodging.pack()
    assert not case.on_host() and not case.lodging.start


def test_kinds():
    """In steps of other sizes others leave, and none once where there was room for those that left."""
    net, (small, large) = model(), ((8, 16), (16, 16))
    backward(net)
    case = Case(net)
    leaving = lambda: (case.lodging.start, case.lodging.points)
    case.step(large)
    case.lodging.lack(3 << 20)
    case.lodging.pack()
    case.step(small)
    assert leaving() == (3 << 20, {}), "nothing is known of it yet"
    case.step(large)
    case.step(small)
    assert leaving() == (3 << 20, {}), "there was no room"
    case.fits = True
    case.step(large)
    case.fits = False
    assert leaving() == (3 << 20, {})
    case.step(small)
    assert leaving() == (0, {})
    case.lodging.lack(5 << 20)
    case.lodging.pack()
    assert leaving()[0] == 5 << 20
    case.step(large)
    assert leaving() == (3 << 20, {})
    case.fits = True
    case.step(small)
    case.step(small)
    assert leaving()[0] == 5 << 20, "it lacked once"
    assert len(case.lodging.plans) == 3 and case.lodging.plans[large][0] == 0
    case.fits = False
    case.lodging.begin_instead(small, large)
    assert leaving() == (0, {})
    case.lodging.begin_instead(large, (4, 16))
    assert leaving()[0] == 5 << 20, "as in the last step from which something left"
    case.lodging.begin_instead((4, 16), small)
    assert leaving() == (0, {}), "it saved nothing"


def test_vain():
    """Where there are no gradients they are looked for ever more seldom."""
    case, looks = Case(model()), []
    case.home.gradients = lambda: looks.append(0) or ()
    for _ in range(2):
        case.step()
        for _ in range(100):
            case.lodging.lack(2 << 20)
            case.lodging.pack()
    assert 2 <= len(looks) <= 16, len(looks)


def test_homing():
    net = model()
    backward(net)
    case, before = Case(net), [p.grad.clone() for p in net.parameters()]
    case.lodging.lack(1 << 30)
    case.lodging.pack()
    assert case.on_host() == [0, 2, 4]
    for step in range(Lodging.REST):
        case.step()
        assert case.on_host() == [0, 2, 4], "they would have to leave again"
    case.lodging.start, case.room = 0, 17 << 20
    parameter = net[0].weight.data
    case.lanes.host.add(case.memory.address(parameter))
    del parameter
    case.step()
    assert not case.on_host() and not case.memory.lies_on_host(net[0].weight)
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), before))
    case.home.lodge(1 << 30)
    case.relief.runtime.steps += Lodging.REST
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
