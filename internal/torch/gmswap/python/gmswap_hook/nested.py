"""Models that are run in a backward pass by what is called there when a gradient has come, as losses that embed each part of a batch again do."""

import os
import sys
import threading

PASS = "_engine_run_backward"  # in which a thread of the program waits for a backward pass
AGAIN = tuple(os.path.join("torch", *names) for names in (("autograd", "function.py"), ("utils", "checkpoint.py")))  # these run models as a part of it


class Owner(object):
    """The thread whose models are served: the first one, as long as it lives."""

    def __init__(self, torch):
        self.torch, self.thread = torch, None

    def here(self):
        """Returns whether it is that thread that runs now, or one of autograd's for it."""
        now = program(self.torch, self.thread)
        if self.thread is None or not self.thread.is_alive():
            self.thread = now
        return self.thread is now


def program(torch, likely):
    """Returns the thread of the program that runs now. While one of autograd's does, it is one that waits for a backward pass: the likely one if that waits."""
    here = threading.current_thread()
    if torch._C._current_graph_task_id() == -1 or outermost(sys._getframe())[1]:
        return here
    frames = sys._current_frames()
    waiting = [t for t in threading.enumerate() if t.ident in frames and frames[t.ident].f_code.co_name == PASS]
    return likely if likely in waiting else waiting[0] if waiting else here


def outermost(frame):
    """Returns the outermost frame around one within a backward pass, and whether this thread waits for that as well."""
    within = frame
    while frame is not None and frame.f_code.co_name != PASS:
        within, frame = frame, frame.f_back
    return within, frame is not None


def nested(frame):
    """Returns whether a model is run in a backward pass, and no part of it: the frame is one around the model's."""
    return not outermost(frame)[0].f_code.co_filename.endswith(AGAIN)
