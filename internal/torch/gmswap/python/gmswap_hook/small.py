"""Tensors that are too small to be moved, and what modules are given, of which others are recomputed."""

import weakref

from .arguments import Argument, Arguments
from .entry import untied


class Small(object):
    """The number of a call of a model in a step, and that of a tensor that it saves, name such a one in all steps."""

    def __init__(self, memory):
        self.memory = memory
        self.wanted = {}  # by calls: the numbers of those that others are recomputed of
        self.kept = {}  # by names: references to such tensors of this step, which live as long as autograd keeps them, and their versions
        self.arguments = Arguments(memory, self.kept)
        self.operators = None  # what sees the operators of a step that is recorded
        self.looks = False  # whether what is saved is to be noted

    def want(self, names):
        """Has steps note some."""
        for name in names:
            if type(name) is Argument:
                self.arguments.want(name)
            else:
                self.wanted.setdefault(name[0], set()).add(name[1])

    def forget(self):
        """Has steps note none."""
        self.wanted = {}
        self.arguments.forget()

    def see(self, operators):
        """Has operators note what a step saves, None for none."""
        self.operators, self.looks = operators, operators is not None or bool(self.wanted)

    def begin_step(self, step):
        self.arguments.begin_step(step)
        self.kept.clear()
        self.see(None)

    def note(self, step, key, tensor, smallest):
        """Notes a tensor that a step saves, if it is not moved. Returns the one that autograd is to keep."""
        if self.operators is None and step.packs not in self.wanted.get(step.turn, ()) or not self.stays(step, tensor, smallest):
            return tensor
        if self.operators is not None:
            self.operators.see_small(key, tensor, (step.turn, step.packs), len(step.entries))
            return tensor
        tensor = untied(tensor)
        self.kept[step.turn, step.packs] = weakref.ref(tensor), tensor._version
        return tensor

    def stays(self, step, tensor, smallest):
        known = step.members is not None and step.call in step.members.calls  # see Step.moves
        return (self.memory.movable(tensor) and self.memory.size(tensor) < (4 * smallest if known else smallest)
                and self.memory.stream() == step.stream)

    def there(self, name):
        """Returns whether a step has a tensor still."""
        return name in self.kept and self.kept[name][0]() is not None

    def take(self, name):
        """Returns a tensor that is there, and the version in which it was saved."""
        reference, version = self.kept[name]
        return reference(), version
