"""Modes that are given each operator, below autograd."""

import threading

from .._autograd import engine

local = threading.local()


def modes():
    if not hasattr(local, "modes"):
        local.modes = []
    return local.modes


class TorchDispatchMode(object):
    @classmethod
    def ignore_compile_internals(cls):
        return False

    def __enter__(self):
        modes().append(self)
        return self

    def __exit__(self, *reason):
        assert modes().pop() is self


def _get_current_dispatch_mode_stack():
    return list(modes())


def _push_mode(mode):
    modes().append(mode)


def _pop_mode():
    return modes().pop()


def _get_current_dispatch_mode():
    stack = modes()
    return stack[-1] if stack else None


def dispatch(operator, args, kwargs):
    """Calls the kernel of an operator, or the innermost mode in its place."""
    stack = modes()
    if not stack:
        return operator.kernel(*args, **kwargs)
    mode, before = stack.pop(), engine.grad_enabled()
    engine.set_grad_enabled(False)
    try:
        return mode.__torch_dispatch__(operator, (), args, kwargs)
    finally:
        engine.set_grad_enabled(before)
        stack.append(mode)
