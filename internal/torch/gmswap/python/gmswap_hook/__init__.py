"""Moves what autograd saves to the host and back, by a schedule that is made from the first steps of a program."""

from . import start


def imported(name, module):
    """Called with each module that was waited for, once it has been imported, and returns what to wait for next."""
    start.watch(module)
    return ()
