"""Makes room on the device when a request finds none, and keeps the account of that."""

import _thread
import gc
import threading
import time

from . import say
from .foresight import Backward, Foresight
from .home import Home
from .layout import Layout
from .library import BORROW
from .lodging import Lodging
from .remake import ROOMY, TIGHT

GIB = float(1 << 30)


class Relief(object):
    """Moves what the steps of a runtime saved to the host: first what was saved first, as it is needed last. What is moved is free in the order of
    the stream that saved it, behind its copy, for which that stream waits."""

    PATIENCE = 150  # seconds for who changes entries: longer than a plan takes. Who waits for what this thread holds would wait for ever

    FORGETS = 8  # steps
    SELDOM = 50  # times as long as a vain look for garbage among all objects took, before the next one
    # A request within the first of these functions, and not within the second, which make tensors, sums of gradients and products, is one for memory that it can
    # do without: another algorithm of cuDNN's takes less, is faster than one that works on the host, and computes other bits.
    SEARCH = "convolution4call|convolution_backward4call|raw_cudnn_convolution"
    NEEDED = "empty_generic|empty_strided_generic|empty_cuda|empty_strided_cuda|sum_dim_IntList4call|slow_conv|CUDABlas"
    SCRATCH = 8 << 20  # bytes: for less than that, which other kernels there ask for too, it is not to take another one

    def __init__(self, runtime, library, limit, states):
        self.runtime, self.memory, self.library, self.states = runtime, runtime.memory, library, states
        self.limit = limit
        self.window = max(1 << 20, limit // 64)  # bytes that room is made of at a time, and that are left free
        self.foresight, self.backward = Foresight(), Backward()
        self.layout, self.lodging = Layout(library, self.memory), Lodging(runtime, Home(self))
        self.weighed = False  # in this step: whenever its backward pass asked for something that it has saved
        self.start = self.most = 0  # bytes in use when the step began, and the most so far, what was moved included
        self.asked = self.left = 0  # size of the last request that found no room, and bytes in use when some was made
        self.times = 0  # that it came again
        self.scarce = None  # the last step in which something had to leave
        self.desperate = False  # the host had no room, and something was recomputed for that alone
        self.began, self.account = 0, None  # when the step did, and the account of then
        self.watched = None  # what measures the step that is under way
        self.refused = False  # such a request was
        self.lends = not runtime.settings.oom  # the host, to requests that find no room
        self.borrows = False  # something that found no room was put on the host
        self.full = False  # or was not, as there was no room either
        self.within = threading.local()
        self.explained = self.swept = self  # the steps that a line was said in, and that garbage was looked for in: none yet
        self.sweep_from = 0.0  # when it is looked for among all objects again
        library.on_full(self.memory.device, self.make_room)

    # For conductors.

    def begin_step(self, step):
        step.lodging, self.watched = self.lodging, None
        self.start = self.most = self.allocated() - self.states.spared()
        self.weighed = False
        self.backward.begin()
        self.began, self.account = time.perf_counter(), self.library.account(self.memory.device)

    def strained(self):
        """Returns whether something had to leave in one of the last steps."""
        return self.scarce is not None and self.runtime.steps - self.scarce <= self.FORGETS

    def lacks(self):
        """Returns whether something leaves in steps, as far as is known."""
        schedule = self.runtime.schedule
        return self.strained() or schedule is not None and not schedule.empty()

    def tight(self):
        """Returns whether something leaves for which the host may have too little room, as it has less memory than the device."""
        return self.desperate or self.lacks() and self.exceeds(self.limit)

    def exceeds(self, nbytes):
        """Returns whether the host may have too little room for so many bytes."""
        return self.desperate or 0 < self.runtime.settings.host < nbytes

    def extra(self):
        """Returns the most bytes that may be taken beside what is recomputed: more where steps cannot do without that."""
        return self.runtime.settings.device // (TIGHT if self.desperate else ROOMY)

    def lacking(self, count, saved):
        """Returns how many bytes a step will have no room for that has saved so many entries of so many bytes."""
        return max(0, self.start + self.foreseen(count, saved) - (self.limit - self.window))

    def foreseen(self, count, saved):
        return self.foresight.needed(count, saved, self.runtime.step.dims)

    def expect(self, nbytes):
        """Has host memory taken ahead for what will leave."""
        self.runtime.lanes.expect(nbytes)

    def weigh(self, size=0):
        """Notes how much memory is needed now, with a request."""
        self.weighed = self.weighed or not size
        used = self.allocated() - self.states.spared() + size
        self.most = max(self.most, used + self.memory.absent)
        self.backward.note(used - self.start - self.memory.present)

    def fits(self, count, saved):
        """Returns whether a step is known to need no room that has saved so many entries of so many bytes."""
        return self.foreseen(count, saved) > 0 and not self.lacking(count, saved)

    def spacious(self, more=0):
        """Returns whether the step so far would have fitted with nothing moved, and so many bytes more."""
        return self.most + more <= self.limit - self.window

    def learn(self, step):
        """Learns from a step that ends."""
        if step.backward and step.whole:
            self.foresight.learn([e.nbytes for e in step.entries], self.most - self.start, step.dims)
            self.backward.learn(sum(e.nbytes for e in step.entries))

    def allocated(self):
        return self.library.allocated(self.memory.device)

    def mapping(self):
        """Returns the share of the time of this step that calls of the driver took where some requests had parts of what is free mapped together; 0 where a plan
        may end that."""
        now, before = self.library.account(self.memory.device), self.account
        if now.stitches - before.stitches < self.layout.STITCHES or self.layout.hopeful():
            return 0.0
        return 1e-9 * (now.driver_ns - before.driver_ns) / (time.perf_counter() - self.began)

    def room(self):
        """Returns the bytes that are free, beside those that are to stay so."""
        return self.limit - self.allocated() - self.window

    def room_ahead(self, index, saved):
        """Returns the bytes that can be loaded ahead of need in the backward pass of a step that has saved so many, where an entry is needed: those
        for which there will still be room when the rest of the pass needs as much beside the entries as in the steps before."""
        needed = self.start + self.backward.needed(index, saved)
        return min(self.room(), self.limit - self.window - needed - self.memory.present)

    def keep_room(self):
        """Evicts before a request finds no room. With self.memory."""
        room = self.room()
        if room < 0:
            self.weigh()
            self.states.spare(-room) or self.evict(-room)

    # Called by libgm.so, in any thread.

    def serves(self):
        """Returns whether this thread makes room for a request."""
        return getattr(self.within, "here", False)

    def make_room(self, size, stream):
        """Frees memory and returns how many bytes, 0 if there is nothing left to move."""
        if self.serves():
            return 0
        self.within.here = True
        try:
            if self.memory.capturing():
                return 0
            if not self.memory.lock.acquire(timeout=self.PATIENCE):
                return 0
            try:
                with self.memory:
                    return self.serve(size, stream)
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

    def serve(self, size, stream):
        freed = 0
        if size <= self.limit:  # libraries try more, and go on with less
            self.runtime.outlook.look_again(self.runtime.step)
            self.weigh(size)
            freed = self.measured(lambda: self.free(self.wanted(size)))
            self.left = self.allocated()
        if freed or not self.library.asked_last():
            return freed
        if self.needed(size) and self.borrow(size, stream):
            return BORROW
        trial = self.memory.trial.depth
        if (trial or size > self.SCRATCH) and self.convolves():
            if not self.refused:
                self.refused = True
                say.line("%.1f MiB more for a convolution do not fit %.2f GiB: cuDNN takes another algorithm, whose last bits may be others" % (
                    size / float(1 << 20), self.limit / GIB))
        elif not trial and self.explained is not self.runtime.step:
            self.explained = self.runtime.step
            self.explain(size)
        return 0

    def needed(self, size):
        """Returns whether a request is to have memory of the host rather than none: where it is nobody's trial, or where cuDNN would go on with another
        algorithm, with which it then begins each time, also in no trial; but not where much is asked for and the program does not want the same bits each time.
        A workspace or a tensor may be more than the limit, as the device has more without one; other requests for so much are libraries' trials."""
        if not self.lends:
            return False
        if self.convolves():
            return size <= self.SCRATCH or self.memory.deterministic() and size <= self.memory.capacity()
        return not self.memory.trial.depth and (size <= self.limit or size <= self.memory.capacity() and self.library.within(self.NEEDED))

    def convolves(self):
        """Returns whether the request under way is one for a convolution's workspace."""
        return self.library.within(self.SEARCH) and not self.library.within(self.NEEDED)

    def borrow(self, size, stream):
        """Takes memory of the host for a request, which the device uses in place. Returns whether there is any."""
        self.memory.borrowed = self.library.borrowed
        if not self.library.borrow(self.memory.device, size, stream):
            if not self.full:
                self.full = True
                say.line("nothing more is put on the host: %s" % say.reason(self.library.error()))
            return False
        self.lodging.lack(size)
        if not self.borrows:
            self.borrows = True
            say.line("%s. What finds no room is put on the host, where the GPU uses it over the link, which is slow; with --oom the program ends instead" % (
                self.shortage(size)))
        return True

    def measured(self, free):
        """Frees memory, which is no part of the operator that is under way."""
        self.memory.evictions += 1
        watched = self.watched
        if watched is None:
            return free()
        watched.pause()
        try:
            return free()
        finally:
            watched.resume()

    def wanted(self, size):
        """Returns how many bytes to free for a request: what it lacks and some more, and ever more if it comes again as free memory is in parts that
        cannot be put together."""
        used = self.allocated()
        self.times = self.times + 1 if size == self.asked and used <= self.left else 0
        self.asked = size
        return max(0, size - (self.limit - used)) + (self.window << min(self.times, 16))

    def free(self, size):
        """Frees memory: what is there for speed alone, or what was saved, or what an optimizer cannot do without, or what is garbage."""
        freed = self.states.spare(size) or self.evict(size)
        if not freed and self.runtime.step is not None and self.runtime.step.selected:
            self.runtime.step.short = True
        return freed or self.states.make_room(size) or self.sweep()

    def sweep(self):
        """Frees what nobody can reach but other garbage, in each step until that is in vain. Returns how many bytes. It looks at newer objects first: to look at all takes long,
        and where a request can have memory of the host that is done seldom as long as it is in vain."""
        if self.swept is self.runtime.step:
            return 0
        freed, begin = self.collected(self.runtime.garbage.collect_new), time.perf_counter()
        if freed:
            return freed
        self.swept = self.runtime.step
        if self.lends and begin < self.sweep_from:
            return 0
        freed, end = self.collected(gc.collect), time.perf_counter()
        self.sweep_from = end if freed else end + self.SELDOM * (end - begin)
        return freed

    def collected(self, collect):
        """Returns how many bytes are free once garbage was looked for."""
        before = self.allocated()
        collect()
        self.memory.settle()
        return max(0, before - self.allocated())

    def evict(self, size):
        """Frees at least this many bytes if it can, and begins the copies of what comes next. With self.memory."""
        freed = ahead = 0
        parting = self.parting()
        for e in self.candidates():
            if freed < size:
                if (parting.free(e) if parting is not None else e.evict()) or self.remade(e):
                    freed += e.nbytes
            elif parting is None and ahead < self.window and e.offload():
                ahead += e.nbytes
            else:
                break
        if freed:
            self.scarce = self.runtime.steps
        return freed

    def remade(self, entry):
        """Frees the memory of an entry of a step with a schedule for which the host has no room, and which can be recomputed. Returns whether it could."""
        spare = self.runtime.step.spare if self.runtime.step is not None else None
        if spare is None or not spare.remake(entry):
            return False
        freed = entry.evict()
        self.desperate = self.desperate or freed
        return freed

    def parting(self):
        """Returns what chooses what leaves in the step that is under way, or None."""
        return self.runtime.step.parting if self.runtime.step is not None else None

    def candidates(self):
        """Yields entries whose memory would be free if it were not for us: in a forward pass first those that can leave without a wait, then those
        that are needed last first."""
        step, parting = self.runtime.step, self.parting()
        if parting is not None and not step.backward:
            yield from parting.offers(self.evictable)
        entries = list(step.entries) if step is not None else []
        if step is not None and step.conduct is not None and step.conduct.way == "planned":  # copies are under way, and another one waits for all of them
            yield from (e for e in entries if e.alias is not None and self.evictable(e) and (e.made is not None or e.passed()))
        yield from (e for e in entries if self.evictable(e))
        for e in list(self.memory.entries.values()):
            if step is None or e.step != step.number:
                if self.evictable(e):
                    yield e

    def evictable(self, entry):
        memory, tensor = self.memory, entry.buffer if entry.alias is None else entry.alias
        return entry.users > 0 and not entry.needed and entry.resident() and memory.sole(tensor) and not memory.lies_on_host(tensor)

    def explain(self, size):
        """Says what holds the memory for which a request fails."""
        say.line("out of memory: %s. More -m or a smaller batch helps, or recomputing layers (torch.utils.checkpoint)" % self.shortage(size))

    def shortage(self, size):
        entries = [e for e in list(self.memory.entries.values()) if e.users > 0]
        here = sum(e.nbytes for e in entries if e.resident() and not e.hosted)
        away = sum(e.nbytes for e in entries) - here
        other = self.library.allocated(self.memory.device) - here
        return ("%.2f GiB more do not fit %.2f GiB. In use are %.2f GiB that nothing can be done about here: parameters, gradients, states of optimizers, and "
                "what operators need; and %.2f GiB saved for the backward pass that the program holds itself or that the host has no room for. %.2f GiB were "
                "moved to the host" % (size / GIB, self.limit / GIB, other / GIB, here / GIB, away / GIB))
