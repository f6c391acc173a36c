"""Models of sequences and signals of other kinds than language models. Kernels are deterministic."""

import random

import torch
import torch.nn.functional as F
from torch import nn

from autograd import exact


def lstm(steps):
    """cuDNN's LSTM over packed sequences, and an embedding with sparse gradients and an optimizer of its own."""
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    exact()
    table = nn.Embedding(50_000, 256, sparse=True).cuda()
    net, head = nn.LSTM(256, 512, num_layers=3, bidirectional=True, dropout=0.2, batch_first=True).cuda(), nn.Linear(1024, 256).cuda()
    dense, sparse = torch.optim.AdamW([*net.parameters(), *head.parameters()], 1e-3), torch.optim.SparseAdam(table.parameters(), 1e-3)
    for step in range(steps):
        rng = random.Random(step)
        lengths = torch.tensor([rng.randint(20, 300) for _ in range(48)])
        ids = torch.randint(0, 50_000, (48, int(lengths.max())), device="cuda")
        x = table(ids)
        y, _ = pad_packed_sequence(net(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[0], batch_first=True)
        loss = F.mse_loss(head(y), x.detach())
        loss.backward()
        nn.utils.clip_grad_value_([*net.parameters(), *head.parameters()], 0.5)
        for optimizer in (dense, sparse):
            optimizer.step()
            optimizer.zero_grad()
        yield loss


def whisper(steps):
    """Speech to text of transformers: an encoder with convolutions, a decoder, texts of all lengths, gradients accumulated."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    exact()
    config = WhisperConfig(d_model=512, encoder_layers=6, decoder_layers=6, encoder_attention_heads=8, decoder_attention_heads=8, encoder_ffn_dim=2048,
                           decoder_ffn_dim=2048, use_cache=False)
    model = WhisperForConditionalGeneration(config).cuda()
    optimizer = torch.optim.Adafactor(model.parameters(), 1e-3)
    for step in range(steps):
        rng = random.Random(step)
        for part in range(2):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                sound, text = torch.randn(4, 80, 3000, device="cuda"), torch.randint(0, 50_000, (4, rng.randint(16, 200)), device="cuda")
                loss = model(input_features=sound, labels=text).loss / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def fourier(steps):
    """A Fourier neural operator: FFTs, complex weights, grids of several sizes."""
    exact()
    lifts = nn.ModuleList([nn.Conv2d(64, 64, 1) for _ in range(6)]).cuda()
    modes = nn.ParameterList([nn.Parameter(torch.randn(64, 64, 24, 24, dtype=torch.cfloat, device="cuda") / 64) for _ in lifts])
    optimizer = torch.optim.Adam([*lifts.parameters(), *modes.parameters()], 1e-3)
    for step in range(steps):
        side = (96, 128, 160)[step % 3]
        x = torch.randn(16, 64, side, side, device="cuda")
        for lift, weight in zip(lifts, modes):
            f = torch.fft.rfft2(x)
            g = torch.zeros_like(f)
            g[:, :, :24, :24] = torch.einsum("bixy,ioxy->boxy", f[:, :, :24, :24], weight)
            x = F.gelu(torch.fft.irfft2(g, s=x.shape[-2:]) + lift(x))
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def scan(steps):
    """A selective state space by hand: a loop over time with small operators, in chunks, hidden states carried on."""
    exact()
    inner, delta, out = (nn.Linear(a, b).cuda() for a, b in ((256, 512), (256, 512), (512, 256)))
    decay = nn.Parameter(-torch.rand(512, 16, device="cuda"))
    params = [*inner.parameters(), *delta.parameters(), *out.parameters(), decay]
    optimizer = torch.optim.SGD(params, 1e-3, momentum=0.9, nesterov=True)
    for step in range(steps):
        x = torch.randn(16, 64 + 32 * (step % 3), 256, device="cuda")
        u, d, h, ys = F.silu(inner(x)), F.softplus(delta(x)), torch.zeros(16, 512, 16, device="cuda"), []
        for t in range(x.shape[1]):
            h = torch.exp(d[:, t, :, None] * decay) * h + (d[:, t] * u[:, t])[:, :, None]
            ys.append(h.sum(-1))
            if t % 64 == 63:
                h = h.detach()
        loss = F.mse_loss(out(torch.stack(ys, 1)), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def nested(steps):
    """Sequences of all lengths as one jagged tensor, through attention."""
    exact()
    layer = nn.ModuleList([nn.Linear(512, 1536) for _ in range(4)]).cuda().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(layer.parameters(), 1e-4)
    for step in range(steps):
        rng = random.Random(step)
        parts = [torch.randn(rng.randint(32, 1024), 512, device="cuda", dtype=torch.bfloat16) for _ in range(24)]
        x = torch.nested.nested_tensor(parts, layout=torch.jagged)
        for qkv in layer:
            q, k, v = (p.unflatten(-1, [8, 64]).transpose(1, 2) for p in qkv(x).chunk(3, -1))
            x = x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
        loss = x.values().float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def volumes(steps):
    """A U-Net of three dimensions with instance norm and transposed convolutions; every third step is an evaluation by tiles."""
    exact()

    def twice(a, b):
        return nn.Sequential(nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, inplace=True),
                             nn.Conv3d(b, b, 3, padding=1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, inplace=True))

    down, up = nn.ModuleList([twice(1, 16), twice(16, 32), twice(32, 64)]).cuda(), nn.ModuleList([twice(96, 32), twice(48, 16)]).cuda()
    head = nn.Conv3d(16, 4, 1).cuda()
    params = [*down.parameters(), *up.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(params, 1e-3, momentum=0.99, nesterov=True)

    def forward(x):
        kept = []
        for i, block in enumerate(down):
            x = block(F.max_pool3d(x, 2) if i else x)
            kept.append(x)
        for block, side in zip(up, kept[-2::-1]):
            big = x.repeat_interleave(2, 2).repeat_interleave(2, 3).repeat_interleave(2, 4)
            x = block(torch.cat([big, side], 1))
        return head(x)

    for step in range(steps):
        side = 48 + 16 * (step % 2)
        x = torch.randn(2, 1, side, side, side, device="cuda")
        if step % 3 == 2:
            with torch.inference_mode():
                yield sum(forward(x[..., i : i + 32]).mean() for i in range(0, side - 31, 16))
            continue
        loss = (forward(x).softmax(1)[:, 1] - (x[:, 0] > 0).float()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss
