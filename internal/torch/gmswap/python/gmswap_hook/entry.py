"""What autograd saved: storages, which are moved, and the tensors in them, which autograd asks for."""

from . import say
from .library import Failure


class Changed(RuntimeError):
    """Raised where autograd would raise: a saved tensor was changed in place. Autograd does not check that under hooks."""

    def __init__(self, nbytes):
        super(Changed, self).__init__(
            "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor of %d bytes" % nbytes)


def stays(tensor):
    """Returns what autograd keeps of a tensor that stays where it is: a tuple, as most are such, and objects take longer to make."""
    return tensor, tensor._version


def stayed(kept):
    """Returns the tensor of such a tuple."""
    tensor, version = kept
    if tensor._version != version:
        raise Changed(tensor.numel() * tensor.element_size())
    return tensor


def consists(tensor):
    """Returns of what tensors another one consists, by their names, and what else makes it of them."""
    names, context = tensor.__tensor_flatten__()
    return [(name, getattr(tensor, name)) for name in names], context


class Parts(object):
    """A tensor that consists of others (DTensor, a jagged NestedTensor): those that are packed, and what makes it of them."""

    __slots__ = ("type", "parts", "context", "size", "stride")

    def __init__(self, tensor, pack):
        parts, self.context = consists(tensor)
        moves = lambda part: getattr(part, "is_floating_point", bool)()  # offsets do not: they say which tensors belong together
        self.parts = {name: pack(part) if moves(part) else part for name, part in parts}
        self.type, self.size, self.stride = type(tensor), tensor.size(), tensor.stride()

    def unpack(self, unpack):
        return self.type.__tensor_unflatten__({name: unpack(part) for name, part in self.parts.items()}, self.context, self.size, self.stride)


class Saved(object):
    """A tensor in a storage: what autograd keeps instead of it."""

    __slots__ = ("entry", "layout")

    def __init__(self, entry, layout):
        self.entry, self.layout = entry, layout  # None for the tensor that the entry was made of
        entry.users += 1

    def __del__(self):
        self.entry.memory.drop(self.entry)


def untied(tensor):
    """Returns a tensor that is in no graph."""
    return detached(tensor) if tensor.requires_grad and not tensor.is_leaf else tensor


def detached(tensor):
    """Returns a tensor without its graph: the node that saves it may be part of that graph, a cycle that nothing would end."""
    try:
        return tensor.detach()
    except (RuntimeError, TypeError):
        return tensor  # of a type that has no such thing


def parameter(tensor):
    """Returns whether a tensor is what is learned, or None."""
    return tensor is not None and tensor.is_leaf and tensor.requires_grad


def apart(tensor, nbytes):
    """Returns whether a tensor is a part of a storage of so many bytes, and counts by itself how often it was written to, as those do that unsafe_chunk makes, and those
    that are seen below autograd."""
    return tensor._base is None and tensor.numel() * tensor.element_size() != nbytes


def layout(tensor):
    """Returns what distinguishes tensors of a storage."""
    return tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()


def version(tensor):
    """Returns how often a tensor was written to, 0 where that is not counted."""
    return 0 if tensor.is_inference() else tensor._version


class Entry(object):
    """A storage of a step: on the device, on the host, or both. Of the device's memory it holds the program's own, in alias, or a
    copy, in buffer."""

    __slots__ = ("memory", "lanes", "step", "index", "nbytes", "alias", "version", "layout", "weak", "key", "users", "ticket", "gone", "buffer",
                 "home", "coming", "copied", "short", "made", "needed", "copy_version", "touched", "hosted", "apart")

    def __init__(self, memory, lanes, step, tensor, key, nbytes):
        self.memory, self.lanes = memory, lanes
        self.step, self.index, self.nbytes = step.number, len(step.entries), nbytes
        self.alias, self.version, self.key = tensor, tensor._version, key
        self.layout = None  # of the program's own memory, once that was asked for or freed
        self.weak = None  # and a reference to that, once it was freed, so that its address is not another's
        self.users = 0
        self.ticket = 0
        self.gone = False  # the stream waits for the copy to the host
        self.buffer, self.copy_version = None, 0  # the version is that of the buffer when it was held first
        self.home = step.stream  # in whose order the memory is freed
        self.coming = False  # that stream does not wait for the copy back yet
        self.copied = 0  # bytes that the copy on the host has, the first ones
        self.short = False  # the buffer lacks the others
        self.made = None  # how it is recomputed, a Remake
        self.needed = 0  # by how many calls that are under way
        self.touched = False  # something that is no operator may have written to the program's own memory since this was saved last
        self.hosted = False  # what it holds, or held last, is memory of the host, which the device uses in place
        self.apart = apart(tensor, nbytes)  # it was made of a part, which does not show when others are written to
        self.arrive()

    def __enter__(self):
        """Keeps it from being evicted by a request for memory that is made meanwhile."""
        self.needed += 1

    def __exit__(self, *reason):
        self.needed -= 1

    def stands_for(self, tensor, nbytes):
        """Returns whether a tensor in the storage, which has so many bytes now, is of what that contained, as far as versions tell: a part that counts by itself is if
        it was never written to."""
        if self.version != tensor._version or self.nbytes != nbytes:
            return False
        return not self.version if apart(tensor, nbytes) else not self.apart

    def arrive(self):
        memory = self.memory
        self.hosted = memory.borrowed is not None and memory.lies_on_host(self.alias if self.alias is not None else self.buffer)
        if self.hosted:
            memory.absent += self.nbytes
        else:
            memory.present += self.nbytes

    def depart(self):
        if self.hosted:
            self.memory.absent -= self.nbytes
        else:
            self.memory.present -= self.nbytes

    def resident(self):
        return self.alias is not None or self.buffer is not None

    def occupied(self):
        """Returns whether the program holds the storage, or may, as we do and holders are not counted."""
        if self.alias is None:
            return self.weak is not None and not self.memory.expired(self.weak)
        return not self.memory.counts or not self.memory.sole(self.alias)

    def laid_out(self):
        """Returns the layout of the program's own memory, None if that is gone, and nobody asked before."""
        if self.layout is None and self.alias is not None:
            self.layout = layout(self.alias)
        return self.layout

    def intact(self):
        """Returns whether the program's own memory is as it was saved. FSDP takes such memory away until it is needed."""
        return self.alias._version == self.version and self.alias.untyped_storage().nbytes() == self.nbytes

    def kept(self):
        """Returns whether the contents are still as they were saved, wherever they are."""
        return self.alias is None or self.intact()

    def offload(self, nbytes=None):
        """Begins the copy of the first bytes, or all, to the host. Returns False if there is no room."""
        holder = self.alias if self.alias is not None else self.buffer if self.made is None else None
        if self.ticket or holder is None or not (self.intact() if holder is self.alias else holder._version == self.copy_version):
            return self.ticket != 0
        if nbytes is None or nbytes > self.nbytes or not (self.made and self.made.row):
            nbytes = self.nbytes
        self.ticket = self.lanes.out(self.memory.address(holder), nbytes, self.home)
        self.copied = nbytes if self.ticket else 0
        return self.ticket != 0

    def keep(self):
        """Has the memory that is there stand for the contents, which are not to be recomputed any more, not even in part."""
        made, self.made = self.made, None
        made.release()
        if self.ticket and not self.on_host():
            self.drop_copy()

    def renew(self, tensor):
        """Has the program's own memory, which a tensor is of, stand for the contents as they are now, whatever was copied before: it is copied again. Returns
        False if that cannot be."""
        copied, left = self.copied, self.alias is None
        if left and (self.buffer is not None or self.layout is None or self.made is not None):
            return False
        try:
            if self.ticket:
                self.drop_copy()
        except Failure as e:
            say.once("a copy is not made again: %s" % say.reason(e))
            return False
        self.touched = False
        if left:
            self.alias = self.memory.view(detached(tensor), *self.layout)
            self.arrive()
            self.memory.absent -= self.nbytes
        if copied:
            self.offload(copied)
        if left:
            self.free()
        return True

    def drop_copy(self):
        self.settle()
        ticket, self.ticket = self.ticket, 0
        self.gone, self.copied = False, 0
        self.lanes.drop(ticket)

    def settle(self):
        """Makes the stream wait for the copy to the host."""
        if self.ticket and not self.gone:
            self.lanes.left(self.ticket, self.home)
            self.gone = True

    def free(self):
        """Frees the device's memory. A storage stays that was changed, or that is neither on the host nor can be recomputed."""
        if not self.resident() or self.alias is not None and not self.intact():
            return False
        if not self.on_host() and (self.made is None or not self.made.hold()):
            return False
        try:
            self.settle()
            self.wait()
            if self.alias is not None:
                self.memory.used_by(self.alias, self.home)  # autograd would have kept it until the stream that it was taken in has met this one
        except (Failure, RuntimeError) as e:
            say.once("a tensor stays on the device: %s" % say.reason(e))
            return False
        if self.alias is not None:
            self.layout, self.weak = self.laid_out(), self.memory.weak(self.alias.untyped_storage())
        elif self.memory.copies is not None:
            self.memory.forget_copy(self.buffer)
        self.alias = self.buffer = None
        self.depart()
        self.memory.absent += self.nbytes
        return True

    def evict(self):
        """Frees the device's memory, behind a copy to the host if it cannot be recomputed. Returns whether it could."""
        return self.made is not None and self.free() or self.offload() and self.free()

    def passed(self):
        """Returns whether the copy to the host has ended."""
        return self.ticket != 0 and self.lanes.passed(self.ticket)

    def on_host(self):
        """Returns whether all of it is on the host, or will be."""
        return self.ticket != 0 and self.copied == self.nbytes

    def load(self, stream):
        """Takes memory in the order of the stream, the current one, and begins the copy back."""
        if self.resident() or not self.ticket:
            return
        buffer = self.memory.take(self.nbytes, self.layout[0])
        self.lanes.back(self.ticket, self.memory.address(buffer), stream)
        self.hold(buffer, stream)
        self.coming, self.short = True, self.copied < self.nbytes

    def hold(self, buffer, stream):
        """Has a copy in memory of the device that was taken in the order of a stream."""
        self.buffer, self.home, self.copy_version = buffer, stream, buffer._version
        self.arrive()
        self.memory.absent -= self.nbytes
        if self.memory.copies is not None:
            self.memory.note_copy(self)

    def wait(self):
        """Makes the stream wait for the copy back."""
        if self.coming:
            self.lanes.ready(self.ticket, self.home)
            self.coming = False

    def lacks(self):
        """Returns whether something of it has to be recomputed before it is on the device."""
        return self.short if self.resident() else not self.on_host()

    def remake(self, stream):
        """Recomputes the part of the storage that has no copy on the host."""
        with self:
            if self.resident() or not self.on_host():
                self.make(stream)
            else:
                self.load(stream)

    def make(self, stream):
        if not self.resident():
            self.hold(self.made.whole(stream), stream)
        elif not self.short:
            return
        elif stream == self.home:
            self.made.rest(self.buffer, self.copied, stream)
        else:
            with self.memory.on(self.home):
                self.made.rest(self.buffer, self.copied, self.home)
        self.short = False
        self.made.release()

    def on_device(self, stream):
        """Returns a tensor in whose storage the contents are, or will be by the time that the stream, the current one, comes to what
        follows."""
        if self.alias is not None:
            return self.alias
        with self:
            self.load(stream)
            self.remake(stream)
            self.wait()
            return self.seen(stream)

    def seen(self, stream):
        """Has the stream see the contents."""
        if self.alias is not None:
            return self.alias
        if stream != self.home:
            self.memory.follow(self.home)
            self.memory.used_by(self.buffer, stream)
        elif self.made is not None:
            self.made.prove(self.buffer, stream)
        return self.buffer

    def tensor(self, saved, stream):
        """Returns the tensor that autograd saved."""
        holder = self.alias
        if holder is None:
            holder = self.on_device(stream)
        elif not self.intact():
            raise Changed(self.nbytes)
        elif saved.layout is None:
            return holder
        return self.memory.view(holder, *saved.layout or self.layout)

    def release(self):
        """Ends a use."""
        self.users -= 1
        if not self.users:
            self.close()

    def close(self):
        """Drops the contents. The memory is freed behind copies of it that still run."""
        memory = self.memory
        if memory.closed is not None:
            memory.closed.append(self)
        if memory.entries.get(self.key) is self:
            del memory.entries[self.key]
        if memory.copies is not None and self.buffer is not None:
            memory.forget_copy(self.buffer)
        if self.resident():
            self.depart()
        else:
            memory.absent -= self.nbytes
        if self.made is not None:
            made, self.made = self.made, None
            made.release()
        if self.ticket:
            self.end_copies()
        self.alias = self.buffer = None

    def end_copies(self):
        try:
            self.settle()
            self.wait()
            if self.hosted and self.alias is not None:
                self.memory.used_by(self.alias, self.home)  # of the host, which is not to be returned before the copy has ended
        except Failure as e:
            say.once("memory of the device is lost: %s" % say.reason(e))
            self.memory.lost.append(self.alias if self.buffer is None else self.buffer)
        ticket, self.ticket = self.ticket, 0
        self.lanes.drop(ticket)
