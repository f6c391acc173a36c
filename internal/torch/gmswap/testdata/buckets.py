"""Schedules that are made for steps with some inputs, and followed by steps with others."""

import random
import types

from gmswap_hook import buckets, growth, measure
from gmswap_hook.between import Unlike
from gmswap_hook.follow import FREE, OFFLOAD, PREFETCH
from gmswap_hook.growth import Growth, Where
from gmswap_hook.selection import Trust


def unlike(call, *args):
    try:
        call(*args)
    except Unlike:
        return True
    return False


def translation(batch, source, target, more=0):
    """Returns the dimensions of the inputs of an encoder and a decoder, and sizes that they save: of texts, scores, positions, and what does not vary."""
    return (batch, source, batch, target, 7), [
        4 * batch * source * 64, 4 * batch * source * source * 8, 4 * source, 4 * batch * target * 64, 4 * batch * target * source * 8, 1000, 4 * batch * (target + more)]


def drawn(draw):
    return draw.randint(1, 16), draw.randint(100, 800), draw.randint(30, 300)


def check_growth():
    """Sizes are foreseen from three steps, to the byte, or from a few more where these leave a choice."""
    draw, widened = random.Random(1), 0
    for _ in range(100):
        g = Growth([translation(*drawn(draw)) for _ in range(3)])
        for _ in range(10):
            dims, sizes = translation(*drawn(draw))
            if not g.foresees(dims, sizes):
                g, widened = g.widened(dims, sizes), widened + 1
            values = g.values(dims)
            assert all(0 <= most - size <= 1 for most, size in zip(g.sizes(values), sizes)), (dims, sizes, g.sizes(values))
            assert abs(g.bytes(values) - sum(sizes)) < 1e-6 * sum(sizes)
            assert g.larger(Where(dims, 2)) == [2 * value for value in values]
            assert not g.foresees(dims[1:], sizes) and not g.foresees(dims, sizes[1:]) and not g.foresees(dims, [size + 2 for size in sizes])
    assert widened < 50, widened


def check_near():
    """What is nearly in proportion to a product is foreseen as the most that it may be; what varies by itself, in too many ways, or not at all, is not."""
    draw = random.Random(2)
    g = Growth([translation(*drawn(draw), more=1) for _ in range(4)])
    dims, sizes = translation(8, 400, 60, more=1)
    assert g.foresees(dims, sizes) and g.bytes(g.values(dims)) < 1.05 * sum(sizes)
    steps = [((n, 4), [n * 100, n * 1000]) for n in (3, 5, 8)]
    g = Growth(steps)
    assert unlike(g.widened, (4, 4), [400, 400000]) and unlike(Growth, steps[:1] * 3)
    assert unlike(Growth, [((n, n * n, 2**n, n + 1), [n]) for n in (2, 3, 5)]), "four ways"
    assert unlike(Growth, steps + [((3,), [300, 3000])]) and unlike(Growth, [((0,), [1]), ((1,), [2])])
    for n in range(10, 10 + growth.Growth.STEPS - 3):
        g = g.widened((n, 4), [n * 100, n * 1000])
    assert unlike(g.widened, (4, 4), [400, 4000]), "it may not go on"


SEQUENCE = [0, 1, 2, -3, -2, -1]  # three tensors are saved, and needed in the opposite order


def model(terms, bases, start=0):
    """Returns a model of steps whose tensors grow with two dimensions."""
    g = Growth([((a, b), [share * (a, b)[which] for share, which in terms]) for a, b in ((2, 3), (3, 2), (5, 7))])
    order = [g.products.index((which,)) for which in (0, 1)]
    g.bases = [(share, order[which]) for share, which in bases]
    return g, types.SimpleNamespace(bases=types.SimpleNamespace(start=start), timed=types.SimpleNamespace(sequence=SEQUENCE))


def actions(*some):
    at = [()] * (len(SEQUENCE) + 1)
    for point, kind, tensor in some:
        at[point] += ((kind, tensor, 0),)
    return at


def check_profile():
    """The most that is there at a time is what it is when it is counted point by point."""
    g, of = model([(10, 0), (100, 1), (1, 0)], [(0, 0), (0, 1), (5, 0), (7, 1), (0, 0), (20, 0), (0, 0)], start=1000)
    for a, b in (2, 3), (50, 1), (1, 50):
        x, y, z = 10 * a, 100 * b, a
        plain = max(x + y + z + 5 * a, x + y + z + 7 * b, x + y + 20 * a)
        assert abs(buckets.Profile(g, of, ()).peak((a, b)) - 1000 - plain) < 1e-6
        moved = buckets.Profile(g, of, actions((1, OFFLOAD, 0), (2, FREE, 0), (5, PREFETCH, 0)))
        assert abs(moved.peak((a, b)) - 1000 - max(x + y, y + z + 5 * a, y + z + 7 * b, x + y + 20 * a)) < 1e-6, (a, b)


def new_buckets(device):
    """Returns what has no schedules yet, for steps that save 10 and 100 times their dimensions, and what makes some that free the first tensor. It notes
    where they are for."""
    g, of = model([(10, 0), (100, 1), (1, 0)], [(0, 0)] * 7)
    b = buckets.Buckets.__new__(buckets.Buckets)
    b.enough, b.device, b.growth, b.buckets, b.wanted, b.refused, b.failed, b.edition, b.most = device, device, g, (), [], [], None, 0, 0
    b.unlike = b.more = b.right = 0
    b.spare, b.nothing = device // b.SPARE, types.SimpleNamespace(sequence=SEQUENCE, trails=(), members=None, actions=[()] * 7, exact=(), remade=(),
                                                                               selection=None, trust=Trust())
    b.model = types.SimpleNamespace(remembered=None, memory=types.SimpleNamespace(allocated=lambda: 0), grows=lambda g: None, correct=lambda instrument: None, **vars(of))
    b.sequence, b.trails, b.members, b.plain = SEQUENCE, (), {}, buckets.Profile(g, of, ())
    made = []

    def make(model, places):
        made.extend(places)
        assert len(made) < 400
        frees = actions((1, OFFLOAD, 0), (2, FREE, 0), (5, PREFETCH, 0))
        return [types.SimpleNamespace(actions=frees, device=device + (where.dims[1] * where.factor > 100), sequence=SEQUENCE, trails=(), members=None,
                                      exact=(), remade=(), selection=None) for where in places]

    return b, make, made


def sizes(a, b):
    return [10 * a, 100 * b, a]


def check_chosen():
    """A step that does not fit follows the schedule that moves least of those with which it does; one that fits follows none, and for one with which none
    does another is made."""
    b, make, made = new_buckets(device=400)
    assert b.plan(make) is b and [where.factor for where in made] == [1.5, 1.25, 1.0, 0.9, 0.8, 0.7, 0.6], made
    assert b.largest.where == Where((5, 7), 1.5) and b.foresees(sizes(2, 3), (2, 3))
    unplanned = lambda step: "unplanned"  # noqa: E731
    step = lambda *dims: types.SimpleNamespace(dims=dims, entries=[], saves=0, room=False)  # noqa: E731
    assert b.follower(step(2, 3), unplanned, None, None) == "unplanned" and not b.lacks(), "it fits"
    assert b.follower(step(2, 3, 4), unplanned, None, None) == "unplanned" and not b.lacks(), "other inputs"
    follows = lambda *dims: b.plain.peak(dims) > 400 and b.best(dims) is not None  # noqa: E731
    assert follows(35, 2) and not follows(2, 3)
    assert not follows(100, 6) and not b.foresees(sizes(100, 6), (100, 6)), "it is larger than any"
    assert b.follower(step(100, 6), unplanned, None, None) == "unplanned" and b.wanted == [Where((100, 6), b.LARGER)]
    assert b.follower(step(100, 6), unplanned, None, None) == "unplanned" and len(b.wanted) == 1, "it is wanted once"
    b.plan(make)
    assert not b.lacks() and made[-1].dims == (100, 6) and follows(100, 6) and b.foresees(sizes(100, 6), (100, 6))
    assert b.extends(sizes(100, 6), (100, 6)) and b.edition == 0 and b.most == sum(sizes(100, 6))
    some = [types.SimpleNamespace(moves=lambda dims, n=n: n, profile=types.SimpleNamespace(peak=lambda dims, n=n: 500 - 10 * n), allowed=400) for n in (30, 5, 12, 10)]
    b.buckets = tuple(some)
    assert b.best((1, 1)) is some[3]
    b.buckets = ()
    assert b.lacking((2, 3)) < 0
    b.model.bases.start = 300
    assert b.lacking((2, 3)) > 0, "the step begins with more in use"
    b.model.bases.start, b.model.memory.allocated = 0, lambda: 300
    assert b.lacking((2, 3)) < 0
    b.follower(step(2, 3), unplanned, None, None)
    assert b.lacking((2, 3)) > 0 and b.wanted == [Where((2, 3), b.LARGER)], "so does this one, of which that was not known"


def check_fits():
    """What a step needs is relied on once some in a row were foreseen, where it leaves room to spare, and more of that after one that lacked memory."""
    b, make, _ = new_buckets(device=640)
    b.plan(make)
    step = types.SimpleNamespace(dims=(2, 3), entries=[], saves=0, room=False)
    unplanned = lambda step: "unplanned"  # noqa: E731
    assert b.plain.peak((2, 3)) == 322 and not b.fits((2, 3))
    for n in range(b.SURE):
        assert b.follower(step, unplanned, None, None) == "unplanned" and not step.room
        b.saw(sizes(2, 3), (2, 3), 300)
    assert b.follower(step, unplanned, None, None) == "unplanned" and step.room
    assert b.fits((2, 3)) and not b.fits((2, 3, 4)), "other inputs"
    b.device = 361
    assert not b.fits((2, 3)), "it has room, but none to spare"
    b.device = 363
    assert b.fits((2, 3))
    b.lacked()
    for n in range(b.SURE):
        b.saw(sizes(2, 3), (2, 3), 300)
    assert not b.fits((2, 3)) and b.spare == 80
    b.device = 403
    assert b.fits((2, 3))
    b.saw([1000, 1, 1], (2, 3), 300)
    assert not b.fits((2, 3)), "its sizes were not foreseen"
    for needed in 322 + 40, 322 + 41:
        for n in range(b.SURE):
            b.saw(sizes(2, 3), (2, 3), needed)
        assert b.fits((2, 3)) == (needed == 362), "it needed more than was known"


def check_knows():
    """Dimensions that did not vary, or not by themselves, are to be as they were."""
    g = Growth([((n, 4, n, m), [n * 100, m * 1000]) for n, m in ((3, 1), (5, 7), (8, 2))])
    assert g.knows((9, 4, 9, 3)) and not g.knows((9, 5, 9, 3)) and not g.knows((9, 4, 8, 3)) and not g.knows((9, 4, 9))


def check_timed():
    """A step that fits goes by a schedule in which nothing is moved, where it is to be measured how long operators take."""
    b, make, _ = new_buckets(device=640)
    b.plan(make)
    step = types.SimpleNamespace(dims=(2, 3), entries=[], saves=0, members=None)
    clock = measure.Clock(types.SimpleNamespace(mark=lambda: 0, passed=lambda mark: False, fill=lambda mark, nanoseconds: False))
    b.model.shares, b.model.memory.allocated = lambda growth, values: [1.0] * 7, lambda: 0
    chosen = b.follower(step, None, None, clock)
    assert isinstance(chosen, buckets.Chosen) and not any(chosen.schedule.actions) and clock.shares == [1.0] * 7 and len(clock.stretches) == 1


def check_shaped():
    """Operators take as much longer as what they make or use grows, and need as much more memory."""
    g, of = model([(10, 0), (100, 1), (1, 0)], [(0, 0)] * 7)
    shaped = buckets.Shaped.__new__(buckets.Shaped)
    shaped.timed, shaped.ns, shaped.inputs, shaped.needs = of.timed, [10] * 7, [(2, 3), (4, 5)], [[0, 30, 40, 0, 0, 0, 7], [0, 50, 80, 0, 0, 0, 7]]
    shaped.grows(g)
    assert shaped.shares(g, g.values((8, 10))) == [2.0] * 7 and shaped.shares(g, g.values((8, 5))) == [2.0, 1.0, 2.0, 2.0, 1.0, 2.0, 2.0]
    assert min(shaped.shares(g, g.values((0, 0)))) > 0
    a, b = (g.products.index((which,)) for which in (0, 1))
    assert g.bases[0][0] == 0 and g.bases[1] == (10, b) and g.bases[2] == (20, a)


def check_widened():
    """Sizes that were not foreseen are allowed for, and no more is looked for that where it failed some times in a row."""
    b, make, _ = new_buckets(device=400)
    b.model.timed = types.SimpleNamespace(sequence=SEQUENCE)
    b.model.grows = lambda g: setattr(g, "bases", b.growth.bases)
    more = [sizes(2, 3)[0], sizes(2, 3)[1] + 4, sizes(2, 3)[2]]
    assert not b.foresees(more, (2, 3)) and b.extends(more, (2, 3)) and b.edition == 1 and b.foresees(more, (2, 3))
    looked, real = [], Growth.widened
    Growth.widened = lambda *args: looked.append(args) or real(*args)
    try:
        for _ in range(9):
            assert not b.extends([1000, 1], (2, 3)) and not b.extends([1000, 1, 1], (2,)) and b.unlike == 0, "steps of another kind"
        for _ in range(9):
            assert not b.extends([1000, 1, 1], (2, 3))
        assert len(looked) == b.ATTEMPTS and b.extends(sizes(2, 3), (2, 3))
        assert not b.extends([1000, 1, 1], (2, 3)) and len(looked) == b.ATTEMPTS + 1
    finally:
        Growth.widened = real


def check_made():
    """Schedules are made anew when something was measured, no more than so many are kept, and where there is none none is asked for again."""
    b, make, made = new_buckets(device=400)
    b.plan(make)
    before = len(made)
    b.correct(None)
    assert b.lacks()
    b.plan(make)
    assert len(made) == 2 * before and not b.lacks() and all(x.edition == 1 for x in b.buckets)
    for n in range(200):
        b.want(Where((n + 10, 9), 1.0), True)
        b.plan(make)
    assert len(b.buckets) == b.MOST and b.buckets[-1].where.dims == (209, 9)
    kept = b.buckets
    b.want(Where((1, 9), 1.0), False)
    assert not b.lacks(), "there is one, and no room for more"
    b.want(Where((1, 101), 1.0), True)
    b.plan(make)
    assert len(b.refused) == 1 and b.buckets == kept
    for dims in (1, 101), (2, 101), (1, 300):
        b.want(Where(dims, 1.0), True)
        assert not b.lacks(), "what is no smaller is refused, too"
    b.want(Where((1, 99), 1.0), True)
    assert b.lacks()
    b.plan(make)
    b.renew()
    b.plan(lambda model, places: [ValueError("no")] * len(places))
    assert b.buckets and not b.lacks(), "old ones stay where there would be none"


def main():
    check_growth()
    check_near()
    check_profile()
    check_chosen()
    check_fits()
    check_knows()
    check_timed()
    check_made()
    check_shaped()
    check_widened()


main()
