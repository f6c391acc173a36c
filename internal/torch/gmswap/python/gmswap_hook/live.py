"""Sees the operators of a step that follows no schedule, so that what they made can be made again."""

import collections

from . import chain
from .entry import version
from .operators import SHORT, Operators, results_in, tensors_in, writes
from .remake import LIBRARIES, Recipe
from .rerun import rerun

WRITES = object()  # stands for what reruns an operator that writes to an argument


class Costs(object):
    """What operators take, by those that were timed while steps were recorded. Those that did not repeat what they had made are not rerun, and others
    that were not recorded where nothing else helps."""

    LAUNCH = 5000  # nanoseconds of an operator with little to do
    STEPS = 4
    CHECKED = 8  # times that an entry is recomputed of which it is compared once at least
    LEAST = 0.1  # a share for which it is worth looking at all operators

    def __init__(self):
        self.rates = {}  # nanoseconds for a unit of work, by names
        self.seen = False  # operators of a step were seen
        self.proven = set()  # names of those that were seen to repeat what they had made
        self.unsure = set()  # names
        self.reruns = {}  # what reruns operators, by functions
        self.recomputed = collections.Counter()  # how often entries were, by their indexes
        self.shares = collections.deque(maxlen=self.STEPS)  # of what left in the last steps, what was recomputed

    def learn(self, operators):
        """Learns from the operators of a step."""
        operators.memory.synchronize()
        self.seen = True
        self.unsure |= operators.unsure
        spent = {}
        for call in {id(m.call): m.call for m in operators.makers.values()}.values():
            ns, done = spent.get(call.name, (0, 0))
            spent[call.name] = ns + operators.memory.elapsed(call.begin, call.end), done + work(call)
        self.rates.update((name, ns / max(1, done)) for name, (ns, done) in spent.items())
        if operators.proves:
            self.proven.update(spent)
        self.reruns.clear()

    def known(self):
        """Returns whether operators were timed, or there were none to time."""
        return self.rates or self.seen

    def rerun(self, function):
        """Returns what reruns an operator, WRITES if nothing does and it writes to an argument, None for all else."""
        if function not in self.reruns:
            again, mutable = rerun(function, writes(function)), writes(function)
            if again is not None and again.name in self.unsure:
                again = None
            self.reruns[function] = WRITES if again is None and mutable else again
        return self.reruns[function]

    def worthwhile(self):
        """Returns whether steps gain by what is recomputed in them, as far as is known."""
        return self.rates and (len(self.shares) < self.STEPS or sum(self.shares) >= self.LEAST * self.STEPS)

    def ns(self, call):
        """Returns about what a call takes, infinity where nothing is known: once operators were proven, of those alone."""
        known = self.proven or self.rates
        return self.LAUNCH + self.rates[call.name] * work(call) if call.name in known else float("inf")


def work(call):
    """Returns about how many multiplications a product or a convolution takes, the elements that other operators are given."""
    sizes = [x.size for x in call.inputs()]
    if call.name == "convolution" and len(sizes) > 1:
        return count(sizes[0]) * count(sizes[1]) // max(1, sizes[0][1])
    if call.name in LIBRARIES and len(sizes) > 1:
        return count(sizes[-2]) * sizes[-1][-1]
    return sum(map(count, sizes))


def count(size):
    n = 1
    for x in size:
        n *= x
    return n


class Live(Operators):
    """The operators of one step, and how what it saved is recomputed."""

    looks = True

    def __init__(self, memory, costs, extra):
        super(Live, self).__init__(memory, False, proves=False)
        self.times = not costs.known()  # whether operators are timed: nothing is known yet
        self.costs, self.extra = costs, extra  # the most bytes that may be taken beside what is recomputed
        self.over = False  # nothing that is made from now on has to be recomputed
        self.depth = 0  # of modules
        self.given_at = {}  # the versions of parameters when an operator was first given them, by their storage's ordinal
        self.found = {}  # recipes, or None, by the indexes of entries

    def enter(self):
        self.depth += 1
        if self.depth == 1:
            self.begin()
        elif self.over:
            self.stop()

    def join(self, depth):
        """Looks from within so many modules on."""
        self.depth = depth
        self.begin()

    def leave(self):
        self.depth -= 1
        if self.depth <= 0:
            self.end()
        elif self.over:
            self.stop()

    def launched(self, key, lasting):
        """Notes that a kernel is given a storage, by its address, or the ordinal of a parameter's, and may write to it."""
        if lasting:
            self.written.add(lasting)
        elif key in self.numbers:
            self.changed.add(self.numbers[key])

    def new(self, tensor, given):
        number = super(Live, self).new(tensor, given)
        if number and self.memory.key(tensor) in self.memory.exported:
            self.changed.add(number)
        return number

    def stop(self):
        """Sees no more operators in this model. What is written from now on shows in given_at."""
        if self.mode is not None and self.memory.innermost_mode() is self.mode:
            self.end()

    def run(self, function, args, kwargs):
        again = None if self.over or self.memory.looking else self.costs.rerun(function)
        if again is None:
            return function(*args, **kwargs)
        given = self.given(args, kwargs) if again is not WRITES and again.suits(function, args) else None
        if given is None or again.in_place and not self.whole(args[0]):
            result = function(*args, **kwargs)
            if writes(function):
                self.wrote(function, args, kwargs)
            return result
        call, count = None if again.draws else self.call(again, args, kwargs), version(args[0]) if again.in_place else 0
        begin = self.begin_timing()
        result = function(*args, **kwargs)
        if self.times:
            self.last = self.memory.mark()
        if again.draws:
            for x in result[again.results :]:
                self.new(x, given)
            call = self.call(again, again.drawn(args, result), {})
        call.begin, call.end = begin, self.last
        if again.in_place:
            self.overwritten(args[0], call, count)
            if self.memory.key(args[0]) in self.memory.exported:
                self.changed.add(self.count)
        else:
            call.nbytes = sum(self.memory.size(x) for x in results_in(result) if self.memory.key(x) not in given)
            for i, x in enumerate(results_in(result)[: again.results]):
                self.made(self.new(x, given), call, i, x)
        return result

    def begin_timing(self):
        """Returns the mark in front of an operator, if operators are timed."""
        if not self.times:
            return None
        self.memory.fill(self.last, SHORT)
        return self.memory.mark()

    def given(self, args, kwargs):
        """Returns the addresses of the arguments' storages, None unless all tensors among them are the device's. Numbers are those of this step."""
        given = set()
        for x in tensors_in((args, kwargs)):
            key = self.memory.key(x)
            if not key or not self.memory.plain(x) or x.is_conj() or x.is_neg():
                return None
            given.add(key)
            lasting = self.memory.parameter(key)
            if lasting:
                now = self.versions_of(lasting)
                if self.given_at.setdefault(lasting, now) != now:
                    self.written.add(lasting)
        return given

    def sure(self, recipe, index):
        """Returns whether it is known that what is recomputed is what was there, and that an entry was compared not long ago."""
        self.costs.recomputed[index] += 1
        return self.costs.recomputed[index] % self.costs.CHECKED != 1 and all(m.call.name in self.costs.proven for m in recipe.chain.made)

    def packed(self, entry, new):
        pass

    def decided(self, count):
        """Returns of how many entries of so many it is known how they can be recomputed, or that they cannot."""
        return count

    def strange(self):
        return False

    def recipe_of(self, entry, entries):
        """Returns how an entry of the step is recomputed, None if it cannot be."""
        if entry.index not in self.found:
            self.found[entry.index] = self.find(entry, entries)
        return self.found[entry.index]

    def find(self, entry, entries):
        number = self.numbers.get(entry.key)
        found = chain.find(self[number], lambda x: self.there(x, entry.index, entries), self) if number in self else None
        if found is None or found.extra() > self.extra:
            return None
        own = {m.number for m in found.made}
        inputs = [x for m in found.made for x in m.call.inputs() if x.number not in own]
        ns = sum(self.costs.ns(call) for call in {id(m.call): m.call for m in found.made}.values())
        return Recipe(found, ns, inputs, 0, None if self.memory.deterministic() else entry.laid_out()[0])

    def unchanged(self, lasting):
        """Returns whether parameters are as the operators were given them."""
        return lasting not in self.written and self.given_at.get(lasting) == self.versions_of(lasting)

    def versions_of(self, lasting):
        """Returns the versions of the parameters in a storage. Those in one buffer may be counted apart."""
        return [version(t) for t in self.memory.parameters(lasting)]

    def there(self, x, index, entries):
        """Returns whether an argument is a parameter, or was saved before an entry, and is unchanged."""
        if x.lasting:
            return self.unchanged(x.lasting)
        if x.entry is None:  # else what is recomputed of it may be on its way, and what is saved once more is another entry
            x.entry = self.entries.get(x.number)
        return x.entry is not None and x.entry < index and x.number not in self.changed and entries[x.entry].users > 0

    # The makers of what was not written to since.

    def __contains__(self, number):
        return number in self.makers and number not in self.changed

    def __getitem__(self, number):
        return self.makers[number]
