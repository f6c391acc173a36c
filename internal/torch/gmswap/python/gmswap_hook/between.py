"""What differs between two steps that do the same with other sizes, and what it is in others."""

from fractions import Fraction

from .chain import Chain
from .operators import Call, Input, Made
from .remake import Recipe


class Unlike(Exception):
    """Steps differ in more than sizes, or these lie on no line."""


class Somewhere(object):
    """A step, as far as it tells what numbers are in it. What layouts are there is kept, as many tensors share one."""

    __slots__ = ("layouts",)

    def __init__(self):
        self.layouts = {}

    def number(self, line):
        """Returns what a number is in this step. Raises Unlike where that is not known."""
        raise NotImplementedError

    def layout(self, layout):
        """Returns what a layout is in this step, of one that stays where it is in memory."""
        found = self.layouts.get(id(layout))
        if found is None:
            size, stride, offset = at(layout, self)
            found = self.layouts[id(layout)] = size, in_order(size) if stride is None else stride, offset
        return found


class Place(Somewhere):
    """Where a step lies, as a quotient of two numbers: 0 for the one step, 1 for the other."""

    __slots__ = ("over", "under")

    def __init__(self, over, under):
        super(Place, self).__init__()
        self.over, self.under = over, under

    def share(self):
        return self.over / float(self.under)

    def number(self, line):
        more, rest = divmod(line.slope * self.over, self.under)
        if rest:
            raise Unlike("a number that is not whole")
        return line.first + more


class Line(object):
    """A number that is another one in each of two steps."""

    __slots__ = ("first", "slope")

    def __init__(self, a, b):
        self.first, self.slope = a, b - a

    def at(self, place):
        return place.number(self)

    def near(self, share):
        """Returns about what it is at a place that is given as one number."""
        return self.first + self.slope * share


class Curve(object):
    """A number that grows with the square of what others grow with, by what it is at three places."""

    __slots__ = ("line", "bend")

    def __init__(self, line, place, number):
        p = Fraction(place.over, place.under)
        self.line, self.bend = line, (number - line.first - line.slope * p) / (p * (p - 1))

    def at(self, place):
        p = Fraction(place.over, place.under)
        number = self.line.first + self.line.slope * p + self.bend * p * (p - 1)
        if number.denominator != 1:
            raise Unlike("a number that is not whole")
        return number.numerator

    def near(self, share):
        return self.line.near(share) + float(self.bend) * share * (share - 1)


def between(a, b, tensors=None):
    """Returns what stands for two values that are alike but for whole numbers, and for what tensors makes of two arguments. What is the same in
    both is left as it is."""
    if isinstance(a, Input) and tensors is not None:
        return tensors(a, b)
    if type(a) is not type(b):
        raise Unlike("%s and %s" % (type(a), type(b)))
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            raise Unlike("%d values and %d" % (len(a), len(b)))
        parts = [between(x, y, tensors) for x, y in zip(a, b)]
        return a if all(p is x for p, x in zip(parts, a)) else tuple(parts) if isinstance(a, tuple) else parts
    if isinstance(a, dict):
        if a.keys() != b.keys():
            raise Unlike("other names")
        parts = {k: between(a[k], b[k], tensors) for k in a}
        return a if all(parts[k] is a[k] for k in a) else parts
    if type(a) is int and a != b:
        return Line(a, b)
    if a is not b and a != b:
        raise Unlike("%r and %r" % (a, b))
    return a


def at(value, place):
    """Returns the value at a place of what stands for two."""
    if isinstance(value, (Line, Varied)):
        return value.at(place)
    if isinstance(value, tuple):
        return tuple([at(x, place) for x in value])
    if isinstance(value, list):
        return [at(x, place) for x in value]
    if isinstance(value, dict):
        return {k: at(x, place) for k, x in value.items()}
    return value


class Layouts(object):
    """Layouts of tensors between two steps, each once."""

    def __init__(self):
        self.lines, self.known = {}, {}

    def between(self, a, b):
        """Returns what stands for two layouts of a type: the size, the stride, None if it is that of a tensor in order, and the offset."""
        (size, stride, offset), (other, strides, beside) = a, b
        if len(size) != len(other):
            raise Unlike("the number of dimensions")
        both = (tuple(stride), tuple(strides)) == (in_order(size), in_order(other))
        layout = (tuple(map(self.line, size, other)), None if both else tuple(map(self.line, stride, strides)), self.line(offset, beside))
        return self.known.setdefault(layout, layout)

    def line(self, a, b):
        return a if a == b else self.lines.setdefault((a, b), Line(a, b))


def in_order(size):
    """Returns the stride of a tensor of a size that has no gaps, and whose last dimension is the innermost."""
    stride, step = [], 1
    for n in reversed(size):
        stride.append(step)
        step *= max(1, n)
    return tuple(stride[::-1])


class Varied(object):
    """A tensor among the arguments of an operator, of any size."""

    __slots__ = ("one", "layout")

    def __init__(self, one, layout):
        self.one, self.layout = one, layout

    def at(self, place):
        x, one = Input.__new__(Input), self.one
        x.number, x.lasting, x.entry, x.small, x.dtype = one.number, one.lasting, one.entry, one.small, one.dtype
        x.size, x.stride, x.offset = place.layout(self.layout)
        return x


class VariedCall(object):
    """Runs of an operator with arguments of any size."""

    __slots__ = ("one", "args", "kwargs")

    def __init__(self, one, args, kwargs):
        self.one, self.kwargs = one, None if kwargs is one.kwargs else kwargs
        self.args = [(i, x) for i, (x, y) in enumerate(zip(args, one.args)) if x is not y]

    def at(self, place):
        args = list(self.one.args)
        for i, x in self.args:
            args[i] = at(x, place)
        call = Call(self.one.function, self.one.name, args, self.one.kwargs if self.kwargs is None else at(self.kwargs, place))
        call.dtype, call.places, call.nbytes = self.one.dtype, self.one.tensors_at(), self.one.nbytes
        return call


class Recipes(object):
    """How an entry is recomputed in steps of all sizes, by how it is in two of them."""

    def __init__(self, one, other, layouts):
        if (one.sources, one.small, one.lasting, len(one.chain.made)) != (other.sources, other.small, other.lasting, len(other.chain.made)):
            raise Unlike("what an entry is made of")
        self.one, self.layouts, self.numbers, self.calls = one, layouts, {}, {}
        for m, n in zip(one.chain.made, other.chain.made):
            self.alike(m, n)
        self.varied = [(key, call) for key, call in self.calls.items() if isinstance(call, VariedCall)]

    def alike(self, m, n):
        """Notes what stands for two makers, and that their results are the same."""
        if (m.call.name, m.output) != (n.call.name, n.output) or self.numbers.setdefault(m.number, n.number) != n.number:
            raise Unlike("%s and %s" % (m.call.name, n.call.name))
        if id(m.call) not in self.calls:
            args, kwargs = between(m.call.args, n.call.args, self.tensors), between(m.call.kwargs, n.call.kwargs, self.tensors)
            same = args is m.call.args and kwargs is m.call.kwargs
            self.calls[id(m.call)] = m.call if same else VariedCall(m.call, args, kwargs)

    def tensors(self, a, b):
        """Returns what stands for two tensors."""
        if not isinstance(b, Input) or (a.lasting, a.entry, a.small, a.dtype) != (b.lasting, b.entry, b.small, b.dtype):
            raise Unlike("arguments")
        if not a.lasting and a.entry is None and a.small is None and self.numbers.get(a.number) != b.number:
            raise Unlike("results")
        if a.small is not None:
            return a  # a step has its own
        here, there = (a.size, a.stride, a.offset), (b.size, b.stride, b.offset)
        return a if here == there else Varied(a, self.layouts.between(here, there))

    def at(self, place):
        """Returns the recipe at a place."""
        if not self.varied:
            return self.one
        one, calls = self.one, {key: call.at(place) for key, call in self.varied}
        made = [Made(m.number, calls.get(id(m.call), m.call), m.output, m.nbytes) for m in one.chain.made]
        return Recipe.like(one, Chain.like(one.chain, made))


def varied(one, other, layouts):
    """Returns how an entry is recomputed in steps of all sizes, None where it cannot be."""
    try:
        return Recipes(one, other, layouts) if one is not None and other is not None else None
    except Unlike:
        return None
