"""Hooks of modules, but for what torch.compile traces."""

import contextlib


class Watch(object):
    """A hook of modules. What torch.compile traces goes without, and so does a copy of the module: its hook does nothing."""

    def __init__(self, hook, compiling):
        self.hook, self.compiling = hook, compiling

    def __call__(self, *args):
        if not self.compiling():
            self.hook(*args)

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")


def compiling(torch):
    """Returns the function that says whether torch.compile traces the program, for which it is a constant."""
    for name in ("compiler", "_utils"):
        function = getattr(getattr(torch, name, None), "is_compiling", None)
        if function is not None:
            return function
    return lambda: False


def by_name(frame):
    """Returns what a module was called with by name: hooks on all modules are not given that, but the function that calls them has it."""
    given = frame.f_locals.get("kwargs")
    return given if isinstance(given, dict) else {}
