"""Which dimensions of the inputs of a model vary from step to step."""

import collections
import itertools
import math


class Inputs(object):
    """The dimensions of the inputs of the last steps."""

    STEPS = 16  # that are remembered
    VARY = 3  # dimensions that may vary by themselves: where more do, few steps differ from one in all of them
    OFTEN = 4  # one step of so many differs from another one in a dimension that varies

    def __init__(self):
        self.seen = collections.deque(maxlen=self.STEPS)

    def saw(self, dims):
        """Notes those of a step, if they are known."""
        if self.seen and len(self.seen[-1]) != len(dims) > 0:
            self.seen.clear()
        if dims:
            self.seen.append(dims)

    def vary(self):
        """Returns whether steps are known to differ in them."""
        return len(set(self.seen)) > 1

    def differ(self, one, other):
        """Returns whether one step differs from another in all dimensions in which it often does, and in their products if it often does in these: then the two
        tell what each does. Returns True, too, where none is known to vary, where others may be meant, and where too many vary."""
        if len(one) != len(other) or self.seen and len(self.seen[-1]) != len(one):
            return True
        columns = list(filter(self.often, set(zip(one, other, *self.seen))))
        if len(columns) > self.VARY:
            return True
        products = (tuple(map(math.prod, zip(*some))) for n in range(len(columns)) for some in itertools.combinations(columns, n + 1))
        return all(column[0] != column[1] for column in products if self.often(column))

    def often(self, column):
        """Returns whether many of the last steps differ in a number from the first of two others, which begin the column."""
        return self.OFTEN * sum(n != column[0] for n in column[2:]) >= len(self.seen) > 0
