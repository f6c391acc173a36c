"""Makes libgm.so PyTorch's allocator by a C++ class of its own, compiled for the PyTorch that is imported.

PyTorch then lets it do all that its own allocator does, and no function of Python is touched.
"""

import ctypes
import os

from . import build

_kept = []  # libraries that stay loaded


def install(torch, path, environ):
    """Puts the allocator in; else raises, and has changed nothing."""
    library = load(torch, environ)
    entry = library.gm_torch_install
    entry.argtypes, entry.restype = [ctypes.c_char_p], ctypes.c_char_p
    why = entry(os.fsencode(path))
    if why is not None:
        raise build.Failed(why.decode(errors="replace"))
    _kept.append(library)


def load(torch, environ):
    """Returns the compiled half, from the first folder from which it can be loaded."""
    failure = build.Failed("there is no folder to compile in")
    for folder in build.folders(environ):
        try:
            return ctypes.CDLL(build.library(torch, environ, folder))
        except OSError as e:  # a file system that is full, or from which nothing may be executed
            failure = e
    raise failure
