"""Kernels of Triton with their gradients: a norm, a gated unit, and a rotation in place."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def norm_forward(x, scale, y, root, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    a = tl.load(x + row * width + at, at < width, 0.0)
    r = tl.rsqrt(tl.sum(a * a) / width + 1e-6)
    tl.store(root + row, r)
    tl.store(y + row * width + at, a * r * tl.load(scale + at, at < width, 0.0), at < width)


@triton.jit
def norm_backward(x, scale, root, dy, width, BLOCK: tl.constexpr):
    """Writes the gradient of x over that of y."""
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    r = tl.load(root + row)
    a = tl.load(x + row * width + at, at < width, 0.0) * r
    g = tl.load(dy + row * width + at, at < width, 0.0) * tl.load(scale + at, at < width, 0.0)
    tl.store(dy + row * width + at, r * (g - a * (tl.sum(g * a) / width)), at < width)


@triton.jit
def gate_forward(a, b, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, at < n, 0.0)
    tl.store(y + at, x * tl.sigmoid(x) * tl.load(b + at, at < n, 0.0), at < n)


@triton.jit
def gate_backward(a, b, dy, n, BLOCK: tl.constexpr):
    """Writes the gradients over what the forward pass was given."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x, up, g = tl.load(a + at, at < n, 0.0), tl.load(b + at, at < n, 0.0), tl.load(dy + at, at < n, 0.0)
    s = tl.sigmoid(x)
    tl.store(b + at, g * x * s, at < n)
    tl.store(a + at, g * up * s * (1 + x * (1 - s)), at < n)


@triton.jit
def turn(x, half, length, sign, BLOCK: tl.constexpr):
    """Rotates the two halves of each row by angles that grow along the text."""
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    angle = (row % length).to(tl.float32) * tl.exp(-at.to(tl.float32) / half * 9.0)
    a, b = tl.load(x + row * 2 * half + at, at < half, 0.0), tl.load(x + row * 2 * half + half + at, at < half, 0.0)
    c, s = tl.cos(angle), tl.sin(angle) * sign
    tl.store(x + row * 2 * half + at, a * c - b * s, at < half)
    tl.store(x + row * 2 * half + half + at, b * c + a * s, at < half)


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        width, y = x.shape[-1], torch.empty_like(x)
        root = torch.empty(x.numel() // width, device=x.device)
        norm_forward[(root.numel(),)](x, scale, y, root, width, BLOCK=triton.next_power_of_2(width))
        ctx.save_for_backward(x, scale, root)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, scale, root = ctx.saved_tensors
        dy = dy.contiguous()
        width = x.shape[-1]
        slope = (dy * x * root.view(*x.shape[:-1], 1)).flatten(0, -2).sum(0)
        norm_backward[(root.numel(),)](x, scale, root, dy, width, BLOCK=triton.next_power_of_2(width))
        return dy, slope


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        y = torch.empty_like(a)
        gate_forward[(triton.cdiv(a.numel(), BLOCK),)](a, b, y, a.numel(), BLOCK=BLOCK)
        ctx.save_for_backward(a, b)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        gate_backward[(triton.cdiv(a.numel(), BLOCK),)](a, b, dy.contiguous(), a.numel(), BLOCK=BLOCK)
        return a, b


class Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        half = x.shape[-1] // 2
        turn[(x.numel() // (2 * half),)](x, half, x.shape[-2], 1.0, BLOCK=triton.next_power_of_2(half))
        return x

    @staticmethod
    def backward(ctx, dy):
        dy, half = dy.contiguous(), dy.shape[-1] // 2
        turn[(dy.numel() // (2 * half),)](dy, half, dy.shape[-2], -1.0, BLOCK=triton.next_power_of_2(half))
        return dy
