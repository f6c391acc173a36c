"""Losses and loops of papers that are not one forward pass and one backward pass of one model. Kernels are deterministic."""

import copy
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from autograd import convolutions, exact
from practice import encoder


def contrastive(steps):
    """Two towers and one large batch in pieces: embeddings without a graph first, their gradients, then each piece again (GradCache)."""
    exact()
    towers = nn.ModuleList([encoder(3), encoder(3)]).cuda()
    scale = nn.Parameter(torch.tensor(2.0, device="cuda"))
    optimizer = torch.optim.AdamW([*towers.parameters(), scale], 1e-4)
    for step in range(steps):
        pieces = [[torch.randn(32, 64 + 32 * (step % 2), 512, device="cuda") for _ in towers] for _ in range(4)]
        seeds, parts = [], []
        with torch.no_grad():
            for piece in pieces:
                seeds.append(torch.cuda.get_rng_state())
                parts.append([F.normalize(t(x).mean(1), dim=-1) for t, x in zip(towers, piece)])
        a, b = (torch.cat(side).requires_grad_() for side in zip(*parts))
        like = a @ b.T * scale.exp()
        target = torch.arange(len(a), device="cuda")
        loss = (F.cross_entropy(like, target) + F.cross_entropy(like.T, target)) / 2
        loss.backward()
        for piece, seed, da, db in zip(pieces, seeds, a.grad.split(32), b.grad.split(32)):
            torch.cuda.set_rng_state(seed)
            u, v = (F.normalize(t(x).mean(1), dim=-1) for t, x in zip(towers, piece))
            torch.autograd.backward([u, v], [da, db])
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def masked(steps):
    """A masked autoencoder: tokens shuffled and dropped by gather, and put back by another one, a decoder of another width."""
    exact()
    enter, between, leave = nn.Linear(192, 512).cuda(), nn.Linear(512, 256).cuda(), nn.Linear(256, 192).cuda()
    wide, narrow = encoder(6), encoder(2, 256)
    mask = nn.Parameter(torch.zeros(1, 1, 256, device="cuda"))
    params = [p for m in (enter, between, leave, wide, narrow) for p in m.parameters()] + [mask]
    optimizer = torch.optim.AdamW(params, 1e-4, betas=(0.9, 0.95))
    for step in range(steps):
        x = torch.randn(64, 196, 192, device="cuda")
        order = torch.rand(64, 196, device="cuda").argsort(1)
        back, keep = order.argsort(1), int(196 * random.Random(step).choice([0.25, 0.25, 0.5]))
        with torch.autocast("cuda", dtype=torch.bfloat16):
            seen = enter(x).gather(1, order[:, :keep, None].expand(-1, -1, 512))
            y = between(wide(seen))
            y = torch.cat([y, mask.to(y.dtype).expand(64, 196 - keep, -1)], 1).gather(1, back[:, :, None].expand(-1, -1, 256))
            y = leave(narrow(y))
        hidden = (back >= keep).float()
        loss = ((y.float() - x).square().mean(-1) * hidden).sum() / hidden.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss


def crops(steps):
    """Distillation of a network by its own average, with crops of two sizes, and a centre that moves."""
    exact()
    student = nn.Sequential(convolutions(8, 64, 128, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1024)).cuda()
    teacher = copy.deepcopy(student).requires_grad_(False)
    centre = torch.zeros(1, 1024, device="cuda")
    optimizer = torch.optim.SGD(student.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    for step in range(steps):
        large = [torch.randn(16, 8, 64, 64, device="cuda") for _ in range(2)]
        small = [torch.randn(16, 8, 32, 32, device="cuda") for _ in range(4)]
        with torch.no_grad():
            target = teacher(torch.cat(large))
            soft = [((t - centre) / 0.04).softmax(-1) for t in target.chunk(2)]
        out = [*student(torch.cat(large)).chunk(2), *student(torch.cat(small)).chunk(4)]
        losses = [-(s * (o / 0.1).log_softmax(-1)).sum(-1).mean() for i, s in enumerate(soft) for j, o in enumerate(out) if i != j]
        loss = sum(losses) / len(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            centre.lerp_(target.mean(0, keepdim=True), 0.1)
            torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.02)
        yield loss


def flows(steps):
    """A variational autoencoder whose prior is a flow of coupling layers: samples within the graph, log-determinants, a weight that is annealed."""
    exact()
    into, out = convolutions(3, 64, 128).cuda(), convolutions(32, 128, 64).cuda()
    heads, last = nn.Conv2d(128, 64, 1).cuda(), nn.Conv2d(64, 3, 1).cuda()
    layers = nn.ModuleList([nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 32, 3, padding=1)) for _ in range(4)]).cuda()
    params = [p for m in (into, out, heads, last, layers) for p in m.parameters()]
    optimizer = torch.optim.Adamax(params, 1e-3)
    for step in range(steps):
        x = torch.rand(32, 3, 48, 48, device="cuda")
        mean, spread = heads(into(x)).chunk(2, 1)
        spread = spread.clamp(-6, 2)
        z = mean + torch.randn_like(mean) * (spread / 2).exp()
        again = last(out(z))
        prior, det = z, 0.0
        for i, layer in enumerate(layers):
            a, b = prior.chunk(2, 1)
            a, b = (a, b) if i % 2 else (b, a)
            s, t = layer(a).chunk(2, 1)
            s = torch.tanh(s)
            b = b * s.exp() + t
            det = det + s.flatten(1).sum(1)
            prior = torch.cat([a, b], 1)
        near = -0.5 * (prior.square() + math.log(2 * math.pi)).flatten(1).sum(1) + det
        own = -0.5 * (spread + (z - mean).square() / spread.exp() + math.log(2 * math.pi)).flatten(1).sum(1)
        loss = F.mse_loss(again, x) * 3072 + min(1.0, step / 8) * (own - near).mean() / 64
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def matched(steps):
    """Set prediction: queries matched to targets, of which each image has another number, on the host, and losses of every decoder layer."""
    exact()
    features = convolutions(3, 64, 256).cuda()
    layers = nn.ModuleList([nn.TransformerDecoderLayer(256, 8, 1024, dropout=0.1, batch_first=True) for _ in range(4)]).cuda()
    queries, box, kind = nn.Embedding(64, 256).cuda(), nn.Linear(256, 4).cuda(), nn.Linear(256, 12).cuda()
    params = [p for m in (features, layers, queries, box, kind) for p in m.parameters()]
    optimizer = torch.optim.AdamW(params, 1e-4)
    for step in range(steps):
        rng = random.Random(step)
        x = torch.randn(8, 3, 32, rng.choice([32, 40, 48]), device="cuda")
        targets = [(torch.rand(rng.randint(1, 20), 4, device="cuda"),) for _ in range(8)]
        memory, q, loss = features(x).flatten(2).transpose(1, 2), queries.weight.expand(8, -1, -1), 0.0
        for layer in layers:
            q = layer(q, memory)
            boxes, kinds = box(q).sigmoid(), kind(q)
            for (target,), b, k in zip(targets, boxes, kinds):
                free, rows = set(range(64)), []
                for column in torch.cdist(b.detach(), target, p=1).T.tolist():
                    rows.append(min(free, key=column.__getitem__))
                    free.remove(rows[-1])
                labels = torch.full((64,), 11, device="cuda")
                labels[rows] = 3
                loss = loss + F.l1_loss(b[rows], target) + F.cross_entropy(k, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(params, 0.1)
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def physics(steps):
    """A differential equation as loss: second derivatives with regard to the inputs in each step, and a loss of the border."""
    exact()
    net = nn.Sequential(*[m for _ in range(5) for m in (nn.Linear(512, 512), nn.Tanh())])
    net = nn.Sequential(nn.Linear(2, 512), nn.Tanh(), net, nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(steps):
        at = torch.rand(4096 + 2048 * (step % 2), 2, device="cuda").requires_grad_()
        u = net(at)
        first, = torch.autograd.grad(u.sum(), at, create_graph=True)
        second, = torch.autograd.grad(first[:, 0].sum(), at, create_graph=True)
        loss = (first[:, 1] - 0.1 * second[:, 0]).square().mean() + net(torch.rand(512, 2, device="cuda").round()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


class Adjoint(torch.autograd.Function):
    """Integrates a network, and integrates back for its gradient, which keeps nothing between."""

    @staticmethod
    def forward(ctx, net, x, *params):
        with torch.no_grad():
            for _ in range(8):
                x = x + net(x) / 8
        ctx.net, ctx.params = net, params
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        sums = [torch.zeros_like(p) for p in ctx.params]
        for _ in range(8):
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                slope = ctx.net(x)
                by, *rest = torch.autograd.grad(slope, (x, *ctx.params), grad / 8)
            for total, part in zip(sums, rest):
                total.add_(part)
            x, grad = (x - slope / 8).detach(), grad + by
        return (None, grad, *sums)


def adjoint(steps):
    """A neural differential equation by the adjoint method: graphs that are made and used within a backward pass."""
    exact()
    nets = nn.ModuleList([nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 512)) for _ in range(3)]).cuda()
    sides = nn.ModuleList([nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(3)]).cuda()
    optimizer = torch.optim.RAdam([*nets.parameters(), *sides.parameters()], 1e-4)
    for step in range(steps):
        x = y = torch.randn(4096 + 1024 * (step % 3), 512, device="cuda")
        for net, side in zip(nets, sides):
            y = side(Adjoint.apply(net, y, *net.parameters())) + y
        loss = F.huber_loss(y, x.cos())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def equilibrium(steps):
    """A deep equilibrium model: a fixed point without a graph, one step with it, and a hook that solves for the gradient."""
    exact()
    inner = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512), nn.LayerNorm(512)).cuda()
    enter, leave = (nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda() for _ in range(2))
    optimizer = torch.optim.AdamW([*inner.parameters(), *enter.parameters(), *leave.parameters()], 1e-4)
    for step in range(steps):
        x = torch.randn(4096 + 2048 * (step % 2), 512, device="cuda")
        given, z = enter(x), torch.zeros(len(x), 512, device="cuda")
        with torch.no_grad():
            for _ in range(6):
                z = 0.5 * inner(z + given)
        z = 0.5 * inner(z + given)
        start = z.detach().requires_grad_()
        again = 0.5 * inner(start + given.detach())

        def solve(grad):
            total = grad
            for _ in range(4):
                total = grad + torch.autograd.grad(again, start, total, retain_graph=True)[0]
            return total

        z.register_hook(solve)
        loss = F.mse_loss(leave(z), x.roll(1, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def sharpness(steps):
    """Sharpness-aware minimisation: two forward and backward passes in a step, with weights moved between, and layers left out at random."""
    exact()
    net = encoder(8)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)
    params = list(net.parameters())

    def forward(x, kept):
        for layer, on in zip(net.layers, kept):
            x = layer(x) if on else x
        return x

    for step in range(steps):
        kept = [random.Random(step * 8 + i).random() < 0.85 for i in range(8)]
        x = torch.randn(48, 128, 512, device="cuda")
        F.mse_loss(forward(x, kept), x).backward()
        with torch.no_grad():
            grads = [p.grad for p in params if p.grad is not None]
            norm = torch.stack(torch._foreach_norm(grads)).norm()
            moves = torch._foreach_mul(grads, 0.05 / float(norm + 1e-12))
            torch._foreach_add_([p for p in params if p.grad is not None], moves)
        moved = [p for p in params if p.grad is not None]
        optimizer.zero_grad()
        loss = F.mse_loss(forward(x, kept), x)
        loss.backward()
        with torch.no_grad():
            torch._foreach_sub_(moved, moves)
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def replay(steps):
    """Learning of values: a ring of experience on the GPU that is written in place, a target network, several updates in a step, none at first."""
    exact()
    make = lambda: nn.Sequential(convolutions(4, 64, 64, 64), nn.AvgPool2d(10), nn.Flatten(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 6)).cuda()
    online, target = make(), make()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.RMSprop(online.parameters(), 1e-4, centered=True)
    ring = torch.zeros(256, 4, 42, 42, dtype=torch.uint8, device="cuda")
    done, draw = 0, torch.Generator().manual_seed(0)
    for step in range(steps):
        with torch.no_grad():
            frames = torch.randint(0, 256, (32, 4, 42, 42), device="cuda", dtype=torch.uint8)
            acts = online(frames.float() / 255).argmax(1)
            ring[done % 256 : done % 256 + 32] = frames
        done += 32
        loss = acts.float().mean()
        for _ in range(0 if step < 2 else 2):
            i = torch.randint(0, min(done, 256), (64,), generator=draw).cuda()
            x = ring[i].float() / 255
            with torch.no_grad():
                best = online(x.roll(1, 0)).argmax(1)
                goal = x.mean((1, 2, 3)) + 0.99 * target(x.roll(1, 0)).gather(1, best[:, None])[:, 0]
            loss = F.smooth_l1_loss(online(x).gather(1, (i % 6)[:, None])[:, 0], goal)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % 6 == 5:
            target.load_state_dict(online.state_dict())
        yield loss


def carried(steps):
    """Truncated backpropagation: states of one step go on into the next, sometimes with their graph."""
    exact()
    cells = nn.ModuleList([nn.GRUCell(512, 512) for _ in range(2)]).cuda()
    wide = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), nn.Linear(4096, 512)).cuda()
    optimizer = torch.optim.Adam([*cells.parameters(), *wide.parameters()], 1e-3)
    state, owed = [torch.zeros(1024, 512, device="cuda") for _ in cells], 0.0
    for step in range(steps):
        loss = 0.0
        for _ in range(6):
            x = torch.randn(1024, 512, device="cuda")
            y = wide(x)
            for i, cell in enumerate(cells):
                y = state[i] = cell(y, state[i])
            loss = loss + F.mse_loss(y, x.tanh())
        if step % 4 == 1:  # this step's graph goes on into the next one
            owed = loss
            yield loss.detach()
            continue
        (loss + owed).backward()
        owed, state = 0.0, [s.detach() for s in state]
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def selective(steps):
    """Checkpoints that keep matrix products (create_selective_checkpoint_contexts), beside save_on_cpu that pins, and a frozen part."""
    from functools import partial

    from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

    exact()
    kept = {torch.ops.aten.mm.default, torch.ops.aten.addmm.default, torch.ops.aten.bmm.default}
    policy = lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE
    net = nn.Sequential(*encoder(8).layers)
    net[0].requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 1e-4)
    for step in range(steps):
        x = torch.randn(32 + 16 * (step % 2), 128, 512, device="cuda")
        y = net[0](x)
        for layer in net[1:4]:
            y = checkpoint(layer, y, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            y = net[4](y)
        loss = F.mse_loss(net[5:](y), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def scripted(steps):
    """A module of TorchScript, weights with parametrizations (weight and spectral norm), and one pruned by a mask."""
    from torch.nn.utils import parametrizations, prune

    exact()
    body = torch.jit.script(nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512), nn.LayerNorm(512)).cuda())
    a = parametrizations.weight_norm(nn.Linear(512, 1024)).cuda()
    b = parametrizations.spectral_norm(nn.Linear(1024, 512)).cuda()
    c = nn.Linear(512, 512).cuda()
    prune.random_unstructured(c, "weight", 0.5)
    optimizer = torch.optim.AdamW([p for m in (body, a, b, c) for p in m.parameters()], 1e-4)
    for step in range(steps):
        x = torch.randn(8192 + 2048 * (step % 2), 512, device="cuda")
        y = body(x)
        y = body(y + c(F.silu(b(F.silu(a(y))))))
        loss = F.mse_loss(y, x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def ensembles(steps):
    """Models stacked by torch.func and mapped over, products by forward-mode derivatives, and sums over segments."""
    from torch.func import functional_call, jvp, stack_module_state, vmap

    exact()
    nets = [nn.Sequential(nn.Linear(256, 1024), nn.SiLU(), nn.Linear(1024, 256)).cuda() for _ in range(6)]
    params, buffers = stack_module_state(nets)
    base = copy.deepcopy(nets[0]).to("meta")
    optimizer = torch.optim.Adam(params.values(), 1e-3)
    run = lambda p, b, x: functional_call(base, (p, b), (x,))
    for step in range(steps):
        x = torch.randn(6, 2048 + 1024 * (step % 2), 256, device="cuda")
        y = vmap(run)(params, buffers, x)
        _, along = jvp(lambda x: vmap(run)(params, buffers, x), (x,), (torch.ones_like(x),))
        groups = torch.zeros(6, 64, 256, device="cuda").scatter_add(1, (torch.arange(x.shape[1], device="cuda") % 64)[None, :, None].expand_as(y), y)
        loss = F.mse_loss(y, x) + 0.01 * along.square().mean() + groups.square().mean() / 1e4
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def growing(steps):
    """A curriculum: batches and pictures that grow every few steps, a network that gets layers on the way, and evaluation of several sizes."""
    exact()
    blocks = nn.ModuleList([convolutions(32, 64, 32)]).cuda()
    optimizer = torch.optim.AdamW(blocks.parameters(), 1e-3)
    for step in range(steps):
        if step and step % 6 == 0 and len(blocks) < 4:
            blocks.append(convolutions(32, 64, 32).cuda())
            optimizer.add_param_group({"params": list(blocks[-1].parameters())})
        side = 32 + 8 * min(6, step // 3)
        x = y = torch.randn(24, 32, side, side, device="cuda")
        for block in blocks:
            y = y + block(y)
        loss = F.mse_loss(y, F.avg_pool2d(x, 3, 1, 1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            with torch.inference_mode():
                for block in blocks:
                    loss = loss + block(torch.randn(16, 32, 64, 40, device="cuda")).mean()
        yield loss


def preferences(steps):
    """Preferences (DPO) of a pair of texts of all lengths with a frozen reference, adapters of low rank, and gradients that accumulate over pieces."""
    exact()
    net, table = encoder(6), nn.Embedding(8000, 512).cuda()
    for p in [*net.parameters(), *table.parameters()]:
        p.requires_grad_(False)
    net.eval()
    frozen = copy.deepcopy(net)
    adapters = nn.ModuleList([nn.Sequential(nn.Linear(512, 16, bias=False), nn.Linear(16, 512, bias=False)) for _ in net.layers]).cuda()
    optimizer = torch.optim.AdamW(adapters.parameters(), 1e-3)

    def score(layers, ids, extra=None):
        x = table(ids)
        for i, layer in enumerate(layers):
            x = layer(x) + (extra[i](x) if extra is not None else 0.0)
        return (x @ table.weight.T).log_softmax(-1).gather(-1, ids.roll(-1, 1)[..., None])[..., 0].sum(1)

    for step in range(steps):
        rng, total = random.Random(step), 0.0
        for _ in range(2):
            good, bad = (torch.randint(0, 8000, (6, rng.randint(64, 256)), device="cuda") for _ in range(2))
            with torch.no_grad():
                past = score(frozen.layers, good) - score(frozen.layers, bad)
            loss = -F.logsigmoid(0.1 * (score(net.layers, good, adapters) - score(net.layers, bad, adapters) - past)).mean() / 2
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        yield total
