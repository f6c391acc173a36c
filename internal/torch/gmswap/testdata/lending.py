"""Which requests that find no room have memory of the host."""

import gc
import types

from gmswap_hook.memory import Trial
from gmswap_hook.relief import Relief

MIB = 1 << 20


def relief(lends=True, search=False, deterministic=False, needed=False):
    memory = types.SimpleNamespace(trial=Trial(), deterministic=lambda: deterministic, capacity=lambda: 128 * MIB)
    library = types.SimpleNamespace(within=lambda name: {Relief.SEARCH: search, Relief.NEEDED: needed}[name])
    one = types.SimpleNamespace(lends=lends, limit=64 * MIB, SCRATCH=Relief.SCRATCH, memory=memory, library=library, SEARCH=Relief.SEARCH, NEEDED=Relief.NEEDED)
    one.searching = lambda size: Relief.searching(one, size)
    return one


def needed(relief, size=16 * MIB):
    return Relief.needed(relief, size)


def sweeps(steps, lends=True, garbage=lambda step: 0, searching=lambda size: False):
    """Returns the steps in which all objects are looked at, and those in which the newer ones are, in each of which requests find no room."""
    thorough, new, left = [], [], [1 << 20]

    def look(found):
        found.append(runtime.steps)
        left[0] -= garbage(runtime.steps)

    runtime = types.SimpleNamespace(steps=0, step=None, garbage=types.SimpleNamespace(collect_new=lambda: look(new)))
    one = types.SimpleNamespace(lends=lends, SELDOM=Relief.SELDOM, runtime=runtime, memory=types.SimpleNamespace(settle=lambda: None), swept=0, sweep_from=0, vain=0, asked=0,
                                searching=searching, allocated=lambda: left[0])
    real, gc.collect = gc.collect, lambda: look(thorough)
    try:
        for runtime.steps in range(steps):
            runtime.step = object()
            assert Relief.sweep(one) == garbage(runtime.steps), runtime.steps
            assert Relief.sweep(one) == 0, "again in the same step"
    finally:
        gc.collect = real
    return thorough, new


def test_sweeps():
    thorough, new = sweeps(300)
    assert thorough == [0, 2, 6, 14, 30, 62, 126, 190, 254] and sorted(thorough + new) == list(range(300)), thorough
    assert sweeps(9, lends=False) == (list(range(9)), []), "a program that is to end where there is no room"
    assert sweeps(9, searching=lambda size: True) == (list(range(9)), []), "cuDNN would take another algorithm"
    thorough, _ = sweeps(40, garbage=lambda step: 512 * (step == 20))
    assert thorough == [0, 2, 6, 14, 21, 23, 27, 35], thorough


def main():
    test_sweeps()
    one = relief()
    assert needed(one) and not needed(one, 65 * MIB)
    with one.memory.trial:
        with one.memory.trial:
            assert not needed(one)
        assert not needed(one)
    assert needed(one)
    assert not needed(relief(lends=False))
    assert not needed(relief(search=True)), "cuDNN does with less"
    assert needed(relief(search=True, needed=True)), "a convolution's result"
    assert needed(relief(search=True), 8 * MIB), "something small"
    exact = relief(search=True, deterministic=True)
    assert needed(exact), "with other bits"
    assert needed(exact, 65 * MIB) and not needed(exact, 129 * MIB), "as much as the device would have"
    with exact.memory.trial:
        assert needed(exact), "a trial of what is to have the same bits"


main()
