"""The stack of hooks on what is saved, of each thread."""

import threading

local = threading.local()


def stack():
    if not hasattr(local, "stack"):
        local.stack, local.disabled = [], None
    return local.stack


def _push_saved_tensors_default_hooks(pack, unpack):
    stack()
    if local.disabled is not None:
        raise RuntimeError(local.disabled)
    local.stack.append((pack, unpack))


def _pop_saved_tensors_default_hooks():
    stack().pop()


def _top_saved_tensors_default_hooks(ignore_is_tracing):
    return stack()[-1] if stack() else None


def _saved_tensors_hooks_disable(message):
    local.disabled = message
    if stack():
        raise RuntimeError(message)


def _saved_tensors_hooks_enable():
    stack()
    local.disabled = None
