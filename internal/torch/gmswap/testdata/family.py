"""Steps that do the same with other sizes: what lies on a line between two of them, and for which schedules are made."""

import random
import types

from gmswap_hook import between, extent, extents, family
from gmswap_hook.between import Layouts, Line, Place, Unlike
from gmswap_hook.chain import Chain
from gmswap_hook.operators import Call, Input, Made
from gmswap_hook.remake import Recipe
from gmswap_hook.selection import Trust


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


def pictures(batch, height, width, more=0):
    """Returns a step of pictures: what grows with all extents, with one of them and a start, and does not vary."""
    shapes = [(batch, 4, height, width), (3, 3), (batch, 32, height // 2, width // 2), (batch, height * width + 1 + more)]
    return types.SimpleNamespace(sizes=[4 * product(shape) for shape in shapes], layouts=[("float", shape, strides(shape), 0) for shape in shapes])


def check_extents():
    """Of steps that vary in several ways it is known how large they get at most, from any three of them. What gets larger is allowed from then on, unless
    it varies by itself."""
    draw = random.Random(2)
    shape = lambda: (draw.randint(1, 16), 2 * draw.randint(8, 64), 2 * draw.randint(8, 64))
    for _ in range(200):
        steps = [pictures(*shape()) for _ in range(3)]
        if len({sum(step.sizes) for step in steps}) < 3:
            continue
        assert fails(extent.Extent, *steps, Layouts())
        e, want = extents.Extents(steps), pictures(*shape())
        assert e.first == 0 and all(e.place_of(step.sizes) for step in steps)
        if fails(e.place_of, want.sizes):
            assert e.widen(want.sizes)
        share = e.place_of(want.sizes).share()
        assert all(0 <= most - size for most, size in zip(e.sizes(share), want.sizes)), (e.sizes(share), want.sizes)
        assert sum(want.sizes) - 4 <= e.bytes(share) < 1.5 * sum(want.sizes), (steps, want, e.bytes(share))
        assert all(abs(x - e.bytes(share)) <= 1e-6 * x for x in (e.saves(want.sizes), e.bytes(e.share(e.bytes(share)))))
        assert fails(e.place_of, want.sizes[1:]) and not e.widen(want.sizes[1:])
        beside = want.sizes[:3] + [100 * want.sizes[3]]
        assert fails(e.place_of, beside) and not e.widen(beside) and e.place_of(want.sizes).share() == share, "it varies by itself"
        assert min(e.sizes(e.lowest())) >= 1
    one, two = pictures(2, 32, 32), pictures(4, 32, 48)
    assert fails(extents.Extents, [one, one, one]), "one size"
    assert fails(extents.Extents, [one, two, pictures(2, 32, 40, more=100000)]), "sizes that vary by themselves"
    two.layouts[1] = "double", (3, 3), (3, 1), 0
    assert fails(extents.Extents, [one, two, one]), "types"


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
    x.number, x.lasting, x.entry, x.small, x.dtype, x.size, x.stride, x.offset = number, 0, entry, None, "float", shape, strides(shape), 0
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


def new_family(fits, fixed=0):
    """Returns a family of steps that save 100 bytes for each token, one of 10 and one of 20, and fixed ones, and what makes schedules: steps of up to so
    many tokens fit. It notes sizes."""
    f = family.Family.__new__(family.Family)
    one, other = (types.SimpleNamespace(sizes=[100 * n] + [fixed] * (fixed > 0), layouts=[("float", (n,), (1,), 0)] * (1 + (fixed > 0))) for n in (10, 20))
    if fixed:
        for watched in one, other:
            watched.layouts[1] = "float", (fixed,), (1,), 0
    f.extent = e = extent.Extent(one, other, other, Layouts())
    f.device, f.enough, f.levels, f.most, f.full, f.edition, f.refused, f.failed, f.highest = 1000, 1000, (), 2000 + fixed, False, 0, set(), None, 1 << 40
    f.trust = Trust(range(e.first + 1))
    f.model = types.SimpleNamespace(extent=e, bounded=False, correct=lambda instrument: None, timed=other)
    made = []

    def make(model, places, **settings):
        return [schedule(model.extent.sizes(share), **settings) for share in places]

    def schedule(sizes, policy="prompt", device=0):
        assert min(sizes) > 0 and len(made) < 200, sizes
        made.append(sizes[0] // 100)
        if policy != "none" and sizes[0] > 100 * f.highest:
            return ValueError("too large")
        empty = sizes[0] <= 100 * fits
        return types.SimpleNamespace(device=f.device, sizes=sizes, empty=lambda: empty, plain_peak=sizes[0] / (100.0 * fits) * f.device, policy=policy,
                                     sequence=(), trails=(), actions=(), exact=(), remade=(), selection=None)

    return f, make, made


def completed(f, make):
    """Has all schedules made, the first ones in a call of their own."""
    for _ in range(2):
        f.plan(make)
    assert not f.lacks()


def check_levels():
    """Schedules come first for the largest step, and for the largest that fits; then between, until they are close. A larger step has one made for
    larger steps; what was measured has all made anew, with steps on the way served all the time."""
    f, make, made = new_family(fits=12)
    assert f.lacks() and f.plan(make) is f
    assert made == [30, 5, 12], made
    assert [level.empty() for level in f.levels] == [True, False]
    completed(f, make)
    sizes = [level.sizes[0] for level in f.levels]
    assert sizes == sorted(sizes) and max(b - a for a, b in zip(sizes, sizes[1:])) <= 125 and len(made) == len(sizes) + 1, sizes
    for n in range(1, 31):
        sized = f.at(f.extent.place(100 * n))
        assert 0 <= sized.sizes[0] - 100 * n <= 125 or n < 12, n
    assert f.at(f.extent.place(3100)) is None and not f.foresees([3100]) and f.foresees([3000]) and not f.foresees([3000, 1])
    assert f.extends([4000]) and f.lacks() and not f.extends([1, 2])
    before = len(made)
    f.plan(make)
    assert made[before] == 60 and f.at(f.extent.place(6000)).sizes == [6000] and not f.lacks()
    before, served = len(made), []
    f.correct(None)
    f.plan(lambda *args, **settings: served.append(f.at(f.extent.place(6000)) is not None) or make(*args, **settings))
    assert all(served) and len(served) < len(made) - before == len(f.levels) and all(level.edition == 1 for level in f.levels)


def check_full():
    """Where there is no schedule for larger steps, one is made for the largest; where there is none for that, for others that were seen. What needs too
    much later on is left out."""
    f, make, made = new_family(fits=12)
    f.highest = 21
    f.plan(make)
    assert 2000 <= f.levels[-1].sizes[0] <= 2001 and not f.full and f.foresees([2000])
    assert f.extends([3000]) and f.lacks()
    completed(f, make)
    assert f.full and f.foresees([2000]) and not f.foresees([3000])
    completed(f, make)
    f.correct(None)
    f.highest = 15
    completed(f, make)
    assert 1400 < f.levels[-1].sizes[0] <= 1500 and all(level.edition == 1 for level in f.levels), [level.sizes for level in f.levels]
    f, make, made = new_family(fits=8)
    f.highest = 11
    f.plan(make)
    assert f.full and 1000 <= f.levels[-1].sizes[0] <= 1001
    completed(f, make)
    f, make, made = new_family(fits=12)
    f.highest = 5
    try:
        f.plan(make)
        raise AssertionError("a schedule")
    except ValueError:
        pass


def check_fixed():
    """What does not grow with a step may be most of it."""
    for fixed in 1, 1000, 100000:
        f, make, made = new_family(fits=12, fixed=fixed)
        completed(f, make)
        assert f.foresees([2000, fixed]) and f.at(f.extent.place(1200)) is not None


def check_rounding():
    """Places are rounded, and a schedule is made for the largest step nevertheless, where there is none for larger ones."""
    draw = random.Random(3)
    for _ in range(300):
        sizes = [draw.randint(1, 1 << 32) for _ in range(20)]
        steps = [types.SimpleNamespace(sizes=[a + n * b for a, b in zip(sizes, sizes[::-1])], layouts=[("float", (), (), 0)] * 20) for n in (3, 8, 5, 13)]
        f, _, _ = new_family(fits=1)
        f.extent = f.model.extent = e = extent.Extent(*steps[:3], Layouts())
        f.most = most = sum(steps[3].sizes)
        f.model.timed = steps[2]

        def make(model, places, **settings):
            sizes = e.sizes(places[0])
            return [ValueError("too large") if sum(sizes) > 1.01 * most else schedule(sizes)]

        def schedule(sizes):
            return types.SimpleNamespace(device=f.device, sizes=sizes, empty=lambda: False, plain_peak=sum(sizes), sequence=(), trails=(), actions=(), exact=(), remade=(),
                                         selection=None)

        f.plan(make)
        assert not f.outgrown() and f.foresees(steps[3].sizes)


def main():
    check_extent()
    check_extents()
    check_parity()
    check_between()
    check_recipes()
    check_levels()
    check_full()
    check_fixed()
    check_rounding()


main()
