"""Trains small models with early updates and without. What comes out is the same, to the bit, and few gradients are there at a time. Where
early updates would be wrong there are none, or the program ends."""

import gc
import io
import sys

import torch
from torch import nn
from torch.nn import functional as F

from gmswap_hook import gradients, say
from real_complete import Tied

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

GRAD = torch.Tensor.grad  # PyTorch's own
STEPS = 10


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(200, 64), nn.Linear(64, 200)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 3, enable_nested_tensor=False)

    def forward(self, x):
        return self.head(self.layers(self.embedding((x.abs() * 80).long().clamp(max=199))))


def images():
    import torchvision

    return torchvision.models.resnet18(num_classes=10)


def mlp():
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))


MODELS = {"transformer": (Language, (4, 12)), "resnet18": (images, (2, 3, 32, 32)), "tied": (Tied, (4, 16)), "mlp": (mlp, (8, 16))}


class Program(object):
    """Trains a model. It counts the bytes of gradients that are there whenever one is about to be accumulated, that one included."""

    def __init__(self, model, optimizer, count=True, **options):
        torch.manual_seed(0)
        make, self.shape = MODELS[model]
        self.model = make()
        self.parameters = list(self.model.parameters())
        self.optimizer = getattr(torch.optim, optimizer)(self.parameters, **options)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 3)
        self.most = 0
        if count:
            for p in self.parameters:
                p.register_hook(self.count)

    def count(self, gradient):
        there = [g for g in map(GRAD.__get__, self.parameters) if g is not None]
        self.most = max(self.most, sum(g.untyped_storage().nbytes() for g in [*there, gradient]))

    def batch(self):
        return torch.randn(*self.shape)

    def step(self, i):
        self.optimizer.zero_grad()
        self.model(self.batch()).pow(2).mean().backward()
        self.most = 0 if i < STEPS // 2 else self.most
        self.optimizer.step()
        self.scheduler.step()

    def train(self):
        for i in range(STEPS):
            self.step(i)
        return self

    def results(self):
        yield from self.parameters
        yield from self.model.buffers()
        for p in self.parameters:
            yield from (torch.as_tensor(v) for _, v in sorted(self.optimizer.state[p].items()) if v is not None)


def variants():
    for model in "transformer", "resnet18", "tied":
        for how in {"foreach": False}, {"foreach": True}, {"fused": True}:
            yield model, "SGD", dict(how, lr=0.01, momentum=0.9)
            yield model, "Adam", how
            yield model, "AdamW", how
    for optimizer in "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "ASGD", "Rprop", "Adafactor":
        if hasattr(torch.optim, optimizer):
            yield "mlp", optimizer, {}


def same(a, b):
    a, b = list(a), list(b)
    return len(a) == len(b) and all(map(torch.equal, a, b))


def said(act):
    """Returns what it says, and the message of the error that it ends with."""
    say._said.clear()
    before, sys.stderr = sys.stderr, io.StringIO()
    try:
        act()
        return sys.stderr.getvalue().strip(), ""
    except RuntimeError as e:
        return sys.stderr.getvalue().strip(), str(e)
    finally:
        sys.stderr = before


# What is done otherwise: each is a step that early updates cannot take part in, and what is said of it.


def clipped(p, i):
    p.model(p.batch()).pow(2).mean().backward()
    nn.utils.clip_grad_norm_(p.parameters, 1)
    p.optimizer.step()
    p.optimizer.zero_grad()


def scaled(p, i):
    p.scaler = getattr(p, "scaler", None) or torch.amp.GradScaler("cpu")
    p.scaler.scale(p.model(p.batch()).pow(2).mean()).backward()
    p.scaler.step(p.optimizer)
    p.scaler.update()
    p.optimizer.zero_grad()


def accumulated(p, i):
    for _ in range(2):
        p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()
    p.optimizer.zero_grad()


def retained(p, i):
    loss = p.model(p.batch()).pow(2).mean()
    loss.backward(retain_graph=True)
    loss.backward()
    p.optimizer.step()
    p.optimizer.zero_grad()


def closed(p, i):
    def closure():
        p.optimizer.zero_grad()
        loss = p.model(p.batch()).pow(2).mean()
        loss.backward()
        return loss

    p.optimizer.step(closure)


def zeroed(p, i):
    p.optimizer.zero_grad(set_to_none=False)
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()


def kept(p, i):
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()


def slowed(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.param_groups[0]["lr"] = 0.1 / (i + 2)
    p.optimizer.step()


def looked(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.parameters[0].detach().norm()
    p.optimizer.step()


def logged(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()
    sum(q.grad.norm() for q in p.parameters)


def set_by_hand(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.parameters[0].grad = torch.zeros(64, 16)
    p.optimizer.step()


def saved_late(p, i):
    p.optimizer.zero_grad()
    x = p.batch().requires_grad_()
    first = F.linear(x * 2, p.parameters[0].detach())
    (first.sum() + p.model(x).pow(2).mean()).backward()
    p.optimizer.step()


def recomputed_late(p, i):
    from torch.utils.checkpoint import checkpoint

    p.optimizer.zero_grad()
    x = p.batch().requires_grad_()
    first = checkpoint(lambda x: F.linear(x * 2, p.parameters[0].detach()), x, use_reentrant=False)
    (first.pow(2).sum() + p.model(x).pow(2).mean()).backward()
    p.optimizer.step()


def differentiated(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward(create_graph=True)
    p.optimizer.step()
    p.model.zero_grad()


def dropped(p, i):
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()
    p.optimizer.zero_grad()


def two_optimizers(p, i):
    p.second = getattr(p, "second", None) or torch.optim.SGD(p.parameters, lr=0.01)
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.optimizer.step()
    p.second.step()


def before_step(p, i):
    p.optimizer.zero_grad()
    p.model(p.batch()).pow(2).mean().backward()
    p.model(p.batch())
    p.optimizer.step()


SEVERAL, LATE = "several backward passes come before a step()", "uses a parameter after its gradient is complete, before step()"
BEFORE, KEPT = "the backward pass needs a parameter as it was before", "gradients are kept from step to step"
AMISS = {  # by program: what is said of it when it is watched, and of a step later on
    clipped: "clip_grad_norm_ (torch/nn/utils/clip_grad.py) reads gradients",
    scaled: "_unscale_grads_ (torch/amp/grad_scaler.py) reads gradients",
    accumulated: (SEVERAL, LATE),
    retained: (SEVERAL, BEFORE),
    closed: "step() has a closure",
    zeroed: "gradients are set to zero instead of None",
    kept: KEPT,
    slowed: "hyper-parameters or hooks change between the backward pass and step()",
    looked: LATE,
    logged: "logged (real_early.py) reads gradients",
    set_by_hand: "set_by_hand (real_early.py) sets gradients",
    saved_late: (LATE, BEFORE),
    recomputed_late: LATE,
    differentiated: "gradients have gradients (create_graph)",
    dropped: (SEVERAL, "gradients are dropped before step()"),
    two_optimizers: "SGD updates the same parameters",
    before_step: LATE,
}


def check_amiss(step, why):
    """Trains in a way that is seen at once to be amiss, and in one that becomes so."""
    why = why if isinstance(why, tuple) else (why, why)
    plain, program = RESULTS[step.__name__], Program("mlp", "Adam", count=False)
    lines, error = said(lambda: [step(program, i) for i in range(STEPS)])
    assert not error and why[0] in lines, "%s: it says %r and %r, want %r" % (step.__name__, lines, error, why[0])
    assert same(plain, program.results()), "%s: the results differ" % step.__name__
    program = Program("mlp", "Adam", count=False).train()
    if step not in (zeroed, kept):
        program.optimizer.zero_grad()
    lines, error = said(lambda: step(program, STEPS))
    assert not lines and why[1] in error and "leave out --early-updates" in error, "%s: it says %r and %r" % (step.__name__, lines, error)


def unfit():
    """Yields optimizers that cannot update early, and why."""

    class Own(torch.optim.SGD):
        pass

    p = lambda *size, **how: [nn.Parameter(torch.ones(*size, **how))]  # noqa: E731
    yield Own(p(2), lr=0.1), "it is none of torch.optim's"
    yield torch.optim.SGD([nn.Parameter(torch.ones(4, 4)[:, :2])], lr=0.1), "parameters have gaps"
    yield torch.optim.SGD(p(2, dtype=torch.complex64), lr=0.1), "parameters are no real numbers"
    yield torch.optim.SGD(p(2), lr=0.1, differentiable=True), "it is differentiable"
    yield torch.optim.SGD(p(2) + p(2, device="meta"), lr=0.1), "parameters are on several devices"
    hooked = torch.optim.SGD(p(2), lr=0.1)
    hooked.register_step_post_hook(lambda *_: None)
    yield hooked, "its step() has hooks"
    replaced = torch.optim.SGD(p(2), lr=0.1)
    real = replaced.step
    replaced.step = lambda: real()
    yield replaced, "its step() has hooks, or is replaced"
    watched = p(2)
    watched[0].register_post_accumulate_grad_hook(lambda p: None)
    yield torch.optim.SGD(watched, lr=0.1), "parameters have post-accumulate-grad hooks"


def check_sparse():
    """Has sparse gradients beside others, each kind with an optimizer of its own."""
    embedding, model = nn.Embedding(10, 16, sparse=True), mlp()
    optimizers = torch.optim.SGD(embedding.parameters(), lr=0.1), torch.optim.Adam(model.parameters())

    def step():
        model(embedding(torch.arange(4))).pow(2).mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()

    lines, error = said(lambda: [step() for _ in range(5)])
    assert lines.startswith("gmswap: no early updates by SGD: gradients are sparse") and not error, (lines, error)
    assert THERE.updates[optimizers[1]].early == 2, vars(THERE.updates[optimizers[1]])


def check_averaged():
    if not torch.distributed.is_available():
        return
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(mlp())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    lines, error = said(optimizer.step)
    assert "DistributedDataParallel" in lines and not error, (lines, error)
    torch.distributed.destroy_process_group()


def check_compiled():
    torch.compile(lambda x: x)
    lines, error = said(torch.optim.SGD(mlp().parameters(), lr=0.1).step)
    assert "torch.compile is used" in lines and not error, (lines, error)


def check(model, optimizer, options):
    plain = RESULTS[model, optimizer, str(options)]
    check.__dict__.pop("program", None)
    gc.collect()  # what ends here says so
    lines, error = said(lambda: check.__dict__.update(program=Program(model, optimizer, **options).train()))
    assert not lines and not error, "%s: %s %s" % (model, lines, error)
    program = check.program
    assert same(plain, program.results()), "%s, %s %s: the results differ" % (model, optimizer, options)
    sizes = [p.numel() * p.element_size() for p in program.parameters]
    updates = THERE.updates[program.optimizer]
    assert (updates.early, updates.sum, updates.most) == (STEPS - 3, sum(sizes), program.most), "%s of %d, and %d" % (
        vars(updates), sum(sizes), program.most)
    saved = (sum(sizes) - program.most) / (sum(sizes) - max(sizes))
    assert saved >= 0.95, "%s, %s: %d bytes at a time, of %d" % (model, optimizer, program.most, sum(sizes))
    print("%s, %s %s: %d bytes of gradients at a time, of %d: %.1f %% of what they are but for the largest is saved" % (
        model, optimizer, options, program.most, sum(sizes), 100 * saved))


if __name__ == "__main__":
    if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
        print("PyTorch %s has no hooks for gradients" % torch.__version__)
        sys.exit()
    RESULTS, programs = {}, []
    for model, optimizer, options in variants():
        try:
            plain = Program(model, optimizer, **options).train()
        except (RuntimeError, TypeError, ImportError) as e:
            print("%s, %s %s: not here: %s" % (model, optimizer, options, e))
            continue
        RESULTS[model, optimizer, str(options)] = list(plain.results())
        programs.append((model, optimizer, options))
    for step in AMISS:
        plain = Program("mlp", "Adam", count=False)
        for i in range(STEPS):
            step(plain, i)
        RESULTS[step.__name__] = list(plain.results())
    THERE = gradients.Gradients(torch)
    for program in programs:
        check(*program)
    for step, why in AMISS.items():
        check_amiss(step, why)
    for optimizer, why in unfit():
        lines, error = said(optimizer.step)
        assert why in lines and not error, "%s: it says %r and %r" % (why, lines, error)
    check_sparse()
    check_averaged()
    check_compiled()
    print("declined, or ended: %d ways to train" % (len(AMISS) + len(list(unfit())) + 3))
