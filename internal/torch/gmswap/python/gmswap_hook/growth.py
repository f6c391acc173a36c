"""How what a step saves grows with the dimensions of its inputs, of which several vary by themselves."""

import collections
import itertools
import math
import operator

from .between import Unlike
from .needs import MOST

Where = collections.namedtuple("Where", "dims factor")  # the inputs of a step, and how many times what it saves


class Growth(object):
    """Each size is in proportion to a product of dimensions, or not far from it: the most that it is of that in the steps that were seen is what it is taken
    to be."""

    VARY = 3  # dimensions that may vary by themselves: of more there are too many products
    DEGREE = 5  # dimensions in a product, of which no three are the same
    EXACT = 1.0001  # the greatest share of a product over the least, where a size is in proportion to it
    MARGIN = 1.05  # what is not may be larger by so much than it was
    STEPS = 16  # that may tell how sizes grow: where more are needed they do not
    LOOSE = 1.25  # so much more than they have is allowed to the tensors of a step, in all

    def __init__(self, seen):
        """Is given the dimensions of the inputs of some steps, and the sizes of what they saved. Raises Unlike where these do not tell each other."""
        if len({(len(dims), len(sizes)) for dims, sizes in seen}) != 1:
            raise Unlike("inputs")
        self.seen = seen
        chosen = (p for n in range(self.DEGREE + 1) for p in itertools.combinations_with_replacement(self.varying(), n))
        candidates = [p for p in chosen if all(p.count(place) < 3 for place in p)]
        self.products, self.terms = [], []  # products that sizes grow with, and of each entry a number and which of these it is multiplied by
        steps, known = [dims for dims, _ in seen], {}
        for column in zip(*(sizes for _, sizes in seen)):
            if column not in known:
                share, places = self.term(column, steps, candidates)
                if places not in self.products:
                    self.products.append(places)
                known[column] = share, self.products.index(places)
            self.terms.append(known[column])
        self.bases = []  # the same of what operators need beside entries
        if any(self.bytes(self.values(dims)) > self.LOOSE * sum(sizes) for dims, sizes in seen):
            raise Unlike("sizes that vary by themselves")

    def varying(self):
        """Returns the places of dimensions that vary, of those that vary together the first."""
        columns = {}
        for place, column in enumerate(zip(*(dims for dims, _ in self.seen))):
            if len(set(column)) > 1 and min(column) > 0:
                columns.setdefault(column, place)
        if not 0 < len(columns) <= self.VARY:
            raise Unlike("inputs of one size" if not columns else "inputs that vary in too many ways")
        return sorted(columns.values())

    def term(self, column, steps, candidates, own=None):
        """Returns what some numbers, one of each of some steps, are of a product, and of which: that of which they are most nearly the same share in all. An own
        product is taken where it is about as near."""
        best = None
        for places in candidates:
            of = [number / float(product(dims, places)) for number, dims in zip(column, steps)]
            low, high = min(of), max(of)
            apart = high / low if low > 0 else math.inf
            if places == own:
                apart /= self.MARGIN
            if best is None or (round(apart, 4), len(places)) < best[0]:
                best = (round(apart, 4), len(places)), high, places
        (apart, _), share, places = best
        return share if apart <= self.EXACT else share * self.MARGIN, places

    def own(self, index, column, steps):
        """Returns what some numbers of steps are of a product that sizes grow with, and which, counted: of that of an entry where it will do."""
        share, places = self.term(column, steps, self.products, self.products[self.terms[index][1]])
        return share, self.products.index(places)

    def values(self, dims):
        """Returns what the products are in a step."""
        return [product(dims, places) for places in self.products]

    def larger(self, where):
        """Returns what they are in a multiple of a step."""
        return [value * where.factor for value in self.values(where.dims)]

    def sizes(self, values):
        return [max(1, int(math.ceil(share * values[which] - 1e-6))) for share, which in self.terms]

    def bytes(self, values):
        """Returns what is saved in all."""
        return sum(share * values[which] for share, which in self.terms)

    def takes(self, dims):
        """Returns whether inputs of some dimensions may be those of such a step."""
        return len(dims) == len(self.seen[0][0])

    def knows(self, dims):
        """Returns whether inputs differ from those of the steps that were seen in what these differed in, and in nothing else."""
        if not self.takes(dims) or len(dims) == MOST:  # there may be more
            return False
        now = {}
        columns = zip(*(dims for dims, _ in self.seen))
        return all(now.setdefault(column, n) == n and (n == column[0] or len(set(column)) > 1) for column, n in zip(columns, dims))

    def foresees(self, dims, sizes):
        return self.takes(dims) and len(sizes) == len(self.terms) and all(map(operator.le, sizes, self.sizes(self.values(dims))))

    def widened(self, dims, sizes):
        """Returns what allows for one more step. Raises Unlike where its sizes vary by themselves, or so many have come that they do."""
        if len(self.seen) == self.STEPS:
            raise Unlike("sizes")
        return Growth(self.seen + [(dims, list(sizes))])


def product(dims, places):
    out = 1
    for place in places:
        out *= dims[place]
    return out
