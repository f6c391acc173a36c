"""What lasts from step to step and where it is: parameters, buffers, gradients and states of optimizers that were put on the host come home between steps, as
far as there is room, and gradients that wait for their optimizer go there where steps lack memory."""

from . import say
from .entry import layout


class Home(object):
    """Says which memory what lasts has. On the host the device uses it in place, as whatever finds no room; a gradient is read there once or twice, which
    costs less than what an operator works on. One is moved between two operators alone: when something is saved, or a backward pass asks for it."""

    SMALLEST = 1 << 20  # bytes, of a gradient that is not moved
    REST = 8  # steps without such moves, after which gradients come home as well
    VAIN = 16  # looks for gradients in a step that may find none

    def __init__(self, relief):
        self.relief, self.memory, self.library = relief, relief.memory, relief.library
        self.lacks = 0  # bytes that requests had of the host since gradients were looked for
        self.ahead = [0, 0]  # bytes of gradients that leave when a step begins, and in its backward pass
        self.point = self.passed = -1  # the number of the entry that is asked for when these do, and of the one that was asked for last
        self.due = False  # these are still to leave
        self.moved = None  # the last step in which some did
        self.vain = 0  # looks for them in this step that found none

    # Called with memory, between two operators.

    def begin_step(self):
        """Called between two steps."""
        self.ahead = [nbytes - nbytes // 8 if nbytes > self.SMALLEST else 0 for nbytes in self.ahead]  # not for ever
        self.lacks = self.vain = 0
        self.due, self.passed = self.ahead[1] > 0, -1
        if self.ahead[0]:
            self.lodge(self.ahead[0])
        self.bring()

    def pack(self):
        """Called when an entry is saved."""
        if self.lacks:
            self.ahead[0] += self.make_up()

    def unpack(self, index):
        """Called when an entry is asked for."""
        if self.lacks:
            freed = self.make_up()
            self.ahead[1] += freed
            self.point = max(self.point, self.passed) if freed else self.point
        elif self.due and index <= self.point:
            self.due = False
            self.lodge(self.ahead[1])
        self.passed = index

    def lack(self, nbytes):
        """Notes a request that has memory of the host."""
        self.lacks += nbytes

    def make_up(self):
        """Has gradients leave for what was lacking. Returns their bytes."""
        lacks, self.lacks = self.lacks, 0
        if self.vain >= self.VAIN:
            return 0
        freed = self.lodge(lacks)
        self.vain += not freed
        return freed

    def movable(self):
        """Returns whether addresses may change."""
        return self.memory.counts and not self.memory.capturing() and not self.library.had_pools(self.memory.device)

    # Home.

    def bring(self):
        """Has what was put on the host have memory of the device, as far as there is room."""
        relief, memory = self.relief, self.memory
        if not relief.borrows or not self.movable() or not relief.runtime.lanes.stats().borrowed_bytes:
            return
        rests = self.moved is None or relief.runtime.steps - self.moved > self.REST
        for tensor in [t for ordinal in memory.lasting for t in memory.parameters(ordinal)]:
            for t in (tensor, tensor.grad if rests else None):
                if t is not None and memory.movable(t) and memory.lies_on_host(t) and memory.sole(t) and memory.size(t) <= relief.room():
                    self.move([t])
        for place in relief.states.on_host():
            if place.alone() and place.nbytes <= relief.room():
                self.move([place.tensor])

    # The host.

    def lodge(self, nbytes):
        """Has gradients of so many bytes leave, if there are as many. Returns the bytes of those that do."""
        if not self.relief.lends or not self.movable():
            return 0
        freed = self.move(fitting([(self.memory.size(g), g) for g in self.gradients()], nbytes), host=True)
        if freed:
            self.moved = self.relief.runtime.steps
            say.once("gradients wait on the host where memory is short")
        return freed

    def gradients(self):
        """Yields those that may leave."""
        memory = self.memory
        for tensor in [t for ordinal in memory.lasting for t in memory.parameters(ordinal)]:
            g = tensor.grad
            if (g is not None and not g.requires_grad and memory.movable(g) and memory.size(g) > self.SMALLEST and memory.sole(g)
                    and memory.key(g) not in memory.exported and not memory.lies_on_host(g)):
                yield g

    def move(self, tensors, host=False):
        """Has tensors, each of which is all that holds its storage, have other memory with the same contents: of the device, or of the host. It waits for
        all work. Returns their bytes."""
        memory, holders = self.memory, []
        tensors = [t for t in tensors if not t.is_inference()]
        if not tensors:
            return 0
        memory.synchronize()
        try:
            with memory.trial, memory.plainly():
                for t in tensors:
                    if host and not self.relief.runtime.lanes.lodge(memory.size(t), memory.stream()):
                        break
                    holder = memory.take(memory.size(t))
                    if host and not memory.lies_on_host(holder):
                        break
                    memory.rows(holder, memory.torch.uint8, 1).copy_(memory.rows(t, memory.torch.uint8, 1))
                    holders.append(holder)
        except memory.failures as e:
            say.once("a tensor stays where it is: %s" % say.reason(e))
        memory.synchronize()
        moved = list(zip(tensors, holders))
        for t, holder in moved:
            t.data = memory.placed(holder, *layout(t))
        return sum(memory.size(t) for t, _ in moved)


def fitting(sized, nbytes):
    """Returns the fewest of tensors with their sizes that have so many bytes together, nearly: the largest, and the smallest that will do as the last one."""
    chosen, left = [], sorted(sized, key=lambda pair: pair[0])
    while left and nbytes > 0:
        size, tensor = next((pair for pair in left if pair[0] >= nbytes), left[-1])
        left = [pair for pair in left if pair[1] is not tensor]
        chosen.append(tensor)
        nbytes -= size
    return chosen
