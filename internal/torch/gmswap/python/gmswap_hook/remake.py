"""How what autograd saved is recomputed: the recipe of an entry, and what carries it out in a step."""

from .entry import Changed, version

# Libraries may do their arithmetic differently each time.
LIBRARIES = frozenset(("mm", "addmm", "bmm", "baddbmm", "convolution"))
# Of these, too, another version may be chosen in another step.
NEARLY = LIBRARIES | {"_scaled_dot_product_cudnn_attention", "_cudnn_attention_forward"}
# A library tries one way after the other until there is memory for one, and keeps to that from then on: others round otherwise.
TRIED = frozenset(("convolution",))
ROOMY, TIGHT, COUNTED = 64, 16, 4  # such a part of the memory may be taken beside what is recomputed: on demand, where the host has no room for all that leaves, and by a schedule
PIECE = 16 << 20  # bytes that rows of others take beside the tensor while they are recomputed


class Recipe(object):
    """How an entry is recomputed."""

    __slots__ = ("chain", "call", "ns", "sources", "small", "lasting", "origins", "row", "near")

    def __init__(self, chain, ns, inputs, row, dtype):
        self.chain, self.call, self.ns, self.row = chain, chain.made[-1].call, ns, row  # bytes of a row, 0 if it is made as a whole or not at all
        self.sources = sorted({x.entry for x in inputs if x.entry is not None})
        self.small = {x.small for x in inputs if x.small is not None}
        self.lasting = {x.lasting for x in inputs if x.lasting}
        self.origins = [o for m in chain.made for o in m.call.origins]
        self.near = dtype if any(m.call.name in NEARLY for m in chain.made) else None

    @classmethod
    def like(cls, recipe, chain):
        """Returns a recipe for the same entry in another size, which is made as a whole."""
        new = cls.__new__(cls)
        new.chain, new.call, new.ns, new.row = chain, chain.made[-1].call, recipe.ns, 0
        new.sources, new.small, new.lasting, new.origins, new.near = recipe.sources, recipe.small, recipe.lasting, recipe.origins, recipe.near
        return new

    def lasts(self, ns):
        """Returns the same recipe, which takes as long as is given."""
        new = Recipe.like(self, self.chain)
        new.ns = ns
        return new

    def tries(self):
        """Returns whether a library takes another way where it finds little memory, so that the last bits differ."""
        return any(m.call.name in TRIED for m in self.chain.made)

    def usable(self, memory, entries):
        """Returns whether everything that it needs is there."""
        for i in self.sources:
            if not (entries[i].users and entries[i].kept()):
                return False
        for ordinal in self.lasting:
            if not (ordinal in memory.lasting and memory.parameters(ordinal)):
                return False
        return memory.origins.same(self.origins) and (not self.small or all(map(memory.small.there, self.small)))


class Remake(object):
    """Recomputes an entry of a step."""

    __slots__ = ("recipe", "memory", "sources", "small", "lasting", "nbytes", "row", "stream", "sample", "holds")

    def __init__(self, recipe, entries, entry, proven=False):
        self.recipe, self.memory, self.nbytes, self.row = recipe, entry.memory, entry.nbytes, recipe.row
        self.sources = {i: entries[i] for i in recipe.sources}
        self.small = {name: self.memory.small.take(name) for name in recipe.small}
        self.lasting = {ordinal: [(t, version(t)) for t in self.memory.parameters(ordinal)] for ordinal in recipe.lasting}
        self.stream = entry.home
        self.sample = None if proven else self.memory.samples.take(entry.alias, recipe.near)
        self.holds = False

    def parameters(self):
        """Returns the ids of the parameters that the entry is made of."""
        return {id(tensor) for known in self.lasting.values() for tensor, _ in known}

    def hold(self):
        """Keeps what the entry is made of until it has been made. Returns False if that is not there any more."""
        if not self.holds:
            if not all(e.users for e in self.sources.values()):
                return False
            for e in self.sources.values():
                e.users += 1
            self.holds = True
        return True

    def release(self):
        if self.holds:
            self.holds = False
            for e in self.sources.values():
                e.release()

    def operators(self):
        """Returns how many operators are rerun, and one more, as something is to be done beside that."""
        return len(self.recipe.chain.made) + 1

    def prove(self, buffer, stream):
        """Has the recomputed contents compared with the original ones, once, on the stream that made them."""
        sample, self.sample = self.sample, None
        if sample is not None and stream == self.stream:
            self.memory.samples.compare(sample, buffer)

    def whole(self, stream):
        """Returns a tensor with the contents."""
        made = self.recipe.chain.run(lambda maker, results: self.rerun(maker, results, stream))
        if self.memory.size(made) != self.nbytes:
            raise RuntimeError("%s made %d bytes where it had made %d" % (self.recipe.call.name, self.memory.size(made), self.nbytes))
        return made

    def rest(self, buffer, copied, stream):
        """Makes all rows but the first ones and puts them into the buffer."""
        call, first, rows = self.recipe.call, copied // self.row, self.nbytes // self.row
        place = self.memory.rows(buffer, call.dtype, rows)
        into = call.into()
        step = rows if into else max(1, PIECE // self.row)
        for begin in range(first, rows, step):
            part = slice(begin, begin + step)
            take = lambda x: self.input(x, stream) if x.lasting else rows_of(self.input(x, stream), rows)[part]
            if into:
                self.run(take, call, into, out=place[part])
            else:
                made = self.run(take, call)
                place[part].copy_((made[0] if isinstance(made, (list, tuple)) else made).reshape(min(step, rows - begin), -1))

    def rerun(self, maker, results, stream):
        take = lambda x: placed(self.memory, results[x.number], x) if x.number in results else self.input(x, stream)
        made = self.run(take, maker.call)
        return made[maker.output] if isinstance(made, (list, tuple)) else made

    def input(self, x, stream):
        if x.entry is not None:
            source = self.sources[x.entry]
            if not source.kept():
                raise Changed(source.nbytes)
            return placed(self.memory, source.on_device(stream), x)
        for tensor, known in self.lasting[x.lasting] if x.lasting else (self.small[x.small],):
            if version(tensor) != known:
                raise Changed(self.memory.size(tensor))
        if x.lasting:
            return placed(self.memory, tensor, x)
        if stream != self.stream:
            self.memory.follow(self.stream)
            self.memory.used_by(tensor, stream)
        return tensor  # the one that this step's operator was given

    def run(self, take, call, function=None, **more):
        """Reruns an operator, or one like it."""
        with self.memory.plainly():
            args, kwargs = call.given(take)
            return (function or call.function)(*args, **kwargs, **more)


def placed(memory, holder, x):
    """Returns an argument of an operator, in the storage of a tensor."""
    return memory.view(holder, x.dtype, x.size, x.stride, x.offset)


def rows_of(tensor, rows):
    return tensor.reshape(rows, -1)
