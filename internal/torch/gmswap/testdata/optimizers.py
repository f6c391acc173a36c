"""Optimizers that are none of torch.optim's: some update each parameter by itself."""

import torch


class Own(torch.optim.Optimizer):
    """AdamW with moments of another type, in loops."""

    def __init__(self, parameters, lr=0.001):
        super().__init__(parameters, dict(lr=lr))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(group, p, self.state[p])

    def update(self, group, p, state):
        if not state:
            state.update(step=0, first=torch.zeros_like(p, dtype=torch.float64), second=torch.zeros_like(p, dtype=torch.float64))
        state["step"] += 1
        g = p.grad.double()
        state["first"].lerp_(g, 0.1)
        state["second"].mul_(0.999).addcmul_(g, g, value=0.001)
        bias = 1 - 0.9 ** state["step"]
        p.mul_(1 - 0.01 * group["lr"])
        p.add_((state["first"] / (state["second"].sqrt() + 1e-8)).to(p.dtype), alpha=-group["lr"] / bias)


class Lists(Own):
    """The same by operators on lists."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            ps = [p for p in group["params"] if p.grad is not None]
            for p in ps:
                self.state[p] or self.state[p].update(first=torch.zeros_like(p), second=torch.zeros_like(p))
            first, second = ([self.state[p][key] for p in ps] for key in ("first", "second"))
            torch._foreach_lerp_(first, [p.grad for p in ps], 0.1)
            torch._foreach_mul_(second, 0.999)
            torch._foreach_addcmul_(second, [p.grad for p in ps], [p.grad for p in ps], value=0.001)
            norm = torch._foreach_sqrt(second)
            torch._foreach_add_(norm, 1e-8)
            torch._foreach_addcdiv_(ps, first, norm, value=-group["lr"])


class Twice(Lists):
    """Has its step() call that of its base."""

    def step(self, closure=None):
        super().step()


class Decayed(Own):
    """Changes gradients."""

    def update(self, group, p, state):
        p.grad.add_(p, alpha=0.1)
        super().update(group, p, state)


class Normed(Own):
    """Scales updates by the norm of all gradients."""

    def step(self, closure=None):
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.div_(norm)
        super().step()


class Measured(Own):
    """Looks at a number of each parameter."""

    def update(self, group, p, state):
        if p.grad.norm().item() > 0:
            super().update(group, p, state)


class Counting(Own):
    def step(self, closure=None):
        self.param_groups[0]["lr"] *= 0.99
        super().step()


class Drawing(Own):
    def update(self, group, p, state):
        p.grad.add_(torch.randn_like(p), alpha=0.01)
        super().update(group, p, state)
