"""What autograd saved: storages, which are moved, and the tensors in them, which autograd asks for."""


class Changed(RuntimeError):
    """Is raised where autograd would: what it saved was changed in place."""


class Saved(object):
    """A tensor in a storage: what autograd keeps instead of the tensor."""

    __slots__ = ("entry", "dtype", "size", "stride", "offset", "__weakref__")

    def __init__(self, entry, tensor):
        self.entry = entry
        self.dtype, self.size, self.stride, self.offset = tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()
        entry.users += 1

    def __del__(self):
        self.entry.users -= 1
        if self.entry.users == 0:
            self.entry.close()


class Entry(object):
    """A storage of a step: on the device, on the host, or both. Of the device's memory it holds the program's own, in alias, or a
    copy, in buffer."""

    __slots__ = ("memory", "lanes", "step", "index", "nbytes", "alias", "version", "weak", "key", "users", "ticket", "buffer",
                 "home", "coming", "copied", "short", "made")

    def __init__(self, memory, lanes, step, tensor, storage, nbytes):
        self.memory, self.lanes, self.step = memory, lanes, step
        self.index, self.nbytes = len(step.entries), nbytes
        self.alias, self.version = tensor, tensor._version
        self.weak, self.key = memory.weak(storage), storage._cdata
        self.users = 0
        self.ticket = 0
        self.buffer = None
        self.home = 0  # the stream in whose order the buffer was taken
        self.coming = False  # no stream has waited for the copy back yet
        self.copied = 0  # bytes that the copy on the host has, the first ones
        self.short = False  # the buffer lacks the others
        self.made = None  # how it is made again, a Remake

    def resident(self):
        return self.alias is not None or self.buffer is not None

    def held(self):
        """Says whether the program still holds the storage, or we do."""
        return self.alias is not None or not self.memory.expired(self.weak)

    def offload(self, stream, nbytes=None):
        """Begins the copy of the first bytes, or all, to the host. Returns False if there is no room."""
        if self.ticket or self.alias is None:
            return self.ticket != 0
        if nbytes is None or nbytes > self.nbytes or not (self.made and self.made.row):
            nbytes = self.nbytes
        self.ticket = self.lanes.out(self.memory.address(self.alias), nbytes, stream)
        self.copied = nbytes if self.ticket else 0
        return self.ticket != 0

    def settle(self, stream):
        if self.ticket:
            self.lanes.left(self.ticket, stream)

    def free(self, stream):
        """Gives the device's memory back to the order of the stream. What is neither on the host nor can be made again stays."""
        if not self.resident() or not (self.ticket or self.made):
            return False
        if self.alias is None:
            self.await_(stream)
            self.buffer = None
            return True
        self.check()
        if self.ticket:
            self.lanes.left(self.ticket, stream)
        self.alias = None
        return True

    def check(self):
        """Raises an error where autograd would."""
        if self.alias is not None and self.alias._version != self.version:
            raise Changed("one of the variables needed for gradient computation, in %d bytes, was modified by an inplace operation" % self.nbytes)

    def load(self, stream):
        """Takes memory in the order of the stream and begins the copy back."""
        if self.resident() or not self.ticket:
            return
        self.buffer, self.home = self.memory.take(self.nbytes), stream
        self.lanes.back(self.ticket, self.memory.address(self.buffer), stream)
        self.coming, self.short = True, self.copied < self.nbytes

    def await_(self, stream):
        if self.coming:
            self.lanes.ready(self.ticket, stream)
            self.coming = False

    def remake(self, stream):
        """Runs the operator that made the storage again, for what there is no copy of."""
        if not self.resident():
            self.buffer, self.home = self.made.whole(stream), stream
        elif self.short:
            self.made.rest(self.buffer, self.copied, stream)
            self.short = False

    def on_device(self, stream):
        """Returns a tensor in whose storage the contents are, or will be by the time that the stream comes to what follows."""
        if not self.resident() and self.ticket:
            self.load(stream)
        self.remake(stream)
        self.await_(stream)
        return self.alias if self.alias is not None else self.buffer

    def tensor(self, saved, stream):
        """Returns the tensor that autograd saved."""
        holder = self.on_device(stream)
        self.check()
        if self.alias is None and stream != self.home:
            self.memory.also_used(holder)
        return self.memory.view(holder, saved)

    def close(self):
        """Is called when autograd has let go of the last tensor."""
        self.memory.forget(self)
        self.alias = self.buffer = self.made = None
        if self.ticket:
            ticket, self.ticket = self.ticket, 0
            self.lanes.drop(ticket)
