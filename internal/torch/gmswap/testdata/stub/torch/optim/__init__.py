"""Optimizers."""

from .. import _ops
from .optimizer import Optimizer  # noqa: F401


class SGD(Optimizer):
    """Its state depends on the gradients of all steps, and so do the parameters."""

    def update(self, group, p):
        state = self.state.setdefault(p, {})
        state["sum"] = _ops.add(state["sum"], p.grad) if state else p.grad.clone()
        for _ in range(group["lr"]):
            _ops.add_(p, state["sum"])


class LBFGS(SGD):
    pass
