"""Parameters that wait on the host, on a real PyTorch: the same tensors, on the device while their modules run."""

import copy
import io
import types

import real_kinds
import torch
from gmswap_hook import stepping
from torch import nn

from real import main
from real_home import WIDTH, model
from weighed import BYTES, Lodged, Weighed, train, watched


def test_those_without_use_first():
    net = model()
    case = Weighed(net, unused=[net[1]])
    case.step(1 << 19)
    assert not case.waiting(), "too little lacked"
    case.step(BYTES)
    assert case.waiting() == ["1.weight"] and case.renewed == 1
    case.step(2 * BYTES)
    assert case.waiting() == ["1.weight"], "more wait some steps later"
    for _ in range(4):
        case.step(BYTES // 2)
    assert case.waiting() == ["0.weight", "1.weight"] and case.renewed == 2
    assert case.weights.nbytes == 2 * BYTES


def test_no_help():
    """They come home where as much lacks as before, and it is tried ever more seldom."""
    case, waited = Weighed(model()), []
    for step in range(300):
        case.step(BYTES)
        if case.waiting():
            waited.append(step)
    assert waited == [*range(4), *range(68, 72), *range(200, 204)], waited


def test_they_train_as_before():
    net, plain = model(), model()
    case = Weighed(net)
    seen, host = [watched(m, case) for m in net], []

    def between(i):
        case.step(2 * BYTES if i == 2 else 0)
        host.append(case.waiting())

    held = [p for p in net.parameters()]
    assert train(net, 8, between) == train(plain, 8)
    assert not host[1] and len(host[2]) == 2 and host[2] == host[7]
    assert seen == [[False] * 8] * 3, "on the device while they run"
    assert all(a is b for a, b in zip(held, net.parameters()))
    for a, b in zip(net.parameters(), plain.parameters()):
        assert torch.equal(a, b) and torch.equal(a.grad, b.grad)
    assert len(case.waiting()) == 2


def test_they_come_home():
    case = Weighed(model())
    case.step(BYTES)
    assert len(case.waiting()) == 1
    for _ in range(8):
        case.step()
    assert len(case.waiting()) == 1, "there would be no room"
    case.fits = True
    case.step()
    assert not case.waiting() and case.renewed == 2 and not case.weights.nbytes
    case.step(BYTES)
    assert len(case.waiting()) == 1, "and may wait once more"


def test_they_come_home_where_larger_steps_have_room():
    """Steps with short inputs do not have them come home, which those with long ones would send away again."""
    case = Weighed(model())
    case.relief.spacious = lambda more: case.relief.most + more <= 20 * BYTES
    case.relief.most = 21 * BYTES + 1
    case.step(2 * BYTES)
    assert len(case.waiting()) == 2, "there is room for 20 of 21"
    case.relief.most = 2 * BYTES
    for _ in range(case.weights.PAST - 1):
        case.step()
        assert len(case.waiting()) == 2
    case.step()
    assert not case.waiting(), "no large step came for long"
    case.relief.most = 20 * BYTES
    case.step(2 * BYTES)
    case.relief.most = 2 * BYTES
    case.step()
    assert len(case.waiting()) == 2
    case.step()
    assert not case.waiting(), "the large one would have had room with them"


def test_steps_of_several_kinds():
    """That they wait is judged by steps of the kind that lacked, and those count that others come between."""
    case = Weighed(model())
    case.weights.LATER = 3
    for _ in range(2):
        case.step(BYTES, kind=(8,))
        case.step(kind=(4,))
        assert not case.waiting()
    case.step(BYTES, kind=(8,))
    assert len(case.waiting()) == 1
    for _ in range(6):
        case.step(kind=(2,))
        case.step(BYTES, kind=(4,))
        assert len(case.waiting()) == 1, "other kinds tell nothing, and no more wait before it shows"
    case.step(BYTES, kind=(8,))
    assert not case.waiting(), "it was no help"
    for _ in range(case.weights.REST):
        case.step()
    for waiting in 0, 0, 1:
        case.step(BYTES)
        assert len(case.waiting()) == waiting, "counted anew"


def test_kinds_that_do_not_come_again():
    case, waited = Weighed(model()), []
    for step in range(100):
        case.step(BYTES, kind=(step,))
        waited.append(len(case.waiting()))
    after = case.weights.APART + case.weights.OTHERS
    assert waited[:after] == [1] * after and not any(waited[after + 1: after + case.weights.REST]), waited
    case = Weighed(model())
    case.step(3 * BYTES, kind=(1,))
    for kind in 2, 2, 2, 2, 1:
        case.step(BYTES, kind=(kind,))
    assert len(case.waiting()) == 3, "it was a help in its kind"
    case = Weighed(model())
    case.step(3 * BYTES, kind=(1,))
    for kind in 2, 2, 2, 2:
        case.step(BYTES, kind=(kind,))
    case.step(3 * BYTES, kind=(1,))
    assert not case.waiting(), "all come home, though another kind had lacked, too"


class Changes(nn.Linear):
    """A module that changes its weight amid its forward pass, or keeps something of it."""

    how, kept, calls = None, None, 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 3 and self.how is not None:
            self.how(self)
        return super(Changes, self).forward(x)


def with_no_grad(m):
    with torch.no_grad():
        m.weight.mul_(0.5)


def by_data(m):
    m.weight.data.mul_(0.5)


def of_another(m):
    m.weight.data = torch.full((WIDTH, WIDTH), 0.01)


def keeps_data(m):
    m.kept = m.weight.data if m.kept is None else m.kept.mul_(0.5)


def keeps_detached(m):
    m.kept = m.weight.detach() if m.kept is None else m.kept.mul_(0.5)


def keeps_view(m):
    with torch.no_grad():
        if m.kept is None:
            m.kept = m.weight.view(-1)
        m.bias.fill_(m.kept[0].item())  # which is to follow the weight


def test_modules_that_change_them():
    for how in with_no_grad, by_data, of_another, keeps_data, keeps_detached, keeps_view:
        nets = []
        for _ in range(2):
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(WIDTH, WIDTH), Changes(WIDTH, WIDTH))
            net[1].how = how
            nets.append(net)
        case = Weighed(nets[0])
        between = lambda i: case.step(2 * BYTES if i == 1 else 0)
        found, expected = train(nets[0], 9, between), train(nets[1], 9)
        assert found == expected, (how.__name__, found, expected)
        for a, b in zip(nets[0].parameters(), nets[1].parameters()):
            assert torch.equal(a, b), how.__name__
        assert case.waiting() == ["0.weight"], (how.__name__, case.waiting())


def transposes(m):
    m.weight.data = m.weight.detach().t()


def writes_storage(m):
    m.weight.untyped_storage().copy_((m.weight * 0.5).untyped_storage())


def test_layouts_and_storages():
    """A module that gives its weight another layout, and one that writes to it in each call by a way that counts nowhere."""
    for how in transposes, writes_storage:
        nets = []
        for _ in range(2):
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(WIDTH, WIDTH), Changes(WIDTH, WIDTH))
            net[1].how, net[1].calls = how, 9
            nets.append(net)
        case = Weighed(nets[0])
        found, expected = train(nets[0], 6, lambda i: case.step(2 * BYTES if i == 1 else 0)), train(nets[1], 6)
        assert found == expected, (how.__name__, found, expected)
        assert case.waiting() == ["0.weight"], how.__name__


class Gives(nn.Module):
    """A module that returns its parameter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH, WIDTH))

    def forward(self):
        return self.weight.t()


def test_results():
    """What a module returns of its weight is changed, and read behind the update."""
    def trained(between=lambda i: None):
        def run(x):
            w = net[0]()
            with torch.no_grad():
                w.div_(w.norm(dim=1, keepdim=True))
            views.append(w.detach())
            sums.append(float(views[-2][:9].sum()) if len(views) > 1 else 0.0)
            return net[1](x @ w)

        torch.manual_seed(0)
        net, views, sums = nn.Sequential(Gives(), nn.Linear(WIDTH, WIDTH)), [], []
        case = Weighed(net) if between is None else None
        step = (lambda i: case.step(2 * BYTES if i == 1 else 0)) if case else between
        return train(net, 6, step, run), sums, case and case.waiting()

    found, want = trained(None), trained()
    assert found[:2] == want[:2] and found[2] == ["1.weight"], (found, want)


def test_graphs():
    """Where a CUDA graph may know addresses they stay as they are."""
    net = model()
    case = Weighed(net)
    case.step(2 * BYTES)
    seen, waits = [watched(m, case) for m in net], case.waiting()
    case.home.library.had_pools = lambda device: True
    case.fits = True
    with torch.no_grad():
        for _ in range(4):
            case.step()
            net(torch.rand(4, WIDTH))
    assert case.waiting() == waits and sorted(seen) == [[False] * 4, [True] * 4, [True] * 4]
    case.home.library.had_pools = lambda device: False

    def capture(x):
        case.memory.capturing = lambda: True
        return x

    kept = net[1].forward
    net[1].forward = lambda x: kept(capture(x))
    with torch.no_grad():
        net(torch.rand(4, WIDTH))
    assert "1.weight" not in case.waiting(), "it is as the graph knows it"


def test_errors_of_the_program():
    """A module that changes its weight and raises an error, with hooks of the program's."""
    net = model()
    case = Weighed(net)
    case.step(3 * BYTES)

    def fails(x):
        with torch.no_grad():
            net[1].weight.mul_(0.5)
        raise ValueError("of the program")

    net[1].forward = fails
    net[1].register_forward_hook(lambda module, args, output: None)
    for _ in range(2):
        try:
            net(torch.rand(4, WIDTH))
            raise AssertionError("no error")
        except ValueError:
            pass
        case.step()
    assert "1.weight" not in case.waiting()


def test_aliases():
    """What the program holds of a parameter's memory is changed amid a module's forward pass."""
    def trained(lodges):
        net = model()
        case, kept = Weighed(net) if lodges else None, {}
        kept_forward = net[1].forward

        def forward(x):
            if kept:
                with torch.no_grad():
                    kept["1.weight"].mul_(0.9)
            return kept_forward(x)

        def between(i):
            if case:
                case.step(3 * BYTES if i == 1 else 0)
            if i == 3:
                kept.update(net.state_dict())

        net[1].forward = forward
        return train(net, 6, between), case and len(case.waiting())

    found, want = trained(True), trained(False)
    assert found[0] == want[0] and found[1] == 3, (found, want)


def test_inference():
    """Parameters that count no versions do not wait, and none has a copy where nothing counts them."""
    with torch.inference_mode():
        net = model()
    case = Weighed(net)
    case.memory.lies_on_host, case.weights.there = lambda t: True, -1
    case.weights.adopt()
    assert not case.weights.nbytes
    net, plain = model(), model()
    case = Weighed(net)
    case.step(3 * BYTES)
    seen = watched(net[0], case)
    with torch.inference_mode():
        assert torch.equal(net(torch.ones(4, WIDTH)), plain(torch.ones(4, WIDTH)))
    assert len(case.waiting()) == 3 and seen == [True]


def test_changes_before_the_backward_pass():
    """By .data, which no version tells of: gradients are of the new contents."""
    def trained():
        torch.manual_seed(0)
        net, losses = nn.Sequential(*(real_kinds.Block() for _ in range(3))), []
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for i in range(14):
            torch.manual_seed(i)
            loss = net(torch.rand(8, 12, real_kinds.WIDTH)).mean()
            if i > 8:
                net[2][3].weight.data.mul_(0.9)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
        return losses

    want = trained()
    lodged = Lodged(1 << 40)
    got = trained()
    lodged.remove()
    assert lodged.ever and got == want


def test_shared_modules():
    """One that is run twice in a step, and a weight of two modules."""
    def run(net):
        return lambda x: net[2](net[1](net[0](net[0](x)))) + net[1](x)

    nets = [model() for _ in range(2)]
    for net in nets:
        net[2].weight = net[0].weight
    case = Weighed(nets[0])
    found = train(nets[0], 6, lambda i: case.step(3 * BYTES if i == 1 else 0), run(nets[0]))
    assert found == train(nets[1], 6, run=run(nets[1]))
    assert len(case.waiting()) == 2


def test_retained_graphs():
    """What holds the copy of an earlier step, as a loss that the program keeps does, holds the parameter's memory."""
    nets, kept = [model() for _ in range(2)], []
    case = Weighed(nets[0])
    keeps = lambda net: lambda x: kept.append(net(x)) or kept[-1]
    found = train(nets[0], 6, lambda i: case.step(3 * BYTES if i == 1 else 0), keeps(nets[0]), moves=False)
    assert found == train(nets[1], 6, run=keeps(nets[1]), moves=False)
    assert case.waiting() == ["0.weight"], "of which nothing is saved"


@torch.no_grad()
def test_exceptions():
    net = model()
    case = Weighed(net)
    case.step(3 * BYTES)
    assert len(case.waiting()) == 3
    net[1].forward = lambda x: 1 // 0
    for _ in range(2):
        try:
            net(torch.rand(4, WIDTH))
        except ZeroDivisionError:
            pass
    assert len(case.waiting()) == 3


@torch.no_grad()
def test_embeddings():
    """They stay where they are: a few rows are read."""
    net = nn.Sequential(nn.Embedding(4096, 256), nn.Linear(256, 4096, bias=False))
    case = Weighed(net)
    seen = [watched(m, case) for m in net]
    case.home.move([net[0].weight], host=True)
    case.weights.adopt()
    case.step(2 * BYTES)
    net(torch.arange(8))
    assert len(case.waiting()) == 2 and seen == [[True], [False]]
    other = nn.Sequential(nn.Embedding(4096, 256))
    case = Weighed(other)
    case.step(2 * BYTES)
    assert not case.waiting()


def test_unseen_uses():
    """What a program uses without a call of its module, or with a gradient that no operator of a model has shown, stays."""
    net = model()
    net[0].weight.requires_grad_(False)
    case = Weighed(net, unused=list(net))
    case.memory.ran.add(0)
    hook = stepping.Stepping(torch)
    store = stepping.Store(types.SimpleNamespace(memory=case.memory, lanes=None, steps=1, settings=types.SimpleNamespace(smallest=0, window=1)), hook)
    net[1].weight.grad = torch.ones(WIDTH, WIDTH)
    store.note_gradients(torch.optim.SGD(net.parameters()))
    case.step(9 * BYTES)
    assert case.waiting() == ["2.weight"]


@torch.no_grad()
def test_copies_and_files():
    net = model()
    case = Weighed(net)
    case.step(3 * BYTES)
    x = torch.rand(4, WIDTH)
    other = copy.deepcopy(net)
    assert torch.equal(other(x), net(x)) and len(case.waiting()) == 3
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    third = model()
    third.load_state_dict(torch.load(file))
    assert torch.equal(third(x), net(x))
    net.load_state_dict(other.state_dict())
    assert len(case.waiting()) == 3
    net.half()
    assert not case.waiting() and net(x.half()).dtype == torch.half


def test_others_stay():
    net = model(nn.Linear(8, 8))
    view, case = net[0].weight.detach(), Weighed(net)
    case.memory.addresses[net[1].weight.untyped_storage()._cdata] = case.memory.weak(net[1].weight.untyped_storage())
    case.step(9 * BYTES)
    assert case.waiting() == ["2.weight"] and view is not None
    for owner, name, value in (case.relief, "lends", False), (case.home.library, "had_pools", lambda device: True), (case.relief.runtime.step, "strays", True):
        net = model()
        case = Weighed(net)
        owner = {id(case): case}.get(id(owner), owner)
        setattr({"lends": case.relief, "had_pools": case.home.library, "strays": case.relief.runtime.step}[name], name, value)
        case.step(BYTES)
        assert not case.waiting(), name


def test_no_room_on_the_device():
    net, plain = model(), model()
    case = Weighed(net)
    seen = [watched(m, case) for m in net]
    case.step(3 * BYTES)
    real, case.memory.lies_on_host = case.memory.lies_on_host, lambda t: True
    assert train(net, 2) == train(plain, 2)
    case.memory.lies_on_host = real
    assert len(case.waiting()) == 3 and seen[0] == [True, True]


def test_ahead():
    """A parameter is copied ahead of need in the order of the step before, and anew if it changes meanwhile."""
    class Sets(nn.Module):
        how = None

        def forward(self, x):
            if self.how is not None:
                self.how()
            return x

    def nets():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), Sets(), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH))

    def halve(p, how):
        with torch.no_grad():
            (p if how == "seen" else p.data).mul_(0.5)

    for how in None, "seen", "unseen":
        net, plain, used = nets(), nets(), []
        case = Weighed(net)
        stands = case.weights.stands
        fetched, arrived = stands.fetch, stands.arrived
        stands.fetch = lambda weight: fetched(weight) or used.append(("ahead", stands.ahead is not None))
        stands.arrived = lambda weight: note(used, weight, arrived(weight))

        def between(i, net=net, case=None):
            if case is not None:
                case.step(3 * BYTES if i == 1 else 0)
            net[1].how = (lambda: halve(net[2].weight, how)) if how and i == 4 else None

        found = train(net, 7, lambda i: between(i, net, case))
        assert found == train(plain, 7, lambda i: between(i, plain)), how
        assert len(case.waiting()) == 3
        assert used.count(("ahead", True)) >= 8 and used.count(("used", True)) == used.count(("ahead", True)) - (how is not None), (how, used)


def note(used, weight, copy):
    if weight is not None:
        used.append(("used", copy is not None))
    return copy


def test_adopted():
    """Parameters that found no room when they were made."""
    net, plain = model(), model()
    case = Weighed(net)
    seen = watched(net[1], case)
    case.home.move([net[1].weight], host=True)
    assert case.waiting() == ["1.weight"]
    case.weights.adopt()
    assert case.weights.nbytes == BYTES and case.renewed == 1
    case.weights.adopt()
    assert case.weights.nbytes == BYTES and case.renewed == 1
    assert train(net, 3) == train(plain, 3) and seen == [False] * 3


def test_kinds():
    """Programs that use PyTorch in many ways compute the same."""
    for name in ("gates", "packed_gates", "tree", "shared", "frozen", "rebuilt", "retyped", "exchanged", "failing", "adversaries", "functions", "parts_of_gradients",
                 "selective", "watched_for_errors", "indexed", "clipped_words", "tied", "attentive", "parametrized", "quantized"):
        program = getattr(real_kinds, name)
        torch.manual_seed(0)
        want = program()
        for limit in 9000, 1 << 40:
            torch.manual_seed(0)
            lodged = Lodged(limit)
            got = program()
            lodged.remove()
            assert got == want and (lodged.ever > 0) == (name != "attentive"), (name, limit)  # whose layers PyTorch may run another way


if __name__ == "__main__":
    main(globals())
