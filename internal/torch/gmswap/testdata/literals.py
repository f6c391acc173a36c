"""Which numbers stand in a program's text, by this Python's instructions."""

import math
import sys
import types

from gmswap_hook.literals import Literals

HALF = 0.5
known, found = Literals(), []


def note(n, packet="mul"):
    if isinstance(n, (int, float)):
        found.append(known.written(packet, n, sys._getframe(2)))
    return x


class Tensor(object):
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __pow__ = __iadd__ = lambda self, n: note(n)


def mul(x, n, **named):
    return note(n)


def multiply(x, n):
    return note(n)


def sub(x, n):
    return note(n)


x, k, holder = Tensor(), 2, types.SimpleNamespace(factor=0.5)


def by_hand(x):
    return 0.5 * x * (1.0 + mul(math.sqrt(2.0 / math.pi) * (x + 0.044715 * mul(x, 3.0)), x))


def added(x):
    x += 1
    return x


def looped(x, times):
    for _ in range(times):
        x = x * 2
    return x


def chosen(x, k):
    y = x * (k if k == 2 else 2)
    return y


def either(x, k):
    y = x * (k or 2)
    return y


def chosen_argument(x, k):
    y = mul(x, k if k == 2 else 2)
    return y


def either_argument(x, k):
    y = mul(x, k or 2)
    return y


def test_written():
    for expression in (
        lambda x, k: x * 3, lambda x, k: 3 * x, lambda x, k: 1 - x, lambda x, k: x / -2.0, lambda x, k: x**2, lambda x, k: mul(x, 2), lambda x, k: multiply(x, 2), lambda x, k: x * (1 + 2),
        lambda x, k: x * math.sqrt(2.0), lambda x, k: (x if k else x) * 2, lambda x, k: added(x), lambda x, k: looped(x, 1),
    ):
        assert result(expression) == [True], expression.__code__.co_firstlineno
    assert result(lambda x, k: by_hand(x)) == [True] * 5


def test_others():
    for expression in (
        lambda x, k: x * k, lambda x, k: k * x, lambda x, k: x * holder.factor, lambda x, k: holder.factor * x, lambda x, k: x * HALF, lambda x, k: x * (k + 1),
        lambda x, k: mul(x, k), chosen, either, chosen_argument, either_argument, lambda x, k: x * max(2, k), lambda x, k: k - x, lambda x, k: mul(*[x, 3]),
        lambda x, k: x * float(k), lambda x, k: x * math.sqrt(k), lambda x, k: mul(x, k, of=2), lambda x, k: sub(x, 2), lambda x, k: mul(x, True),
    ):
        assert result(expression) == [False], expression.__code__.co_firstlineno


def test_other_numbers():
    """Neither what is made while the program runs, nor what has several numbers, is the program's text."""
    space = {"x": x}
    del found[:]
    exec("y = x * 2", space)
    exec("y = x * 2", dict(space, __name__="named"))
    assert found == [False, False], found
    literals, frame = Literals(), sys._getframe()
    literals.find = lambda *given: True
    assert list(map(lambda n: literals.written("mul", n, frame), (2, 2, 3, 2))) == [True, True, False, False]


def result(expression):
    del found[:]
    expression(x, k)
    return list(found)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
