"""Stands for CUDA's runtime."""

import os

is_hip = False
current = 0


def memGetInfo():
    return 900, 1000


def start():
    """Fails in a child of a process that has used CUDA, as CUDA does."""
    if os.environ.setdefault("STUB_CUPY_PID", str(os.getpid())) != str(os.getpid()):
        raise RuntimeError("cudaErrorInitializationError")
