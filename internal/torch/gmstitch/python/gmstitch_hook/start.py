"""The moment at which the allocator is put in: when CUDA starts, and not before.

A process that never uses CUDA loads nothing, and one that forks before it does may use CUDA in its children.
"""

import functools
import os

from . import compiled, install, native, redirect, registration, say

_pid = 0  # of the process that has tried


# What initialises the allocator. Most functions of torch.cuda call the first; the history is recorded without it.
BEGINNINGS = ("_cuda_init", "_cuda_record_memory_history", "_cuda_record_memory_history_legacy")


def watch(torch):
    """Makes the functions of torch._C that are called before anything is allocated put the allocator in first. Returns False for a
    PyTorch without CUDA."""
    if getattr(torch._C, BEGINNINGS[0], None) is None:
        return False
    registration.refuse()
    for name in BEGINNINGS:
        real = getattr(torch._C, name, None)
        if real is not None:
            setattr(torch._C, name, after_begin(torch, name, real))
    return True


def after_begin(torch, name, real):
    @functools.wraps(real)
    def function(*args, **kwargs):
        before = getattr(torch._C, name)  # another tool may have wrapped this function
        begin(torch)
        now = getattr(torch._C, name)
        return (real if now is before else now)(*args, **kwargs)

    return function


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
        path = install.check(torch, os.environ)
        library = None if put_in(torch, path) else install.install(torch, path)
    except Exception as e:
        registration.allow()
        say.once("PyTorch's own allocator stays in place: %s" % say.reason(e))
        return
    registration.report()
    if library is None:
        return
    try:
        redirect.redirect(torch, library)
        compiled.begin()
    except Exception as e:
        say.once("not all of torch.cuda's memory functions work: %s: %s" % (type(e).__name__, say.reason(e)))


def put_in(torch, path):
    """Makes libgm.so PyTorch's allocator by the compiled class, and says whether that is done. What is left else is a pluggable
    allocator."""
    if os.environ.get("GMSTITCH_TORCH", "") == "pluggable":
        return False
    try:
        native.install(torch, path, os.environ)
        return True
    except Exception as e:
        say.once("a pluggable allocator is used, with which PyTorch can do less: %s" % say.reason(e))
        return False
