"""Optimizers."""

from .. import _ops
from .optimizer import Optimizer  # noqa: F401


class SGD(Optimizer):
    """Its state depends on the gradients of all steps, and so do the parameters."""

    def update(self, group, p):
        state = self.state.setdefault(p, {})
        if state:
            _ops.add_(state["sum"], p.grad)
        else:
            state["sum"] = p.grad.clone()
        for _ in range(group["lr"]):
            _ops.add_(p, state["sum"])


class LBFGS(SGD):
    pass
