"""Models that are run in a backward pass by what is called there when a gradient has come, as losses that embed each part of a batch again do."""

import os
import sys
import threading

PASS = "_engine_run_backward"  # in which a thread of the program waits for a backward pass
BEFORE = os.path.join("torch", "autograd", "__init__.py"), ("backward", "grad")  # or, before 2.3, one of these functions of that file
AGAIN = tuple(os.path.join("torch", *names) for names in (("autograd", "function.py"), ("utils", "checkpoint.py")))  # these run models as a part of it


class Owner(object):
    """The thread whose models are served: the first one, as long as it lives."""

    def __init__(self, torch):
        self.torch, self.thread = torch, None

    def here(self):
        """Returns whether it is that thread that runs now, or one of autograd's for it."""
        now = program(self.torch, self.thread)
        if now is not None and (self.thread is None or not self.thread.is_alive()):
            self.thread = now
        return now is not None and self.thread is now


def program(torch, likely):
    """Returns the thread of the program that runs now. While one of autograd's does, it is one that waits for a backward pass: the likely one if that waits, None
    if none does."""
    here = threading.current_thread()
    if torch._C._current_graph_task_id() == -1 or not foreign(here):
        return here
    frames = sys._current_frames()
    waiting = [t for t in threading.enumerate() if not foreign(t) and t.ident in frames and waits(frames[t.ident].f_code)]
    return likely if likely in waiting else waiting[0] if waiting else None


def passing():
    """Returns whether a thread of the program waits for a backward pass."""
    return any(map(within, sys._current_frames().values()))


def within(frame):
    """Returns whether a thread waits for a backward pass: the frame is its innermost one."""
    while frame is not None and not waits(frame.f_code):
        frame = frame.f_back
    return frame is not None


def foreign(thread):
    """Returns whether Python has not made a thread."""
    return isinstance(thread, threading._DummyThread)


def waits(code):
    return code.co_name == PASS or code.co_name in BEFORE[1] and code.co_filename.endswith(BEFORE[0])


def nested(frame):
    """Returns whether a model is run in a backward pass, and no part of it: the frame is one around the model's."""
    within = frame
    while frame is not None and not waits(frame.f_code):
        within, frame = frame, frame.f_back
    return not within.f_code.co_filename.endswith(AGAIN)
