"""Two GPUs in one process: what is on one is copied to, read and written by the other.

Usage: peers.py [NAME...]

A line for each check: name | expected | got | ok. The exit status is 1 where one did not hold. PyTorch's allocators pass all.
"""

import sys
import threading

import torch
from torch import nn

CHECKS = {}
MB = 1 << 20


def check(function):
    CHECKS[function.__name__] = function
    return function


def counted(n, device, begin=0):
    return torch.arange(begin, begin + n, device=device, dtype=torch.int64)


@check
def to_other():
    """The first copy comes when the other device has nothing yet."""
    x = counted(MB, "cuda:0")
    y = x.to("cuda:1")
    assert torch.equal(y.cpu(), x.cpu())
    assert torch.equal(y.to("cuda:0"), x)


@check
def sizes():
    """Small and large blocks, made before and after the first copy, both ways, with and without waiting."""
    for n in (1, 100, 100_000, 3 * MB, 40 * MB):
        for a, b in (("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")):
            x = counted(n, a, n)
            assert torch.equal(x.to(b, non_blocking=True).cpu(), x.cpu())
            y = torch.empty_like(x, device=b)
            y.copy_(x, non_blocking=True)
            assert torch.equal(y.cpu(), x.cpu())


@check
def strided():
    """A copy of what is not contiguous is a kernel that reads or writes the other device."""
    x = counted(4 * MB, "cuda:0").view(2048, -1)
    y = torch.zeros(2048, 2048, device="cuda:1", dtype=torch.int64)
    y[::2, ::2].copy_(x[::2, ::2])
    assert torch.equal(y[::2, ::2].cpu(), x[::2, ::2].cpu())


@check
def pipeline():
    """A model in two stages, trained: activations go one way, gradients the other."""

    def losses(first, second):
        torch.manual_seed(1)
        a, b = nn.Linear(512, 2048), nn.Linear(2048, 512)
        a, b = a.to(first), b.to(second)
        optimizer = torch.optim.AdamW([*a.parameters(), *b.parameters()], lr=1e-3)
        out = []
        for i in range(8):
            x = torch.randn(256 + 128 * (i % 3), 512, generator=torch.Generator().manual_seed(i)).to(first)
            loss = b(torch.relu(a(x)).to(second)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            out.append(loss.item())
        return out

    assert losses("cuda:0", "cuda:1") == losses("cuda:0", "cuda:0")


@check
def data_parallel():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda(0)
    x = torch.randn(512, 256, device="cuda:0")
    both = nn.DataParallel(net, [0, 1])
    alone, shared = net(x), both(x)
    assert torch.allclose(alone, shared, atol=1e-5)
    shared.sum().backward()
    split = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x).sum().backward()
    assert all(torch.allclose(a, p.grad, atol=1e-2) for a, p in zip(split, net.parameters()))


@check
def reduce_within():
    """NCCL with two devices in one process."""
    xs = [torch.full((8 * MB,), float(i + 1), device=f"cuda:{i}") for i in range(2)]
    torch.cuda.nccl.all_reduce(xs)
    assert all(bool((x == 3).all()) for x in xs)


@check
def threads():
    """A thread for each device that allocates, copies to the other, and frees, at the same time."""
    errors = []

    def work(me):
        try:
            stream = torch.cuda.Stream(me)
            with torch.cuda.device(me), torch.cuda.stream(stream):
                for i in range(300):
                    x = counted(1000 + i * 7919 % (4 * MB), f"cuda:{me}", i)
                    y = x.to(f"cuda:{1 - me}")
                    assert int(y[-1]) == i + len(x) - 1
        except Exception as e:  # pylint: disable=broad-except
            errors.append(repr(e))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not errors, errors[0]


@check
def emptied():
    """Memory that goes back to the driver and is taken again."""
    for _ in range(5):
        xs = [counted(20 * MB, f"cuda:{i}") for i in range(2)]
        ys = [x.to(f"cuda:{1 - i}") for i, x in enumerate(xs)]
        assert torch.equal(ys[0].cpu(), xs[0].cpu()) and torch.equal(ys[1].cpu(), xs[1].cpu())
        del xs, ys
        torch.cuda.empty_cache()


@check
def snapshots():
    """One thread trains, another asks for snapshots: each is whole, and neither waits for ever."""
    seen, ended = [], threading.Event()

    def ask():
        while not ended.is_set():
            segments = torch.cuda.memory_snapshot()
            seen.append(len(segments))
            assert all(s["allocated_size"] <= s["total_size"] for s in segments)

    asking = threading.Thread(target=ask)
    asking.start()
    net = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda(0)
    for i in range(300):
        net(torch.randn(64 + i, 512, device="cuda:0")).square().mean().backward()
    ended.set()
    asking.join(60)
    assert not asking.is_alive() and len(seen) > 10, "%d snapshots" % len(seen)


def main():
    failed = False
    for name in sys.argv[1:] or CHECKS:
        try:
            CHECKS[name]()
            torch.cuda.synchronize(0)
            torch.cuda.synchronize(1)
            got = "done"
        except Exception as e:  # pylint: disable=broad-except
            failed, got = True, (str(e) or repr(e)).splitlines()[0]
        print(name, "| done |", got, "|", "ok" if got == "done" else "no", flush=True)
    sys.exit(failed)


main()
