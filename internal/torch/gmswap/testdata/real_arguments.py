"""What is recomputed of arguments that modules are given, on a real PyTorch."""

import contextlib
import threading

import plans
import torch
from gmswap_hook import arguments, graph, watched
from torch import nn

from cpu import Hooked
from real import Program, main
from real_origins import equal

WIDTH, HEADS = 32, 2


class Attention(nn.Module):
    """Attention put together of single operators, which save no mask."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.scale = (WIDTH // HEADS) ** -0.5

    def forward(self, x, mask):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.attend(q, k, v, mask).transpose(1, 2).flatten(2))

    def attend(self, q, k, v, mask):
        return ((q @ k.transpose(-1, -2)) * self.scale + mask).softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self, named):
        super().__init__()
        self.attention, self.up, self.down, self.named = Attention(), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH), named

    def forward(self, x, mask):
        x = x + (self.attention(x, mask=mask) if self.named else self.attention(x, mask))
        return x + self.down(torch.tanh(self.up(x)))


class Masked(nn.Module):
    """Its masks are made in a way that nothing repeats, and are others in each step."""

    def __init__(self, named=False, layers=3, repeats=True):
        super().__init__()
        self.layers, self.repeats, self.random = nn.ModuleList(Layer(named) for _ in range(layers)), repeats, torch.Generator()

    def mask(self, x):
        b, n = x.shape[:2]
        hidden = torch.rand(b, 1, 1 if self.repeats else n, n, generator=self.random) < 0.3
        return torch.zeros(hidden.shape).masked_fill(hidden, -1e9).expand(b, 1, n, n)

    def forward(self, x):
        self.last = mask = self.mask(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Trained(Program):
    def __init__(self, shape=lambda step: (4, 16, WIDTH), **how):
        torch.manual_seed(0)
        super().__init__(Masked(**how))
        self.shape = shape

    def batch(self, step, shape=None):
        self.model.random.manual_seed(step)
        return super().batch(step, self.shape(step))


def trained(make, steps, between=lambda program: None):
    program = make()
    for step in range(steps):
        program.step(step)
        between(program)
    return program.out


@contextlib.contextmanager
def only_softmax():
    """Has schedules recompute what softmax made alone: the mask is needed for that."""
    graph_of, may_be = watched.Watched.graph, plans.Planner.may_be_remade

    def graph(self, recipes):
        told = graph_of(self, recipes)
        for tensor, recipe in zip(told["tensors"], recipes):
            tensor["softmax"] = recipe is not None and "softmax" in recipe.chain.made[-1].call.name
        return told

    watched.Watched.graph, plans.Planner.may_be_remade = graph, lambda self, t, at: t["softmax"] and may_be(self, t, at)
    try:
        yield
    finally:
        watched.Watched.graph, plans.Planner.may_be_remade = graph_of, may_be


def compared(make, steps=14, between=lambda program: None, how="remake"):
    """Trains with all recomputed that softmax made, and returns the hook, and the operators that make each entry again, None for none."""
    with only_softmax():
        return compared_all(make, steps, between, how)


def compared_all(make, steps, between, how):
    want, hooked = trained(make, steps, between), Hooked(how)
    got = trained(make, steps, between)
    schedule, held = hooked.runtime.schedule, hooked.memory.small.arguments
    assert not held.kept and not held.handles, "none is held behind a forward pass"
    hooked.remove()
    assert equal(got, want), "other losses or gradients"
    return hooked, [r and [m.call.name for m in r.chain.made] for r in getattr(schedule, "recipes", ())]


def copies(make):
    """Returns how many copies are held at a time, and what compared does."""
    counts, real = [], arguments.Arguments.release
    arguments.Arguments.release = lambda self: counts.append(len(self.copies)) or real(self)
    try:
        made = compared(make)[1]
        return max(counts), made
    finally:
        arguments.Arguments.release = real


def test_mask():
    """What attention saves is recomputed of the step's own mask, whether it is given by its place or its name, and repeated or not."""
    for how in {}, {"named": True}, {"repeats": False}:
        most, made = copies(lambda: Trained(**how))
        assert sum(bool(names) and names[-1] == "_softmax" for names in made) == 3, (how, made)
        assert most == 1, "one that several layers are given is held once"


def test_attention():
    """Attention's own numbers, for what its mask hides, are the same in each step."""

    class Fused(Masked):
        def mask(self, x):
            return super().mask(x) == 0

    class Hidden(Trained):
        def __init__(self):
            super().__init__()
            self.model.__class__ = Fused
            for layer in self.model.layers:
                layer.attention.attend = fused

    def fused(q, k, v, mask):
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
            return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    _, made = compared(Hidden)
    assert sum(bool(names) and names[-1] == "_safe_softmax" for names in made) == 3, made


def test_sizes():
    """The same in steps of other lengths."""
    recorded, real = [], graph.Recording.recipes_of
    graph.Recording.recipes_of = lambda self, watched: recorded.append(watched) or real(self, watched)
    hooked, _ = compared(lambda: Trained(lambda step: (4, 8 * (1 + step % 3), WIDTH)), 24)
    graph.Recording.recipes_of = real
    planner = hooked.runtime.planner
    assert hooked.library.remade and hooked.memory.small.arguments.wanted
    for watched in planner.timed, recorded[0]:
        n, model = watched.step.dims[1], planner.family.model
        told = model.sized(model.extent.place(watched.sizes[model.extent.first]).share())["scratch"]
        assert max(told) >= 2 * 4 * HEADS * n * n * 4, "no less is told of than the scores take, twice"


def test_written():
    """A program may write to its mask once the model has had it, or for the next step."""

    class Writing(Trained):
        def loss(self, x):
            loss = super().loss(x)
            self.model.last.zero_()
            return loss

    _, made = compared(lambda: Writing(repeats=False))
    assert any(names and names[-1] == "_softmax" for names in made), made


def test_evaluation():
    """Calls without gradients do not count, nor those of a copy of the model."""

    def evaluate(program):
        with torch.no_grad():
            program.model(torch.zeros(2, 16, WIDTH))

    compared(Trained, between=evaluate)


class Around(Trained):
    """Calls parts of its model by themselves, and the model again where it has failed."""

    def __init__(self, **how):
        super().__init__(**how)
        self.before, self.fails, self.now = nn.Linear(WIDTH, WIDTH), False, 0
        self.model.layers[0].attention.register_forward_hook(self.fail)

    def fail(self, *given):
        if self.fails:
            self.fails = False
            raise ValueError("a batch that cannot be used")

    def loss(self, x):
        x = self.model.layers[0](self.before(x), torch.full((1,), 0.5))
        y = self.model(x)
        if self.now >= 10:
            self.fails = True
            try:
                self.model(y)
            except ValueError:
                pass
        return self.model(y).pow(2).mean()

    def step(self, step):
        self.now = step
        super().step(step)


def test_around():
    """A part that is called by itself before, or a call that fails, is not taken for the one that is meant."""
    compared(Around, 18)


def test_changing():
    """Arguments are those of the call: where layers come to have others, or a mask is written to between two of them."""

    class Others(Masked):
        now = 0

        def forward(self, x):
            mask = (self.mask(x) * 1e-9).contiguous()
            for i, layer in enumerate(self.layers):
                if self.now >= 9 and i == 1:
                    mask.mul_(0.5)
                x = layer(x, self.mask(x) if self.now % 3 == 2 and i == 2 else mask)
            return x

    class Changing(Trained):
        def step(self, step):
            self.model.__class__, Others.now = Others, step
            super().step(step)

    _, made = compared(lambda: Changing(), 18)
    assert any(names and names[-1] == "_softmax" for names in made), made


def test_hooked():
    """Nothing is held of a module whose hooks may give it something else."""

    class Weak(Masked):
        def mask(self, x):
            return super().mask(x) * 1e-9

    class Hooks(Trained):
        def step(self, step):
            self.model.__class__ = Weak
            if step == 9:
                for layer in self.model.layers:
                    layer.attention.register_forward_pre_hook(lambda module, args: (args[0], args[1] * 0.5))
            super().step(step)

    compared(Hooks)


def test_threads():
    """Nor of what another thread runs meanwhile."""

    class Threads(Trained):
        def __init__(self):
            super().__init__()
            self.before = nn.Linear(WIDTH, WIDTH)

        def loss(self, x):
            x = self.before(x)
            thread = threading.Thread(target=lambda: self.model(x.detach()))
            thread.start()
            thread.join()
            return super().loss(x)

    compared(Threads)


def test_two():
    """Where a layer is called with several masks in a step, each call has its own."""

    class Twice(Masked):
        def forward(self, x):
            return super().forward(super().forward(x))

    class Both(Trained):
        def __init__(self):
            super().__init__()
            self.model.__class__ = Twice

    most, made = copies(Both)
    assert sum(bool(names) and names[-1] == "_softmax" for names in made) == 6 and most == 2, (made, most)


def test_worth():
    """None is held of which little more can be recomputed: a mask of as many elements as attention's scores, for one layer."""

    class Whole(Masked):
        def mask(self, x):
            return torch.rand(x.shape[0], HEADS, x.shape[1], x.shape[1], generator=self.random)

    class Wide(Trained):
        def __init__(self):
            super().__init__(layers=1)
            self.model.__class__ = Whole

    hooked, made = compared(Wide)
    assert not hooked.memory.small.arguments.wanted and all(not names or names[-1] != "_softmax" for names in made), made


def test_copied():
    """A copy has the layout of what it is of, in no more memory."""
    x = torch.rand(4, 1, 1, 8).expand(4, 1, 6, 8)
    copy = arguments.copied(x)
    assert torch.equal(copy, x) and copy.stride() == x.stride() and copy.untyped_storage().nbytes() == x.untyped_storage().nbytes()
    for x in torch.rand(3, 5).t(), torch.rand(()), torch.rand(2, 3, 4).expand(2, 3, 4):
        copy = arguments.copied(x)
        assert torch.equal(copy, x) and copy.stride() == x.stride()
    assert arguments.copied(torch.rand(4, 8)[:, :3]).stride() == (3, 1), "of one with gaps the copy has none, and is not held"


if __name__ == "__main__":
    main(globals())
