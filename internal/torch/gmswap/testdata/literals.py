"""Which numbers stand in a program's text, by this Python's instructions."""

import math
import sys
import types

from gmswap_hook.literals import Literals

HALF = 0.5
known, found = Literals(), []


def note(n):
    if isinstance(n, (int, float)):
        found.append(known.written(n, sys._getframe(2)))
    return x


class Tensor(object):
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __iadd__ = lambda self, n: note(n)


def multiply(x, n, **named):
    return note(n)


x, k, holder = Tensor(), 2, types.SimpleNamespace(factor=0.5)


def by_hand(x):
    return 0.5 * x * (1.0 + multiply(math.sqrt(2.0 / math.pi) * (x + 0.044715 * multiply(x, 3.0)), x))


def added(x):
    x += 1
    return x


def looped(x, times):
    for _ in range(times):
        x = x * 2
    return x


def test_written():
    for expression in (
        lambda x, k: x * 3, lambda x, k: 3 * x, lambda x, k: 1 - x, lambda x, k: x / -2.0, lambda x, k: x**2, lambda x, k: multiply(x, 2), lambda x, k: x * (1 + 2),
        lambda x, k: x * math.sqrt(2.0), lambda x, k: (x if k else x) * 2, lambda x, k: added(x), lambda x, k: looped(x, 1),
    ):
        assert result(expression) == [True], expression.__code__.co_firstlineno
    assert result(lambda x, k: by_hand(x)) == [True] * 5


def test_others():
    for expression in (
        lambda x, k: x * k, lambda x, k: k * x, lambda x, k: x * holder.factor, lambda x, k: holder.factor * x, lambda x, k: x * HALF, lambda x, k: x * (k + 1),
        lambda x, k: multiply(x, k), lambda x, k: x * (k if k == 2 else 1), lambda x, k: x * max(2, k), lambda x, k: k - x, lambda x, k: multiply(*[x, 3]),
        lambda x, k: x * float(k), lambda x, k: x * math.sqrt(k), lambda x, k: multiply(x, k, of=3),
    ):
        assert result(expression) == [False], expression.__code__.co_firstlineno


def result(expression):
    del found[:]
    expression(x, k)
    return list(found)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
