"""What optimizers share."""

import collections
import functools

from .._autograd import engine
from ..nn.modules.module import register

_global_optimizer_pre_hooks = collections.OrderedDict()
_global_optimizer_post_hooks = collections.OrderedDict()


def register_optimizer_step_pre_hook(hook):
    return register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    return register(_global_optimizer_post_hooks, hook)


class Optimizer(object):
    def __init__(self, parameters, lr=1):
        self.param_groups, self.state = [{"params": list(parameters), "lr": lr}], {}
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = collections.OrderedDict(), collections.OrderedDict()
        self._patch_step_function()

    def _patch_step_function(self):
        cls = type(self)
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(real):
        @functools.wraps(real)
        def step(self, *args):
            for hook in [*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()]:
                hook(self, (self,) + args, {})
            real(self, *args)
            for hook in [*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
                hook(self, (self,) + args, {})

        return step

    def register_step_pre_hook(self, hook):
        return register(self._optimizer_step_pre_hooks, hook)

    def step(self, closure=None):
        if closure is not None:
            closure()
        before = engine.grad_enabled()
        engine.set_grad_enabled(False)
        try:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        self.update(group, p)
        finally:
            engine.set_grad_enabled(before)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = None if set_to_none else p.grad.write(bytes(p.grad.numel() * 4))
