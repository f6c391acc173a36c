"""Records all that steps of small models do. The memory of the graph is compared with what storages tell when they go, and with what
PyTorch's allocator of the CPU counts; and the operators are run again in other orders that the graph allows: the same comes out, to the
bit."""

import json
import random
import sys
import types
import weakref

import torch
from torch import nn
from torch.nn import functional as F

import cpu
from gmswap_hook import complete, effects, hooks, ledger, operators, places, recorder

torch.set_num_threads(1)


class Memory(cpu.Memory):
    def __init__(self):
        super().__init__()
        self.counts = set()

    def here(self, x):
        """Returns whether a tensor is on the device: all are but for the counts of steps that optimizers keep on the host."""
        return super().here(x) and x.untyped_storage()._cdata not in self.counts


class Gauge(object):
    """Knows no times, and no memory but tensors."""

    def begin(self):
        pass

    def end(self, begin, function, args, kwargs, result):
        pass

    def results(self, measured):
        return [(1, None)] * len(measured)


class Alive(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the bytes of storages that are alive: each tells by itself when it goes."""

    def __init__(self, memory):
        super().__init__()
        self.memory, self.known, self.bytes, self.peak = memory, set(), 0, 0

    def add(self, t):
        if self.memory.here(t):
            storage = t.untyped_storage()
            key, nbytes = storage._cdata, storage.nbytes()
            if key not in self.known:
                self.known.add(key)
                self.bytes += nbytes
                weakref.finalize(storage, self.gone, key, nbytes)

    def gone(self, key, nbytes):
        self.known.remove(key)
        self.bytes -= nbytes

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for t in effects.tensors(torch, (args, kwargs, result)):
            self.add(t)
        self.peak = max(self.peak, self.bytes)
        return result


class Program(object):
    """Trains a model."""

    def __init__(self, model, shape, optimizer, classes=0, zero="begin"):
        torch.manual_seed(0)
        self.model, self.shape, self.classes, self.zero = model(), shape, classes, zero
        self.optimizer = optimizer(self.model.parameters())

    def loss(self, x):
        y = self.model(x)
        return F.cross_entropy(y, torch.arange(len(y)) % self.classes) if self.classes else y.pow(2).mean()

    def step(self):
        x = torch.randn(*self.shape)
        if self.zero == "begin":
            self.optimizer.zero_grad()
        loss = self.loss(x)
        if self.zero == "middle":
            self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.zero == "kept":
            self.optimizer.zero_grad(set_to_none=False)

    def lasting(self):
        yield from self.model.buffers()
        for p in self.model.parameters():
            yield p
            if p.grad is not None:
                yield p.grad
        for state in self.optimizer.state.values():
            yield from (t for t in state.values() if isinstance(t, torch.Tensor))

    def counts(self):
        return {s["step"].untyped_storage()._cdata for s in self.optimizer.state.values() if isinstance(s.get("step"), torch.Tensor)}


def mlp():
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.ReLU(inplace=True), nn.LayerNorm(256), nn.Linear(256, 10))


def conv():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.SiLU(),
                         nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten(), nn.Linear(8 * 64, 10))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layer = nn.Embedding(100, 32), nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

    def forward(self, x):
        tokens = (x.abs() * 40).long().clamp(max=99)
        return F.linear(self.layer(self.embedding(tokens)), self.embedding.weight)


class Branches(nn.Module):
    """Draws random numbers in branches that nothing else keeps in order."""

    def __init__(self):
        super().__init__()
        self.branches, self.dropout = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)]), nn.Dropout(0.5)

    def forward(self, x):
        return sum(self.dropout(branch(x)) for branch in self.branches)


def adam(parameters):
    return torch.optim.Adam(parameters, foreach=False)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False)


PROGRAMS = {
    "mlp": lambda: Program(mlp, (32, 64), adam, 10),
    "mlp, gradients stay": lambda: Program(mlp, (32, 64), sgd, 10, zero="kept"),
    "mlp, gradients go behind the forward pass": lambda: Program(mlp, (32, 64), sgd, zero="middle"),
    "conv": lambda: Program(conv, (4, 3, 16, 16), adam, 10),
    "branches": lambda: Program(Branches, (8, 64), sgd, 10),
    "tied": lambda: Program(Tied, (4, 16), adam),
}


class Book(ledger.Ledger):
    """Notes calls in full, and what memory held when the step began, so that the step can be run again."""

    def begin(self):
        super().begin()
        self.calls, self.found = [], {}
        self.generator = torch.get_rng_state()

    def storages(self, tensors, made):
        met = super().storages(tensors, made)
        for s in met if made == ledger.BEFORE else ():
            if s.made == ledger.BEFORE and s not in self.found:
                self.found[s] = next(self.bytes(t).clone() for t in tensors if self.memory.here(t) and t.untyped_storage()._cdata == s.key)
        return met

    def bytes(self, t):
        return torch.empty(0, dtype=torch.uint8).set_(t.untyped_storage())

    def note(self, call, arguments, given, results, measured):
        count = len(self.ops)
        super().note(call, arguments, given, results, measured)
        if len(self.ops) > count:
            self.calls.append((call.function, self.without(call.args), self.without(call.kwargs), [self.without(t) for t in results]))

    def without(self, x):
        return operators.mapped(x, self.described)

    def described(self, x):
        if isinstance(x, torch.Tensor) and self.memory.here(x):
            return self.live[x.untyped_storage()._cdata], x.dtype, x.storage_offset(), x.size(), x.stride()
        return x.clone() if isinstance(x, torch.Tensor) else x

    def again(self, order):
        """Runs the operators in another order. Returns the contents of what lasts."""
        memory = {s: contents.clone().untyped_storage() for s, contents in self.found.items()}

        def given(x):
            if isinstance(x, tuple) and x and isinstance(x[0], ledger.Storage):
                s, dtype, offset, size, stride = x
                return torch.empty(0, dtype=dtype).set_(memory[s], offset, size, stride)
            if isinstance(x, (list, tuple)):
                return type(x)(given(y) for y in x)
            return x

        torch.set_rng_state(self.generator)
        with torch.no_grad():
            for i in order:
                function, args, kwargs, results = self.calls[i]
                made = effects.tensors(torch, function(*given(args), **{k: given(v) for k, v in kwargs.items()}))
                for t, described in zip(made, results):
                    if isinstance(described, tuple):
                        memory[described[0]] = t.untyped_storage()
        return {s.key: bytes(memory[s]) for s in self.found if s.lasts()}


def recorded(program):
    """Returns the book and the graph of a step, and the peak of the step before it, which does the same, as storages tell it."""
    memory, where = Memory(), places.Places(torch)
    where.know(program.model)
    for m in program.model.modules():
        m.register_forward_pre_hook(lambda m, args: where.enter(m))
        m.register_forward_hook(lambda m, args, out: where.leave())
    book = Book(memory, where, Gauge())
    program.optimizer.register_step_pre_hook(lambda *_: book.update())
    program.step()
    memory.counts = program.counts()
    memory.note_storages(program.model)
    alive = Alive(memory)
    for t in program.lasting():
        alive.add(t)
    with alive:
        program.step()
    book.storages(list(program.lasting()), ledger.BEFORE)
    where.begin()
    book.begin()
    book.open()
    program.step()
    book.close()
    assert book.wrong is None, book.wrong
    return book, complete.Complete(book, complete.Names(memory, [program.model], [program.optimizer])).graph(), alive.peak


def live(graph):
    """Returns the bytes of tensors that live at each operator."""
    change = [0] * (len(graph["ops"]) + 1)
    for t in graph["tensors"]:
        change[t["made"]] += t["bytes"]
        change[t["uses"][-1] + 1] -= t["bytes"]
    return [sum(change[:i + 1]) for i in range(len(graph["ops"]))]


def allocated(step):
    """Returns the most bytes that a step takes of the allocator beyond what there was before."""
    with torch.autograd.profiler.profile(profile_memory=True) as profile:
        step()
    events = [e for e in profile.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for e in sorted(events, key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    return most


def edges(graph):
    """Returns the pairs of operators that keep their order."""
    touched = {}  # by tensor or state: the operators, and whether they change it
    for i, t in enumerate(graph["tensors"]):
        touched[i] = [(t["made"], True)] + [(u, u in t["changed"]) for u in t["uses"] if u != t["made"]]
    for i, op in enumerate(graph["ops"][1:], 1):
        for name in op["reads"]:
            touched.setdefault(name, []).append((i, False))
        for name in op["changes"]:
            touched.setdefault(name, []).append((i, True))
    return {(a, b) for who in touched.values() for n, (b, second) in enumerate(who) for a, first in who[:n] if first or second}


def orders(graph, seed):
    """Yields operators in a random order that keeps the order of these pairs, but for the first, which stands for what is there before."""
    rng, before, after = random.Random(seed), [0] * len(graph["ops"]), [[] for _ in graph["ops"]]
    for a, b in edges(graph):
        before[b] += 1
        after[a].append(b)
    ready = [i for i, n in enumerate(before) if n == 0]
    while ready:
        i = ready.pop(rng.randrange(len(ready)))
        if i:
            yield i - 1
        for b in after[i]:
            before[b] -= 1
            if before[b] == 0:
                ready.append(b)


def test(name, program):
    book, graph, alive = recorded(program)
    peak = max(n + op["base"] for n, op in zip(live(graph), graph["ops"]))
    assert peak == alive, "%s: the graph's peak is %d, %d were alive" % (name, peak, alive)
    left = {s.key: bytes(book.bytes(t).untyped_storage()) for t in program.lasting() if book.memory.here(t)
            for s in (book.live[t.untyped_storage()._cdata],) if s.lasts()}
    for seed in range(5):
        order = list(orders(graph, seed))
        assert sorted(order) == list(range(len(book.calls))) and order != sorted(order), "%s: the order %s" % (name, order)
        again = book.again(order)
        assert left and all(again[key] == contents for key, contents in left.items()), "%s: order %d gives other results" % (name, seed)
    if not live(graph)[0]:  # the allocator's count begins with the step
        counted = allocated(program.step)
        assert peak - graph["ops"][0]["base"] == counted, "%s: the graph's peak is %d, the allocator counted %d" % (name, peak, counted)
    return "%d operators, %d" % (len(book.calls), peak)


def test_recorder(name):
    """Trains with the hook and without, and looks at what the hook asks for after the third step."""
    plain = PROGRAMS[name]()
    for _ in range(5):
        plain.step()
    program, requests = PROGRAMS[name](), []
    library = types.SimpleNamespace(plan=lambda request: requests.append(json.loads(request)))
    hooked = hooks.Hooks(torch, recorder.Recorder(Memory(), types.SimpleNamespace(record="g.parquet"), library))
    for _ in range(5):
        program.step()
    assert hooked.handles == [] and torch.utils._python_dispatch._get_current_dispatch_mode() is None, "the hook is there still"
    assert all(map(torch.equal, program.lasting(), plain.lasting())), "%s: the hook changes what comes out" % name
    assert len(requests) == 1, "%d requests" % len(requests)
    graph = requests[0]["graph"]
    named = {(op["phase"], op["name"]) for op in graph["ops"][1:]}
    for expected in ((0, "0 addmm"), (1, "0 mm"), (1, "4 native_layer_norm_backward"), (2, "0.weight add_")):
        assert expected in named, "%s: no %s among %s" % (name, expected, sorted(named))
    changed = {state for op in graph["ops"][1:] for state in op["changes"]}
    for expected in ("parameter 0.weight", "state momentum_buffer 0.weight", "gradient 0.weight", "random cpu"):
        assert expected in changed, "%s: no %s among %s" % (name, expected, sorted(changed))
    return "%d operators" % len(graph["ops"])


if __name__ == "__main__":
    if not hasattr(torch._C, "_current_autograd_node"):
        print("PyTorch %s has no storages that tell when they go" % torch.__version__)
        sys.exit()
    for name, make in PROGRAMS.items():
        print("%s: %s" % (name, test(name, make())))
    print("the hook: %s" % test_recorder("mlp, gradients stay"))
