"""Steps of tensors that consist of others, on a real PyTorch: of matrices that two ranks share (DTensor), and of sequences of all lengths (jagged). What they
are made of is moved. What is done with them is done as often as the program says."""

import functools
import os
import tempfile

import torch
from torch import distributed, multiprocessing, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map

from real import main
from real_demand import Short
from real_family import started

RANKS, WIDTH, WORDS = 2, 32, 96


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.gate, self.down = nn.LayerNorm(WIDTH), *(nn.Linear(*sizes, bias=False) for sizes in ((32, 64), (32, 64), (64, 32)))

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Texts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.blocks = nn.ModuleList(Block() for _ in range(4))

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def split(model):
    """Has the ranks share a model's matrices, its words, and tokens between the matrices."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

    mesh, tokens = init_device_mesh("cpu", (RANKS,)), Shard(1)
    parallelize_module(model, mesh, {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=tokens),
        "head": ColwiseParallel(input_layouts=tokens, output_layouts=Shard(-1), use_local_output=False)})
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "norm": SequenceParallel(), "up": ColwiseParallel(input_layouts=tokens), "gate": ColwiseParallel(input_layouts=tokens),
            "down": RowwiseParallel(output_layouts=tokens)})
    return model


def texts(steps=12):
    """Returns the losses, and gradients of the last step."""
    from torch.distributed.tensor.parallel import loss_parallel

    torch.manual_seed(0)
    model, out, draw = split(Texts()), [], torch.Generator().manual_seed(0)
    for _ in range(steps):
        ids = torch.randint(0, WORDS, (2, 33), generator=draw)
        model.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
        out.append(float(loss.detach().full_tensor()))
    return out, [p.grad.to_local().tolist() for p in model.parameters()]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))

    def forward(self, x):
        q, k, v = (line(x).unflatten(-1, [4, WIDTH // 4]).transpose(1, 2) for line in self.lines)
        return x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)


def jagged(steps=12):
    torch.manual_seed(0)
    model, out = nn.Sequential(Block(), Attention(), Block(), Attention(), Block()), []
    for step in range(steps):
        torch.manual_seed(step)
        model.zero_grad()
        loss = model(torch.nested.nested_tensor([torch.rand(n, WIDTH) for n in (9, 4, 17)], layout=torch.jagged)).values().square().mean()
        loss.backward()
        out.append(float(loss.detach()))
    return out, [p.grad.tolist() for p in model.parameters()]


class Counted(torch.Tensor):
    """A tensor of a type of its own, with which a product is another, and which counts what is done with it."""

    count = 0

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        Counted.count += 1
        plain = lambda x: x.as_subclass(torch.Tensor) if isinstance(x, Counted) else x
        with torch._C._DisableTorchDispatch():
            result = function(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
            return result + 1 if function is torch.ops.aten.mul.Tensor else result


class Twice(nn.Module):
    def forward(self, x):
        return (x.as_subclass(Counted) * 2).as_subclass(torch.Tensor)


def counted(steps=8):
    torch.manual_seed(0)
    model, out = nn.Sequential(Block(), Twice(), Block(), Twice(), Block()), []
    for step in range(steps):
        torch.manual_seed(step)
        model.zero_grad()
        loss = model(torch.rand(24, WIDTH)).square().mean()
        loss.backward()
        out.append((float(loss.detach()), Counted.count))
        Counted.count = 0
    return out, [p.grad.tolist() for p in model.parameters()]


class Gathered(nn.Module):
    """Adds up what the ranks have made, in place."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        whole = self.line(x).tanh() * 2
        with torch.no_grad():
            others = whole.detach() * 1.0
            distributed.all_reduce(others)
        return x + whole * others


def gathered(steps=12):
    torch.manual_seed(0)
    model, out = nn.Sequential(*(Gathered() for _ in range(3))), []
    for step in range(steps):
        torch.manual_seed(2 * step + distributed.get_rank())
        model.zero_grad()
        loss = model(torch.rand(24, WIDTH)).square().mean()
        loss.backward()
        out.append(float(loss.detach()))
    return out, [p.grad.tolist() for p in model.parameters()]


def check(program):
    """What comes of a program is the same where it follows schedules, and where what is short is chosen on demand."""
    want = program()
    for how in "offload", "remake", "rows":
        h, ways = started(how, smallest=256)
        got = program()
        h.remove()
        assert got == want and ways[-4:] == 4 * ["planned"], (how, ways)
    short = Short(20000)
    short.hooked.runtime.smallest = short.hooked.settings.smallest = 256
    short.hooked.runtime.given_up = True  # no schedule is made
    got = program()
    short.remove()
    assert got == want


def rank(number, path):
    distributed.init_process_group("gloo", init_method="file://" + path, rank=number, world_size=RANKS)
    check(texts)
    check(gathered)
    h, model = started("offload")[0], split(Texts())
    model(torch.zeros(2, 8, dtype=torch.int64)).full_tensor().sum().backward()
    assert {p.to_local().untyped_storage()._cdata for p in model.parameters()} <= set(h.memory.ordinals), "what parameters consist of would be moved"
    h.remove()
    distributed.destroy_process_group()


def test_ranks():
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank, (os.path.join(folder, "ranks"),), RANKS)


test_jagged = functools.partial(check, jagged)


def test_other_types():
    check(counted)
    assert counted()[0][0][1] > 0


if __name__ == "__main__":
    main(globals())
