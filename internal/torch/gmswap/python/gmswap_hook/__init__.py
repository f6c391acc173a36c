"""Moves what autograd saves to the host and back, by a schedule that is made from the first steps of a program."""

import os

from . import inductor, partition, start


def imported(name, module):
    """Called with each module that was waited for, once it has been imported, and returns what to wait for next."""
    if name == inductor.MODULE:
        inductor.watch(module, os.environ)
        return ()
    if name == partition.MODULE:
        partition.watch(module, os.environ)
        return ()
    start.watch(module)
    return (partition.MODULE, inductor.MODULE) if inductor.wanted(os.environ) else (partition.MODULE,)
