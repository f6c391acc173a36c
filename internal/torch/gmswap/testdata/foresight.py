"""Foresees the needs of steps whose sizes vary."""

import random
import types

from gmswap_hook.demand import Demand
from gmswap_hook.foresight import Backward, Foresight

KINDS = {
    "linear": lambda n: ([1000 * n] * 12, 50000 + 14000 * n),
    "attention that is quadratic": lambda n: ([1000 * n, 9 * n * n] * 6, 50000 + 7000 * n + 60 * n * n),
}


def check(kind, rng, seen):
    """Returns the greatest error among steps of 600 to 2,000, as a share of what they need."""
    foresight, worst = Foresight(), 0
    for _ in range(seen):
        foresight.learn(*kind(rng.randint(512, 2048)))
    for _ in range(50):
        sizes, needed = kind(rng.randint(600, 2000))
        count = rng.choice((2, 4, 8))
        assert foresight.looks(count)
        worst = max(worst, abs(foresight.needed(count, sum(sizes[:count])) - needed) / float(needed))
    return worst


def check_taken_over():
    """A step that is handed over counts what it saved once, also where the entry at which it is was saved before."""
    relief = types.SimpleNamespace(foresight=Foresight(), window=1 << 20)
    entries = [types.SimpleNamespace(index=i, nbytes=100) for i in range(3)]
    for at, new in (2, True), (0, False):
        demand = Demand(types.SimpleNamespace(entries=entries, parting=None), relief)
        demand.take_over(entries[at], new, 0)
        assert demand.saved == 300, "%d bytes, new: %s" % (demand.saved, new)


def check_expected():
    """Host memory is taken ahead for what a step lacks, unless some of that will be recomputed."""
    expected = []
    relief = types.SimpleNamespace(lacking=lambda count, saved: 500, fits=lambda count, saved: False, expect=expected.append)
    for parting in None, object():
        Demand(types.SimpleNamespace(entries=[], parting=parting), relief).look(2)
    assert expected == [500], expected


def check_backward():
    """What a backward pass needs is learned as the most from an entry on, in proportion to what is saved."""
    backward = Backward()
    assert backward.needed(5, 1000) == 0, "there was no step before"
    backward.note(900)
    for at, nbytes in (7, 100), (5, 300), (5, 200), (2, 250):
        backward.at = at
        backward.note(nbytes)
    backward.learn(1000)
    assert [backward.needed(i, 2000) for i in (1, 2, 4, 5, 7, 9)] == [0, 500, 500, 600, 600, 600]


def main():
    check_taken_over()
    check_expected()
    check_backward()
    rng = random.Random(0)
    for name, kind in KINDS.items():
        assert check(kind, rng, 16) < 0.05, name
        assert check(kind, rng, 2) < 0.5, name
    empty = Foresight()
    empty.learn([], 10)
    assert empty.needed(2, 100) == 0, "there was no step before"
    one = Foresight()
    one.learn([100, 100, 100], 500)
    assert one.needed(2, 200) == 500 and one.needed(2, 100) == 250 and one.needed(4, 300) == 0
    one.learn([100, 100], 700)
    assert one.needed(2, 200) == 700, "of two steps that began alike the greater"


main()
