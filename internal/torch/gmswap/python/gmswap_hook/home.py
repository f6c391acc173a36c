"""What lasts from step to step and where it is: parameters, buffers, gradients and states of optimizers that were put on the host come home, as far as there
is room, and gradients that nobody uses go there. They are the same tensors, in other memory."""

import threading

from . import say
from .entry import layout
from .fitting import fitting
from .memory import AS_IT_IS
from .nested import foreign, passing
from .states import uses
from .weights import Weights


class Home(object):
    """Says which memory what lasts has. Called with memory, between two operators."""

    SMALLEST = 1 << 20  # bytes, of a gradient that is not moved
    HELD = 2  # what holds a gradient that nobody uses, as far as PyTorch counts it: its parameter, and the object of Python's

    def __init__(self, relief):
        self.relief, self.memory, self.library = relief, relief.memory, relief.library
        self.left = {}  # gradients, and parameters, that have left: weak references to their storages, by their addresses
        self.weights = Weights(self)

    def bring(self, gradients):
        """Has what was put on the host have memory of the device, as far as there is room; gradients only if that is said."""
        relief, memory = self.relief, self.memory
        if not relief.borrows or not relief.runtime.lanes.stats().borrowed_bytes or not self.movable():
            return
        tensors = [t for t in self.lasting() if t not in self.weights and memory.movable(t) and memory.sole(t) and not memory.addressed(t)]
        if gradients:
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

    def lodge(self, nbytes):
        """Has gradients of so many bytes leave, if there are as many. Returns the bytes of those that do."""
        freed = 0
        if self.sends():
            freed = self.move(fitting([(self.memory.size(g), g) for g in self.gradients() if self.idle(g)], nbytes), host=True)
        if freed:
            say.once("gradients wait on the host where memory is short")
        return freed

    def sends(self):
        """Returns whether something may go to the host now, and be used there in place."""
        return self.relief.lends and not self.relief.runtime.step.strays and not self.ranks() and self.movable()

    def away(self):
        """Returns the bytes of gradients that have left and are still there."""
        self.left = {key: weak for key, weak in self.left.items() if not self.memory.expired(weak)}
        return sum(self.memory.size(g) for g in self.gradients() if self.memory.key(g) in self.left)

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
        memory, copied, moved = self.memory, [], 0
        tensors = [t for t in tensors if not t.is_inference()]
        with memory.trial, memory.plainly(), memory.tracked(), getattr(memory.torch._C, "_DisableTorchDispatch", lambda: AS_IT_IS)():
            holders = self.taken([memory.size(t) for t in tensors], host)
            if not holders:
                return 0
            try:
                memory.synchronize()
                for t, holder in zip(tensors, holders):
                    version = t._version
                    memory.rows(holder, memory.torch.uint8, 1).copy_(memory.rows(t, memory.torch.uint8, 1))
                    copied.append((t, version, memory.placed(holder, *layout(t))))
                memory.synchronize()
            except RuntimeError as e:
                say.once("tensors stay where they are: %s" % say.reason(e))
                return 0
            for t, version, other in copied:
                if t._version == version:  # no other thread has changed it meanwhile
                    moved += self.put(t, other, host)
        return moved

    def taken(self, sizes, host):
        """Returns tensors of these sizes, in memory of the device or of the host: the first ones, as many as there is room for."""
        memory, lanes, holders = self.memory, self.relief.runtime.lanes, []
        try:
            for nbytes in sizes:
                if host and not lanes.lodge(nbytes, memory.stream()):
                    break
                holder = memory.take(nbytes)
                if host and not memory.lies_on_host(holder):
                    break
                holders.append(holder)
        except memory.failures as e:
            say.once("a tensor stays where it is: %s" % say.brief(e))
        finally:
            if host:
                lanes.lodge_none()
        return holders

    def put(self, t, other, host):
        """Has a tensor have the memory of another one. Returns its bytes."""
        t.data = other
        self.memory.shifts += 1
        if host:
            storage = t.untyped_storage()
            self.left[storage._cdata] = self.memory.weak(storage)
        return self.memory.size(t)
