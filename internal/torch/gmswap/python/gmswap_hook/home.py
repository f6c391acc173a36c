"""What lasts from step to step and where it is: parameters, buffers, gradients and states of optimizers that were put on the host come home between steps, as
far as there is room, and gradients that wait for their optimizer go there where steps lack memory."""

import collections
import threading

from . import say
from .entry import layout
from .memory import AS_IT_IS
from .nested import foreign, passing
from .states import uses


class Home(object):
    """Says which memory what lasts has. On the host the device uses it in place, as whatever finds no room; a gradient is read there once or twice, which
    costs less than what an operator works on. One is moved between two operators alone: when something is saved, or a backward pass asks for it."""

    SMALLEST = 1 << 20  # bytes, of a gradient that is not moved, and of what lacks and is not looked at
    REST = 8  # steps in which nothing lacked, after which half as many gradients leave, and come home in the end; and in which none leave if that was no help
    HELD = 2  # what holds a gradient that nobody uses, as far as PyTorch counts it: its parameter, and the object of Python's
    SIZES = 64  # of steps whose lacks are remembered

    def __init__(self, relief):
        self.relief, self.memory, self.library = relief, relief.memory, relief.library
        self.lacks = self.fresh = 0  # bytes that requests had of the host since gradients were looked for, and since it was asked whether something lacks
        self.lacked = [0, 0]  # in this step: before it asks for an entry, and from then on until it asks for the last one
        self.start = 0  # bytes of gradients that are to leave until a step begins
        self.points = {}  # and until a backward pass asks for an entry, by its number
        self.left = {}  # those that have left: weak references to their storages, by their addresses
        self.coming = collections.deque()  # the points of this step that it has not come to
        self.next, self.passed = -1, -1  # the number of the first of them, and that of the last entry that was asked for
        self.due, self.wanted = False, 0  # so many bytes are to have left by now, and some may not have
        self.before = {}  # start or points, if more are to leave since this step, by their place in the following
        self.told = {}  # what lacked in the last step of each kind, by the sizes of its inputs
        self.recent = 0  # the last step in which more left, or in which it was seen that this is long ago
        self.barred = 0  # the step before which none leave
        self.looks = self.skips = 0  # looks for gradients that did not find as many in this step, and calls in which there is no look

    # Called with memory, between two operators.

    def begin_step(self):
        """Called between two steps."""
        self.judge(tuple(self.relief.runtime.step.dims))
        if self.relief.runtime.steps - self.recent > self.REST:
            self.recent = self.relief.runtime.steps
            self.start = self.half(self.start)
            self.points = {at: half for at, half in ((at, self.half(nbytes)) for at, nbytes in self.points.items()) if half}
        self.lacks = self.fresh = self.wanted = self.looks = self.skips = 0
        self.passed, self.due = -1, False
        self.look_ahead(sorted(self.points.items(), reverse=True))
        if self.start:
            self.have(self.start)
        self.bring()

    def judge(self, dims):
        """Takes back that more leave where that was no help: as much lacked in a step as in the last one of its kind."""
        known, lacked, before = self.told.pop(dims, (0, 0)), self.lacked, self.before
        self.told[dims], self.lacked, self.before = lacked, [0, 0], {}
        if len(self.told) > self.SIZES:
            del self.told[next(iter(self.told))]
        for i, value in before.items():
            if 0 < known[i] <= lacked[i]:
                self.start, self.points = (self.start, value) if i else (value, self.points)
                self.barred = self.relief.runtime.steps + self.REST

    def half(self, nbytes):
        return nbytes // 2 if nbytes > 2 * self.SMALLEST else 0

    def look_ahead(self, points):
        self.coming = collections.deque(points)
        self.next = self.coming[0][0] if self.coming else -1

    def lack(self, nbytes):
        """Notes a request that has memory of the host."""
        self.lacks += nbytes
        self.fresh += nbytes

    def pack(self):
        """Called when an entry is saved, and something lacks."""
        self.more(-1, self.make_up(0))

    def unpack(self, index):
        """Called when an entry is asked for, and something lacks, is due or comes now."""
        while self.coming and index <= self.coming[0][0]:
            self.wanted, self.due = max(self.wanted, self.coming.popleft()[1]), True
        self.next = self.coming[0][0] if self.coming else -1
        if self.lacks:
            self.more(self.passed, self.make_up(int(self.passed >= 0)))
        elif self.due and not self.skip():
            self.due = self.have(self.wanted) > 0

    def more(self, point, nbytes):
        """Has so many bytes more leave in the next steps: until a point of their backward passes, or, for -1, until they begin."""
        if nbytes and point < 0:
            self.before.setdefault(0, self.start)
            self.start += nbytes
        elif nbytes:
            self.before.setdefault(1, dict(self.points))
            self.wanted = self.points[point] = max(self.points.get(point, 0), self.wanted) + nbytes

    def make_up(self, place):
        """Has gradients leave for what was lacking, and counts that in its place. Returns its bytes, 0 where none can leave."""
        self.lacked[place] += self.fresh
        self.fresh = 0
        if self.lacks <= self.SMALLEST or self.relief.runtime.steps < self.barred or self.skip():
            return 0
        lacks, self.lacks = self.lacks, 0
        freed = self.lodge(lacks)
        if freed:
            self.recent = self.relief.runtime.steps
        return min(freed, lacks)

    def have(self, nbytes):
        """Sees to it that gradients of so many bytes have left. Returns how many lack."""
        self.left = {key: weak for key, weak in self.left.items() if not self.memory.expired(weak)}
        nbytes -= sum(self.memory.size(g) for g in self.gradients() if self.memory.key(g) in self.left)
        lack = nbytes - self.lodge(nbytes) if nbytes > 0 else 0
        if lack > 0:
            self.look_later()
        return lack

    def look_later(self):
        self.looks += 1
        self.skips = 1 << min(self.looks, 16)

    def skip(self):
        """Returns whether gradients are not looked for: ever more seldom where there are too few."""
        self.skips -= self.skips > 0
        return self.skips > 0

    # Home.

    def bring(self):
        """Has what was put on the host have memory of the device, as far as there is room."""
        relief, memory = self.relief, self.memory
        if not relief.borrows or not relief.runtime.lanes.stats().borrowed_bytes or not self.movable():
            return
        tensors = [t for t in self.lasting() if memory.movable(t) and memory.sole(t) and not memory.addressed(t)]
        if not self.start and not self.points:
            tensors += filter(self.known, self.gradients())
        tensors += [place.tensor for place in relief.states.on_host() if place.alone()]
        room, coming = relief.room(), []
        for t in tensors:
            if memory.lies_on_host(t) and memory.size(t) <= room:
                room -= memory.size(t)
                coming.append(t)
        self.move(coming)

    def lasting(self):
        """Returns parameters and buffers."""
        return [t for ordinal in self.memory.lasting for t in self.memory.parameters(ordinal)]

    def gradients(self):
        """Yields the gradients of parameters."""
        for tensor in self.lasting():
            g = self.relief.states.gradient(tensor)
            if g is not None:
                yield g

    def movable(self):
        """Returns whether addresses may change now."""
        memory, step = self.memory, self.relief.runtime.step
        return (memory.counts and not memory.capturing() and not self.library.had_pools(memory.device) and memory.stream() == step.stream and self.alone())

    def alone(self):
        """Returns whether no gradient comes meanwhile: this is autograd's thread in which those of the device come, or no backward pass is under way."""
        if foreign(threading.current_thread()):
            return self.memory.torch.cuda.current_device() == self.memory.device
        return not passing()

    # The host.

    def lodge(self, nbytes):
        """Has gradients of so many bytes leave, if there are as many. Returns the bytes of those that do."""
        freed = 0
        if self.relief.lends and not self.relief.runtime.step.strays and not self.ranks() and self.movable():
            freed = self.move(fitting([(self.memory.size(g), g) for g in self.gradients() if self.idle(g)], nbytes), host=True)
        if freed:
            say.once("gradients wait on the host where memory is short")
        else:
            self.look_later()
        return freed

    def ranks(self):
        """Returns whether there are other ranks: collectives may use gradients in streams of their own, and to wait for all work may be to wait for a rank
        that waits for this one."""
        distributed = getattr(self.memory.torch, "distributed", None)
        return distributed is not None and distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1

    def idle(self, g):
        """Returns whether a gradient may leave."""
        return self.known(g) and self.memory.size(g) > self.SMALLEST and not self.memory.lies_on_host(g)

    def known(self, g):
        """Returns whether a gradient is known to its parameter alone, as far as PyTorch tells: since 2.3."""
        memory = self.memory
        return (hasattr(g, "_use_count") and uses(g) <= self.HELD and not g.requires_grad and memory.movable(g) and memory.sole(g) and not memory.addressed(g))

    def move(self, tensors, host=False):
        """Has tensors, each of which is all that holds its storage, have other memory with the same contents: of the device, or of the host. It waits for
        all work. Returns their bytes."""
        memory, lanes, holders, copied, moved = self.memory, self.relief.runtime.lanes, [], [], 0
        tensors = [t for t in tensors if not t.is_inference()]
        with memory.trial, memory.plainly(), memory.tracked(), getattr(memory.torch._C, "_DisableTorchDispatch", lambda: AS_IT_IS)():
            try:
                for t in tensors:
                    if host and not lanes.lodge(memory.size(t), memory.stream()):
                        break
                    holder = memory.take(memory.size(t))
                    if host and not memory.lies_on_host(holder):
                        break
                    holders.append(holder)
                if holders:
                    memory.synchronize()
                for t, holder in zip(tensors, holders):
                    version = t._version
                    memory.rows(holder, memory.torch.uint8, 1).copy_(memory.rows(t, memory.torch.uint8, 1))
                    copied.append((t, version, memory.placed(holder, *layout(t))))
                if copied:
                    memory.synchronize()
            except (RuntimeError, *memory.failures) as e:
                say.once("a tensor stays where it is: %s" % say.reason(e))
                copied = []
            finally:
                if host:
                    lanes.lodge_none()
            for t, version, other in copied:
                if t._version == version:  # no other thread has changed it meanwhile
                    moved += self.put(t, other, host)
        return moved

    def put(self, t, other, host):
        """Has a tensor have the memory of another one. Returns its bytes."""
        t.data = other
        self.memory.shifts += 1
        if host:
            storage = t.untyped_storage()
            self.left[storage._cdata] = self.memory.weak(storage)
        return self.memory.size(t)


def fitting(sized, nbytes):
    """Returns the fewest of tensors with their sizes that have so many bytes together, nearly: the largest, and the smallest that will do as the last one."""
    chosen, left = [], sorted(sized, key=lambda pair: pair[0])
    while left and nbytes > 0:
        size, tensor = next((pair for pair in left if pair[0] >= nbytes), left[-1])
        left = [pair for pair in left if pair[1] is not tensor]
        chosen.append(tensor)
        nbytes -= size
    return chosen
