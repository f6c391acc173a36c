"""Sees models that module.compile() compiles as a whole: hooks on them are compiled with them, and do nothing."""

import functools
import weakref

from . import say

UNSUPPORTED = ("nothing that is saved is moved: torch.compile made the model as a whole; its graphs recompute more where memory is short, "
               "and states of optimizers are moved. If only its layers are compiled, what they save is moved as well")


class Whole(object):
    def __init__(self, torch, compiling):
        self.torch, self.compiling = torch, compiling
        self.outermost = lambda: False  # says whether no model that is watched is running; set when any are
        self.met = lambda module, args: None  # is told of a model on the device; likewise
        real = getattr(torch.nn.Module, "compile", None)  # since 2.3
        if real is not None:
            torch.nn.Module.compile = self.noted(real)

    def noted(self, real):
        @functools.wraps(real)
        def compile(module, *args, **kwargs):
            result = real(module, *args, **kwargs)
            self.watch(module)
            return result

        return compile

    def watch(self, module):
        """Waits for the first run of a module that may save anything."""
        made, weak = module._compiled_call_impl, weakref.ref(module)

        @functools.wraps(made)
        def call(*args, **kwargs):
            if not self.compiling() and self.torch.is_grad_enabled():
                weak()._compiled_call_impl = made
                if self.outermost():
                    say.once(UNSUPPORTED)
                    self.met(weak(), args)
            return made(*args, **kwargs)

        module._compiled_call_impl = call
