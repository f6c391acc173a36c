"""What compiled graphs save where memory is short, on a real PyTorch."""

import json
import os
import types

import torch
from gmswap_hook import partition
from torch import nn
from torch.nn import functional as F

from real import main

try:
    from torch._functorch import partitioners
except ImportError:
    partitioners = None
KNOWN = partitioners is not None and hasattr(partitioners, "choose_saved_values_set")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.LayerNorm(64)) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.sigmoid(layer(x))
        return x.square().mean()


class Attention(nn.Module):
    """Layers that draw random numbers, take parts out of tuples, and change buffers."""

    def __init__(self, d=32):
        super().__init__()
        self.into, self.out, self.norm, self.rows = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d), nn.BatchNorm1d(d)

    def forward(self, x):
        q, k, v = self.into(self.norm(x)).chunk(3, -1)
        seen = F.scaled_dot_product_attention(*(t.reshape(8, 4, 16, 8) for t in (q, k, v)))
        x = x + F.dropout(self.out(seen.reshape(128, 32)), 0.2)
        x = self.rows(F.gelu(x))
        first, which = x.sort(-1)
        return x + torch.cat([first.cumsum(-1)[:, 16:], x[:, :16]], 1) * which.remainder(2)


class Attended(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.layers = nn.Linear(64, 32), nn.ModuleList(Attention() for _ in range(4))

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return x.square().mean()


def trained(limit, used=0, steps=3, model=Model, library=None, margin=False):
    """Returns the gradients of a compiled model, and the bytes that its graph saves which are not parameters or inputs."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, saved, real = model(), [], partitioners.choose_saved_values_set
    chooser = partition.Partition(torch, partitioners, limit, library=library)
    chooser.PLACE, chooser.memory = "cpu", lambda: (limit, used)
    if margin:
        chooser.room, chooser.MARGIN = lambda info: limit, 1 << 40
    chooser.answers, ask = [], chooser.ask

    def asked(request):
        chooser.answers.append(json.loads(ask(request)))
        return json.dumps(chooser.answers[-1])

    chooser.ask = asked

    def choose(graph, info, memory_budget=1):
        values = chooser.choose(lambda share: real(graph, info, share), graph, info, memory_budget)
        saved.append(chooser.saved(values, info))
        return values

    partitioners.choose_saved_values_set = choose
    try:
        made = torch.compile(model, backend="aot_eager_decomp_partition", fullgraph=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(steps):
            torch.manual_seed(step)
            optimizer.zero_grad()
            made(torch.randn(128, 64)).backward()
            optimizer.step()
        return [p.grad for p in model.parameters()], sum(saved), chooser
    finally:
        partitioners.choose_saved_values_set = real


def test_partition():
    """A graph saves what there is room for, and its gradients are the same but for rounding. With room it saves what PyTorch has chosen."""
    if not KNOWN:
        return
    want, plain, chooser = trained(1 << 40)
    assert chooser.graphs == [] and chooser.stepped
    before = plain
    for limit in 3 << 20, 2 << 20, 1 << 20:
        got, saved, chooser = trained(limit)
        assert chooser.graphs == [(saved, plain)] and saved < before, (limit, saved, before)
        assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-7) for a, b in zip(got, want)), limit
        before = saved
    _, full, chooser = trained(1 << 40, used=(1 << 40) - (1 << 34))
    assert full < plain, "memory that is in use counts"


def test_planned():
    """The planner's choices keep to the limit by its estimate, less memory takes more time, and the gradients are the same but for rounding."""
    if not KNOWN or "GM_LIB" not in os.environ:
        return
    for model in Model, Attended:
        want, plain, _ = trained(1 << 40, model=model)
        _, _, chooser = trained(1, model=model, library=os.environ["GM_LIB"], margin=True)
        (answer,) = chooser.answers
        least, most, before = answer["peak"], answer["before"], 0
        assert 0 < least < most, answer
        for share in 3, 2, 1, 0:
            limit = least + (most - least) * share // 4
            got, saved, chooser = trained(limit, model=model, library=os.environ["GM_LIB"], margin=True)
            (answer,) = chooser.answers
            assert answer["peak"] <= limit and answer["ns"] >= before and answer["before"] == most, (limit, before, answer)
            assert chooser.graphs == [(saved, plain)], (saved, plain, chooser.graphs)
            assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(got, want)), (model, limit)
            before = answer["ns"]


def test_draws():
    """PyTorch's smaller shares may draw random numbers once more (pytorch#190758): they are not taken, without a planner either."""
    if not KNOWN:
        return
    want, plain, _ = trained(1 << 40, model=Attended)
    for limit in plain // 2, 1:
        got, _, _ = trained(limit, model=Attended)
        assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(got, want)), limit
    values, real = [], partitioners.choose_saved_values_set
    chooser = partition.Partition(torch, partitioners, 1)

    def choose(graph, info, memory_budget=1):
        values.append([chooser.draws_again(graph, info, real(graph, info, share)) for share in (1, 1e-6)])
        return real(graph, info, 1)

    partitioners.choose_saved_values_set = choose
    try:
        torch._dynamo.reset()
        torch.compile(Attended(), backend="aot_eager_decomp_partition")(torch.randn(128, 64)).backward()
    finally:
        partitioners.choose_saved_values_set = real
    assert values == [[False, True]], values


class Node(object):
    def __init__(self, meta):
        self.meta = meta


def test_sizes():
    """A graph for all sizes may be run with larger ones."""
    if not KNOWN:
        return
    sizes = lambda *shape: types.SimpleNamespace(inputs=[Node(meta={"val": types.SimpleNamespace(shape=shape)})])
    chooser = partition.Partition(torch, partitioners, 0)
    chooser.size = lambda node: 10
    varying = torch.SymInt.__new__(torch.SymInt)
    assert [chooser.saved(["a", "b"], sizes(*shape)) for shape in ((3, 4), (varying, 4))] == [20, 40]
    graph = types.SimpleNamespace(nodes=[])
    assert chooser.fewer(lambda share: ["a"], graph, sizes(varying), ["a", "b"], 1.0, 20) == ["a"] and chooser.graphs == [(10, 20)], chooser.graphs


def test_others():
    """Where PyTorch's module is another one nothing is changed; nor where nothing is moved."""
    environ = {"GM_LIB": "", "GMSWAP_DEVICE": "1000"}
    older = types.SimpleNamespace()
    partition.watch(older, environ)
    assert vars(older) == {}
    for name in "GMSWAP_DRY", "GMSWAP_ALL":
        same = types.SimpleNamespace(choose_saved_values_set=len, _size_of=len)
        partition.watch(same, dict(environ, **{name: "1"}))
        assert same.choose_saved_values_set is len
    changed = types.SimpleNamespace(choose_saved_values_set=len, _size_of=len, config=types.SimpleNamespace())
    partition.watch(changed, environ)
    assert changed.choose_saved_values_set is not len and changed.config.enable_autograd_cache is False


if __name__ == "__main__":
    main(globals())
