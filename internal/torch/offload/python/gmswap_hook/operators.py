"""Sees which operators make what autograd saves, so that it can be made again."""

# Operators that give the same bytes each time, write nothing but their results, and are worth to be run again.
PURE = frozenset((
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "div", "neg", "rsqrt", "pow", "exp", "square", "_to_copy", "clone", "cat",
    "mean", "leaky_relu", "hardswish", "native_layer_norm", "native_group_norm", "_fused_rms_norm", "mm", "addmm", "bmm", "t", "_softmax",
))


class Made(object):
    """A result of an operator that was run."""

    __slots__ = ("number", "call", "output")

    def __init__(self, number, call, output):
        self.number, self.call, self.output = number, call, output


class Call(object):
    __slots__ = ("function", "args", "kwargs", "begin", "end")


class Input(object):
    """An argument that is a tensor: by the number of its storage, and what of it is seen."""

    __slots__ = ("number", "dtype", "size", "stride", "offset", "entry")

    def __init__(self, number, tensor):
        self.number, self.entry = number, None
        self.dtype, self.size, self.stride, self.offset = tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()


class Recipe(object):
    """How an entry is made again."""

    __slots__ = ("call", "output", "ns", "sources")

    def __init__(self, call, output, ns, sources):
        self.call, self.output, self.ns, self.sources = call, output, ns, sources

    def inputs(self):
        return sorted({s.entry for s in self.sources})

    def bind(self, memory, entries, nbytes):
        """Returns a function that runs the operator on the entries of a step and returns the tensor it makes."""

        def take(x, stream):
            if isinstance(x, Input):
                return memory.view(entries[x.entry].on_device(stream), x)
            if isinstance(x, (list, tuple)):
                return type(x)(take(y, stream) for y in x)
            return x

        def remake(stream):
            call = self.call
            with memory.plainly():
                made = call.function(*take(call.args, stream), **{k: take(v, stream) for k, v in call.kwargs.items()})
            made = made[self.output] if isinstance(made, (list, tuple)) else made
            if made.untyped_storage().nbytes() != nbytes:
                raise RuntimeError("%s made %d bytes where it had made %d" % (call.function, made.untyped_storage().nbytes(), nbytes))
            return made

        return remake


class Operators(object):
    def __init__(self, memory):
        self.memory = memory
        self.mode = None
        self.count = 0
        self.numbers = {}  # of storages, by their address
        self.makers = {}  # by the storages' numbers
        self.changed = set()  # numbers of storages that were written to after they were made
        self.entries = {}  # the numbers of entries, by their storages' numbers

    def begin(self):
        if self.mode is None:
            self.mode = self.memory.mode(self.run)
            self.mode.__enter__()

    def end(self):
        if self.mode is not None:
            mode, self.mode = self.mode, None
            mode.__exit__(None, None, None)

    def run(self, function, args, kwargs):
        """Is given each operator, runs it, and notes it."""
        packet = getattr(getattr(function, "overloadpacket", None), "__name__", "")
        inputs = list(tensors_in((args, kwargs)))
        known = {t.untyped_storage()._cdata for t in inputs if self.memory.plain(t)}
        pure = packet in PURE
        call = None
        if pure:
            call = Call()
            call.function = function
            call.args, call.kwargs = self.note(args), self.note(kwargs)
            call.begin = self.memory.mark()
        result = function(*args, **kwargs)
        if pure:
            call.end = self.memory.mark()
            pure = self.repeats(function, args, kwargs, result)
        if function._schema.is_mutable:
            self.changed.update(self.numbers[k] for k in known if k in self.numbers)
        for i, t in enumerate(result if isinstance(result, (list, tuple)) else (result,)):
            if not self.memory.plain(t) or t.untyped_storage()._cdata in known:
                continue
            self.count += 1
            self.numbers[t.untyped_storage()._cdata] = self.count
            if pure and t.is_contiguous():
                self.makers[self.count] = Made(self.count, call, i)
        return result

    def repeats(self, function, args, kwargs, result):
        """Says whether the operator gives the same bytes once more."""
        try:
            again = function(*args, **kwargs)
        except RuntimeError:
            return False  # there is no memory for it
        pairs = zip(result, again) if isinstance(result, (list, tuple)) else ((result, again),)
        return all(self.memory.same(a, b) for a, b in pairs if self.memory.plain(a))

    def number(self, tensor):
        key = tensor.untyped_storage()._cdata
        if key not in self.numbers:
            self.count += 1
            self.numbers[key] = self.count
        return self.numbers[key]

    def note(self, x):
        """Returns arguments with no tensors in them but parameters."""
        if self.memory.plain(x):
            return x.detach() if self.memory.lasting(x) else Input(self.number(x), x)
        if isinstance(x, dict):
            return {k: self.note(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x)(self.note(y) for y in x)
        return x

    def saved(self, entry):
        number = self.numbers.get(entry.key)
        if number is not None:
            self.entries[number] = entry.index

    def recipes(self, sizes, later):
        """Returns how each entry is made again, None where it cannot be."""
        made = [None] * len(later)
        for number, index in self.entries.items():
            maker = self.makers.get(number)
            if maker is None or number in self.changed or sizes[index] != later[index]:
                continue
            sources = [x for x in flat((maker.call.args, maker.call.kwargs)) if isinstance(x, Input)]
            for s in sources:
                s.entry = self.entries.get(s.number)
            if all(s.entry is not None and s.number not in self.changed and sizes[s.entry] == later[s.entry] for s in sources):
                made[index] = Recipe(maker.call, maker.output, self.memory.elapsed(maker.call.begin, maker.call.end), sources)
        return made


def flat(x):
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        for y in x:
            yield from flat(y)
    else:
        yield x


def tensors_in(x):
    return (y for y in flat(x) if hasattr(y, "untyped_storage"))
