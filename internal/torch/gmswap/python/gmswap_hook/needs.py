"""What the inputs of a step tell of the memory that it needs: their shapes are known before anything is saved."""

import collections
import itertools


MOST = 64  # dimensions


def dimensions(given, tensor, most=MOST, looks=256):
    """Returns the dimensions of the tensors among the arguments of a model and in what they hold, one after the other, the first so many. So many values are
    looked at, at most, and no attribute of any but tensors."""
    found, left = [], [given]
    while left and looks and len(found) < most:
        value, looks = left.pop(), looks - 1
        try:
            if isinstance(value, tensor):
                found.extend(n for n in value.shape if type(n) is int)  # tracers have others
            elif isinstance(value, collections.abc.Mapping):
                left.extend(v for _, v in sorted(value.items(), key=lambda item: str(item[0]), reverse=True))  # in whatever order they came
            elif isinstance(value, (list, tuple)):
                left.extend(reversed(value[:looks]))
        except Exception:
            pass  # a tensor that has no shape, or something of the program's that is not what it seems
    return tuple(found[:most])


class Needs(object):
    """The need of a step is taken to be a sum of products of those dimensions of its inputs that vary, none of them negative, as the tensors are that
    it saves. It is believed where it has proved right."""

    STEPS = 32  # that are remembered
    FIRST = 4  # steps from which on something is foreseen
    TRUSTED = 3  # steps in a row that were foreseen before a need is believed
    NEAR = 0.05  # so near
    PAUSE = 16  # steps at most between two looks for a sum that none is near to

    def __init__(self):
        self.past = collections.deque(maxlen=self.STEPS)  # of pairs of dimensions, and bytes
        self.sum = None
        self.right = 0  # steps in a row that were foreseen
        self.looked = self.FIRST // 2  # steps that were remembered when a sum was looked for
        self.waits = self.pause = 1  # steps until the next look after one that was not foreseen, and between the last two such

    def needed(self, dims):
        """Returns the bytes that a step with inputs of some dimensions will need, 0 where that is not known."""
        return self.foreseen(dims) if self.right >= self.TRUSTED else 0

    def foreseen(self, dims):
        known = self.sum is not None and len(self.past[-1][0]) == len(dims)
        return int(self.sum.at(dims)) if known else 0

    def learn(self, dims, needed):
        """Learns from a step that has ended."""
        if not dims or needed <= 0:
            return
        if self.past and len(self.past[-1][0]) != len(dims):
            self.__init__()
        trusted, off = self.right >= self.TRUSTED, abs(self.foreseen(dims) - needed) / float(needed)
        self.right = self.right + 1 if off <= self.NEAR else 0
        self.past.append((dims, needed))
        self.waits -= 1
        if len(self.past) >= 2 * self.looked:
            self.look()
        elif not self.right and (trusted or self.waits <= 0) and len(self.past) >= self.FIRST:
            self.pause = 1 if trusted else min(self.PAUSE, 2 * self.pause)
            self.waits = self.pause
            self.look()

    def look(self):
        self.looked, self.sum = len(self.past), nearest(self.past)


class Products(object):
    """A sum of products of dimensions."""

    def __init__(self, terms):
        self.terms = terms  # numbers, and the places of the dimensions that each is multiplied by

    def at(self, dims):
        total = 0.0
        for number, places in self.terms:
            for place in places:
                number *= dims[place]
            total += number
        return total


VARY = 3  # dimensions that may vary by themselves: of more there are too many products
DEGREE = 3  # dimensions in a product, of which no three are the same: scores of attention in a batch


def nearest(past):
    """Returns the sum of products that is nearest to what some steps needed, in proportion to that, None where too many dimensions vary."""
    columns = {}  # of dimensions that vary together the first
    for place, column in enumerate(zip(*(dims for dims, _ in past))):
        if len(set(column)) > 1:
            columns.setdefault(column, place)
    if len(columns) > VARY:
        return None
    chosen = (p for n in range(DEGREE + 1) for p in itertools.combinations_with_replacement(columns.values(), n))
    products = [p for p in chosen if all(p.count(place) < 3 for place in p)]
    rows = [[Products([(1.0, p)]).at(dims) / needed for p in products] for dims, needed in past]
    scales = [max(column) or 1.0 for column in zip(*rows)]
    numbers = nonnegative([[x / scale for x, scale in zip(row, scales)] for row in rows])
    return Products([(x / scale, p) for x, scale, p in zip(numbers, scales, products) if x > 0])


def nonnegative(rows):
    """Returns the numbers, none negative, with which the sum of each row comes nearest to 1: least squares by the algorithm of Lawson and Hanson."""
    n = len(rows[0])
    products = [[sum(row[i] * row[j] for row in rows) for j in range(n)] for i in range(n)]
    goals = [sum(row[i] for row in rows) for i in range(n)]
    x, used = [0.0] * n, []
    for _ in range(3 * n):
        lacks = {i: goals[i] - sum(products[i][j] * x[j] for j in used) for i in range(n) if i not in used}
        best = max(lacks, key=lacks.get, default=None)
        if best is None or lacks[best] <= 1e-9 * goals[best]:
            break
        used.append(best)
        if not settle(x, used, products, goals):
            break
    return x


def settle(x, used, products, goals):
    """Sets the numbers that are used to the best ones, and leaves out those that would be negative. Returns False where they cannot be told apart."""
    while used:
        best = solution([[products[i][j] for j in used] for i in used], [goals[i] for i in used])
        if best is None:
            used.pop()  # it has just come, and is 0
            return False
        step = min([x[i] / (x[i] - b) for i, b in zip(used, best) if b <= 0], default=1.0)
        for i, b in zip(used, best):
            x[i] = max(0.0, x[i] + step * (b - x[i]))
        if step == 1.0 and min(best) > 0:
            return True
        out = [i for i, b in zip(used, best) if b <= 0 and x[i] <= 1e-12]
        for i in out:
            x[i] = 0.0
            used.remove(i)
        if not out:
            return False
    return True


def solution(a, b):
    """Solves linear equations of a symmetric matrix, which is changed. Returns None where they are too much alike."""
    n = len(b)
    for i in range(n):
        if a[i][i] <= 1e-13:
            return None
        for j in range(i + 1, n):
            times = a[j][i] / a[i][i]
            a[j] = [q - times * p for p, q in zip(a[i], a[j])]
            b[j] -= times * b[i]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (b[i] - sum(a[i][k] * x[k] for k in range(i + 1, n))) / a[i][i]
    return x
