"""Tensors that are too small to be moved, of which others are recomputed."""

from .entry import untied


class Small(object):
    """A call of a model and the number of a tensor that it saves name such a one in all steps."""

    MOST = 1 << 20  # bytes of one

    def __init__(self):
        self.wanted = {}  # by calls: the numbers of those that others are recomputed of
        self.kept = {}  # these tensors and their versions, by names, until the backward pass
        self.operators = None  # what sees the operators of a step that is recorded
        self.looks = False  # whether what is saved is to be noted

    def want(self, names):
        """Has steps keep some."""
        for call, number in names:
            self.wanted.setdefault(call, set()).add(number)

    def forget(self):
        """Has steps keep none."""
        self.wanted = {}

    def see(self, operators):
        """Has operators note what a step saves, None for none."""
        self.operators, self.looks = operators, operators is not None or bool(self.wanted)

    def begin_step(self):
        self.kept.clear()
        self.see(None)

    def note(self, step, key, tensor, nbytes):
        """Notes a tensor that a step saves."""
        if self.operators is not None:
            if nbytes <= self.MOST:
                self.operators.see_small(key, tensor, (step.call, step.packs))
        elif step.packs in self.wanted.get(step.call, ()):
            tensor = untied(tensor)
            self.kept[step.call, step.packs] = tensor, tensor._version
