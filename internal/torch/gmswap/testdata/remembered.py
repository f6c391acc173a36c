"""What the numbers of a recipe are in steps of several extents, and which entries of a step are known to be as remembered."""

import contextlib
import random
import types

from gmswap_hook import between, remembered
from gmswap_hook.between import Layouts, Line, Unlike
from gmswap_hook.chain import Chain
from gmswap_hook.operators import Call, Input, Made
from gmswap_hook.remake import Recipe
from gmswap_hook.step import Members, Step


def strides(shape):
    return between.in_order(shape)


def layout(shape):
    return "float", shape, strides(shape), 0


def product(xs):
    out = 1
    for x in xs:
        out *= x
    return out


def tensor(number, entry, shape):
    x = Input.__new__(Input)
    x.number, x.lasting, x.entry, x.small, x.dtype, x.size, x.stride, x.offset = number, 0, entry, None, "float", shape, strides(shape), 0
    return x


class Pictures(object):
    """A step of pictures: an entry, what is made of it by way of a padded result that is not saved, and something of one size."""

    def __init__(self, high, wide):
        self.shapes = [(2, 8, high, wide), (2, 8, high * wide), (7,)]
        self.layouts = [layout(shape) for shape in self.shapes]
        self.sizes = [4 * product(shape) for shape in self.shapes]
        self.sequence, self.trails = [0, 1, 2, -3, -2, -1], [1, 2, 3]
        padded = high + 2, wide + 2
        pad = Call(None, "pad", (tensor(1, 0, self.shapes[0]), [1, 1]), {})
        turn = Call(None, "mul", (tensor(5, None, (2, 8) + padded), 2), {"size": [high, wide], "twice": 2 * high * wide})
        pad.dtype = turn.dtype = "float"
        self.recipe = Recipe(Chain([Made(5, pad, 0, 64 * product(padded)), Made(6, turn, 0, self.sizes[1])]), 100, pad.inputs(), 0, "float")


def memory_of(one, other):
    recording = types.SimpleNamespace(made=one, again=other, recipes_of=lambda step: [None, step.recipe, None])
    one.members = Members()
    return remembered.Remembered(recording)


def here(known, step):
    hints = known.hints_of(1)
    return remembered.Here(hints, [n for i in (1, 0) for _, n in remembered.numbers(step.sizes[i], step.layouts[i])])


def check_numbers():
    """Recipes are known of steps of any two extents, or not at all."""
    draw, found = random.Random(3), 0
    for _ in range(300):
        (a, b), (c, d), (h, w) = ((draw.randint(3, 40), draw.randint(3, 40)) for _ in range(3))
        if (a, b) == (c, d):
            continue
        known, want = memory_of(Pictures(a, b), Pictures(c, d)), Pictures(h, w).recipe
        try:
            recipe = known.recipes[1].at(here(known, Pictures(h, w)))
        except Unlike:
            continue
        found += 1
        for m, n in zip(recipe.chain.made, want.chain.made):
            x, y = m.call.inputs()[0], n.call.inputs()[0]
            assert (x.size, x.stride, m.call.kwargs) == (y.size, y.stride, n.call.kwargs), (a, b, c, d, h, w)
    assert found > 200, found


def check_refused():
    """What did not vary in the two steps may not vary; what may be one of two things that differ now is not known."""
    for one, other, now in ((5, 9), (5, 12), (6, 9)), ((5, 5), (9, 9), (6, 7)):
        known = memory_of(Pictures(*one), Pictures(*other))
        try:
            known.recipes[1].at(here(known, Pictures(*now)))
            raise AssertionError("%r, %r: %r" % (one, other, now))
        except Unlike:
            pass
    square = memory_of(Pictures(5, 5), Pictures(9, 9))
    assert square.recipes[1].at(here(square, Pictures(7, 7))).chain.made[1].call.kwargs["size"] == [7, 7]


def check_doubtful():
    """A number that is in proportion to one, and as far from another, is not known where these differ now."""
    hints = remembered.Hints(*([("size", batch), ("size", length)] for batch, length in ((5, 30), (10, 40))))
    start = Line(10, 20)  # twice the batch, or the length but for 20
    assert remembered.Here(hints, [8, 36]).number(start) == 16
    try:
        remembered.Here(hints, [7, 50]).number(start)
        raise AssertionError("it is 14 or 30")
    except Unlike:
        pass


class Entry(types.SimpleNamespace):
    """While it is held nothing evicts it."""

    held = False

    def kept(self):
        return True

    def __enter__(self):
        self.held = True

    def __exit__(self, *reason):
        self.held = False


def entry(step, index, shape, nbytes):
    alias = types.SimpleNamespace(dtype="float", dim=lambda: len(shape), _version=0)
    e = Entry(index=index, nbytes=nbytes, alias=alias, users=1, intact=lambda: True, laid_out=lambda: ("float", shape, strides(shape), 0))
    step.entries.append(e)
    return e


class Remake(object):
    """Makes the contents again, or something of another size, or fails."""

    made = "contents"

    def __init__(self, recipe, entries, entry, proven):
        assert proven and entry.held

    def whole(self, stream):
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


class Full(RuntimeError):
    pass


MEMORY = types.SimpleNamespace(trial=contextlib.nullcontext(), alike=lambda a, b, near: b == "contents", failures=(Full,),
                               small=types.SimpleNamespace(there=lambda name: True), origins=types.SimpleNamespace(same=lambda origins: True))


def recalled(trails=(1, 2, 3), repeated=None, known=None):
    """Returns a step that has saved three entries, and what it has in common with the remembered ones."""
    known, of, step = known or memory_of(Pictures(5, 9), Pictures(6, 12)), Pictures(7, 11), Step(0)
    found = remembered.Recalled(known, MEMORY, step, 1 << 30)
    for i, trail in enumerate(trails):
        step.trail = trail
        e = entry(step, i, of.shapes[i], of.sizes[i])
        found.packed(e, True)
        step.saves += 1
        if repeated == i:
            found.packed(e, False)
    return found, step


def check_certain():
    """An entry is as remembered once other parameters were used as they were, and not where something else came before that."""
    found, step = recalled()
    assert found.decided(3) == 2 and found.recipe_of(step.entries[1], step.entries) is not None
    assert found.recipe_of(step.entries[2], step.entries) is None and not found.strange()
    assert found.recipe_of(step.entries[1], step.entries).ns == 100 * step.entries[1].nbytes // (4 * 2 * 8 * 45)
    for changed, certain in (dict(trails=(1, 2, 9)), 1), (dict(repeated=1), 1), (dict(trails=(4, 2, 3)), 0):
        found, step = recalled(**changed)
        assert found.lost and found.decided(3) == 3 and found.certain() == certain, changed
        assert found.recipe_of(step.entries[1], step.entries) is None


def check_tried():
    """A recipe is tried in one step, and not used where that made something else, or could not be done."""
    for made, right, wrong in ("contents", {1}, set()), ("others", set(), {1}), (RuntimeError("sizes"), set(), {1}), (Full("no room"), set(), set()):
        known, Remake.made = memory_of(Pictures(5, 9), Pictures(6, 12)), made
        for _ in range(2):
            found, step = recalled(known=known)
            assert (known.right, known.wrong) == (right, wrong), made
            assert (found.recipe_of(step.entries[1], step.entries) is not None) == bool(right), made
            Remake.made = made if right else Full("not again") if wrong else made
    Remake.made = "contents"


def check_vain():
    """A recipe that there is no room to try is tried a few times."""
    known, tries = memory_of(Pictures(5, 9), Pictures(6, 12)), []
    real, Remake.whole = Remake.whole, lambda self, stream: tries.append(self) or real(self, stream)
    Remake.made = Full("no room")
    for _ in range(2 * known.VAIN):
        recalled(known=known)
    assert len(tries) == known.VAIN and not known.right | known.wrong and known.hopeless(1), len(tries)
    known.vain[1], Remake.made = (known.VAIN, known.vain[1][1] + 1), "contents"
    recalled(known=known)
    assert known.right == {1} and not known.hopeless(1), "there is room where it is smaller"
    Remake.whole = real


def check_gone():
    """What has left the device before was seen is as remembered if its type and dimensions are, as far as anybody knows them."""
    step = Step(0)
    gone = entry(step, 0, Pictures(7, 11).shapes[0], Pictures(7, 11).sizes[0])
    dtype, size, stride, offset = gone.laid_out()
    gone.alias = None
    for layout, lost in ((dtype, size, stride, offset), False), (("half", size, stride, offset), True), ((dtype, size[:1], stride[:1], offset), True), (None, False):
        gone.layout = layout
        assert remembered.Recalled(memory_of(Pictures(5, 9), Pictures(6, 12)), MEMORY, step, 1 << 30).lost == lost, layout


def main():
    assert Line(3, 5).near(2) == 7 and Layouts().line(3, 3) == 3
    remembered.Remake = Remake
    check_numbers()
    check_refused()
    check_doubtful()
    check_certain()
    check_tried()
    check_vain()
    check_gone()


main()
