"""What lasts from step to step and where it is: parameters, buffers, gradients and states of optimizers that were put on the host come home between steps, as
far as there is room, and gradients that wait for their optimizer go there where steps lack memory."""

import collections

from . import say
from .entry import layout
from .memory import AS_IT_IS
from .nested import alone
from .states import uses


class Home(object):
    """Says which memory what lasts has. On the host the device uses it in place, as whatever finds no room; a gradient is read there once or twice, which
    costs less than what an operator works on. One is moved between two operators alone: when something is saved, or a backward pass asks for it."""

    SMALLEST = 1 << 20  # bytes, of a gradient that is not moved
    REST = 8  # steps in which nothing lacked, after which half as many gradients leave, and come home in the end
    HELD = 2  # what holds a gradient that nobody uses, as far as PyTorch counts it: its parameter, and the object of Python's

    def __init__(self, relief):
        self.relief, self.memory, self.library = relief, relief.memory, relief.library
        self.lacks = 0  # bytes that requests had of the host since gradients were looked for
        self.start = 0  # bytes of gradients that are to be on the host when a step begins
        self.points = {}  # and from the moment on that a backward pass asks for an entry, by its number
        self.coming = collections.deque()  # those of this step that it has not come to
        self.next, self.passed = -1, -1  # the number of the first of them, and that of the last entry that was asked for
        self.due, self.wanted = False, 0  # so many bytes are to be there now, and some may not be
        self.lacked = 0  # the last step in which some left as something lacked, or in which it was seen that this is long ago
        self.looks = self.skips = 0  # looks for gradients that did not find as many in this step, and calls in which there is no look

    # Called with memory, between two operators.

    def begin_step(self):
        """Called between two steps."""
        if self.relief.runtime.steps - self.lacked > self.REST:
            self.lacked = self.relief.runtime.steps
            self.start = self.half(self.start)
            self.points = {at: half for at, half in ((at, self.half(nbytes)) for at, nbytes in self.points.items()) if half}
        self.lacks = self.wanted = self.looks = self.skips = 0
        self.passed, self.due = -1, False
        self.look_ahead(sorted(self.points.items(), reverse=True))
        if self.start:
            self.have(self.start)
        self.bring()

    def half(self, nbytes):
        return nbytes // 2 if nbytes > 2 * self.SMALLEST else 0

    def look_ahead(self, points):
        self.coming = collections.deque(points)
        self.next = self.coming[0][0] if self.coming else -1

    def lack(self, nbytes):
        """Notes a request that has memory of the host."""
        self.lacks += nbytes

    def pack(self):
        """Called when an entry is saved, and something lacks."""
        self.start = max(self.start, self.make_up())

    def unpack(self, index):
        """Called when an entry is asked for, and something lacks, is due or comes now."""
        while self.coming and index <= self.coming[0][0]:
            self.wanted, self.due = max(self.wanted, self.coming.popleft()[1]), True
        self.next = self.coming[0][0] if self.coming else -1
        if self.lacks:
            there = self.make_up()
            if self.passed < 0:
                self.start = max(self.start, there)
            elif there:
                self.points[self.passed] = max(self.points.get(self.passed, 0), there)
        elif self.due and not self.skip():
            self.due = self.have(self.wanted) > 0

    def make_up(self):
        """Has gradients leave for what was lacking. Returns the bytes of all that are on the host then, 0 where none can leave."""
        if self.skip():
            return 0
        lacks, self.lacks = self.lacks, 0
        if not self.lodge(lacks):
            return 0
        self.lacked = self.relief.runtime.steps
        return self.there()

    def there(self):
        return sum(self.memory.size(g) for g in self.gradients() if self.memory.lies_on_host(g))

    def have(self, nbytes):
        """Sees to it that gradients of so many bytes are on the host. Returns how many lack."""
        nbytes -= self.there()
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
        if not relief.borrows or not self.movable() or not relief.runtime.lanes.stats().borrowed_bytes:
            return
        tensors = self.lasting()
        if not self.start and not self.points:
            tensors += [g for g in self.gradients() if not memory.addressed(g)]
        for t in tensors:
            if memory.movable(t) and memory.lies_on_host(t) and memory.sole(t) and memory.size(t) <= relief.room():
                self.move([t], memory.synchronize)
        for place in relief.states.on_host():
            if place.alone() and place.nbytes <= relief.room():
                self.move([place.tensor], memory.synchronize)

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
        """Returns whether addresses may change."""
        return self.memory.counts and not self.memory.capturing() and not self.library.had_pools(self.memory.device) and alone()

    # The host.

    def lodge(self, nbytes):
        """Has gradients of so many bytes leave, if there are as many. Returns the bytes of those that do."""
        freed, step = 0, self.relief.runtime.step
        if self.relief.lends and not step.strays and self.memory.stream() == step.stream and self.movable():
            freed = self.move(fitting([(self.memory.size(g), g) for g in self.gradients() if self.idle(g)], nbytes), self.memory.drain, host=True)
        if freed:
            say.once("gradients wait on the host where memory is short")
        else:
            self.look_later()
        return freed

    def idle(self, g):
        """Returns whether a gradient is on the device and known to its parameter alone."""
        memory = self.memory
        return (not g.requires_grad and memory.movable(g) and memory.size(g) > self.SMALLEST and memory.sole(g) and uses(g) <= self.HELD
                and not memory.addressed(g) and not memory.lies_on_host(g))

    def move(self, tensors, wait, host=False):
        """Has tensors, each of which is all that holds its storage, have other memory with the same contents: of the device, or of the host. It waits for the
        work that may use them. Returns their bytes."""
        memory, lanes, holders, copied = self.memory, self.relief.runtime.lanes, [], []
        tensors = [t for t in tensors if not t.is_inference()]
        with memory.trial, memory.plainly(), getattr(memory.torch._C, "_DisableTorchDispatch", lambda: AS_IT_IS)():
            try:
                for t in tensors:
                    if host and not lanes.lodge(memory.size(t), memory.stream()):
                        break
                    holder = memory.take(memory.size(t))
                    if host and not memory.lies_on_host(holder):
                        break
                    holders.append(holder)
                if holders:
                    wait()
                for t, holder in zip(tensors, holders):
                    memory.rows(holder, memory.torch.uint8, 1).copy_(memory.rows(t, memory.torch.uint8, 1))
                    copied.append((t, memory.placed(holder, *layout(t))))
            except memory.failures as e:
                say.once("a tensor stays where it is: %s" % say.reason(e))
            finally:
                if host:
                    lanes.lodge_none()
            if copied:
                wait()
            for t, other in copied:
                t.data = other
        return sum(memory.size(t) for t, _ in copied)


def fitting(sized, nbytes):
    """Returns the fewest of tensors with their sizes that have so many bytes together, nearly: the largest, and the smallest that will do as the last one."""
    chosen, left = [], sorted(sized, key=lambda pair: pair[0])
    while left and nbytes > 0:
        size, tensor = next((pair for pair in left if pair[0] >= nbytes), left[-1])
        left = [pair for pair in left if pair[1] is not tensor]
        chosen.append(tensor)
        nbytes -= size
    return chosen
