"""Sees which operators make what autograd saves, so that it can be made again."""

# Of these each row of the result comes of the same rows of the arguments, by the same arithmetic however many rows there are.
BY_ROWS = frozenset((
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "div", "neg", "rsqrt", "pow", "exp", "square", "_to_copy", "clone", "leaky_relu",
    "hardswish", "native_layer_norm", "_fused_rms_norm",
))
# Of these, too, but a library chooses the arithmetic by the number of rows: the last bits may differ.
BY_ROWS_NEARLY = frozenset(("mm", "addmm"))

# Operators that give the same bytes each time, write nothing but their results, and are worth to be run again.
PURE = frozenset((
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "div", "neg", "rsqrt", "pow", "exp", "square", "_to_copy", "clone", "cat",
    "mean", "leaky_relu", "hardswish", "native_layer_norm", "native_group_norm", "_fused_rms_norm", "mm", "addmm", "bmm", "_softmax",
))


class Made(object):
    """A result of an operator that was run."""

    __slots__ = ("number", "call", "output")

    def __init__(self, number, call, output):
        self.number, self.call, self.output = number, call, output


class Call(object):
    __slots__ = ("function", "args", "kwargs", "begin", "end", "rows")


class Input(object):
    """An argument that is a tensor: by the number of its storage, and what of it is seen."""

    __slots__ = ("number", "dtype", "size", "stride", "offset", "entry")

    def __init__(self, number, tensor):
        self.number, self.entry = number, None
        self.dtype, self.size, self.stride, self.offset = tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()


class Recipe(object):
    """How an entry is made again."""

    __slots__ = ("call", "output", "ns", "sources", "row")

    def __init__(self, call, output, ns, sources, row):
        self.call, self.output, self.ns, self.sources = call, output, ns, sources
        self.row = row  # bytes of one, 0 if it is made as a whole or not at all

    def inputs(self):
        return sorted({s.entry for s in self.sources})


class Remake(object):
    """Makes an entry of a step again."""

    __slots__ = ("recipe", "memory", "entries", "nbytes", "row")

    def __init__(self, recipe, memory, entries, nbytes):
        self.recipe, self.memory, self.entries, self.nbytes, self.row = recipe, memory, entries, nbytes, recipe.row

    def whole(self, stream):
        """Returns a tensor with the contents."""
        made = self.run(lambda x: self.memory.view(self.entries[x.entry].on_device(stream), x))
        if made.untyped_storage().nbytes() != self.nbytes:
            raise RuntimeError("%s made %d bytes where it had made %d" % (self.recipe.call.function, made.untyped_storage().nbytes(), self.nbytes))
        return made

    def rest(self, buffer, copied, stream):
        """Makes all rows but the first ones, and puts them into the buffer."""
        rows = self.nbytes // self.row
        first = copied // self.row
        made = self.run(lambda x: rows_of(self.memory.view(self.entries[x.entry].on_device(stream), x), rows)[first:])
        self.memory.rows(buffer, made.dtype, rows)[first:].copy_(made.reshape(rows - first, -1))

    def run(self, take):
        call, put = self.recipe.call, lambda x: take(x) if isinstance(x, Input) else x
        with self.memory.plainly():
            made = call.function(*mapped(call.args, put), **mapped(call.kwargs, put))
        return made[self.recipe.output] if isinstance(made, (list, tuple)) else made


def rows_of(tensor, rows):
    return tensor.reshape(rows, -1)


class Operators(object):
    def __init__(self, memory, nearly):
        self.memory = memory
        self.by_rows = BY_ROWS | BY_ROWS_NEARLY if nearly else BY_ROWS
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
            call.rows = pure and packet in self.by_rows and self.splits(function, args, kwargs, result)
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

    def splits(self, function, args, kwargs, result):
        """Returns the rows of the first result, if the second half of them comes of the second half of the arguments' rows, else 0."""
        whole = result[0] if isinstance(result, (list, tuple)) else result
        if whole.dim() < 2 or not whole.is_contiguous() or whole.numel() == 0:
            return 0
        rows = whole.numel() // whole.shape[-1]
        first = rows // 2

        def half(x):
            if not self.memory.plain(x) or self.memory.lasting(x):
                return x
            if x.dim() < 2 or not x.is_contiguous() or x.numel() // max(1, x.shape[-1]) != rows:
                raise ValueError("an argument has other rows")
            return rows_of(x, rows)[first:]

        try:
            with self.memory.plainly():
                part = function(*mapped(args, half), **mapped(kwargs, half))
            part = part[0] if isinstance(part, (list, tuple)) else part
            return rows if self.memory.same(rows_of(whole, rows)[first:], part.reshape(rows - first, -1)) else 0
        except (RuntimeError, ValueError, TypeError):
            return 0

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
                rows = maker.call.rows if maker.output == 0 else 0
                row = later[index] // rows if rows and later[index] % rows == 0 else 0
                made[index] = Recipe(maker.call, maker.output, self.memory.elapsed(maker.call.begin, maker.call.end), sources, row)
        return made


def mapped(x, f):
    """Returns arguments with each that is no list in the place of what f makes of it."""
    if isinstance(x, dict):
        return {k: mapped(v, f) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(mapped(y, f) for y in x)
    return f(x)


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
