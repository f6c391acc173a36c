"""Hooks on what is saved."""

import contextlib

from .._autograd import hooks


class saved_tensors_hooks(object):
    def __init__(self, pack_hook, unpack_hook):
        self.hooks = pack_hook, unpack_hook

    def __enter__(self):
        hooks._push_saved_tensors_default_hooks(*self.hooks)

    def __exit__(self, *reason):
        hooks._pop_saved_tensors_default_hooks()


@contextlib.contextmanager
def disable_saved_tensors_hooks(message):
    try:
        hooks._saved_tensors_hooks_disable(message)
        yield
    finally:
        hooks._saved_tensors_hooks_enable()
