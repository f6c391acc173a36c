"""Steps that do the same with other sizes: what lies on a line between two of them, and for which schedules are made."""

import random
import types

from gmswap_hook import between, extent, family
from gmswap_hook.between import Layouts, Line, Place, Unlike
from gmswap_hook.chain import Chain
from gmswap_hook.operators import Call, Input, Made, Recipe


def fails(call, *args):
    try:
        call(*args)
    except Unlike:
        return True
    return False


def step(n, batch=4):
    """Returns a step of texts of a length: sizes that do not vary, that grow with it, that grow from a start, and that grow with its square."""
    shapes = [(7, 3), (batch, n, n), (batch, n, 16), (batch, n - 1, 100), (n,), (batch, 8, n), (n, n + 3)]
    layouts = [("float", shape, strides(shape), 0) for shape in shapes[:-1]] + [("float", shapes[-1], (1, n), n)]
    return types.SimpleNamespace(sizes=[4 * product(shape) for shape in shapes], layouts=layouts)


def strides(shape):
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))


def product(xs):
    out = 1
    for x in xs:
        out *= x
    return out


def check_extent():
    """Of any step on the line, sizes and layouts are foreseen, from any two others. Those of a step beside it are not."""
    draw = random.Random(1)
    for _ in range(200):
        a, b, c, n = draw.sample(range(2, 500), 4)
        e, want = extent.Extent(step(a), step(b), step(c), Layouts()), step(n)
        place = e.place_of(want.sizes)
        assert place.share() == (n - min(a, b)) / float(abs(a - b)) and e.first == 2, "the first that grows with the length itself"
        assert [e.exactly(i, place) for i in range(7)] == list(zip(want.sizes, want.layouts)), (a, b, n)
        assert abs(e.bytes(place.share()) - sum(want.sizes)) < 1e-6 * sum(want.sizes)
        assert abs(e.share(sum(want.sizes)) - place.share()) < 1e-6 * max(1, abs(place.share()))
        assert all(0 <= bound - size <= 1 for bound, size in zip(e.sizes(place.share()), want.sizes))
        assert fails(e.place_of, step(n, batch=5).sizes) and fails(e.place_of, want.sizes[:-1])
    assert fails(extent.Extent, step(3), step(3), step(4), Layouts()), "one size"
    assert fails(extent.Extent, step(3), step(5), step(4, batch=5), Layouts()), "two extents"


def check_parity():
    """What is whole in every second step alone is foreseen in those."""
    line = Line(10, 13)
    assert line.at(Place(4, 2)) == 16 and fails(line.at, Place(1, 2))


def check_between():
    """What differs in more than whole numbers is no step of another size."""
    a = {"x": [1, (2, None)], "y": "sum"}
    assert between.between(a, a) is a
    both = between.between(a, {"x": [3, (2, None)], "y": "sum"})
    assert between.at(both, Place(2, 1)) == {"x": [5, (2, None)], "y": "sum"}
    for other in {"x": [1, (2, None)]}, {"x": [1, (2, 3)], "y": "sum"}, {"x": [1], "y": "sum"}, {"x": [1, (2, None)], "y": "mean"}, {"x": [1.0, (2, None)], "y": "sum"}:
        assert fails(between.between, a, other), other
    assert fails(between.between, True, 1) and fails(between.between, 1.5, 2.5)


def tensor(number, entry, *shape):
    x = Input.__new__(Input)
    x.number, x.lasting, x.entry, x.dtype, x.size, x.stride, x.offset = number, 0, entry, "float", shape, strides(shape), 0
    return x


def recipe(n, first=10, name="mul"):
    """Returns how an entry is recomputed from another one by way of a result that was not saved."""
    a = Call(None, "silu", (tensor(1, 0, 4, n),), {})
    b = Call(None, name, (tensor(first, None, 4, n), 2), {"out_size": [n, 7]})
    a.dtype = b.dtype = "float"
    return Recipe(Chain([Made(first, a, 0, 16 * n), Made(first + 1, b, 0, 16 * n)]), 1, [x for x in a.inputs()], 0, "float")


def check_recipes():
    """A recipe of any size is that of two others, whatever numbers these gave to what is not saved."""
    both = between.Recipes(recipe(10), recipe(14, first=20), Layouts())
    r, want = both.at(Place(3, 2)), recipe(16)
    for made, m in zip(r.chain.made, want.chain.made):
        x, y = made.call.inputs()[0], m.call.inputs()[0]
        assert (made.number, made.call.name, made.call.kwargs) == (m.number, m.call.name, m.call.kwargs)
        assert (x.number, x.entry, x.size, x.stride) == (y.number, y.entry, y.size, y.stride)
    assert (r.sources, r.chain.ends) == (want.sources, want.chain.ends)
    assert r.chain.made[1].call.inputs()[0].size is r.chain.made[0].call.inputs()[0].size, "a layout is made once"
    one = recipe(10)
    assert between.Recipes(one, recipe(10), Layouts()).at(Place(1, 2)) is one, "nothing varies"
    assert fails(between.Recipes, recipe(10), recipe(14, name="add"), Layouts())
    other = recipe(14)
    other.sources = [5]
    assert fails(between.Recipes, recipe(10), other, Layouts())


def new_family(fits, device=1000):
    """Returns a family of steps that save 100 bytes for each token, one of 10 and one of 20, and what makes schedules: steps of up to so many tokens
    fit. It notes sizes."""
    f = family.Family.__new__(family.Family)
    one, other = (types.SimpleNamespace(sizes=[100 * n], layouts=[("float", (n,), (1,), 0)]) for n in (10, 20))
    e = extent.Extent(one, other, other, Layouts())
    f.extent, f.device, f.levels, f.shares, f.most, f.full, f.edition = e, device, (), (), 2000, False, 0
    f.model = types.SimpleNamespace(extent=e, graph=lambda share: share, recorded=e.sizes, proven=None, correct=lambda instrument: None)
    made = []

    def make(share, sizes, recipes, policy="quick", device=0):
        made.append(sizes[0] // 100)
        if sizes[0] > 100 * f.highest:
            raise ValueError("too large")
        empty = sizes[0] <= 100 * fits
        return types.SimpleNamespace(device=f.device, sizes=sizes, empty=lambda: empty, plain_peak=sizes[0] / (100.0 * fits) * f.device, policy=policy,
                                     sequence=(), trails=(), actions=(), exact=(), remade=())

    f.highest = 1 << 40
    return f, make, made


def check_levels():
    """Schedules come first for the largest step, and for the largest that fits; then between, until they are close. A larger step has one made for
    larger steps; what was measured has all made anew, with steps on the way served all the time."""
    f, make, made = new_family(fits=12)
    assert f.lacks() and f.plan(make) is f
    assert made == [30, 5, 12], made
    assert [level.empty() for level in f.levels] == [True, False]
    while f.lacks():
        f.plan(make)
    sizes = [level.sizes[0] for level in f.levels]
    assert sizes == sorted(sizes) and max(b - a for a, b in zip(sizes, sizes[1:])) <= 125 and len(made) == len(sizes) + 1, sizes
    for n in range(1, 31):
        sized = f.at(f.extent.place(100 * n))
        assert 0 <= sized.sizes[0] - 100 * n <= 125 or n < 12, n
    assert f.at(f.extent.place(3100)) is None and not f.foresees([3100]) and f.foresees([3000]) and not f.foresees([3000, 1])
    assert f.extends([4000]) and f.lacks() and not f.extends([1, 2])
    f.plan(make)
    assert f.at(f.extent.place(6000)).sizes == [6000] and f.lacks()
    while f.lacks():
        f.plan(make)
    before = len(made)
    f.correct(None)
    while f.lacks():
        assert f.at(f.extent.place(6000)) is not None
        f.plan(make)
    assert len(made) == before + len(f.levels) and all(level.edition == 1 for level in f.levels)


def check_full():
    """Where there is no schedule for larger steps, one is made for the largest; where there is none for that, the others stay."""
    f, make, made = new_family(fits=12)
    f.highest = 21
    f.plan(make)
    assert f.levels[-1].sizes == [2000] and not f.full
    assert f.extends([3000]) and f.lacks()
    f.plan(make)
    assert f.full and f.levels[-1].sizes == [2000]
    while f.lacks():
        f.plan(make)
    g, make, made = new_family(fits=12)
    g.highest = 5
    try:
        g.plan(make)
        raise AssertionError("a schedule")
    except ValueError:
        pass


def main():
    check_extent()
    check_parity()
    check_between()
    check_recipes()
    check_levels()
    check_full()


main()
