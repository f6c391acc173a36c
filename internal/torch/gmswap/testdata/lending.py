"""Which requests that find no room have memory of the host."""

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


def main():
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
