"""Python's garbage collector, which looks at all objects of a process now and then, and stops the program for as long as that takes. What is kept of each
tensor that is saved makes it do so more often."""

import functools
import gc


class Garbage(object):
    """Leaves what is there when it settles out of collections that nobody asks for. A program's own gc.collect() looks at all objects, as ever."""

    EVERY = 5000  # steps after which all are looked at again
    FROZEN = 1000  # more objects than Python itself leaves out when it begins, as 3.12 does

    def __init__(self):
        self.settled = self.busy = False
        self.real = None

    def begin_step(self, number):
        """Called before steps, counted from 0. The first ones leave objects that last."""
        if number % self.EVERY == 2 and gc.isenabled():
            self.settle()

    def settle(self):
        if not self.settled:
            if gc.get_freeze_count() > self.FROZEN:
                return  # the program does so itself
            self.settled, self.real = True, gc.collect
            gc.collect = functools.wraps(self.real)(lambda generation=2: self.collect(generation))
        self.collect()

    def collect_new(self):
        """Looks at those objects alone that are not left out, or that are young as long as none are."""
        self.real(2) if self.settled else gc.collect(1)

    def collect(self, generation=2):
        """What gc.collect does from then on."""
        if generation != 2 or self.busy:
            return self.real(generation)
        self.busy = True
        try:
            gc.unfreeze()
            return self.real(generation)
        finally:
            gc.freeze()
            self.busy = False
