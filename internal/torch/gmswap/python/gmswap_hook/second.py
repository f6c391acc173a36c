"""What a backward pass saves for another one through it (create_graph=True), as for gradients of gradients."""

from .entry import Entry, Saved, detached, layout


class Later(Entry):
    """A storage that such a pass saved. It is of no step, and no schedule foresees it: it stays until a request finds no room, and what was saved first leaves first,
    as it is needed last. As long as it is there it counts as what operators need."""

    __slots__ = ()

    def __init__(self, memory, lanes, step, tensor, key, nbytes):
        super(Later, self).__init__(memory, lanes, step, tensor, key, nbytes)
        self.step = None

    def arrive(self):
        pass

    def depart(self):
        pass


class Second(object):
    """Packs what backward passes save."""

    def __init__(self, memory, lanes, smallest):
        self.memory, self.lanes, self.smallest = memory, lanes, smallest

    def pack(self, tensor, step):
        """Returns what autograd is to keep, None for the tensor as it is."""
        memory = self.memory
        if not memory.movable(tensor) or memory.lies_on_host(tensor) or memory.stream() != step.stream:
            return None
        storage = tensor.untyped_storage()
        key, nbytes = storage._cdata, storage.nbytes()
        if nbytes < self.smallest or key in memory.ordinals or key in memory.known:
            return None
        with memory:
            memory.look_at_copies()
            entry = memory.copies.get(key) or memory.entries.get(key)
            if entry is not None and (entry.buffer is not None or entry.version == tensor._version and entry.nbytes == nbytes):
                return Saved(entry, layout(tensor))
            entry = memory.entries[key] = Later(memory, self.lanes, step, detached(tensor), key, nbytes)
            return Saved(entry, None)
