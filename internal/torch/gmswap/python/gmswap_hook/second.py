"""What a backward pass saves for another one through it (create_graph=True), as for gradients of gradients."""

from .entry import Entry, Saved, detached, layout, parameter


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
    """Packs what backward passes save, from the step on before which a request found no room."""

    def __init__(self, memory, lanes, smallest):
        self.memory, self.lanes, self.smallest = memory, lanes, smallest
        self.seen = self.packs = False  # that a backward pass saved something, and whether that is packed

    def begins(self, lacks):
        """Returns whether that is packed from now on. Steps then save other things than those before."""
        begins = lacks and self.seen and not self.packs
        self.packs = self.packs or begins
        return begins

    def pack(self, tensor, step):
        """Returns what autograd is to keep, None for the tensor as it is."""
        memory, self.seen = self.memory, True
        if not self.packs or not memory.movable(tensor) or memory.lies_on_host(tensor) or memory.stream() != step.stream or memory.capturing():
            return None
        storage = tensor.untyped_storage()
        key, nbytes = storage._cdata, storage.nbytes()
        if nbytes < self.smallest or key in memory.ordinals or key in memory.known or parameter(tensor) or parameter(tensor._base):
            return None
        with memory:
            entry = memory.copied(key)
            version = entry.copy_version if entry is not None else 0
            if entry is None and key in memory.entries:
                entry = memory.entries[key]
                version = entry.version
            if entry is not None and entry.nbytes == nbytes and version == tensor._version:
                return Saved(entry, layout(tensor))
            entry = memory.entries[key] = Later(memory, self.lanes, step, detached(tensor), key, nbytes)
            return Saved(entry, None)
