"""What training scripts do around a model. Kernels are deterministic."""

import copy
import queue
import random
import threading

import torch
import torch.nn.functional as F
from torch import nn

from autograd import Block, convolutions, exact


def encoder(layers=6, width=512, heads=8):
    """Returns an encoder of PyTorch's own."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True, norm_first=True), layers).cuda()


def threads(steps):
    """Two models in two threads, each on a stream of its own."""
    exact()

    def train(seed, results):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                draw = torch.Generator("cuda").manual_seed(seed)
                net = nn.Sequential(*[Block(384) for _ in range(8)]).cuda()
                with torch.no_grad():
                    for p in net.parameters():
                        p.copy_(torch.randn(p.shape, device="cuda", generator=draw) / 20)
                optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
                for step in range(steps):
                    x = torch.randn(64 + 16 * (step % 3), 128, 384, device="cuda", generator=draw)
                    loss = F.mse_loss(net(x), x)
                    loss.backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    results.put(float(loss))
        except BaseException as e:
            results.put(e)

    lines = [queue.Queue(), queue.Queue()]
    workers = [threading.Thread(target=train, args=(i, line), daemon=True) for i, line in enumerate(lines)]
    for worker in workers:
        worker.start()
    for _ in range(steps):
        losses = [line.get() for line in lines]
        for loss in losses:
            if isinstance(loss, BaseException):
                raise loss
        yield sum(losses)


def prefetch(steps):
    """Batches copied ahead on a stream of their own from pinned memory, and record_stream."""
    exact()
    net = nn.Sequential(convolutions(16, 64, 64, 64, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    side, draw = torch.cuda.Stream(), torch.Generator().manual_seed(0)

    def fetch(step):
        host = torch.randn(32 + 16 * (step % 3), 16, 64, 64, generator=draw).pin_memory()
        with torch.cuda.stream(side):
            return host.to("cuda", non_blocking=True)

    following = fetch(0)
    for step in range(steps):
        torch.cuda.current_stream().wait_stream(side)
        x = following
        x.record_stream(torch.cuda.current_stream())
        following = fetch(step + 1)
        loss = F.cross_entropy(net(x), torch.arange(len(x), device="cuda") % 10)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield loss


def graphed(steps):
    """A step captured as a CUDA graph and replayed, with evaluations outside of it."""
    exact()
    net = nn.Sequential(*[Block(512) for _ in range(6)]).cuda()
    optimizer = torch.optim.Adam(net.parameters(), 1e-4, capturable=True)
    x = torch.randn(64, 128, 512, device="cuda")

    def once():
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(x), x)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            once()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = once()
    for step in range(steps):
        x.copy_(torch.randn(64, 128, 512, device="cuda"))
        graph.replay()
        if step % 4 == 3:
            with torch.no_grad():
                yield loss + net(torch.randn(8 * step, 128, 512, device="cuda")).mean()
        else:
            yield loss.clone()


def compiled(steps):
    """torch.compile of an encoder, with lengths that vary."""
    exact()
    net = encoder(4)
    fast, optimizer = torch.compile(net, dynamic=True), torch.optim.AdamW(net.parameters(), 1e-4)
    for step in range(steps):
        x = torch.randn(16, 128 + 32 * (step % 4), 512, device="cuda")
        loss = F.mse_loss(fast(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss


def distillation(steps):
    """A large teacher without gradients, a student, an average of its weights, and a scaler that skips steps."""
    exact()
    teacher, student = encoder(8, 768).half().eval(), encoder(4, 768)
    mean = copy.deepcopy(student).requires_grad_(False)
    optimizer, scaler = torch.optim.AdamW(student.parameters(), 1e-4), torch.amp.GradScaler("cuda", init_scale=2.0**24)
    for step in range(steps):
        x = torch.randn(random.Random(step).choice([12, 16, 24]), 256, 768, device="cuda")
        with torch.no_grad():
            target = teacher(x.half()).float()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.kl_div(student(x).log_softmax(-1), target.softmax(-1), reduction="batchmean")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        with torch.no_grad():
            for a, b in zip(mean.parameters(), student.parameters()):
                a.lerp_(b, 0.01)
        yield loss


def diffusion(steps):
    """Denoising with a cosine schedule and sampling between steps."""
    exact()
    net = nn.Sequential(convolutions(8, 64, 128, 128, 64), nn.Conv2d(64, 8, 3, padding=1)).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, foreach=True)
    level = torch.cos(torch.linspace(0, 1.5, 50, device="cuda"))
    for step in range(steps):
        x = torch.randn(48, 8, 64, 64, device="cuda").to(memory_format=torch.channels_last)
        noise, at = torch.randn_like(x), level[torch.randint(0, 50, (48,), device="cuda")].view(-1, 1, 1, 1)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(net(at * x + (1 - at * at).sqrt() * noise), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            with torch.no_grad():
                y = torch.randn(16, 8, 64, 64, device="cuda")
                for _ in range(10):
                    y = y - 0.05 * net(y)
                loss = loss + y.abs().mean()
        yield loss


def caught(steps):
    """Requests that no card holds, caught, errors in the middle of a step, and smaller batches behind them."""
    exact()
    net = nn.Sequential(*[Block(512) for _ in range(6)]).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)
    for step in range(steps):
        if step % 5 == 1:  # one request beyond any card
            try:
                torch.empty(1 << 41, dtype=torch.uint8, device="cuda")
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
        x = torch.randn(256 >> (step % 3), 128, 512, device="cuda")
        try:
            loss = F.mse_loss(net(x), x)
            if step % 4 == 2:
                raise ValueError("in the middle of a step")
            loss.backward()
            optimizer.step()
        except ValueError:
            loss = loss.detach()
        optimizer.zero_grad()
        yield loss


def resumed(steps):
    """Checkpoints of model and optimizer written and read in the middle, layers frozen and thawed, dropout by seeds."""
    import io

    exact()
    net = encoder(6)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4, amsgrad=True)
    for step in range(steps):
        for i, layer in enumerate(net.layers):
            layer.requires_grad_(i >= (step // 4) % 3)
        x = torch.randn(24, 128 + 64 * (step % 2), 512, device="cuda")
        loss = F.mse_loss(net(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 5 == 4:
            file = io.BytesIO()
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.cuda.get_rng_state()}, file)
            file.seek(0)
            state = torch.load(file, weights_only=True)
            net.load_state_dict(state["net"])
            optimizer.load_state_dict(state["optimizer"])
        yield loss
