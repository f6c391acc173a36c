"""The jobs of h200.py, which knows when to put them to sleep: python job.py hold GB | train STEPS | turns GB PASSES | plain GB."""

import sys
import time

import torch

EACH = 2_000_000_000  # bytes of a tensor
CHUNK = 1 << 25  # numbers that are checked at a time


def say(*words):
    print(*words, flush=True)


def tensors(gb):
    """Tensors of gb GB, each full of numbers of its own."""
    n = EACH // 8
    out = []
    for i in range(int(gb * 1e9) // EACH):
        t = torch.empty(n, dtype=torch.int64, device="cuda")
        torch.arange(n, out=t)
        out.append(t.mul_(2 * i + 3).add_(i))
    torch.cuda.synchronize()
    return out


def same(all_of_them, added=0):
    """Says whether every number is what it was, plus what was added."""
    for i, t in enumerate(all_of_them):
        for lo in range(0, t.numel(), CHUNK):
            hi = min(lo + CHUNK, t.numel())
            want = torch.arange(lo, hi, dtype=torch.int64, device="cuda").mul_(2 * i + 3).add_(i + added)
            if not torch.equal(t[lo:hi], want):
                return False
    return True


def graph():
    """A CUDA graph of a few operators, and a function that replays it with a number and says whether the result is right."""
    x = torch.zeros(1_000_000, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            y = (x * 2 + 1).relu()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x * 2 + 1).relu()

    def replay(value):
        x.fill_(value)
        g.replay()
        return bool((y == value * 2 + 1).all())

    return replay


def hold(gb):
    held, replay = tensors(gb), graph()
    scratch = torch.ones(1000, device="cuda")
    begin = held[0][:1000].tolist()
    say("ready", replay(5.0))
    for n, line in enumerate(sys.stdin):
        word = line.strip()
        if word == "check":
            say("same", same(held))
        elif word == "replay":
            began = time.perf_counter()
            right = replay(float(n + 7))
            say("replayed", right, time.perf_counter() - began)
        elif word == "copy":
            say("copied", held[0][:1000].cpu().tolist() == begin)
        elif word == "fill":
            scratch.zero_()
            say("filled", scratch.cpu().sum().item() == 0)
            scratch += 1
        elif word == "quit":
            return


def llama_like(layers=8, width=1024, heads=16, vocabulary=8192):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.RMSNorm(width), torch.nn.RMSNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width, bias=False)
            self.gate, self.up = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, 3 * width, bias=False)
            self.down = torch.nn.Linear(3 * width, width, bias=False)

        def forward(self, x):
            b, s, _ = x.shape
            q, k, v = self.qkv(self.first(x)).view(b, s, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(b, s, width))
            h = self.second(x)
            return x + self.down(torch.nn.functional.silu(self.gate(h)) * self.up(h))

    return torch.nn.Sequential(
        torch.nn.Embedding(vocabulary, width), *[Block() for _ in range(layers)], torch.nn.RMSNorm(width),
        torch.nn.Linear(width, vocabulary, bias=False))


def train(steps):
    torch.manual_seed(0)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = llama_like().cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 8192, (8, 513), device="cuda")
    for step in range(int(steps)):
        logits = model(tokens[:, :-1]).float()
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        say("loss", step, loss.item().hex())


def turns(gb, passes):
    began = time.time()
    held = tensors(gb)
    say("filled", time.time() - began)
    for _ in range(int(passes)):
        for t in held:
            t.add_(1)
        torch.cuda.synchronize()
    say("ended", time.time() - began)
    say("same", same(held, int(passes)))


def plain(gb):
    """torch_memory_saver's way: each pause pins memory, copies and frees, each resume allocates, copies and unpins."""
    held = tensors(gb)
    for _ in range(2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        host = []
        for i, t in enumerate(held):
            h = torch.empty(t.shape, dtype=t.dtype, pin_memory=True)
            h.copy_(t)
            host.append(h)
            held[i] = t = None
        torch.cuda.empty_cache()
        out = time.perf_counter() - began
        began = time.perf_counter()
        for i, h in enumerate(host):
            held[i] = torch.empty(h.shape, dtype=h.dtype, device="cuda")
            held[i].copy_(h)
        del host, h
        torch.cuda.synchronize()
        if hasattr(torch._C, "_host_emptyCache"):
            torch._C._host_emptyCache()  # the next pause pins again, as there
        say("plain", out, time.perf_counter() - began)
    say("same", same(held))


if __name__ == "__main__":
    {"hold": lambda gb: hold(float(gb)), "train": train, "turns": lambda gb, n: turns(float(gb), n), "plain": lambda gb: plain(float(gb))}[
        sys.argv[1]](*sys.argv[2:])
