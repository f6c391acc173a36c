"""Uses of autograd that plain loops do not have. Kernels are deterministic, so that losses are the same from run to run."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def exact():
    """Asks for deterministic kernels."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_mem_efficient_sdp(False)  # whose backward passes have other bits each time
    torch.backends.cuda.enable_cudnn_sdp(False)


def convolutions(*channels):
    """Returns convolutions with a norm and an activation behind each."""
    layers = []
    for before, after in zip(channels, channels[1:]):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(8, after), nn.SiLU(inplace=True)]
    return nn.Sequential(*layers)


def gan(steps):
    """A generator and a critic with a penalty on its gradient: a graph of second order, and two optimizers."""
    exact()
    make = nn.Sequential(convolutions(64, 128, 128, 64), nn.Conv2d(64, 3, 1), nn.Tanh()).cuda()
    judge = nn.Sequential(convolutions(3 + 5, 64, 128, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 1)).cuda()
    ours, theirs = (torch.optim.Adam(m.parameters(), 1e-4, betas=(0.0, 0.9)) for m in (make, judge))
    pad = lambda x: F.pad(x, (0, 0, 0, 0, 0, 5))
    for step in range(steps):
        side = 48 + 16 * (step % 3)
        real, fake = torch.rand(24, 3, side, side, device="cuda"), make(torch.randn(24, 64, side, side, device="cuda"))
        mix = torch.rand(24, 1, 1, 1, device="cuda")
        between = (mix * real + (1 - mix) * fake.detach()).requires_grad_()
        slope, = torch.autograd.grad(judge(pad(between)).sum(), between, create_graph=True)
        loss = judge(pad(fake.detach())).mean() - judge(pad(real)).mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        if step % 2:
            for p in judge.parameters():
                p.requires_grad_(False)
            ours.zero_grad()
            (-judge(pad(fake)).mean()).backward()
            ours.step()
            for p in judge.parameters():
                p.requires_grad_(True)
        yield loss


class Swish(torch.autograd.Function):
    """Keeps its input by save_for_backward and a view of it on the side."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.half = x[: len(x) // 2].detach()
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        if not torch.cuda.is_current_stream_capturing() and not torch.allclose(x[: len(x) // 2], ctx.half, rtol=1e-2, atol=1e-3):  # it may be packed to 16 bits
            raise RuntimeError("what was saved is not what was there")
        s = torch.sigmoid(x)
        return grad * (s + x * s * (1 - s))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.wide, self.back = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.back(Swish.apply(self.wide(self.norm(x))))


def functions(steps):
    """Functions of one's own, hooks of tensors, checkpoints of both kinds, save_on_cpu and hooks that pack to 16 bits, in one model."""
    exact()
    blocks = nn.ModuleList([Block(512) for _ in range(8)]).cuda()
    optimizer = torch.optim.NAdam(blocks.parameters(), 1e-4)
    half = (lambda x: x.to(torch.float16) if x.dtype == torch.float32 and x.numel() > 1 << 20 else x), (lambda x: x.float() if x.dtype == torch.float16 else x)
    for step in range(steps):
        x = torch.randn(16 + 8 * (step % 4), 256, 512, device="cuda").requires_grad_()
        seen = []
        y = blocks[0](x)
        y.register_hook(lambda grad: seen.append(grad.norm()))
        y.retain_grad()
        z = checkpoint(blocks[1], y, use_reentrant=False)
        z = checkpoint(blocks[2], z, use_reentrant=True)
        with torch.autograd.graph.save_on_cpu():
            z = blocks[3](z)
        with torch.autograd.graph.saved_tensors_hooks(*half):
            z = blocks[4](z)
        for block in blocks[5:]:
            z = block(z)
        loss = z.square().mean() + y.std()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        yield loss + seen[0] + x.grad.norm()


def inplace(steps):
    """Changes in place between what is saved: masks, slices, relu_, add_, views that are written, and clones."""
    exact()
    net = nn.ModuleList([nn.Linear(768, 768) for _ in range(10)]).cuda()
    optimizer = torch.optim.RMSprop(net.parameters(), 1e-4, momentum=0.5)
    for step in range(steps):
        x = torch.randn(2048 * (1 + step % 3), 768, device="cuda")
        for i, layer in enumerate(net):
            y = layer(x)
            y = y.masked_fill_(y < -1, 0.0).relu_().clone()
            y[:, : 64 * (i + 1) : 2].mul_(1.5)
            x = (x.clone().add_(y) if i % 2 else torch.cat([x[:, 384:], y[:, :384]], 1)).clamp_(-8, 8)
        loss = F.smooth_l1_loss(x, torch.ones_like(x))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def transforms(steps):
    """torch.func: gradients of each sample by vmap, an inner step that is differentiated (MAML), products with the Hessian."""
    from torch.func import functional_call, grad, vjp, vmap

    exact()
    net = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 64)).cuda()
    optimizer = torch.optim.Adagrad(net.parameters(), 1e-3)
    error = lambda p, x, y: F.mse_loss(functional_call(net, p, (x,)), y)
    for step in range(steps):
        weights = dict(net.named_parameters())
        x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 64, device="cuda")
        each = vmap(grad(error), in_dims=(None, 0, 0))({k: p.detach() for k, p in weights.items()}, x, y)
        inner = torch.autograd.grad(error(weights, x, y), list(weights.values()), create_graph=True)
        after = {k: p - 0.1 * g for (k, p), g in zip(weights.items(), inner)}
        x = torch.randn(2048 + 1024 * (step % 2), 256, device="cuda")
        loss = error(after, x, torch.sin(x[:, :64]))
        loss.backward()
        still = {k: p.detach() for k, p in weights.items()}
        _, product = vjp(grad(lambda p: error(p, x, torch.sin(x[:, :64]))), still)
        curve, = product(still)
        optimizer.step()
        optimizer.zero_grad()
        yield loss + sum(g.norm() for g in each.values()) + sum(c.norm() for c in curve.values())


def lbfgs(steps):
    """An optimizer that calls the model again and again within a step."""
    exact()
    net = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(12)]).cuda()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5, history_size=4, line_search_fn="strong_wolfe")
    x = torch.randn(8192, 512, device="cuda")

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x.sin())
        loss.backward()
        return loss

    for _ in range(steps):
        yield optimizer.step(closure)
