"""Records the history of PyTorch's allocator for gmtrace."""

import os

from . import marks, recorder
from .history import History
from .settings import Settings

settings = Settings(os.environ)
_recorder = None


def imported(name, module):
    """Called with each module that was waited for, once it has been imported."""
    if name == settings.marks_module:
        try:
            marks.wrap(module, settings.marks_function, mark)
        except AttributeError:
            recorder.complain("--marks %s:%s" % (name, settings.marks_function), "the module has no such function")
    if name == "torch" and hasattr(module._C, "_cuda_record_memory_history"):
        if not settings.marks_module:
            marks.hook_optimizers(mark)
        history = History(module, settings)
        module.cuda._lazy_call(lambda: start(module, history))


def start(torch, history):
    """Runs when CUDA is initialised, in the process that does so."""
    global _recorder
    try:
        if _recorder is None or _recorder.pid != os.getpid():
            _recorder = recorder.Recorder(torch, settings, history)
            _recorder.start()
    except Exception as e:
        recorder.complain(type(e).__name__, e)


def mark():
    """Ends a step."""
    if _recorder is not None:
        _recorder.mark()


def _before_fork():
    if _recorder is not None:
        _recorder.before_fork()


def _after_fork(in_child):
    if _recorder is not None:
        _recorder.after_fork(in_child)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=lambda: _after_fork(False), after_in_child=lambda: _after_fork(True))
