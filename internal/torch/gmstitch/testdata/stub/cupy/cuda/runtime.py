"""Stands for CUDA's runtime."""

import os

is_hip = False
current = 0


def memGetInfo():
    total = int(os.environ.get("STUB_CUPY_TOTAL", "1000"))
    return total - 100, total


def start():
    """Fails in a child of a process that has used CUDA, as CUDA does."""
    if os.environ.setdefault("STUB_CUPY_PID", str(os.getpid())) != str(os.getpid()):
        raise RuntimeError("cudaErrorInitializationError")
