"""The sizes of steps that do the same: what they are in all follows from three."""

import math

from .between import Curve, Line, Place, Unlike


class Extent(object):
    """A step has a place: it is that of an early tensor on the line through its sizes in the smaller of the first two steps, where it is 0, and in the
    larger one. Others lie on such lines, too, or on curves through the sizes in all three."""

    EARLY = 16  # the tensor is one of the first so many

    def __init__(self, one, other, third, layouts):
        """Raises Unlike where the steps do not lie so."""
        small, large = sorted((one, other), key=lambda watched: sum(watched.sizes))
        self.small, self.large = small.sizes, large.sizes
        early = [i for i, (a, b) in enumerate(zip(small.sizes, large.sizes)) if a != b][: self.EARLY]
        if not early:
            raise Unlike("steps of one size")
        self.first = max(early, key=lambda i: (self.straight(i, third), -i))
        self.bytes_at = self.curves(third)
        self.types = [layout[0] for layout in small.layouts]
        if self.types != [layout[0] for layout in large.layouts]:
            raise Unlike("types")
        self.layouts = [layouts.between(a[1:], b[1:]) for a, b in zip(small.layouts, large.layouts)]
        self.total = sum(small.sizes), sum(large.sizes)
        self.bend = sum(float(curve.bend) for curve in self.bytes_at if isinstance(curve, Curve))
        if self.total[1] - self.total[0] - self.bend <= 0:
            raise Unlike("sizes that do not grow together")
        if any(self.exactly(i, self.place(third.sizes[self.first]))[1] != layout for i, layout in enumerate(third.layouts)):
            raise Unlike("shapes")

    def straight(self, first, third):
        """Returns how many sizes would lie on lines if a tensor told the place."""
        place = self.place(third.sizes[first], first)
        return sum((b - a) * place.over == (c - a) * place.under for a, b, c in zip(self.small, self.large, third.sizes))

    def curves(self, third):
        """Returns what the sizes lie on."""
        place, on = self.place(third.sizes[self.first]), []
        for a, b, c in zip(self.small, self.large, third.sizes):
            line = Line(a, b)
            straight = line.slope * place.over == (c - a) * place.under
            if not straight and place.over in (0, place.under):
                raise Unlike("sizes")
            on.append(line if straight else Curve(line, place, c))
        return on

    def place(self, nbytes, first=None):
        """Returns the place of a step, by the size of the tensor that tells it."""
        first = self.first if first is None else first
        a, b = self.small[first], self.large[first]
        return Place(nbytes - a, b - a) if b > a else Place(a - nbytes, a - b)

    def place_of(self, sizes):
        """Returns the place of a step, by the sizes of all. Raises Unlike if they do not lie as they are to."""
        if len(sizes) != len(self.small):
            raise Unlike("the number of tensors")
        place = self.place(sizes[self.first])
        if any(curve.at(place) != size for curve, size in zip(self.bytes_at, sizes)):
            raise Unlike("sizes")
        return place

    def exactly(self, index, place):
        """Returns the size and the layout of an entry. Raises Unlike where they are none."""
        return self.bytes_at[index].at(place), (self.types[index],) + place.layout(self.layouts[index])

    def saves(self, sizes):
        """Returns what a step of these sizes saves."""
        return sum(sizes)

    def widen(self, sizes):
        """Returns whether sizes that were not foreseen are those of such a step nevertheless."""
        return False

    def bytes(self, share):
        """Returns what a step of a place saves, as a number that need not be whole."""
        return self.total[0] + share * (self.total[1] - self.total[0]) + self.bend * share * (share - 1)

    def share(self, nbytes):
        """Returns the place of a step that saves so many bytes."""
        more, slope = nbytes - self.total[0], self.total[1] - self.total[0] - self.bend
        return 2.0 * more / (slope + math.sqrt(max(0.0, slope * slope + 4 * self.bend * more)))

    def lowest(self):
        """Returns the place of a step that saves half of what the smaller one does, or of that if there is none."""
        half = self.share(self.total[0] / 2.0)
        return half if min(curve.near(half) for curve in self.bytes_at) >= 1 else 0.0

    def sizes(self, share):
        """Returns sizes of at least what the entries of a step have."""
        return [max(1, int(math.ceil(curve.near(share) - 1e-6))) for curve in self.bytes_at]
