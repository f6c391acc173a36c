"""Collections of garbage, before and after all that is there was left out of them."""

import gc
import weakref

from gmswap_hook.garbage import Garbage


class Node(object):
    """A ring of itself: only a collection ends it."""

    def __init__(self):
        self.ring = self


def gone(collect):
    """Returns whether a collection ends what was there before."""
    node = Node()
    garbage.settle()
    weak = weakref.ref(node)
    del node
    collect()
    return weak() is None


garbage, real = Garbage(), gc.collect
gc.disable()
garbage.begin_step(2)
assert gc.collect is real and gc.get_freeze_count() <= Garbage.FROZEN, "the program collects by itself"
gc.enable()
for step in range(2):
    garbage.begin_step(step)
assert gc.collect is real, "too early"
asked = []
gc.collect = lambda generation=2: asked.append(generation)
garbage.collect_new()
gc.collect = real
assert asked == [1], "nothing is left out yet"
garbage.begin_step(2)
many = gc.get_freeze_count()
assert gc.collect is not real and gc.collect.__name__ == "collect" and many > 1000, many
assert not gone(lambda: gc.collect(1)) and not gone(lambda: real())
assert gone(gc.collect) and gone(lambda: gc.collect(generation=2))
assert gc.get_freeze_count() > 1000, "what was left out is not any more"
node = Node()
new = weakref.ref(node)
del node
assert not gone(garbage.collect_new) and new() is None, "newer objects alone are looked at"
again = []
gc.callbacks.append(lambda phase, info: again.append(gc.collect()) if phase == "start" and not again else None)
assert gone(gc.collect)
gc.callbacks.clear()
try:
    gc.collect(5)
    assert False, "there is no such generation"
except ValueError:
    pass

other = Garbage()
other.FROZEN = gc.get_freeze_count()
other.settle()
assert other.settled, "Python itself has left out the others"
other = Garbage()
other.settle()
assert not other.settled, "the program has left objects out itself"
