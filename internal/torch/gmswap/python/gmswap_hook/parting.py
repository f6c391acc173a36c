"""Chooses what leaves the device in a step that follows no schedule: by a copy that costs no time, or to be recomputed."""

import collections
import contextlib

from .entry import Changed
from .remake import Remake

LINK = 1 / 50.0  # nanoseconds that a byte takes to the host, or back


class Parting(object):
    """What was saved first leaves, as it is needed last: as much as there will be no room for. What takes less time to recompute than to copy is
    dropped when its memory is needed, of the rest copies begin as soon as the lane to the host is free."""

    AHEAD = 2  # windows of bytes whose copies are under way at most
    DEEPEST = 8  # entries that are recomputed one from the other

    def __init__(self, step, live, relief):
        self.step, self.live, self.relief = step, live, relief
        self.depth = self.AHEAD * relief.window  # bytes
        self.at = 0  # the entry that is looked at next
        self.gone = 0  # bytes of those before it that leave
        self.leaving, self.leaving_bytes = collections.deque(), 0  # whose copies are under way
        self.ready = collections.deque()  # entries that can leave without a wait
        self.remade = self.parted = 0  # bytes that were to be recomputed, and all that left
        self.debts = {}  # of entries that are to be recomputed: nanoseconds with all that has to be recomputed before, and how many one after the other
        self.relying = {}  # by the indexes of what they are recomputed from: the indexes of entries
        self.shaky = set()  # the indexes of those of which other bits may come than were there
        self.touched = set()  # the indexes of entries, and ordinals of parameters' storages less than 0, that kernels were given which are no operators'
        self.debtors = {}  # by these: entries that are to be recomputed from them
        for e in step.entries:  # that a schedule has recomputed
            if e.users and e.made is not None:
                self.owe(e, e.made.recipe)
                self.decide(e, e.made.recipe, *self.debt(e.made.recipe))

    def launched(self, key):
        """Is told of a storage before a kernel is given it that may write to it. What is to be recomputed from that is recomputed now, and nothing is from then
        on."""
        memory = self.live.memory
        lasting, entry = memory.parameter(key), memory.entries.get(key) or memory.copied(key)
        self.live.launched(key, lasting)
        if not lasting and (entry is None or entry.step != self.step.number):
            return
        source = -lasting if lasting else entry.index
        self.touched.add(source)
        debtors = [e for e in (*self.debtors.get(source, ()), *(() if lasting else (entry,))) if e.users and e.made is not None]
        if debtors and not memory.capturing():
            self.make(debtors)
            self.debtors.pop(source, None)

    def make(self, debtors):
        """Recomputes entries in the order of the step's stream, before what follows in the current one."""
        memory, stream = self.live.memory, self.step.stream
        with memory.tracked(), memory.on(stream) if memory.stream() != stream else contextlib.nullcontext():
            for e in debtors:
                try:
                    e.on_device(stream)
                    e.keep()
                except Changed:
                    pass  # it is an error where that is needed
        if memory.stream() != stream:
            memory.follow(stream)

    def watch(self, saved, lacking):
        """Notes the operators from here on as long as what they make may leave: what was saved first leaves, as much as there will be no room for,
        None where that is not known."""
        self.live.over = lacking is not None and saved > lacking + lacking // 4 and not self.relief.exceeds(lacking)

    def copy(self, lacking):
        """Begins copies, so that so many bytes can leave in all."""
        if self.gone >= lacking:
            return
        self.settle()
        entries, decided = self.step.entries, self.live.decided(len(self.step.entries))
        while self.at < decided and self.gone < lacking and self.leaving_bytes < self.depth:
            self.consider(entries[self.at])
            self.at += 1

    def consider(self, e):
        """Begins the copy of an entry, unless it is one to recompute."""
        if not e.users:
            return
        if e.hosted:
            pass  # it is not on the device
        elif self.recipe_of(e) is not None:
            self.ready.append(e)
        elif e.offload():
            self.leaving.append(e)
            self.leaving_bytes += e.nbytes
        else:
            return
        self.gone += e.nbytes

    def settle(self):
        """Notes the copies that have ended."""
        while self.leaving and (not self.leaving[0].ticket or self.leaving[0].passed()):
            e = self.leaving.popleft()
            self.leaving_bytes -= e.nbytes
            self.ready.append(e)

    def offers(self, free):
        """Yields entries that can leave without a wait, as long as it is asked for more. Those that the program holds are kept for later."""
        self.settle()
        for _ in range(len(self.ready)):
            e = self.ready.popleft()
            if free(e):
                yield e
            elif e.users and e.resident():
                self.ready.append(e)
        for e in self.step.entries[self.at :]:
            if free(e) and self.recipe_of(e) is not None:
                yield e

    def free(self, entry):
        """Frees the memory of an entry. Returns whether it could. Where the host has no room, whatever can be is recomputed."""
        self.remake(entry)
        free = entry.evict()
        if not free and entry.alias is not None and entry.intact() and self.remake(entry, anyhow=True):
            free = entry.evict()
            self.relief.desperate = self.relief.desperate or free
        if free and entry.step == self.step.number:
            self.parted += entry.nbytes
            self.remade += entry.nbytes if entry.made is not None else 0
        return free

    def remake(self, entry, anyhow=False):
        """Has an entry recomputed, if there is a recipe, and returns whether it will be."""
        if entry.step != self.step.number or entry.ticket or entry.made is not None or entry.alias is None:
            return False
        recipe = self.recipe_of(entry, anyhow)
        if recipe is None or not recipe.usable(entry.memory, self.step.entries) or not all(map(self.live.unchanged, recipe.lasting)):
            return False
        if self.written(entry, recipe):
            return False
        try:
            entry.made = Remake(recipe, self.step.entries, entry, proven=self.live.sure(recipe, entry.index))
        except entry.memory.failures:  # there is no room for some of its words to compare either: it is copied
            return False
        self.owe(entry, recipe)
        return True

    def written(self, entry, recipe):
        """Returns whether something that is no operator may have written to an entry or what it is recomputed from, or may write to that at any time."""
        entries = [entry, *(self.step.entries[i] for i in recipe.sources)]
        return not self.touched.isdisjoint((entry.index, *sources(recipe))) or any(e.key in e.memory.exported for e in entries)

    def owe(self, entry, recipe):
        """Notes what an entry is to be recomputed from."""
        for source in sources(recipe):
            self.debtors.setdefault(source, []).append(entry)

    def recipe_of(self, entry, anyhow=False):
        """Returns how an entry is recomputed, None where a copy takes less time, unless it is to be anyhow. What another one is to be recomputed from is
        copied if it leaves later, so that this takes no longer than was thought, as long as the host has room."""
        recipe = self.live.recipe_of(entry, self.step.entries)
        if recipe is None or entry.index in self.debts:
            return recipe
        ns, depth = self.debt(recipe)
        if not anyhow and (entry.index in self.relying or ns >= LINK * entry.nbytes):
            return None
        if entry.index in self.relying and recipe.tries() or not self.shaky.isdisjoint(recipe.sources):
            return None
        deeper = self.deepened(entry.index, depth)
        if max([depth, *deeper.values()]) > self.DEEPEST:
            return None
        for index, more in deeper.items():
            self.debts[index] = self.debts[index][0] + ns, more
        self.decide(entry, recipe, ns, depth)
        return recipe

    def decide(self, entry, recipe, ns, depth):
        """Notes that an entry is to be recomputed."""
        self.debts[entry.index] = ns, depth
        if recipe.tries():
            self.shaky.add(entry.index)
        for source in recipe.sources:
            self.relying.setdefault(source, []).append(entry.index)

    def deepened(self, index, depth):
        """Returns how many entries are recomputed one after the other, by index, for those of which there are more once so many are for one that they rely on. It
        goes no further than there may be."""
        deeper, rising = {}, [(index, depth)]
        while rising:
            index, depth = rising.pop()
            for user in self.relying.get(index, ()) if depth <= self.DEEPEST else ():
                if depth >= max(self.debts[user][1], deeper.get(user, 0)):
                    deeper[user] = depth + 1
                    rising.append((user, depth + 1))
        return deeper

    def debt(self, recipe):
        """Returns the nanoseconds that a recipe takes with all that has to be recomputed before, and how many entries are one after the other."""
        owed = [self.debts[i] for i in recipe.sources if i in self.debts]
        return recipe.ns + sum(ns for ns, _ in owed), 1 + max((depth for _, depth in owed), default=0)


def sources(recipe):
    """Returns the indexes of the entries and, less than 0, the ordinals of the parameters' storages that something is recomputed from."""
    return [*recipe.sources, *(-ordinal for ordinal in recipe.lasting)]
