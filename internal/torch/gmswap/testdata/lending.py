"""Which requests that find no room have memory of the host."""

import gc
import types

from gmswap_hook import relief as module
from gmswap_hook import say
from gmswap_hook.memory import Trial
from gmswap_hook.relief import Relief

MIB = 1 << 20


def relief(lends=True, search=False, deterministic=False, needed=False):
    memory = types.SimpleNamespace(trial=Trial(), deterministic=lambda: deterministic, capacity=lambda: 128 * MIB)
    library = types.SimpleNamespace(within=lambda name: {Relief.SEARCH: search, Relief.NEEDED: needed}[name])
    one = types.SimpleNamespace(lends=lends, limit=64 * MIB, SCRATCH=Relief.SCRATCH, memory=memory, library=library, SEARCH=Relief.SEARCH, NEEDED=Relief.NEEDED)
    one.convolves = lambda: Relief.convolves(one)
    return one


def needed(relief, size=16 * MIB):
    return Relief.needed(relief, size)


def told(size, trial, search):
    """Returns what is said where a request is denied by a program that is to end rather than use memory of the host."""
    one, told = relief(lends=False, search=search), []
    one.needed = lambda size: Relief.needed(one, size)
    one.free, one.wanted, one.weigh, one.measured, one.allocated = lambda size: 0, lambda size: size, lambda size: None, lambda free: free(), lambda: 0
    one.runtime, one.library.asked_last = types.SimpleNamespace(outlook=types.SimpleNamespace(look_again=lambda step: None), step=None), lambda: True
    one.refused, one.explained, one.explain = False, one, lambda size: told.append("explained")
    one.memory.trial.depth = trial
    real, say.line = say.line, lambda text: told.append("cuDNN" if "cuDNN" in text else text)
    try:
        assert Relief.serve(one, size, 0) == Relief.serve(one, size, 0) == 0
    finally:
        say.line = real
    return told


def test_told():
    for size, trial, search, what in (
        (16 * MIB, 0, False, ["explained"]), (16 * MIB, 1, False, []), (16 * MIB, 0, True, ["cuDNN"]), (16 * MIB, 1, True, ["cuDNN"]), (MIB, 0, True, ["explained"]),
        (MIB, 1, True, ["cuDNN"]),
    ):
        assert told(size, trial, search) == what, (size, trial, search)


def sweeps(steps, lends=True, new=lambda step: 0, old=lambda step: 0):
    """Returns the steps in which all objects are looked at, which takes a tenth of a step, where requests find no room in each. There is garbage of so many
    bytes among the newer objects, and among the old ones."""
    thorough, left, now = [], [1 << 20], [0.0]

    def collect_new():
        left[0] -= garbage.pop("new", 0)

    def collect():
        thorough.append(runtime.steps)
        left[0] -= garbage.pop("old", 0)
        now[0] += 0.1

    runtime = types.SimpleNamespace(steps=0, step=None, garbage=types.SimpleNamespace(collect_new=collect_new))
    one = types.SimpleNamespace(lends=lends, SELDOM=Relief.SELDOM, runtime=runtime, memory=types.SimpleNamespace(settle=lambda: None), swept=0, sweep_from=0.0,
                                allocated=lambda: left[0])
    one.collected = lambda collect: Relief.collected(one, collect)
    real, gc.collect = gc.collect, collect
    clock, module.time = module.time, types.SimpleNamespace(perf_counter=lambda: now[0])
    try:
        for runtime.steps in range(steps):
            runtime.step, now[0], garbage = object(), float(runtime.steps), {"new": new(runtime.steps), "old": old(runtime.steps)}
            if new(runtime.steps):
                assert Relief.sweep(one) == new(runtime.steps)
            assert Relief.sweep(one) in (0, old(runtime.steps))
            assert Relief.sweep(one) == 0, "again in the same step"
    finally:
        gc.collect, module.time = real, clock
    return thorough


def test_sweeps():
    assert sweeps(30) == [0, 6, 12, 18, 24]
    assert sweeps(30, new=lambda step: 512) == [0, 6, 12, 18, 24], "as often where newer garbage is found"
    assert sweeps(9, lends=False) == list(range(9)), "a program that is to end where there is no room"
    assert sweeps(30, old=lambda step: 512 * (step in (12, 13))) == [0, 6, 12, 13, 14, 20, 26]


def main():
    test_sweeps()
    test_told()
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
    tensor = relief(needed=True)
    assert needed(tensor, 65 * MIB) and not needed(tensor, 129 * MIB), "a tensor that is larger than the limit"
    small = relief(search=True)
    assert needed(small, 8 * MIB), "something small"
    with small.memory.trial:
        assert needed(small, 8 * MIB) and not needed(small), "cuDNN would begin with another algorithm from then on"
    exact = relief(search=True, deterministic=True)
    assert needed(exact), "with other bits"
    assert needed(exact, 65 * MIB) and not needed(exact, 129 * MIB), "as much as the device would have"
    with exact.memory.trial:
        assert needed(exact) and needed(exact, 1 * MIB), "a trial of what is to have the same bits"


main()
