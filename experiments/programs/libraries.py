"""Libraries that build on PyTorch, and kernels that are launched past it. Kernels are deterministic where PyTorch has such."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from autograd import convolutions, exact

SWISH = """
extern "C" __global__ void swish(const float* x, const float* up, float* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1 + expf(-x[i])) * up[i];
}
extern "C" __global__ void slope(const float* x, const float* up, const float* dy, float* dx, float* dup, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 1 / (1 + expf(-x[i]));
    dup[i] = dy[i] * x[i] * s;
    dx[i] = dy[i] * up[i] * s * (1 + x[i] * (1 - s));
}
"""


def reproduce(net, batches):
    """Trains a network to return its inputs."""
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    for x in batches:
        loss = F.mse_loss(net(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def fused():
    """Returns kernels of Triton: a norm, a gated unit, and a rotation in place."""
    import kernels

    return kernels.Norm.apply, kernels.Gate.apply, kernels.Rotate.apply


class Fused(nn.Module):
    """A layer whose norms, gates and rotations are kernels of its own."""

    def __init__(self, width, heads, norm, gate, rotate):
        super().__init__()
        self.heads, self.norm, self.gate, self.rotate = heads, norm, gate, rotate
        self.scales = nn.Parameter(torch.ones(2, width))
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 8 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous() for t in self.qkv(self.norm(x, self.scales[0])).chunk(3, -1))
        q, k = self.rotate(q * 0.5), self.rotate(k)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        a, b = self.up(self.norm(x, self.scales[1])).chunk(2, -1)
        return x + self.down(self.gate(a.contiguous(), b.contiguous()))


def triton_kernels(steps):
    """Norms, gates and rotations in place by kernels of Triton, in functions of their own, as libraries of fused kernels have them."""
    exact()
    net = nn.Sequential(*(Fused(768, 12, *fused()) for _ in range(6))).cuda()
    yield from reproduce(net, (torch.randn(8, 512 + 128 * (step % 2), 768, device="cuda") for step in range(steps)))


def cupy_kernels(steps):
    """Gates by kernels of CuPy, which see tensors through their addresses."""
    import cupy

    exact()
    module = cupy.RawModule(code=SWISH)

    def launch(name, *tensors):
        n = tensors[0].numel()
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            module.get_function(name)(((n + 255) // 256,), (256,), (*(cupy.asarray(t.detach()) for t in tensors), n))

    class Gate(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, up):
            ctx.save_for_backward(x, up)
            y = torch.empty_like(x)
            launch("swish", x, up, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            x, up = ctx.saved_tensors
            dx, dup = torch.empty_like(x), torch.empty_like(x)
            launch("slope", x, up, grad.contiguous(), dx, dup)
            return dx, dup

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gate, self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            return x + self.down(Gate.apply(self.gate(x), self.up(x)))

    net = nn.Sequential(*(Layer(512) for _ in range(8))).cuda()
    yield from reproduce(net, (torch.randn(4096 + 1024 * (step % 2), 512, device="cuda") for step in range(steps)))


def gaussian(steps):
    """A deep kernel of gpytorch: an exact Gaussian process over what a network makes of its inputs."""
    import gpytorch

    exact()

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 2))
            self.mean, self.cover = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2))

        def forward(self, x):
            x = self.net(x)
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.cover(x))

    x = torch.randn(3000, 64, device="cuda")
    y, likelihood = x[:, 0].sin() + 0.1 * torch.randn(3000, device="cuda"), gpytorch.likelihoods.GaussianLikelihood().cuda()
    model = Process(x, y, likelihood).cuda().train()
    score = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for step in range(steps):
        optimizer.zero_grad()
        with gpytorch.settings.fast_computations(False, False, False):
            loss = -score(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss


def equivariant(steps):
    """Tensor products of e3nn, which compiles code for each, on the edges of random clouds."""
    from e3nn import o3
    from e3nn.nn import FullyConnectedNet

    exact()
    inside, sphere = o3.Irreps("32x0e+16x1o+8x2e"), o3.Irreps.spherical_harmonics(2)
    net = nn.ModuleList()
    for _ in range(3):
        product = o3.FullyConnectedTensorProduct(inside, sphere, inside, shared_weights=False)
        net.append(nn.ModuleList((product, FullyConnectedNet([8, 32, product.weight_numel], F.silu), o3.Linear(inside, inside))))
    net = net.cuda()
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(steps):
        n, edges = 300, 1500 + 500 * (step % 2)
        draw = random.Random(step)
        torch.manual_seed(step)
        place, x = torch.randn(n, 3, device="cuda", requires_grad=True), torch.randn(n, inside.dim, device="cuda")
        ends = torch.tensor([[draw.randrange(n) for _ in range(edges)] for _ in range(2)], device="cuda")
        way = place[ends[0]] - place[ends[1]]
        around = o3.spherical_harmonics(sphere, way, True, "component")
        near = torch.exp(-(way.norm(dim=1, keepdim=True) - torch.linspace(0, 4, 8, device="cuda")) ** 2)
        for product, radial, mix in net:
            x = mix(x + torch.zeros_like(x).index_add(0, ends[1], product(x[ends[0]], around, radial(near))))
        energy = x[:, 0].sum()
        force, = torch.autograd.grad(energy, place, create_graph=True)
        loss = force.square().mean() + energy.square() / n
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def flow(steps):
    """Differential equations of torchdiffeq: through the steps of a solver, and by the adjoint."""
    from torchdiffeq import odeint, odeint_adjoint

    exact()

    class Field(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(convolutions(16, 64, 64, 16), nn.Conv2d(16, 16, 3, padding=1))

        def forward(self, t, x):
            return torch.tanh(self.net(x)) * (1 + t)

    field = Field().cuda()
    optimizer, span = torch.optim.Adam(field.parameters(), 1e-3), torch.tensor([0.0, 1.0], device="cuda")
    for step in range(steps):
        x = torch.randn(16, 16, 48, 48, device="cuda")
        solve = odeint_adjoint if step % 4 == 3 else odeint
        loss = solve(field, x, span, method="rk4", options={"step_size": 0.1})[-1].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def accelerated(steps):
    """accelerate's loop: bf16, gradients of two batches, clipped, with a loader and a schedule of rates that it wraps."""
    from accelerate import Accelerator
    from transformers import BertConfig, BertForSequenceClassification

    exact()
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = BertForSequenceClassification(BertConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=8192))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    rates = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=steps)
    draw = torch.Generator().manual_seed(0)
    texts = TensorDataset(torch.randint(5, 8000, (16 * 2 * steps, 384), generator=draw), torch.randint(0, 2, (16 * 2 * steps,), generator=draw))
    model, optimizer, loader, rates = accelerator.prepare(model, optimizer, DataLoader(texts, batch_size=16, num_workers=2, pin_memory=True), rates)
    for i, (ids, labels) in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(input_ids=ids, labels=labels).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rates.step()
            optimizer.zero_grad()
        if i % 2:
            yield loss


def sentences(steps):
    """sentence-transformers: the cached loss, which embeds without gradients, and then each part again with them."""
    from sentence_transformers import SentenceTransformer, losses
    from transformers import BertConfig, BertModel

    exact()

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(BertConfig(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=8192))

        def forward(self, features, **_):
            found = self.bert(input_ids=features["input_ids"], attention_mask=features["attention_mask"]).last_hidden_state
            return dict(features, token_embeddings=found, sentence_embedding=found.mean(1))

    model = SentenceTransformer(modules=[Words()], device="cuda").train()
    score = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=16)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)
    for step in range(steps):
        texts = [{"input_ids": torch.randint(5, 8000, (64, n), device="cuda"), "attention_mask": torch.ones(64, n, dtype=torch.long, device="cuda")}
                 for n in (64, 256 if step % 2 else 192)]
        loss = score(texts, None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def reversible(steps):
    """Reversible layers of PyG, which free the memory of their inputs and compute them again from their results."""
    from torch_geometric.nn import GroupAddRev, SAGEConv

    exact()

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm, self.conv = nn.LayerNorm(width), SAGEConv(width, width)

        def forward(self, x, edges):
            return self.conv(F.relu(self.norm(x)), edges)

    first, last = nn.Linear(64, 256).cuda(), nn.Linear(256, 10).cuda()
    layers = nn.ModuleList(GroupAddRev(Layer(128), num_groups=2) for _ in range(8)).cuda()
    optimizer = torch.optim.Adam([*first.parameters(), *layers.parameters(), *last.parameters()], 1e-3)
    for step in range(steps):
        n = 6000 + 1000 * (step % 2)
        x, edges = torch.randn(n, 64, device="cuda"), torch.randint(0, n, (2, 8 * n), device="cuda")
        x = first(x)
        for layer in layers:
            x = layer(x, edges)
        loss = F.cross_entropy(last(x), torch.randint(0, 10, (n,), device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss
