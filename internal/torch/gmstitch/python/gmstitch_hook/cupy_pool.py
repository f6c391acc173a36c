"""CuPy's default memory pool, which becomes libgm.so's at its first request if the user asks for that.

Before, nothing is loaded, and a process that forks may use CUDA in its children. An allocator that the program chooses by
cupy.cuda.set_allocator, and a cupy.cuda.MemoryPool that it makes, are left alone.
"""

import contextlib
import functools
import os

from . import install, say, start

METHODS = ("malloc", "free_all_blocks", "n_free_blocks", "used_bytes", "free_bytes", "total_bytes", "set_limit", "get_limit")
STARTING = ("malloc", "set_limit", "get_limit")


def watch(cupy):
    """Makes CuPy's default pool one that turns to libgm.so, if it is asked for."""
    if os.environ.get("GMSTITCH_CUPY", "") != "1":
        return
    try:
        Switch(cupy)
    except Exception as e:
        stays(e)


def stays(error):
    say.once("CuPy's own memory pool stays in place: %s" % say.reason(error))


class Switch(object):
    """The pool that the program sees: CuPy's own or libgm.so's, whose methods it is given."""

    def __init__(self, cupy):
        if cupy.cuda.runtime.is_hip:
            raise install.Unfit("this CuPy is one for ROCm")
        self.cupy, self.own, self.begun = cupy, cupy.get_default_memory_pool(), False
        if cupy.cuda.get_allocator() != self.own.malloc:
            raise install.Unfit("its allocator is another one")

        class Pool(cupy.cuda.MemoryPool):
            """CuPy's default memory pool, under gmstitch."""

        self.pool = Pool()
        self.use(self.own)
        for name in STARTING:
            setattr(self.pool, name, functools.partial(self.first, name))
        watch_hooks(cupy, self)
        cupy.cuda.set_allocator(self.pool.malloc)
        cupy._default_memory_pool = self.pool
        cupy.get_default_memory_pool = functools.wraps(cupy.get_default_memory_pool)(lambda: self.pool)

    def use(self, pool):
        """Gives the program's pool the methods of another one; also CuPy calls the other one from now on, if it called this one."""
        before = getattr(self.pool, "malloc")
        for name in METHODS:
            setattr(self.pool, name, getattr(pool, name))
        if self.cupy.cuda.get_allocator() is before:
            with contextlib.suppress(ValueError):  # within using_allocator
                self.cupy.cuda.set_allocator(self.pool.malloc)

    def first(self, name, *args, **kwargs):
        if not self.begun:
            self.begin()
        return getattr(self.pool, name)(*args, **kwargs)

    def begin(self):
        from .cupy_memory import Memory

        start.leave_mark(os.environ.get("GMSTITCH_DIR", ""))
        try:
            pool = Memory(self.cupy, self.own, install.libgm(os.environ))
        except Exception as e:
            stays(e)
            pool = self.own
        self.use(pool)
        self.begun = True

    def end(self, why):
        """Has CuPy's own pool serve requests from now on."""
        self.begun = True
        self.use(self.own)
        say.once("CuPy's own memory pool serves requests from now on: %s" % why)


def watch_hooks(cupy, switch):
    """Memory hooks (cupy.cuda.MemoryHook) are called by CuPy's own pool."""
    real = cupy.cuda.MemoryHook.__enter__

    @functools.wraps(real)
    def __enter__(self):
        switch.end("the program uses memory hooks, which that calls")
        return real(self)

    cupy.cuda.MemoryHook.__enter__ = __enter__
