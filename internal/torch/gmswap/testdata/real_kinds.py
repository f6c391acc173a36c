"""Programs that use PyTorch in many ways, on a real one: what comes of each is the same with schedules of each kind, and on demand."""

import contextlib
import copy
import io

import torch
from gmswap_hook import stepping
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from real import main
from real_demand import Short
from real_family import started

WIDTH, WORDS = 32, 50


class Block(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        return x + super().forward(x)


class Made(nn.Module):
    """A model of parts, whose forward pass is a function of them and of the inputs."""

    def __init__(self, run, *parts):
        super().__init__()
        self.run, self.parts = run, nn.ModuleList(parts)

    def forward(self, *inputs):
        return self.run(*self.parts, *inputs)


def blocks(n=2):
    return nn.Sequential(*(Block() for _ in range(n)))


def words(model, step):
    return model(torch.randint(0, WORDS, (8, 12)))


def texts(model, step):
    return model(torch.rand(8, 12, WIDTH))


def backward(model, step, run=texts):
    loss = run(model, step).square().mean()
    loss.backward()
    return loss


def trained(model, run=texts, step=backward, steps=14):
    """Returns the losses of a model, and its parameters at the end."""
    losses = []
    for i in range(steps):
        torch.manual_seed(i)
        losses.append(float(step(model, i, run).detach()))
        with torch.no_grad():
            for p in model.parameters():
                if p.grad is not None:
                    p.sub_(p.grad * 0.01)
        model.zero_grad()
    return losses, [p.detach().double().sum().item() for p in model.parameters()]


# Parts of a storage that count by themselves how often they are written to.


def gates():
    """Of one product the gates of a GRU are parts, which are changed in place one after the other."""
    return trained(Made(lambda gru, x: gru(x)[0], nn.GRU(WIDTH, WIDTH, 2, batch_first=True, dropout=0.1)))


def packed_gates():
    def run(gru, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.randint(3, 13, (8,)), batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True)[0]

    return trained(Made(run, nn.GRU(WIDTH, WIDTH, 2, batch_first=True, bidirectional=True)))


# Programs whose steps do different things.


def tree():
    def run(cell, merge, x, leaves):
        def over(begin, end):
            if end - begin == 1:
                return cell(x[:, begin])
            (h, c), (g, d) = over(begin, (begin + end) // 2), over((begin + end) // 2, end)
            return cell(merge(torch.cat((h, g), 1)), (h + g, c + d))

        return over(0, leaves)[0]

    return trained(Made(run, nn.LSTMCell(WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH)), lambda model, i: model(torch.rand(8, 12, WIDTH), 4 + i % 3 * 2))


def shared():
    def run(block, x, times):
        for _ in range(times):
            x = block(x)
        return x

    return trained(Made(run, Block()), lambda model, i: model(torch.rand(8, 12, WIDTH), 2 + i % 3), steps=20)


def frozen():
    def step(model, i, run):
        if i in (6, 12):
            model[0].requires_grad_(i == 12)
        return backward(model, i)

    return trained(blocks(3), step=step, steps=18)


def rebuilt():
    def step(model, i, run):
        if i == 7:
            model.append(Block())
        if i == 13:
            del model[1]
        return backward(model, i)

    return trained(blocks(3), step=step, steps=20)


def retyped():
    def step(model, i, run):
        if i in (8, 13):
            model.double() if i == 8 else model.float()
        return backward(model, i, lambda model, i: model(torch.rand(8, 12, WIDTH, dtype=model[0][1].weight.dtype)))

    return trained(blocks(), step=step, steps=18)


def exchanged():
    """Parameters have other memory from some step on."""
    def step(model, i, run):
        if i == 6:
            for p in model.parameters():
                p.data = p.data.clone() * 0.9
        if i == 9:
            model.load_state_dict(torch.load(io.BytesIO(saved(model))))
        if i == 11:
            copy.deepcopy(model)(torch.rand(8, 12, WIDTH)).sum().backward()
        return backward(model, i)

    return trained(blocks(3), step=step, steps=18)


def saved(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.getvalue()


def failing():
    def run(first, second, x, fails):
        x = first(x)
        if fails:
            raise ValueError("in the middle")
        return second(x)

    def step(model, i, run):
        if i in (5, 9, 10):
            with contextlib.suppress(ValueError):
                model(torch.rand(8, 12, WIDTH), True)
        return backward(model, i, lambda model, i: model(torch.rand(8, 12, WIDTH), False))

    return trained(Made(run, blocks(), blocks()), step=step, steps=18)


def adversaries():
    maker, judge, losses = blocks(), Made(lambda b, line, x: line(b(x)), blocks(1), nn.Linear(WIDTH, 1)), []
    optimizers = [torch.optim.Adam(m.parameters(), 1e-3) for m in (maker, judge)]
    for i in range(14):
        torch.manual_seed(i)
        real = torch.rand(8, 12, WIDTH)
        made = maker(real)
        for optimizer, loss in ((optimizers[1], lambda: F.softplus(judge(made.detach())) + F.softplus(-judge(real))), (optimizers[0], lambda: F.softplus(-judge(made)))):  # noqa: B023
            mean = loss().mean()
            optimizer.zero_grad()
            mean.backward()
            optimizer.step()
            losses.append(float(mean.detach()))
    return losses


# Other ways to differentiate.


class Doubled(torch.autograd.Function):
    """Changes its input."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.mark_dirty(x.mul_(2))
        ctx.save_for_backward(w)
        return x, w.exp()

    @staticmethod
    def backward(ctx, dx, dw):
        return 2 * dx, dw * ctx.saved_tensors[0].exp()


class Within(torch.autograd.Function):
    """Keeps a graph of its own."""

    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            y = (z.sin() * z).exp()
        ctx.save_for_backward(z, y)
        return y.detach()

    @staticmethod
    def backward(ctx, dy):
        return torch.autograd.grad(*reversed(ctx.saved_tensors), dy)[0]


def functions():
    run = lambda a, b, c, x: c(Within.apply(sum(Doubled.apply(a(x) * 1.0, b(x))).tanh()))
    return trained(Made(run, blocks(1), blocks(1), blocks(1)))


def parts_of_gradients():
    def step(model, i, run):
        loss, parameters = texts(model, i).square().mean(), list(model.parameters())
        loss.backward(inputs=parameters[:5], retain_graph=True)
        loss.backward(inputs=parameters[5:])
        return loss

    return trained(blocks(3), step=step)


def selective():
    keep = torch.ops.aten.addmm.default
    policy = lambda ctx, function, *args, **kwargs: CheckpointPolicy.MUST_SAVE if function is keep else CheckpointPolicy.PREFER_RECOMPUTE
    contexts = lambda: create_selective_checkpoint_contexts(policy)
    return trained(Made(lambda a, b, x: checkpoint(b, checkpoint(a, x, use_reentrant=False, context_fn=contexts), use_reentrant=True), blocks(), blocks()))


def watched_for_errors():
    def step(model, i, run):
        with torch.autograd.detect_anomaly(check_nan=True):
            return backward(model, i)

    return trained(blocks(3), step=step)


# Operators with effects, and such as are seldom.


def indexed():
    def run(a, b, x):
        y, at = a(x), torch.randperm(12)[:5]
        z = torch.zeros_like(y)
        z[:, at] = y[:, at] * 2
        z = z.index_add(1, at, y[:, :5]).scatter_add(1, torch.randint(0, 12, y.shape), y)
        return b(z + y.sort(1)[0].cumsum(1) / 12) + y.topk(3, 1)[0].mean()

    return trained(Made(run, blocks(1), blocks(1)))


def clipped_words():
    """Words are scaled in the forward pass, in place."""
    return trained(Made(lambda words, b, ids: b(words(ids)), nn.Embedding(WORDS, WIDTH, max_norm=1.0), blocks()), words)


def tied():
    embed, head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
    head.weight = embed.weight
    return trained(Made(lambda embed, b, head, ids: head(b(embed(ids))), embed, blocks(), head), words)


def attentive():
    def run(encoder, x, n):
        return encoder(x, src_key_padding_mask=torch.arange(12).expand(8, 12) >= n)

    layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True)
    return trained(Made(run, nn.TransformerEncoder(layer, 2)), lambda model, i: model(torch.rand(8, 12, WIDTH), 12 - i % 4))


def parametrized():
    net = blocks()
    for block in net:
        nn.utils.parametrizations.weight_norm(block[1])
        nn.utils.parametrizations.spectral_norm(block[3])
    return trained(net)


def quantized():
    from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver

    return trained(nn.Sequential(blocks(), FakeQuantize(MovingAverageMinMaxObserver, 0, 255), blocks(1)))


def check(program, begin=lambda runtime: None):
    def run():
        torch.manual_seed(0)
        return program()

    want = run()
    for how in "offload", "remake", "rows":
        h = started(how, smallest=256)[0]
        got = run()
        h.remove()
        assert got == want, (program.__name__, how, got, want)
    short = Short(9000)
    short.hooked.runtime.smallest = short.hooked.settings.smallest = 256
    short.hooked.runtime.given_up = True  # no schedule is made
    begin(short.hooked.runtime)
    got = run()
    short.remove()
    assert got == want, (program.__name__, "on demand", got, want)


def test_kinds():
    for program in (gates, packed_gates, tree, shared, frozen, rebuilt, retyped, exchanged, failing, adversaries, functions, parts_of_gradients, selective,
                    watched_for_errors, indexed, clipped_words, tied, attentive, parametrized, quantized):
        check(program)


def critic():
    """Has an optimizer change parameters before the backward pass of what saw only what they made."""
    body, judge, losses = [nn.Linear(WIDTH, WIDTH) for _ in range(4)], nn.Linear(WIDTH, WIDTH), []

    def run(a, b, c, d, judge, x):
        h = b(a(x).tanh())
        opinion = judge(h.detach().sigmoid())
        for _ in range(3):
            for line in (a, b, c, d):
                h = line(h).tanh()
        return h, opinion

    model = Made(run, *body, judge)
    optimizer = torch.optim.SGD([p for line in body for p in line.parameters()], lr=0.5)
    for step in range(12):
        torch.manual_seed(step)
        made, opinion = model(torch.rand(24, WIDTH))
        made.square().mean().backward()
        optimizer.step()
        opinion.square().mean().backward()
        losses.append((float(made.detach().sum()), judge.weight.grad.tolist()))
        model.zero_grad()
    return losses


def test_updated():
    """What is made of parameters is recomputed before an optimizer changes them."""
    hook = stepping.Stepping(torch)
    check(critic, lambda runtime: hook.stores.update({0: stepping.Store(runtime, hook)}))
    hook.stores.clear()


def test_tangents():
    """Tensors that have no memory, but are zero, stay as they are. In any mode that sees operators PyTorch computes tangents with other last bits."""
    def run(model, i):
        with forward_ad.dual_level():
            out = forward_ad.unpack_dual(model(forward_ad.make_dual(torch.rand(4, 6, WIDTH), torch.rand(4, 6, WIDTH))))
            return out.primal + out.tangent

    def tangents():
        torch.manual_seed(0)
        return trained(blocks(), run)

    want = tangents()
    for how in "offload", "remake":
        h = started(how, smallest=256)[0]
        got = tangents()
        h.remove()
        assert all(abs(a - b) < 1e-4 * abs(a) for a, b in zip(want[0], got[0])), (how, got, want)


if __name__ == "__main__":
    main(globals())
