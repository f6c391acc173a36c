"""The most that steps save which do the same, and whose sizes vary in several ways at once: pictures of all heights and widths, batches of
any number of texts of any length."""

import math

from .between import Place, Unlike


class Extents(object):
    """A step has a place, as in Extent, by the size of an early tensor. Of the others the most bytes are known, by that size: as many as in any step that was
    seen of one of them. What layouts they have is not known."""

    EARLY = 16  # the tensor is one of the first so many
    LOOSE = 1.25  # so much more than they have is allowed to the tensors of a step, in all: where they vary by themselves there is no such step
    MARGIN = 1.1  # what is found to be larger may be larger by so much again
    SEEN = 16  # such steps are remembered

    def __init__(self, steps):
        """Raises Unlike where the steps have too little in common."""
        small, large = (extreme(steps, key=lambda step: sum(step.sizes)) for extreme in (min, max))
        types = [[(layout[0], len(layout[1])) for layout in step.layouts] for step in steps]
        if any(other != types[0] for other in types):
            raise Unlike("types")
        growing = [i for i, (a, b) in enumerate(zip(small.sizes, large.sizes)) if a < b][: self.EARLY]
        if not growing:
            raise Unlike("sizes that do not grow together")
        self.first = max(growing, key=lambda i: (proportional(i, steps), -i))
        self.ends = small.sizes[self.first], large.sizes[self.first]
        self.recorded = len(steps)
        if not self.take([(step.sizes, 1.0) for step in steps]):
            raise Unlike("sizes that vary by themselves")

    def take(self, seen):
        """Takes the bounds that some steps have, unless these allow much more to one than it has. Returns whether it did."""
        at = [sizes[self.first] for sizes, _ in seen]
        near, far = at.index(min(at)), at.index(max(at))
        bounds = [bound([sizes[i] * margin for sizes, margin in seen], at, near, far) for i in range(len(seen[0][0]))]
        start, slope = (sum(x) for x in zip(*bounds))
        if any(start + slope * sizes[self.first] > self.LOOSE * sum(sizes) for sizes, _ in seen):
            return False
        self.seen, self.bounds = seen, bounds  # of each tensor, the start and the slope of a line over the size that tells the place
        self.total = tuple(start + slope * n for n in self.ends)
        return True

    def widen(self, sizes):
        """Allows the sizes of a step that were not foreseen. Returns False where they vary by themselves."""
        if len(sizes) != len(self.bounds):
            return False
        wider = self.seen[self.recorded :] + [(list(sizes), self.MARGIN)]
        return self.take(self.seen[: self.recorded] + wider[-self.SEEN :])

    def place(self, nbytes):
        """Returns the place of a step, by the size of the tensor that tells it."""
        a, b = self.ends
        return Place(nbytes - a, b - a)

    def place_of(self, sizes):
        """Returns the place of a step, by the sizes of all. Raises Unlike if some are larger than is known."""
        n = sizes[self.first] if len(sizes) == len(self.bounds) else 0
        if n <= 0 or any(size > math.ceil(start + slope * n) for size, (start, slope) in zip(sizes, self.bounds)):
            raise Unlike("sizes")
        return self.place(n)

    def exactly(self, index, place):
        raise Unlike("a size that is not known")

    def bytes(self, share):
        """Returns what a step of a place saves at most."""
        return self.total[0] + share * (self.total[1] - self.total[0])

    def saves(self, sizes):
        """Returns what a step of these sizes saves at most."""
        return self.bytes(self.place(sizes[self.first]).share())

    def share(self, nbytes):
        """Returns the place of a step that saves so many bytes at most."""
        return (nbytes - self.total[0]) / float(self.total[1] - self.total[0])

    def lowest(self):
        """Returns the place of a step whose first tensor is half as large as in the smallest one."""
        a, b = self.ends
        return (max(1, a // 2) - a) / float(b - a)

    def sizes(self, share):
        """Returns the most that the entries of a step have."""
        a, b = self.ends
        n = a + share * (b - a)
        return [max(1, int(math.ceil(start + slope * n - 1e-6))) for start, slope in self.bounds]


def bound(sizes, at, near, far):
    """Returns the start and the slope of a line, of which none is negative, that some sizes do not lie above."""
    slope = (sizes[far] - sizes[near]) / float(at[far] - at[near])
    start = sizes[near] - slope * at[near]
    if slope >= 0 and start >= 0 and all(size <= start + slope * n * (1 + 1e-9) for size, n in zip(sizes, at)):
        return start, slope
    return 0.0, max(size / float(n) for size, n in zip(sizes, at))


def proportional(first, steps):
    """Returns how many sizes are in proportion to one of them in all steps, or the same."""
    columns = zip(*(step.sizes for step in steps))
    n = [step.sizes[first] for step in steps]
    return sum(all(a * n[0] == column[0] * b for a, b in zip(column, n)) or len(set(column)) == 1 for column in columns)
