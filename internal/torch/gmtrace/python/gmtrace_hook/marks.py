"""Where the steps of a program end, and the file that says so."""

import functools
import os
import sys
import time

BUFFERED = 256  # marks


def elapsed():
    return int(time.monotonic() * 1e9)


START = int(time.time() * 1e9) - elapsed()


def now():
    """Returns the time in nanoseconds since the Unix epoch, as if the clock had not been set since the start."""
    return START + elapsed()


class Marks(object):
    """The file marks.PID: a line for each mark, of its time in nanoseconds since the Unix epoch and its text."""

    def __init__(self, folder, pid):
        self.path = os.path.join(folder, "marks.%d" % pid)
        self.lines = []

    def add(self, text):
        self.lines.append("%d %s\n" % (now(), text))
        if len(self.lines) >= BUFFERED:
            self.flush()

    def flush(self):
        lines, self.lines = self.lines, []
        if lines:
            with open(self.path, "a") as f:
                f.write("".join(lines))


def hook_optimizers(mark):
    """Calls mark after each step of any optimizer, where PyTorch offers that."""
    optimizer = sys.modules.get("torch.optim.optimizer")  # torch.optim deletes its attribute of that name
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(lambda optimizer, args, kwargs: mark())


def wrap(module, name, mark):
    """Makes the function of a module, or Class.method, call mark whenever it has returned."""
    parts = name.split(".")
    owner = module
    for part in parts[:-1]:
        owner = getattr(owner, part)
    raw = vars(owner).get(parts[-1])
    if raw is None:
        raw = getattr(owner, parts[-1])
    if isinstance(raw, (staticmethod, classmethod)):
        setattr(owner, parts[-1], type(raw)(_marking(raw.__func__, mark)))
    else:
        setattr(owner, parts[-1], _marking(raw, mark))


def _marking(function, mark):
    @functools.wraps(function)
    def marked(*args, **kwargs):
        result = function(*args, **kwargs)
        mark()
        return result

    return marked
