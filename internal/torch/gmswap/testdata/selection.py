"""Which tensors are looked at of a step that follows a schedule."""

import types

from gmswap_hook.follow import FREE, OFFLOAD, PREFETCH
from gmswap_hook.selection import PASSED, Selection, Trust
from gmswap_hook.step import NOTHING, Members, Step

CALL, AGAIN = (1, 1), (1, 2)
# Eight entries, saved in two calls. The third is saved twice.
SEQUENCE = [0, 1, 2, 3, 2, 4, 5, 6, 7, -8, -7, -6, -5, -3, -4, -3, -2, -1]
MEMBERS = Members()
MEMBERS.calls = {call: {n: (index, 0) for n, index in numbers.items()} for call, numbers in (
    (CALL, {1: 0, 2: 1, 4: 2, 5: 3, 6: 2}), (AGAIN, {1: 4, 2: 5, 3: 6, 7: 7}))}


def selection(actions, device=0, exact=(), sizes=(1,) * 8, looked=()):
    """Returns the selection of a schedule with some actions, once it was found, and the entries in it."""
    at = [()] * (len(SEQUENCE) + 1)
    for point, kind, index in actions:
        at[point] += ((kind, index, 0),)
    made = Selection(types.SimpleNamespace(sequence=SEQUENCE, members=MEMBERS, actions=at, exact=exact), list(sizes), device)
    worth = made.find(looked)
    assert worth == made.find(()), "it is found once"
    return made, {known[0] for numbers in made.calls.values() for known in numbers.values() if known[0] is not None}, worth


def check_entries():
    """Those are that are moved, or recomputed from, the first of each call, and the one that is needed first."""
    made, entries, worth = selection([(4, OFFLOAD, 3), (5, FREE, 3), (14, PREFETCH, 3)], exact=(6,))
    # The action behind point 4 is at the second time that entry 2 is saved, and so is looked at; that at point 13 is where it is used for the first time.
    assert entries == {0, 2, 3, 4, 6, 7} and worth and made.calls[CALL] == {1: (0, None, None, 0), 4: (2, None, None, 0), 5: (3, None, None, 0), 6: (2, None, None, 0)}
    assert made.calls[AGAIN] == {1: (4, None, None, 0), 3: (6, None, None, 0), 7: (7, None, None, 0)}, made.calls
    assert [made.next[at] for at in range(len(SEQUENCE) + 1)] == [0, 2, 2, 3, 4, 5, 7, 7, 8, 9, 10, 12, 12, 13, 14, 15, 17, 17, 18], made.next
    assert made.packed == [0, 1, 2, 3, 4, 5, 6, 7, 8] + [9] * 10
    assert selection([], looked=range(3))[1] == {0, 1, 2, 4, 7}


def check_points():
    """Where a schedule does something at a point of an entry that is not looked at, it does so there."""
    made, entries, _ = selection([(1, OFFLOAD, 0), (2, FREE, 0), (12, PREFETCH, 0), (17, PREFETCH, 0)])
    assert entries == {0, 4, 7} and made.calls[CALL][2] == (None, 1, 16, 0) and made.calls[AGAIN][2] == (None, None, 11, 0), made.calls
    assert made.next[1] == 1 and made.next[10] == 11 and made.next[13] == 16


def check_reserve():
    """The largest of the others are looked at up to a part of the limit; where that leaves few, all are."""
    sizes = (1, 50, 40, 30, 1, 20, 10, 1)
    assert selection([], device=0, sizes=sizes)[1:] == ({0, 4, 7}, True)
    assert selection([], device=8 * 60, sizes=sizes)[1:] == ({0, 1, 2, 4, 7}, True)
    assert selection([], device=8 * 121, sizes=sizes)[2] is False


def check_trust():
    """Steps are looked at whole until some have followed their schedules in a row, and one of many later on."""
    trust, relief = Trust(), types.SimpleNamespace(lends=True)
    schedule, step = types.SimpleNamespace(selection=selection([])[0]), lambda number: types.SimpleNamespace(number=number)
    well, short = types.SimpleNamespace(short=False), types.SimpleNamespace(short=True)
    for _ in range(trust.WELL):
        assert trust.selection(schedule, step(1), relief) is None
        trust.ended(well, True, trust.FEW)
    assert trust.selection(schedule, step(1), relief) is schedule.selection
    assert trust.selection(schedule, step(2 * trust.RECHECK), relief) is None
    assert trust.selection(schedule, step(1), types.SimpleNamespace(lends=False)) is None, "a program that is to end where there is no room"
    for followed, evictions in (False, 0), (True, trust.FEW + 1):
        trust.ended(well, followed, evictions)
        assert trust.selection(schedule, step(1), relief) is None
        for _ in range(trust.WELL):
            trust.ended(well, True, 0)
    trust.ended(short, True, 0)
    for _ in range(2 * trust.WELL):
        assert trust.selection(schedule, step(1), relief) is None, "too little could leave"
        trust.ended(well, True, 0)
    assert trust.selection(schedule, step(1), relief) is schedule.selection


def check_step():
    """Of what a step saves those are looked at that are expected; before these others stand for those that are not. In a call that is unknown all are that are
    large."""
    step, made = Step(3), selection([(2, FREE, 0)])[0]
    step.select(made)
    seen = []
    for call, count in (CALL, 6), (AGAIN, 7), ((2, 1), 1):
        step.call, step.packs, step.awaits = call, 0, made.calls.get(call)
        for _ in range(count):
            step.packs += 1
            looked = step.expects()
            assert step.moves(100, 1000) is (looked and call[0] == 1)
            if looked and call[0] == 1:
                step.pass_over()
                step.entries.append(step.awaited[0])
            seen.append(step.awaited[0] if looked else step.awaited)
    assert seen == [0, (None, 1, None, 0)] + [NOTHING] * 4 + [4] + [NOTHING] * 5 + [7, None], seen
    assert step.entries == [0, PASSED, PASSED, PASSED, 4, PASSED, PASSED, 7] and not step.other and not step.whole
    assert step.moves(2000, 1000) and step.other
    step.call, step.packs, step.course, step.awaits = CALL, 1, 5, made.calls[CALL]
    assert step.expects() and step.astray and step.awaited is NOTHING and step.moves(1, 1000), "parameters were used after other tensors"
    step.look_at_all()
    assert step.moves(100, 10) and not step.moves(100, 1000)


if __name__ == "__main__":
    check_entries()
    check_points()
    check_reserve()
    check_trust()
    check_step()
