"""Operators. Whatever they are called, they write functions of bytes."""

from . import _dtypes, _tensor
from ._autograd import engine
from ._contents import made
from .utils._python_dispatch import dispatch


def like(t, n, *contents):
    """Returns a tensor like t, made of contents."""
    return _tensor.empty(*t.size(), dtype=t.dtype, device=t.device).write(made(t.numel() * t.dtype.size, n, *contents))


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
    return Operator(name, lambda x: like(x, n, x.read()), lambda g, s: [like(g, n + 1, g.read(), s[0].read())], (save,))


def _mul(x, y):
    return like(x, 3, x.read(), y.read()) if isinstance(y, _tensor.Tensor) else like(x, 64 + int(y), x.read())


def _mul_gradient(g, s):
    data = g.read()
    return [like(g, 1, data, u.read()) for u in reversed(s)]


def _mul_(x, y):
    x._counter[0] += 1
    return x.write(made(x.numel() * x.dtype.size, 4, x.read(), y.read()))


def _linear_gradient(g, s):
    x, w = s
    data = g.read()
    return [like(x, 6, data, w.read()), like(x, 6, data, x.read())]


def to(index):
    """Returns the operator that copies a tensor to a device from the other one."""
    return Operator("to", lambda x: on(x, index), lambda g, s: [on(g, 1 - index)], ())


def on(x, index):
    return _tensor.empty(*x.size(), dtype=x.dtype, device=_dtypes.device("cuda", index)).write(x.read())


def fitting(g, t):
    """Returns a gradient for a tensor that may have been repeated."""
    return g if g.size() == t.size() else like(t, 8, g.read())


silu, sigmoid, softplus = unary("silu", 10, 0), unary("sigmoid", 12, -1), unary("softplus", 14, 0)
mul = Operator("mul", _mul, _mul_gradient, (0, 1))
scale = Operator("mul", _mul, lambda g, s: [g], ())
add = Operator("add", lambda x, y: like(x, 7, x.read(), y.read()), lambda g, s: [g, g], ())
linear = Operator("linear", lambda x, w: like(x, 5, x.read(), w.read()), _linear_gradient, (0, 1))
relu_ = Operator("relu_", lambda x: _mul_(x, x), lambda g, s: [like(g, 2, g.read(), s[0].read())], (-1,), mutable=True)
add_ = Operator("add_", lambda x, y: _mul_(x, y), lambda g, s: [g, g], (), mutable=True)
full = Operator("full", _tensor.full, None, ())
failing = Operator("failing", lambda x: like(x, 0, x.read()), lambda g, s: 1 / 0, (0,))
loss = Operator("loss", lambda x: like(x, 9, x.read()), lambda g, s: [like(g, 2, g.read(), s[0].read())], (0,))

_tensor.Tensor.__add__ = lambda self, other: add(self, other)
_tensor.Tensor.__mul__ = lambda self, other: mul(self, other) if isinstance(other, _tensor.Tensor) else scale(self, other)
