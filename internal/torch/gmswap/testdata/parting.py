"""Chooses what leaves in steps of entries that can be recomputed, or not, or are still held by the program."""

import types

from gmswap_hook import parting
from gmswap_hook.live import Costs

MIB = 1 << 20


class Entry(object):
    memory, step, alias, key = types.SimpleNamespace(exported={}, failures=()), 0, "here", 0
    hosted = False

    def __init__(self, index, price=None, free=True, sources=()):
        self.index, self.nbytes, self.users = index, MIB, 1
        self.price, self.held, self.sources = price, not free, sources
        self.shaky = False
        self.ticket, self.made, self.copied, self.here = 0, None, False, True

    def offload(self):
        self.ticket = 1
        return True

    def passed(self):
        return self.copied

    def resident(self):
        return self.here

    def evict(self):
        assert not self.held, "entry %d is held" % self.index
        self.here = False
        return True


class Live(object):
    over = False
    written = set()

    def recipe_of(self, entry, entries):
        if entry.price is None:
            return None
        return types.SimpleNamespace(ns=entry.price * entry.nbytes, usable=lambda *_: True, lasting={entry.index}, sources=entry.sources,
                                     tries=lambda: entry.shaky)

    def unchanged(self, lasting):
        return lasting not in self.written

    def sure(self, recipe, index):
        return True

    def decided(self, count):
        return count


def parted(entries, window=MIB):
    parting.Remake = lambda recipe, entries, entry, proven: "made"
    return parting.Parting(types.SimpleNamespace(number=0, entries=entries), Live(), types.SimpleNamespace(window=window, desperate=False, tight=lambda: False))


def leave(p, count):
    """Returns the numbers of the entries that leave first, and how."""
    gone = []
    for e in p.offers(lambda e: e.here and not e.held):
        assert p.free(e)
        gone.append((e.index, "copied" if e.ticket else "recomputed" if e.made else "evicted"))
        if len(gone) == count:
            break
    return gone


def check_oldest():
    """What was saved first leaves first. The lane to the host has two windows to do, and no more than lacks is copied."""
    entries = [Entry(i, 0.001 if i % 2 else None) for i in range(12)]
    p = parted(entries)
    p.copy(0)
    assert not any(e.ticket for e in entries), "nothing lacks"
    p.copy(8 * MIB)
    assert [e.index for e in entries if e.ticket] == [0, 2], "two windows are under way"
    entries[0].copied = True
    p.copy(8 * MIB)
    assert [e.index for e in entries if e.ticket] == [0, 2, 4]
    for e in entries:
        e.copied = e.ticket != 0
        p.copy(8 * MIB)
    assert [e.index for e in entries if e.ticket] == [0, 2, 4, 6], "the others are recomputed"
    assert sorted(leave(p, 8)) == [(i, "recomputed" if i % 2 else "copied") for i in range(8)]
    assert (p.parted, p.remade) == (8 * MIB, 4 * MIB)


def check_beyond():
    """Where more lacks than was foreseen, whatever can be recomputed leaves."""
    p = parted([Entry(0), Entry(1, 0.001), Entry(2), Entry(3, 0.001)])
    assert leave(p, 4) == [(1, "recomputed"), (3, "recomputed")]


def check_held():
    """What the program holds leaves later."""
    entries = [Entry(0, 0.001, free=False), Entry(1, 0.001)]
    p = parted(entries)
    p.copy(2 * MIB)
    assert leave(p, 2) == [(1, "recomputed")]
    entries[0].held = False
    assert leave(p, 2) == [(0, "recomputed")]


def check_dear():
    """What takes longer to recompute than to copy is copied."""
    entries = [Entry(0, 1.0)]
    p = parted(entries)
    p.copy(MIB)
    assert entries[0].ticket and not leave(p, 1), "its copy is under way"
    entries[0].copied = True
    assert leave(p, 1) == [(0, "copied")]


def check_written():
    """What needs a parameter that was written to since is copied."""
    entries = [Entry(0, 0.001), Entry(1, 0.001)]
    p = parted(entries)
    p.copy(2 * MIB)
    p.live.written = {0}
    assert leave(p, 2) == [(0, "evicted"), (1, "recomputed")]


def check_chained():
    """Of what is made one from the other, some are copied, so that to recompute one takes neither too long nor too many calls."""
    for price, runs in (1e-6, 8), (0.006, 3):
        entries = [Entry(i, price, sources=(i - 1,) if i else ()) for i in range(40)]
        p = parted(entries, 40 * MIB)
        p.copy(40 * MIB)
        copied = [e.index for e in entries if e.ticket]
        assert copied == list(range(runs, 40, runs + 1)), (price, copied)


def check_source():
    """What another one is recomputed from is copied if it leaves later."""
    entries = [Entry(0, 0.001, free=False), Entry(1, 0.001, sources=(0,))]
    p = parted(entries)
    p.at = 1
    assert leave(p, 1) == [(1, "recomputed")]
    entries[0].held = False
    p.at = 0
    p.copy(2 * MIB)
    assert entries[0].ticket


class Stuck(Entry):
    """An entry for which the host has no room."""

    def offload(self):
        return False

    def evict(self):
        return self.made is not None and super().evict()

    @staticmethod
    def intact():
        return True


def check_stuck():
    """Where the host has no room what others are recomputed from is recomputed, too, as long as to recompute one of them does not take too many calls."""
    entries = [Stuck(i, 0.001, sources=(i - 1,) if i else ()) for i in range(20)]
    p = parted(entries)
    stay = [e.index for e in reversed(entries) if not p.free(e)]
    assert stay == [11, 2] and p.relief.desperate, stay
    deepest = max(depth for _, depth in p.debts.values())
    assert deepest == p.DEEPEST == p.debts[19][1], "entry 19 relies on all down to 12: %s" % p.debts
    assert not p.free(entries[11]), "asked again"
    p = parted([Stuck(0, 0.001), Stuck(1), Stuck(2, 0.001, sources=(0, 1)), Stuck(3, 0.001, sources=(0, 2))])
    assert [p.free(e) for e in reversed(p.step.entries)] == [True, True, False, True]
    assert [p.debts[i][1] for i in (0, 2, 3)] == [1, 2, 3]


def check_shaky():
    """What may come with other bits is recomputed where nothing else is made of it, which is compared to the bit."""
    for shaky, stay in ((1,), [1]), ((2,), []), ((), [2]):
        entries = [Stuck(i, 0.001, sources=(i - 1,) if i else ()) for i in range(3)]
        for e in entries:
            e.shaky = e.index in shaky
        entries[2].price = entries[2].price if shaky else None
        p = parted(entries)
        assert [e.index for e in reversed(entries) if not p.free(e)] == stay, shaky
    entries = [Stuck(i, 0.001, sources=(i - 1,) if i else ()) for i in range(3)]
    entries[1].shaky = True
    p = parted(entries)
    assert [p.free(e) for e in p.step.entries] == [True, True, False], "the other way around"


def check_no_room():
    """What finds no room for a few of its words, by which it would be compared, is copied."""
    def full(recipe, entries, entry, proven):
        raise MemoryError

    entries = [Entry(0, 0.001)]
    entries[0].memory = types.SimpleNamespace(failures=MemoryError, exported={})
    p = parted(entries)
    parting.Remake = full
    assert leave(p, 1) == [(0, "evicted")], "evict copies what is not to be recomputed"


def check_worth():
    """Operators are looked at as long as that gains something."""
    costs = Costs()
    assert not costs.worthwhile(), "no operator was timed"
    costs.rates["mul"] = 1.0
    assert costs.worthwhile(), "nothing speaks against it"
    costs.shares.extend([0.5, 0, 0])
    assert costs.worthwhile()
    costs.shares.extend([0, 0.1])
    assert not costs.worthwhile()


def main():
    check_oldest()
    check_beyond()
    check_held()
    check_dear()
    check_written()
    check_chained()
    check_source()
    check_stuck()
    check_shaky()
    check_no_room()
    check_worth()


main()
