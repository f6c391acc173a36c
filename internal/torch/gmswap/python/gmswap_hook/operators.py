"""Sees which operators make what autograd saves, so that it can be recomputed."""

import sys

from . import chain
from .entry import layout, version
from .literals import Literals
from .memory import dense
from .remake import LIBRARIES, TRIED, Recipe, rows_of
from .rerun import ATTENTION, narrowed, rerun
from .unseen import Sums

# With these operators each row of the result depends on the same rows of the arguments, by the same arithmetic for any number of rows.
BY_ROWS = frozenset((
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "div", "neg", "rsqrt", "pow", "exp", "square", "_to_copy", "clone", "leaky_relu",
    "hardswish", "native_layer_norm", "_fused_rms_norm",
))
# With these, too, but a library chooses the arithmetic by the number of rows: the last bits may differ.
BY_ROWS_NEARLY = frozenset(("mm", "addmm"))

# A number among their arguments may differ between steps, unless it stands in the program's text; with other operators it is part of the model.
COUNTING = frozenset((
    "mul", "add", "sub", "rsub", "div", "pow", "addmm", "baddbmm", "masked_fill", "mul_", "add_", "sub_", "div_", "masked_fill_", "native_dropout", "scalar_tensor",
    "full_like", "addcmul", "lerp", "threshold", "tril", "triu", "softshrink", "clamp", "clamp_min", "clamp_", "clamp_min_", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor",
))
# Their overload "out" writes the result into a given tensor, and takes no other memory.
INTO = frozenset((
    "silu", "gelu", "sigmoid", "tanh", "mul", "add", "sub", "div", "neg", "rsqrt", "exp", "leaky_relu", "hardswish", "mm", "addmm",
))
SHORT = 300000  # nanoseconds that an operator takes to be launched, at most


class Made(object):
    """A result of an operator that was run."""

    __slots__ = ("number", "call", "output", "nbytes")

    def __init__(self, number, call, output, nbytes):
        self.number, self.call, self.output, self.nbytes = number, call, output, nbytes


class Call(object):
    """A run of an operator. Its first result, of a type, has this many rows that can be made one by one, or 0."""

    __slots__ = ("function", "name", "args", "kwargs", "begin", "end", "rows", "dtype", "places", "origins", "nbytes")

    def __init__(self, function, name, args, kwargs, origins=()):
        self.function, self.name, self.args, self.kwargs = function, name, args, kwargs
        self.rows, self.places, self.nbytes = 0, None, 0  # bytes of all results
        self.origins = origins  # what its numbers come from, where that may change

    def given(self, take):
        """Returns the arguments, with what take returns for each that is a tensor."""
        places = self.tensors_at()
        if not places:
            put = lambda x: take(x) if isinstance(x, Input) else x
            return mapped(self.args, put), mapped(self.kwargs, put)
        args = list(self.args)
        for i in places:
            args[i] = take(args[i])
        return args, self.kwargs

    def tensors_at(self):
        """Returns which arguments are tensors, none if some are in lists or have names."""
        if self.places is None:
            self.places = [i for i, x in enumerate(self.args) if isinstance(x, Input)]
            if len(self.places) < len(self.inputs()):
                self.places = ()
        return self.places

    def inputs(self):
        """Returns the arguments that are tensors."""
        return [x for x in flat((self.args, self.kwargs)) if isinstance(x, Input)]

    def into(self):
        """Returns what does the same and writes the result into a given tensor, or None."""
        plain = getattr(self.function, "_overloadname", "") in ("default", "Tensor")
        return getattr(self.function.overloadpacket, "out", None) if plain and self.name in INTO else None


class Input(object):
    """An argument that is a tensor: by the number of its storage, or the ordinal of a parameter's, and what of it is seen."""

    __slots__ = ("number", "lasting", "dtype", "size", "stride", "offset", "entry", "small", "behind", "given")

    def __init__(self, number, lasting, tensor):
        self.number, self.lasting = number, lasting
        self.entry = self.small = None  # it is an entry, or has a name among the small ones
        self.given = None  # the name, and more, of an argument of a module that it is
        self.behind = 0  # entries that were saved before such a one
        self.dtype, self.size, self.stride, self.offset = layout(tensor)


class Operators(object):
    def __init__(self, memory, nearly, proves=True):
        self.memory, self.proves = memory, proves  # whether each operator is run twice, to see that it makes the same again
        self.by_rows = BY_ROWS | BY_ROWS_NEARLY if nearly else BY_ROWS
        self.mode, self.literals = None, Literals()
        self.last = None  # the mark behind the last operator that was timed
        self.count = 0
        self.numbers = {}  # of storages, by their addresses
        self.weak = {}  # references to these storages, so that an address stays that of one
        self.versions = {}  # of these storages when they were numbered, by their numbers
        self.makers = {}  # by the storages' numbers
        self.attended = set()  # numbers of storages that attention made
        self.changed = set()  # numbers of storages that were written to after they were made
        self.written = set()  # ordinals of parameters' that were
        self.unsure = set()  # names of operators that did not repeat what they had made
        self.doubts = []  # flags on the device, which are set where a call did not repeat that, and these calls
        self.sums = None  # which tell what is written to storages unseen, in a forward pass
        self.used = {}  # parameters and buffers, by the ordinals of their storages
        self.entries = {}  # the numbers of entries, by their storages' numbers
        self.small = {}  # by these: of tensors that were saved and are no entries, by their layouts, the names and how many entries there were
        self.levels = []  # of the modules that run, the innermost last: by these and layouts, the same of what each was given, and the bytes
        self.named_twice = set()  # names of several of these
        self.names = {}  # by these names: the storages' numbers
        self.undone = {}  # by these: what makes a storage again of what was made of it, with all that it held

    def begin(self):
        if self.mode is None:
            self.sums = self.sums or (Sums(self.memory) if self.proves else None)
            self.mode = self.memory.mode(self.run)
            self.mode.__enter__()

    def end(self):
        if self.mode is not None:
            mode, self.mode = self.mode, None
            mode.__exit__(None, None, None)
            for lasting, x in self.used.items():
                if self.memory.size(x):  # or it is gathered anew when it is needed
                    self.look(-lasting, x)
            self.settle()

    def forget(self):
        """Looks no more at what storages contain, unless a model is under way: the forward pass has ended."""
        if self.sums is not None:
            self.memory.looking = True
            try:
                self.settle()
            finally:
                self.memory.looking = False
            if self.mode is None:
                self.sums, self.used = None, {}

    def settle(self):
        """Forgets what calls made that did not make the same again, and what was written to unseen."""
        doubts, self.doubts = self.doubts, []
        looks = self.sums is not None and self.sums.looks
        if not doubts and not looks:
            return
        self.memory.synchronize()  # operators may have run on several streams
        changed, unknown = self.sums.changed() if looks else ((), ())
        self.changed.update(changed, unknown)
        self.written.update(-number for number in (*changed, *unknown) if number < 0)
        self.unsure.update(self.makers[number].call.name for number in changed if number in self.makers)
        if not doubts:
            return
        failed = self.tried(self.memory.read, ([flag for flag, _ in doubts],), {}) or [True] * len(doubts)
        wrong = {id(call): call for fails, (_, call) in zip(failed, doubts) if fails}
        self.unsure.update(call.name for call in wrong.values())
        self.makers = {number: m for number, m in self.makers.items() if id(m.call) not in wrong}

    def run(self, function, args, kwargs):
        """Runs each operator and notes it."""
        if self.memory.looking:
            return function(*args, **kwargs)
        packet = getattr(getattr(function, "overloadpacket", None), "__name__", "")
        given = {key for key in map(self.memory.key, tensors_in((args, kwargs))) if key}
        if self.proves:
            self.memory.note_used(given)
        mutable = writes(function)
        again = rerun(function, mutable)
        origins = self.origins_of(packet, args, kwargs) if again is not None and again.suits(function, args) else None
        if origins is None:
            again = None
        elif again.in_place:
            return self.run_in_place(again, function, args, kwargs, origins)
        elif again.draws:
            return self.run_drawing(again, function, args, kwargs, given, origins)
        call = self.call(again, args, kwargs, origins) if again is not None else None
        before = self.memory.evictions
        if call is not None:
            self.memory.fill(self.last, SHORT)
            call.begin = self.memory.mark()
        result, beside = self.measured(function, args, kwargs) if call is not None and self.proves and call.name in TRIED else (function(*args, **kwargs), 0)
        if call is not None:
            call.end = self.last = self.memory.mark()
            call = self.proven(call, again, args, kwargs, result, self.memory.evictions == before, beside)
        if mutable:
            self.wrote(function, args, kwargs)
        for i, x in enumerate(results_in(result)):
            for t in tensors_in(x):
                number = self.new(t, given)
                if call is not None and number:
                    call.nbytes += self.memory.size(t)
                if packet in ATTENTION and i == 0:
                    self.attended.add(number)
                if call is not None and t is x and i < again.results:
                    self.made(number, call, i, t)
        if call is not None and packet == "_to_copy":
            self.undo(function, call, args[0], result)
        return result

    def undo(self, function, call, tensor, result):
        """Notes that what was copied to a wider type can be made of that again."""
        number = self.numbers.get(self.memory.key(tensor))
        if number and self.memory.key(result) and self.memory.fills(tensor) and narrowed(tensor, result):
            back = Call(function, "_to_copy", [self.note(result)], {"dtype": tensor.dtype})
            back.begin, back.end, back.dtype = call.begin, call.end, tensor.dtype
            self.undone[number] = Made(number, back, 0, self.memory.size(tensor))

    def call(self, again, args, kwargs, origins=()):
        """Notes a call."""
        return Call(again.function, again.name, self.note(again.arguments(args)), self.note(kwargs), origins)

    def measured(self, function, args, kwargs):
        """Returns the result of a function, and the bytes that it needed beside that."""
        peak = self.memory.peak
        whole = peak.begin_within()
        try:
            result = function(*args, **kwargs)
        finally:
            most = peak.end_within(whole)
        return result, max(0, most - self.memory.allocated())

    def proven(self, call, again, args, kwargs, result, timed, beside=0):
        """Returns a call that has ended if the same bytes come out again, None if not, or if they cannot be compared: whether they do shows when all are
        settled. The second run is timed where the first waited for memory, and left out where there is no room for what the first needed beside its
        results."""
        args, results = again.arguments(args), results_in(result)[: again.results]
        if not all(dense(x) for x in results if self.memory.key(x)):
            return None
        call.dtype = (result[0] if isinstance(result, (list, tuple)) else result).dtype
        if not self.proves:
            return call
        if beside and self.tried(self.memory.take, (beside + sum(self.memory.size(x) for x in results_in(result) if self.memory.key(x)),), {}) is None:
            return None
        if not timed:
            self.memory.fill(None, SHORT)
        begin = call.begin if timed else self.memory.mark()
        twice = self.tried(again.function, args, kwargs)
        if twice is None:
            return None
        call.begin, call.end = begin, call.end if timed else self.memory.mark()
        if not self.doubt(call, results, results_in(twice)[: again.results]):
            return None
        if call.name in self.by_rows:
            call.rows = self.splits(call.name, again.function, args, kwargs, result)
        return call

    def run_drawing(self, again, function, args, kwargs, given, origins):
        """Runs an operator that draws what it keeps: once it has, its first result is made again by that."""
        before = self.memory.evictions
        self.memory.fill(self.last, SHORT)
        begin = self.memory.mark()
        result = function(*args, **kwargs)
        self.last = self.memory.mark()
        numbers = [self.new(t, given) for t in result]
        drawn = again.drawn(args, result)
        call = self.call(again, drawn, {}, origins)
        call.begin, call.end = begin, self.last
        call = self.proven(call, again, drawn, {}, result[0], self.memory.evictions == before)
        if call is not None:
            self.made(numbers[0], call, 0, result[0])
        return result

    def run_in_place(self, again, function, args, kwargs, origins):
        """Runs an operator that writes to its first argument. On a copy of what was there before it makes the same."""
        call = self.call(again, args, kwargs, origins) if self.whole(args[0]) else None
        before = None
        if call is not None:
            self.memory.fill(self.last, SHORT)
            call.begin = self.memory.mark()
            before = self.tried(again.function, args, kwargs) if self.proves else None
            call.end = self.last = self.memory.mark()
        count = version(args[0])
        result = function(*args, **kwargs)
        if call is None or self.proves and (before is None or not self.doubt(call, (args[0],), (before,))):
            self.wrote(function, args, kwargs)
        else:
            call.dtype = args[0].dtype
            self.overwritten(args[0], call, count)
        return result

    def whole(self, tensor):
        """Returns whether a tensor is all of its storage, and no parameter's."""
        key = self.memory.key(tensor)
        return key != 0 and not self.memory.parameter(key) and self.memory.fills(tensor)

    def tried(self, function, args, kwargs):
        """Returns the result of a function, None if there is no memory for it, or it cannot be called once more."""
        try:
            with self.memory.trial:
                return function(*args, **kwargs)
        except Exception:
            return None

    def overwritten(self, tensor, call, count):
        """Notes what made the contents of a storage anew, which was written to so often before: it has another number from now on."""
        key = self.memory.key(tensor)
        self.entries.pop(self.numbers[key], None)
        self.small.pop(self.numbers[key], None)
        self.count += 1
        self.numbers[key], self.versions[self.count] = self.count, count + 1
        self.made(self.count, call, 0, tensor)

    def made(self, number, call, output, tensor):
        """Notes what made the storage of a result that is all of it."""
        if number and self.memory.fills(tensor):
            self.makers[number] = Made(number, call, output, self.memory.size(tensor))
            self.look(number, tensor)

    def look(self, number, tensor):
        """Looks at what a storage contains now."""
        if self.sums is not None and number and number not in self.changed and type(tensor) in self.memory.types:
            self.memory.looking = True
            try:
                self.sums.look(number, tensor)
            finally:
                self.memory.looking = False

    def wrote(self, function, args, kwargs):
        """Notes what an operator writes to."""
        keys = [key for key in map(self.memory.key, targets(function, args, kwargs)) if key]
        self.written.update(map(self.memory.parameter, keys))
        self.changed.update(self.numbers[key] for key in keys if key in self.numbers)

    def origins_of(self, packet, args, kwargs):
        """Returns what the numbers among the arguments come from, where that may change, None if that is not known, or something else may change unseen. All else is
        the model's, and what it computes from that."""
        given = flat((args, kwargs))
        if any(hasattr(x, "untyped_storage") and (not self.memory.key(x) or not self.memory.plain(x) or x.is_conj() or x.is_neg()) for x in given):  # which a view does not show
            return None
        numbers = [x for x in given if isinstance(x, (int, float, complex)) and not isinstance(x, bool)] if packet in COUNTING else []
        if not numbers:
            return ()
        if len(numbers) > 1:
            return None
        frame = sys._getframe(1)
        return () if self.literals.written(packet, numbers[0], frame) else self.memory.origins.of(packet, numbers[0], frame, self.literals)

    def doubt(self, call, results, again):
        """Compares what an operator made with what it made when it was rerun, later on. Returns False where they cannot be the same, or there is no memory
        to compare them."""
        others = self.tried(lambda: [self.memory.other(a, b) for a, b in zip(results, again) if self.memory.key(a)], (), {})
        if others is None:
            return False
        if any(other is None for other in others):
            self.unsure.add(call.name)
            return False
        self.doubts.extend((other, call) for other in others)
        return True

    def splits(self, packet, function, args, kwargs, result):
        """Returns the rows of the first result, if the second half of them comes of the second half of the arguments' rows, else 0.
        Parameters have to be the same for all rows."""
        whole = result[0] if isinstance(result, (list, tuple)) else result
        if whole.dim() < 2 or not whole.is_contiguous() or whole.numel() == 0:
            return 0
        rows = whole.numel() // whole.shape[-1]
        first = rows // 2

        def half(x):
            key = self.memory.key(x)
            if not key:
                return x
            if self.memory.parameter(key):
                if packet not in LIBRARIES and (x.dim() > 2 or x.dim() == 2 and x.shape[0] > 1):
                    raise ValueError("a parameter has rows of its own")
                return x
            if x.dim() < 2 or not x.is_contiguous() or x.numel() // max(1, x.shape[-1]) != rows:
                raise ValueError("an argument has other rows")
            return rows_of(x, rows)[first:]

        try:
            with self.memory.plainly():
                part = self.tried(function, mapped(args, half), mapped(kwargs, half))
            if part is None:
                return 0
            part = part[0] if isinstance(part, (list, tuple)) else part
            half_of = rows_of(whole, rows)[first:]
            return rows if part.shape == half_of.shape and self.tried(self.memory.same, (half_of, part), {}) else 0
        except (RuntimeError, ValueError, TypeError):
            return 0

    def new(self, tensor, given):
        """Numbers the storage of a result, unless it is that of an argument."""
        storage = self.memory.storage(tensor)
        if storage is None or storage._cdata in given:
            return 0
        self.count += 1
        self.numbers[storage._cdata], self.weak[storage._cdata] = self.count, self.memory.weak(storage)
        self.versions[self.count] = version(tensor)
        return self.count

    def note(self, x):
        """Returns arguments with no tensors in them."""
        if isinstance(x, (list, tuple)):
            return type(x)([self.note(y) for y in x])
        if isinstance(x, dict):
            return {k: self.note(v) for k, v in x.items()}
        key = self.memory.key(x)
        if not key:
            return x
        lasting = self.memory.parameter(key)
        if lasting:
            if self.sums is not None and lasting not in self.used:
                self.used[lasting] = x
                self.look(-lasting, x)
            return Input(0, lasting, x)
        number = self.numbers.get(key) or self.new(x, ())
        self.check(number, version(x))
        self.look(number, x)
        known = Input(number, 0, x)
        at = number, (known.dtype, known.size, known.stride, known.offset)
        known.given = next((given[at] for given in reversed(self.levels) if at in given), None)
        return known

    def saved(self, entry):
        number = self.numbers.get(entry.key) or self.new(entry.alias, ())
        self.check(number, entry.version)
        self.look(number, entry.alias)
        self.entries[number] = entry.index

    def see_small(self, key, tensor, name, count):
        """Notes a tensor that is saved behind so many entries, and is none. It has a name among those of all steps."""
        number = self.seen(key, tensor)
        if number:
            self.small.setdefault(number, {}).setdefault(layout(tensor), (name, count))

    def see_given(self, tensor, name, count):
        """Notes a tensor that the module which begins is given behind so many entries. It has a name among those of all steps."""
        number = self.seen(self.memory.key(tensor), tensor)
        if number:
            self.levels[-1].setdefault((number, layout(tensor)), (name, count, self.memory.size(tensor)))
            if self.names.setdefault(name, number) != number:
                self.named_twice.add(name)

    def seen(self, key, tensor):
        """Returns the number of a tensor's storage, whose contents are as they were unless it shows now that they are not."""
        number = self.numbers.get(key) or self.new(tensor, ())
        if number:
            self.check(number, version(tensor))
            self.look(number, tensor)
        return number

    def check(self, number, now):
        """Notes a storage that was written to where no operators are seen, as between two models."""
        if self.versions[number] != now:
            self.changed.add(number)

    def recount(self, tensor):
        """Notes that another counter tells from now on how often a storage was written to: it is as it was when that says what it says now."""
        number = self.numbers.get(self.memory.key(tensor))
        if number and number not in self.changed:
            self.versions[number] = version(tensor)

    def attention(self):
        """Returns the entries that are results of attention."""
        return {self.entries[number] for number in self.attended if number in self.entries}

    def recipes(self, made, timed, extra, held=()):
        """Returns how each entry of a step is recomputed, also of arguments of modules that are held, None where it cannot be, or where that takes more bytes beside
        it than extra. The operators were seen in the step before."""
        recipes = [None] * len(timed.sizes)
        for index, found in self.chains(made, timed, held).items():
            if found.extra() <= extra:
                recipes[index] = self.recipe(found, timed.sizes[index], timed.layouts[index][0])
        return recipes

    def chains(self, made, timed, held=()):
        """Returns what makes entries of a step again, also of arguments that are held, by their indexes."""
        chains = {}
        same = [a == b for a, b in zip(zip(made.layouts, made.sizes), zip(timed.layouts, timed.sizes))]
        makers, undone = ({number: m for number, m in known.items() if number not in self.changed} for known in (self.makers, self.undone))
        for m in [*makers.values(), *undone.values()]:
            for x in m.call.inputs():
                x.entry = self.entries.get(x.number)
                x.small, x.behind = self.named(x, held) if x.entry is None else (None, 0)
        for number, index in self.entries.items():
            found = chain.find(makers[number], self.saved_before(index, same), makers, undone) if number in makers and same[index] else None
            if found is not None and self.memory.origins.same([o for m in found.made for o in m.call.origins]):
                chains[index] = found
        return chains

    def named(self, x, held):
        """Returns the name of an argument that is no entry, and behind how many it was there, (None, 0) where it has none."""
        small = self.small.get(x.number, {}).get((x.dtype, x.size, x.stride, x.offset))
        return small or (x.given[:2] if x.given is not None and x.given[0] in held else (None, 0))

    def arguments(self, made, most):
        """Returns the bytes, up to so many, of what modules were given and operators took that was not saved, and that nothing makes again, by names."""
        saved, lost, found = self.saved_before(len(made.sizes), [True] * len(made.sizes)), {}, {}
        for x in (x for m in self.makers.values() for x in m.call.inputs() if x.given is not None and x.entry is None):
            name, _, nbytes = x.given
            if nbytes > most or name in self.named_twice or x.number in self.changed:
                continue
            if x.number not in lost:
                lost[x.number] = x.number not in self.makers or chain.find(self.makers[x.number], saved, self.makers, self.undone) is None
            if lost[x.number]:
                found[name] = nbytes
        return found

    def saved_before(self, index, same):
        """Returns the function that tells the arguments that are parameters, or were saved before an entry, and are unchanged."""
        def saved(x):
            if x.lasting:
                return x.lasting not in self.written
            if x.entry is not None:
                return x.entry < index and x.number not in self.changed and same[x.entry]
            return x.small is not None and x.behind <= index and x.number not in self.changed

        return saved

    def recipe(self, found, size, dtype):
        maker, own = found.made[-1], {m.number for m in found.made}
        inputs = [x for m in found.made for x in m.call.inputs() if x.number not in own]
        rows = maker.call.rows if maker.output == 0 and len(found.made) == 1 else 0
        row = size // rows if rows and size % rows == 0 else 0
        calls = {id(m.call): m.call for m in found.made}.values()
        recipe = Recipe(found, sum(self.memory.elapsed(c.begin, c.end) for c in calls), inputs, row, dtype)
        self.memory.small.want(recipe.small)
        return recipe


def writes(function):
    """Returns whether an operator writes to an argument, as with out=."""
    name = getattr(getattr(function, "overloadpacket", None), "__name__", "")
    return name != "record_stream" and (collective(function) or getattr(getattr(function, "_schema", None), "is_mutable", True))  # which says that it does


def collective(function):
    """Returns whether an operator is one of torch.distributed, which writes to its first argument, though its schema does not say so."""
    return getattr(function, "namespace", "") == "c10d"


def targets(function, args, kwargs):
    """Returns the tensors that an operator writes to, or all of its arguments where that is not known."""
    arguments = getattr(getattr(function, "_schema", None), "arguments", None)
    if collective(function) and args:
        return tensors_in(args[:1])
    if arguments is None:
        return tensors_in((args, kwargs))
    values = (args[i] if i < len(args) else kwargs.get(a.name) for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)
    return tensors_in(list(values))


def results_in(result):
    """Returns the results of an operator."""
    return result if isinstance(result, (list, tuple)) else (result,)


def mapped(x, f):
    """Returns arguments with f applied to each that is not a list."""
    if isinstance(x, dict):
        return {k: mapped(v, f) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(mapped(y, f) for y in x)
    return f(x)


def flat(x):
    """Returns what is in lists and dicts, and in those that are in them."""
    found = []
    gather(x, found)
    return found


def gather(x, found):
    for y in x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else (x,):
        if isinstance(y, (list, tuple, dict)):
            gather(y, found)
        else:
            found.append(y)


def tensors_in(x):
    return [y for y in flat(x) if hasattr(y, "untyped_storage")]
