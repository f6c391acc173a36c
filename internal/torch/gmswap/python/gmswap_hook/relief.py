"""Makes room on the device when a request finds none, and keeps the account of that."""

import _thread
import atexit
import collections
import threading

from . import say

GIB = float(1 << 30)


class Relief(object):
    """Moves what the steps of a runtime saved to the host: first what was saved first, as it is needed last. What is moved is free in the order of
    the stream that saved it, behind its copy, for which that stream waits."""

    STEPS = 4  # whose needs say what the next one will need
    PATIENCE = 150  # seconds for who changes entries: longer than a plan takes. Who waits for what this thread holds would wait for ever

    def __init__(self, runtime, library, limit):
        self.runtime, self.memory, self.library = runtime, runtime.memory, library
        self.limit, self.window = limit, runtime.settings.window
        self.freed = 0  # bytes, in this step
        self.before = collections.deque(maxlen=self.STEPS)  # in the steps before
        self.within = threading.local()
        self.explained = None  # the step that a line was said in
        library.on_full(self.make_room)
        atexit.register(library.on_full, None)

    # For a conductor.

    def expected(self):
        """Returns how many bytes the next step will have to move, from those before."""
        return max(self.before) + self.window if self.before and max(self.before) else 0

    def end_step(self):
        self.before.append(self.freed)
        self.freed = 0

    def room(self):
        """Returns the bytes that can be loaded ahead of need."""
        return self.limit - self.library.allocated(self.memory.device) - self.window

    def keep_room(self):
        """Evicts before a request finds no room: one that fails is dear. With self.memory."""
        if self.room() < 0:
            self.evict(self.window)

    # Called by libgm.so, in any thread.

    def make_room(self, device, size, stream):
        """Frees memory and returns how many bytes, 0 if there is nothing left to move."""
        if device != self.memory.device or getattr(self.within, "here", False):
            return 0
        self.within.here = True
        try:
            if self.memory.capturing():
                return 0
            if not self.memory.lock.acquire(timeout=self.PATIENCE):
                return 0
            try:
                with self.memory:
                    return self.serve(size)
            finally:
                self.memory.lock.release()
        except KeyboardInterrupt:  # C calls this, and would lose it
            _thread.interrupt_main()
            return 0
        except Exception as e:
            say.once("no room is made: %s: %s" % (type(e).__name__, say.reason(e)))
            return 0
        finally:
            self.within.here = False

    def serve(self, size):
        freed = self.evict(size + self.window) if size <= self.limit else 0  # libraries try more, and go on with less
        if not freed and self.explained is not self.runtime.step:
            self.explained = self.runtime.step
            self.explain(size)
        return freed

    def evict(self, size):
        """Frees at least this many bytes if it can, and begins the copies of what comes next. With self.memory."""
        freed = ahead = 0
        for e in self.candidates():
            if freed < size:
                if e.evict():
                    freed += e.nbytes
            elif ahead < self.window and e.offload():
                ahead += e.nbytes
            else:
                break
        self.freed += freed
        return freed

    def candidates(self):
        """Returns entries whose memory would be free if it were not for us, those that are needed last first."""
        step = self.runtime.step
        for e in list(step.entries) if step is not None else ():
            if self.evictable(e):
                yield e
        for e in list(self.memory.entries.values()):
            if step is None or e.step != step.number:
                if self.evictable(e):
                    yield e

    def evictable(self, entry):
        return entry.users > 0 and not entry.needed and entry.resident() and self.memory.sole(entry.buffer if entry.alias is None else entry.alias)

    def explain(self, size):
        """Says what holds the memory for which a request fails."""
        entries = [e for e in list(self.memory.entries.values()) if e.users > 0]
        here = sum(e.nbytes for e in entries if e.resident())
        away = sum(e.nbytes for e in entries if not e.resident())
        other = self.library.allocated(self.memory.device) - here
        say.line("out of memory: %.2f GiB more do not fit %.2f GiB. In use are %.2f GiB that nothing can be done about here: parameters, gradients, states of "
                 "optimizers, and what operators need; and %.2f GiB saved for the backward pass that the program holds itself or that the host has no "
                 "room for. %.2f GiB were moved to the host. More -m or a smaller batch helps, or recomputing layers (torch.utils.checkpoint)" % (
                     size / GIB, self.limit / GIB, other / GIB, here / GIB, away / GIB))

