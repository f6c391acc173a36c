"""How a step that follows no schedule recomputes what it saves, as two recorded steps of other sizes did."""

from .between import Layouts, Somewhere, Unlike, varied
from .entry import version
from .remake import Remake
from .selection import PASSED


class Remembered(object):
    """Two steps whose operators were seen. They may differ in several extents, as in the heights and widths of pictures. A recipe by hints is tried in one
    step more before it is relied on."""

    VAIN = 3  # times that there is no room to try one before it is not tried any more for tensors that are as large

    def __init__(self, recording):
        one, other = recording.made, recording.again
        self.sequence = [index for index in one.sequence if index >= 0]  # of what is saved
        self.trails, self.members = one.trails, one.members
        self.layouts = Layouts()
        self.proven = recording.recipes_of(one)  # recipes of the first step, None where there are none
        known = [(one, self.proven), (other, recording.recipes_of(other))]
        (small, a), (large, b) = sorted(known, key=lambda step: sum(step[0].sizes))
        self.recipes = [varied(x, y, self.layouts) for x, y in zip(a, b)]
        self.sizes = small.sizes
        self.beside = [max(beside(x, small), beside(y, large)) for x, y in zip(a, b)]  # bytes that are taken to recompute entries, for each that is saved in a step
        self.types = [None if x[0] != y[0] or len(x[1]) != len(y[1]) else (x[0], len(x[1])) for x, y in zip(small.layouts, large.layouts)]
        self.small, self.large = [[numbers(*x) for x in zip(step.sizes, step.layouts)] for step in (small, large)]
        self.hints = {}  # by entries
        self.right, self.wrong = set(), set()  # indexes of entries whose recipes were tried
        self.sure = set()  # those of the right ones that were in a step in which other ways to find their numbers would have told others
        self.vain = {}  # how often there was no room to try one, and how large the smallest of these entries was, by their index

    def vain_for(self, entry):
        """Returns whether there was no room to try the recipe of an entry a few times, and the entry is no smaller than then."""
        times, smallest = self.vain.get(entry.index, (0, 0))
        return times >= self.VAIN and entry.nbytes >= smallest

    def hopeless(self, index):
        """Returns whether the recipe of an entry is not to be relied on."""
        return index in self.wrong or index not in self.right and self.vain.get(index, (0, 0))[0] >= self.VAIN

    def hints_of(self, index):
        """Returns what tells numbers in the recipe of an entry."""
        if index not in self.hints:
            involved = [index] + self.recipes[index].one.sources
            self.hints[index] = Hints(*([x for i in involved for x in step[i]] for step in (self.small, self.large)))
        return self.hints[index]

    def solves(self, index, watched):
        """Returns whether the numbers in the recipe of an entry follow from what the entries of a step are."""
        recipes = self.recipes[index]
        if recipes is None:
            return False
        now = [n for i in [index] + recipes.one.sources for _, n in numbers(watched.sizes[i], watched.layouts[i])]
        try:
            recipes.at(Here(self.hints_of(index), now))
        except Unlike:
            return False
        return True


def beside(recipe, watched):
    """Returns how many bytes a recipe takes beside what it makes, for each that its step has saved."""
    return recipe.chain.extra() / float(sum(watched.sizes)) if recipe is not None else 0.0


def numbers(nbytes, layout):
    """Returns the numbers of an entry, with what they are."""
    _, size, stride, offset = layout
    return [("bytes", nbytes)] + [("size", n) for n in size] + [("stride", n) for n in stride] + [("offset", offset)]


class Hints(object):
    """What the numbers in a recipe are made of: those of the entry and of what it is recomputed from. In two steps these are known."""

    def __init__(self, one, other):
        self.fixed, self.pairs, self.known = [], {}, {}
        self.others = {}  # other ways, where a number is taken to be one of these
        for at, ((what, a), (_, b)) in enumerate(zip(one, other)):
            if a == b:
                self.fixed.append((at, a))
            else:
                self.pairs.setdefault((a, b), []).append((at, what))

    def of(self, line):
        """Returns what a number is made of, as factors of others by where these are, divisors, and what is added: it is one of them, or else in proportion to
        them, or larger or smaller than sizes by as much as in both steps, or else on a line with these."""
        key = line.first, line.slope
        if key not in self.known:
            a, b = line.first, line.first + line.slope
            places = [(at, what, p, q) for (p, q), all_ in self.pairs.items() for at, what in all_]
            sizes = [(at, b - a, q - p, a * q - b * p) for at, what, p, q in places if what == "size"]
            same = [(at, 1, 1, 0) for at, _, p, q in places if (p, q) == (a, b)]
            found = [(at, a, p, 0) for at, _, p, q in places if p and a * q == b * p] + [x for x in sizes if x[1] == x[2]]
            self.known[key] = same or found or sizes
            self.others[key] = [x for x in found if all(x[0] != at for at, *_ in same)] if same else ()
        return self.known[key]


class Here(Somewhere):
    """The numbers in the recipe of an entry in one step."""

    __slots__ = ("hints", "now", "found", "differ")

    def __init__(self, hints, now):
        super(Here, self).__init__()
        self.hints, self.now, self.found = hints, now, {}
        self.differ = False  # other ways to find a number tell another one
        for at, n in hints.fixed:
            if now[at] != n:
                raise Unlike("sizes that did not vary")

    def number(self, line):
        key = line.first, line.slope
        if key not in self.found:
            self.found[key] = self.find(line)
        return self.found[key]

    def find(self, line):
        found = set()
        for at, over, under, more in self.hints.of(line):
            n, rest = divmod(self.now[at] * over + more, under)
            if rest:
                raise Unlike("a number that is not whole")
            found.add(n)
        if len(found) != 1:
            raise Unlike("a number that may be several")
        n, others = found.pop(), self.hints.others[line.first, line.slope]
        self.differ = self.differ or any(self.now[at] * over + more != n * under for at, over, under, more in others)
        return n


class Recalled(object):
    """What a step that follows no schedule has saved, and how it is recomputed, as long as it does what the remembered ones did. It stands where Live
    does, and looks at no operators."""

    looks = times = False
    mode = None  # in which operators are seen

    def __init__(self, remembered, memory, step, extra, extent=None):
        self.remembered, self.memory, self.step = remembered, memory, step
        self.extra = extra  # the most bytes that may be taken beside what is recomputed
        self.extent, self.place = extent, None  # of the family of steps, if this is one of them, and where it is there
        self.over = False  # Parting says whether operators are still to be looked at
        self.lost = False  # the step does something else from the last known entry on
        self.known = []  # the entries that are as remembered
        self.found = {}  # recipes, or None, by the indexes of entries
        self.differing = set()  # indexes of those for whose numbers other ways tell others
        self.given_at = {}  # the versions of parameters when something was saved that is made of them, by their storage's ordinal
        self.packs, self.at = step.saves, 0  # and the entry whose recipe is tried next
        for e in step.entries:
            self.note(e)

    def enter(self):
        pass

    leave = enter

    def saved(self, entry):
        pass

    def sure(self, recipe, index):
        """Returns whether it is known that what is recomputed is what was there."""
        return False

    def recount(self, tensor):
        pass

    def launched(self, key, lasting):
        pass

    def packed(self, entry, new):
        """Notes an entry that is saved, for the first time or again."""
        at, known = self.packs, self.remembered
        self.packs += 1
        self.lost = self.lost or at >= len(known.sequence) or (known.sequence[at], known.trails[at]) != (entry.index, self.step.trail)
        if self.lost:
            del self.known[self.step.certain :]
            return
        self.step.agrees(entry, new)
        if new and len(self.known) == entry.index:
            self.note(entry)
        for index in range(self.at, self.certain()):
            self.at = index + 1
            self.attempt(self.step.entries[index])

    def note(self, entry):
        index, alias, types = entry.index, entry.alias, self.remembered.types
        if alias is not None:
            now = alias.dtype, alias.dim()
        else:
            now = (entry.layout[0], len(entry.layout[1])) if entry.layout is not None else None
        self.lost = self.lost or index >= len(types) or now is not None and types[index] != now
        if self.lost:
            return
        self.known.extend([PASSED] * (index - len(self.known)))
        self.known.append(entry)
        recipes = self.remembered.recipes[index]
        for lasting in recipes.one.lasting if recipes is not None else ():
            if lasting not in self.given_at:
                self.given_at[lasting] = self.versions_of(lasting)

    def attempt(self, entry):
        """Tries the recipe of an entry while its contents are there, unless that is not needed."""
        index, known = entry.index, self.remembered
        if index in known.sure or index in known.wrong or known.vain_for(entry):
            return
        if entry.alias is None or not entry.intact() or self.placed(self.involved(index)):
            return
        recipe = self.find(entry, self.step.entries)
        if recipe is None or self.tried(index) or not recipe.usable(self.memory, self.step.entries) or not all(map(self.unchanged, recipe.lasting)):
            return
        try:
            with entry, self.memory.trial:  # a request that finds no room is not to evict it
                made = Remake(recipe, self.step.entries, entry, proven=True).whole(self.step.stream)
                right = self.memory.alike(entry.alias, made, recipe.near)
        except self.memory.failures:
            times, smallest = known.vain.get(index, (0, entry.nbytes))
            known.vain[index] = times + 1, min(smallest, entry.nbytes)
            return
        except (RuntimeError, ValueError, TypeError, IndexError):
            right = False
        (known.right if right else known.wrong).add(index)
        if right and (index in self.differing or not any(known.hints_of(index).others.values())):
            known.sure.add(index)

    def tried(self, index):
        """Returns whether the recipe of an entry came out right, in a step in which other ways to find its numbers tell others if they do in this one."""
        return index in (self.remembered.sure if index in self.differing else self.remembered.right)

    def decided(self, count):
        """Returns of how many entries of so many it is known how they can be recomputed, or that they cannot."""
        return count if self.lost else self.certain()

    def certain(self):
        """Returns how many entries are as remembered: since they were saved parameters were used as they were then."""
        whole = self.step.backward and not self.lost and self.packs == len(self.remembered.sequence)
        return len(self.known) if whole else min(self.step.certain, len(self.known))

    def strange(self):
        """Returns whether the step had little in common with the remembered ones, or sizes from which theirs tell little."""
        asked = sum(self.remembered.recipes[i] is not None for i in self.found)
        known = sum(recipe is not None for recipe in self.found.values())
        return 2 * known < asked or self.lost and 2 * len(self.known) < len(self.step.entries)

    def recipe_of(self, entry, entries):
        """Returns how an entry of the step is recomputed, None if it cannot be, or if that is not known yet."""
        index = entry.index
        if index >= self.certain() or index in self.remembered.wrong:
            return None
        if index not in self.found:
            recipe = self.find(entry, entries)
            if recipe is not None and not self.tried(index) and not self.placed(self.involved(index)):
                return None
            self.found[index] = recipe
        return self.found[index]

    def scheduled(self, entry):
        """Returns how an entry is recomputed that a schedule has recomputed, once that was tried, None if it cannot be."""
        if entry.index >= len(self.known) or entry.index in self.remembered.wrong:
            return None
        self.found[entry.index] = recipe = self.find(entry, self.step.entries)
        self.attempt(entry)
        usable = recipe is not None and recipe.usable(self.memory, self.step.entries) and all(map(self.unchanged, recipe.lasting))
        return recipe if usable and self.tried(entry.index) and entry.index not in self.remembered.wrong else None

    def involved(self, index):
        """Returns the indexes of an entry and of what it is recomputed from."""
        recipes = self.remembered.recipes[index]
        return [index] + recipes.one.sources if recipes is not None else [index]

    def placed(self, involved):
        """Returns the place of the step in its family, where entries are as that says, None elsewhere."""
        first = self.extent.first if self.extent is not None else len(self.known)
        if first >= len(self.known):
            return None
        try:
            self.place = self.place or self.extent.place(self.known[first].nbytes)
            return self.place if all(self.extent.exactly(i, self.place) == (self.known[i].nbytes, self.known[i].laid_out()) for i in involved) else None
        except Unlike:
            return None

    def numbers_of(self, involved):
        return [n for i in involved for _, n in numbers(self.known[i].nbytes, self.known[i].laid_out())]

    def find(self, entry, entries):
        index, recipes = entry.index, self.remembered.recipes[entry.index]
        involved = self.involved(index)
        if recipes is None or not all([self.known[i].laid_out() is not None for i in involved] + [entries[i].users > 0 for i in recipes.one.sources]):
            return None
        larger = entry.nbytes / float(max(1, self.remembered.sizes[index]))
        try:
            place = self.placed(involved)
            if place is None:
                place = Here(self.remembered.hints_of(index), self.numbers_of(involved))
            recipe = recipes.at(place)
        except Unlike:
            return None
        if type(place) is Here and place.differ:
            self.differing.add(index)
        return recipe.lasts(int(recipe.ns * larger)) if recipe.chain.extra() * larger <= self.extra else None

    def unchanged(self, lasting):
        """Returns whether parameters are as they were when something was saved that is made of them."""
        return self.given_at.get(lasting) == self.versions_of(lasting)

    def versions_of(self, lasting):
        """Returns the versions of the parameters in a storage, none where there are none any more."""
        return [version(t) for t in self.memory.parameters(lasting)] if lasting in self.memory.lasting else []
