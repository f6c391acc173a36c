"""Recording this process, and the reason why it ran out of memory."""

import contextlib
import os
import sys
import tempfile

from gm import _tools, _view


def _memory(wanted):
    """Return torch.cuda.memory, or say why there is nothing to record."""
    try:
        import torch
    except ImportError:
        raise RuntimeError(f"{wanted}: it is PyTorch's, and torch is not installed") from None
    if not torch.cuda.is_available():
        raise RuntimeError(f"{wanted}: PyTorch sees no CUDA device (torch.cuda.is_available() is False)")
    return torch.cuda.memory


@contextlib.contextmanager
def _snapshot(memory):
    """Dump what PyTorch has recorded into a file, which lives as long as the block."""
    with tempfile.TemporaryDirectory(prefix="gm-") as folder:
        name = os.path.join(folder, "snapshot.pickle")
        memory._dump_snapshot(name)
        yield name


@contextlib.contextmanager
def trace(path, stacks="python"):
    """Record what PyTorch allocates on GPUs within the block, and write it as a trace to path, also if the block fails.

    stacks is as for torch.cuda.memory._record_memory_history: "python", or "all" for frames of C++ as well. The history is kept in host
    memory until the end of the block. For a whole program, and for what others take from the driver: gmtrace run.
    """
    memory = _memory("gm.trace records GPU memory")
    if os.environ.get("GMTRACE_DIR"):
        raise RuntimeError("gm.trace: gmtrace run records this process already")
    memory._record_memory_history(enabled="all", stacks=stacks, max_entries=sys.maxsize)
    try:
        yield _view.Trace._coming(path)
    finally:
        try:
            with _snapshot(memory) as snapshot:
                _tools.run("gmtrace", "import", snapshot, "-o", path)
        finally:
            memory._record_memory_history(enabled=None)


def why_oom(path=None):
    """Say why a trace's program ran out of GPU memory, who held it, and what would have helped.

    path is a trace or a snapshot of PyTorch. Without it the history of this process is asked, which must be on:
    torch.cuda.memory._record_memory_history() or gm.trace.
    """
    if path is not None:
        return _view.Text(_tools.run("gmtrace", "why-oom", _tools.existing(path)))
    with _snapshot(_memory("gm.why_oom() asks for the history of GPU memory")) as snapshot:
        return _view.Text(_tools.run("gmtrace", "why-oom", snapshot))
