"""Backward passes."""

from .. import cuda
from .._autograd import engine
from . import graph  # noqa: F401
from .._autograd.engine import grad_enabled as is_grad_enabled  # noqa: F401


class _Grad(object):
    on = True

    def __enter__(self):
        self.before = is_grad_enabled()
        engine.set_grad_enabled(self.on)

    def __exit__(self, *reason):
        engine.set_grad_enabled(self.before)


class no_grad(_Grad):
    on = False


class enable_grad(_Grad):
    pass


def backward(tensor, gradient=None, retain_graph=False):
    if gradient is None:
        gradient = tensor.detach()
    node = tensor.grad_fn
    home = cuda.current_stream()
    engine.follow(engine.in_thread(lambda: engine.run(node, gradient, retain_graph, home)))
