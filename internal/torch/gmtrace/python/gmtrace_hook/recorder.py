"""Drains PyTorch's allocation history into files before its ring is overrun."""

import atexit
import json
import os
import platform
import signal
import sys
import threading
import time

from . import dump
from .marks import Marks

# All in seconds.
DRAIN_EVERY = 10.0
DRAIN_EVERY_LIVE = 1.0
SHORTEST_POLL = 0.05
LONGEST_POLL = 2.0
PATIENCE = 60.0  # for a drain that another thread is at
PATIENCE_AT_SIGNAL = PATIENCE_AT_FORK = 10.0

LEAST_RATE = 50000.0  # entries per second that are reckoned with before any are seen
REST = 10.0  # after a drain, as a multiple of the time it took


class Recorder(object):
    """Records one process, from when it initialises CUDA."""

    def __init__(self, torch, settings, history):
        self.torch = torch
        self.settings = settings
        self.history = history
        self.pid = os.getpid()
        self.marks = Marks(settings.dir, self.pid)
        self.dump = None
        self.counter = None
        self.dumps = 0  # written
        self.steps = 0  # ended
        self.marking = True
        self.lock = threading.Lock()
        self.owner = None  # thread that holds the lock
        self.terminated = False  # while the main thread drained
        self.fork = threading.local()  # what its thread has to undo after a fork
        self.stop = threading.Event()
        self.thread = None
        self.last = 0.0  # end of the last drain
        self.cost = 0.0  # seconds that it took

    def start(self):
        reason = self.begin()
        about = {
            "torch": str(self.torch.__version__), "python": platform.python_version(),
            "path": self.dump.name if self.dump else "", "history": reason or "on",
            "stacks": "python" if self.settings.stacks else "", "ring": self.settings.ring,
        }
        path = os.path.join(self.settings.dir, "torch.%d.json" % self.pid)
        with open(path + ".tmp", "w") as f:
            json.dump(about, f)
        os.rename(path + ".tmp", path)
        atexit.register(self.exit)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # whose processes end without atexit
            util.Finalize(None, self.exit, exitpriority=0)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self.terminate)

    def begin(self):
        """Begins to record, or returns why it cannot."""
        try:
            memory = self.torch.cuda.memory
            backend = getattr(memory, "get_allocator_backend", lambda: "native")()
            if backend != "native":
                return "the allocator's backend is %s" % backend
            memory._snapshot()
            self.dump = dump.best(self.torch)
            self.counter = Counter(self.torch)
            if self.settings.window is None or self.settings.window[0] == 0:
                self.history.switch_on(self)
            self.torch._C._cuda_attach_out_of_memory_observer(self.out_of_memory)
        except Exception as e:
            self.stop.set()
            return "%s: %s" % (type(e).__name__, e)
        self.last = time.monotonic()
        if not self.settings.only_oom:
            self.thread = threading.Thread(target=self.run, name="gmtrace", daemon=True)
            self.thread.start()
        return None

    def here(self):
        """Tells whether this process is the one that is recorded, and no child of it."""
        return os.getpid() == self.pid

    def recording(self):
        return self.history.on and not self.stop.is_set() and self.here()

    def run(self):
        """Is the thread that drains."""
        try:
            while not self.stop.wait(self.counter.period(self.history.extent.entries)):
                if self.enter(PATIENCE):
                    try:
                        self.counter.count()
                    finally:
                        self.leave()
                if self.history.on and self.due():
                    self.drain()
        except Exception as e:
            self.stop.set()
            complain(type(e).__name__, e)

    def due(self):
        fresh = self.counter.fresh()
        if 2 * fresh >= self.history.extent.entries:
            return True
        every = DRAIN_EVERY_LIVE if os.path.exists(os.path.join(self.settings.dir, "live")) else DRAIN_EVERY
        return fresh > 0 and time.monotonic() - self.last >= max(every, REST * self.cost)

    def drain(self, patience=PATIENCE):
        """Writes the history to the next file. A drain within a drain, as by a signal, does nothing."""
        if not self.recording() or not self.enter(patience):
            return
        try:
            self.write()
        except OSError:
            self.stop.set()
        finally:
            self.leave()

    def enter(self, patience):
        """Lets one thread at a time ask the allocator; false for the one that is at it, and when that takes too long."""
        me = threading.get_ident()
        if self.owner == me or not self.lock.acquire(timeout=patience):
            return False
        self.owner = me
        return True

    def leave(self):
        self.owner = None
        self.lock.release()
        if self.terminated and threading.current_thread() is threading.main_thread():
            self.terminate(signal.SIGTERM, None)

    def keep(self, patience=PATIENCE):
        """Drains what will be gone, unless only failed allocations matter."""
        if not self.settings.only_oom:
            self.drain(patience)

    def may_be_full(self):
        return 2 * max(self.counter.total) >= self.history.extent.entries

    def write(self):
        start = time.monotonic()
        if not os.path.isdir(self.settings.dir):
            self.stop.set()
            return
        self.counter.count()
        self.counter.drained()
        number = 0 if self.settings.only_oom else self.dumps
        path = os.path.join(self.settings.dir, "history.%d.%d.pickle" % (self.pid, number))
        try:
            self.dump.write(path + ".tmp")
            os.rename(path + ".tmp", path)
        except OSError:
            if os.path.exists(path + ".tmp"):
                os.remove(path + ".tmp")
            raise
        self.dumps += 1
        self.marks.flush()
        self.last = time.monotonic()
        self.cost = self.last - start

    def mark(self):
        """Ends a step."""
        if not self.marking or not self.here():
            return
        try:
            self.marks.add("step")
            self.steps += 1
            self.turn()
        except Exception as e:
            self.marking = False
            self.stop.set()
            if not isinstance(e, OSError):
                complain(type(e).__name__, e)

    def turn(self):
        """Switches the history on where the steps to record begin, and off where they end."""
        if self.settings.window is None or self.stop.is_set():
            return
        first, end = self.settings.window
        if self.steps == first:
            self.history.switch_on(self)
        elif self.steps == end and self.history.on:
            self.keep()
            self.history.switch_off()

    def out_of_memory(self, device, size, device_allocated, device_free):
        """Is called by the allocator before it raises OutOfMemoryError."""
        try:
            self.drain()
        except Exception as e:
            complain(type(e).__name__, e)

    def finish(self, patience):
        self.keep(patience)
        self.stop.set()
        try:
            self.marks.flush()
        except OSError:
            pass

    def exit(self):
        if not self.here():
            return
        try:
            self.finish(PATIENCE)
            if self.thread is not None:
                self.thread.join(PATIENCE_AT_SIGNAL)
        except Exception as e:
            complain(type(e).__name__, e)

    def terminate(self, number, frame):
        """Handles SIGTERM, whose action was the default one: drains, then dies of it."""
        if self.here():
            if self.owner == threading.get_ident():
                self.terminated = True
                return
            self.terminated = False
            try:
                self.finish(PATIENCE_AT_SIGNAL)
            except Exception as e:
                complain(type(e).__name__, e)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def before_fork(self):
        """Sees that no other thread holds the allocator's lock, which a child could never take then, and holds SIGTERM
        back until the child has its default action again, else one that comes early would be lost."""
        here = self.here()
        self.fork.mask = None
        if here and signal.getsignal(signal.SIGTERM) == self.terminate:
            self.fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self.fork.entered = here and self.enter(PATIENCE_AT_FORK)

    def after_fork(self, in_child):
        mask = getattr(self.fork, "mask", None)
        if in_child and mask is not None:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if getattr(self.fork, "entered", False) and not in_child:
            self.leave()


class Counter(object):
    """Estimates the entries of the history from the allocator's statistics, which cost less to ask for."""

    def __init__(self, torch):
        self.stats = torch._C._cuda_memoryStats
        self.devices = range(torch.cuda.device_count())
        self.seen = [self.entries(d) for d in self.devices]
        self.new = [0 for _ in self.devices]  # since the last drain
        self.total = [0 for _ in self.devices]
        self.time = time.monotonic()
        self.rate = LEAST_RATE  # the highest so far, entries per second on one device

    def entries(self, device):
        stats = self.stats(device)
        blocks, segments = stats["allocation"]["all"], stats["segment"]["all"]
        return blocks["allocated"] + 2 * blocks["freed"] + segments["allocated"] + segments["freed"]

    def count(self):
        now = time.monotonic()
        most = 0
        for d in self.devices:
            entries = self.entries(d)
            more = entries - self.seen[d]
            if more < 0:  # the program has reset the statistics
                more = entries
            self.seen[d] = entries
            self.new[d] += more
            self.total[d] += more
            most = max(most, more)
        self.rate = max(self.rate, most / max(now - self.time, SHORTEST_POLL))
        self.time = now

    def fresh(self):
        """Returns the new entries of the device that has most."""
        return max(self.new)

    def drained(self):
        self.new = [0 for _ in self.devices]

    def period(self, ring):
        """Returns the seconds until the next count, in which a quarter of the ring fills at twice the highest rate."""
        return min(max(ring / (8 * self.rate), SHORTEST_POLL), LONGEST_POLL)


def complain(what, error):
    if sys.stderr is not None:
        sys.stderr.write("gmtrace: %s: %s\n" % (what, error))
