"""Operators. Whatever they are called, they write functions of bytes."""

import hashlib

from . import _tensor
from ._autograd import engine
from .utils._python_dispatch import dispatch


def table(n):
    return bytes((i * 5 + 17 * n + (i >> 3)) & 255 for i in range(256))


TABLES = [table(n) for n in range(64)]


def mixed(a, b):
    """Returns the bytes of two tensors, of which one may be some times as long, combined."""
    if len(a) < len(b):
        a, b = b, a
    b = b * (len(a) // len(b))
    return (int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little")


def like(t, data, dtype=None):
    return _tensor.empty(*t.size(), dtype=dtype or t.dtype, device=t.device).write(data)


def folded(data, size):
    """Returns this many bytes, each of which depends on all of the data."""
    return data if len(data) == size else hashlib.shake_128(data).digest(size)


class Packet(object):
    def __init__(self, name):
        self.__name__ = name


class Schema(object):
    def __init__(self, mutable):
        self.is_mutable = mutable


class Operator(object):
    """An operator. Saves says what a gradient needs: of the arguments by number, and -1 for the result."""

    def __init__(self, name, kernel, gradient, saves, mutable=False):
        self.overloadpacket, self._schema = Packet(name), Schema(mutable)
        self.kernel, self.gradient, self.saves = kernel, gradient, saves

    def __call__(self, *args, **kwargs):
        inputs = [a for a in args if isinstance(a, _tensor.Tensor)]
        node = None
        if engine.grad_enabled() and any(t.requires_grad for t in inputs):
            node = engine.Node(self.gradient, inputs)
            for i in self.saves:
                if i >= 0:
                    node.save(args[i])
        result = dispatch(self, args, kwargs)
        if node is not None:
            result.grad_fn, result.requires_grad = node, True
            if -1 in self.saves:
                node.save(result, True)
        return result


class Backward(object):
    """The operator that computes the gradients of a node's arguments."""

    def __init__(self, node):
        self.overloadpacket, self._schema = Packet("backward"), Schema(False)
        self.kernel = lambda g, saved: [fitting(x, shape) for x, shape in zip(node.gradient(g, saved), node.shapes)]

    def __call__(self, *args, **kwargs):
        return dispatch(self, args, kwargs)


def unary(name, n, save):
    return Operator(
        name, lambda x: like(x, x.read().translate(TABLES[n])), lambda g, s: [like(g, mixed(g.read().translate(TABLES[n + 1]), s[0].read()))], (save,))


def _mul(x, y):
    if isinstance(y, _tensor.Tensor):
        return like(x, mixed(x.read().translate(TABLES[3]), y.read()))
    return like(x, x.read().translate(TABLES[int(y) % 64]))


def _mul_gradient(g, s):
    data = g.read()
    return [like(g, mixed(data, u.read())) for u in reversed(s)]


def _mul_(x, y):
    x._counter[0] += 1
    return x.write(mixed(x.read().translate(TABLES[4]), y.read()))


def _linear_gradient(g, s):
    x, w = s
    data = g.read().translate(TABLES[6])
    return [like(x, mixed(data, w.read())), like(x, mixed(data, x.read()))]


def fitting(g, t):
    """Returns a gradient for a tensor that may have been repeated."""
    return g if g.size() == t.size() else like(t, folded(g.read(), t.numel() * t.dtype.size))


silu, sigmoid, softplus = unary("silu", 10, 0), unary("sigmoid", 12, -1), unary("softplus", 14, 0)
mul = Operator("mul", _mul, _mul_gradient, (0, 1))
scale = Operator("mul", _mul, lambda g, s: [g], ())
add = Operator("add", lambda x, y: like(x, mixed(x.read().translate(TABLES[7]), y.read())), lambda g, s: [g, g], ())
linear = Operator("linear", lambda x, w: like(x, mixed(x.read().translate(TABLES[5]), w.read())), _linear_gradient, (0, 1))
relu_ = Operator("relu_", lambda x: _mul_(x, x), lambda g, s: [like(g, mixed(g.read(), s[0].read()))], (-1,), mutable=True)
add_ = Operator("add_", lambda x, y: _mul_(x, y), lambda g, s: [g, g], (), mutable=True)
full = Operator("full", _tensor.full, None, ())
failing = Operator("failing", lambda x: like(x, x.read()), lambda g, s: 1 / 0, (0,))
loss = Operator("loss", lambda x: like(x, x.read().translate(TABLES[9])), lambda g, s: [like(g, mixed(g.read(), s[0].read()))], (0,))

_tensor.Tensor.__add__ = lambda self, other: add(self, other)
_tensor.Tensor.__mul__ = lambda self, other: mul(self, other) if isinstance(other, _tensor.Tensor) else scale(self, other)
