"""The moment at which the allocator is put in: when CUDA starts, and not before.

A process that never uses CUDA loads nothing, and one that forks before it does may use CUDA in its children.
"""

import functools
import os

from . import compiled, install, redirect, say

_pid = 0  # of the process that has tried


def watch(torch):
    """Makes torch._C._cuda_init, which is called before anything is allocated, put the allocator in first. Returns False for a
    PyTorch without CUDA."""
    real = getattr(torch._C, "_cuda_init", None)
    if real is None:
        return False

    @functools.wraps(real)
    def _cuda_init():
        begin(torch)
        return real()

    torch._C._cuda_init = _cuda_init
    return True


def leave_mark(folder):
    """Lets gmstitch know that a process came this far."""
    try:
        if os.path.isdir(folder):
            open(os.path.join(folder, "started"), "w").close()
    except OSError:
        pass


def begin(torch):
    global _pid
    if _pid == os.getpid():
        return
    _pid = os.getpid()
    leave_mark(os.environ.get("GMSTITCH_DIR", ""))
    try:
        library = install.install(torch, os.environ)
    except Exception as e:
        say.once("PyTorch's own allocator stays in place: %s" % say.reason(e))
        return
    try:
        redirect.redirect(torch, library)
        compiled.begin()
    except Exception as e:
        say.once("not all of torch.cuda's memory functions work: %s: %s" % (type(e).__name__, say.reason(e)))
