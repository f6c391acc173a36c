"""Where a step is: paths of modules."""

import bisect
import re

NUMBER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")


class Places(object):
    """Follows the forward passes of modules. In a backward pass an operator belongs to the module whose forward pass made its node, which
    the node's number tells: autograd counts them."""

    def __init__(self, torch):
        self.node = getattr(torch._C, "_current_autograd_node", None)  # since 2.1
        self.count = getattr(getattr(torch._C, "_autograd", None), "_get_sequence_nr", None)
        self.names = {}  # of modules and parameters, by id
        self.stack = []
        self.begin()

    def begin(self):
        """Begins a step."""
        self.numbers, self.paths = [], []  # autograd's number at each turn, and where the step is from then on

    def know(self, model):
        for name, m in model.named_modules():
            self.names.setdefault(id(m), name)
        for name, p in model.named_parameters():
            self.names.setdefault(id(p), name)

    def enter(self, module):
        self.stack.append(self.names.get(id(module), type(module).__name__))
        self.turn()

    def leave(self):
        if self.stack:
            self.stack.pop()
        self.turn()

    def turn(self):
        if self.count is not None:
            self.numbers.append(self.count())
            self.paths.append(self.forward())

    def forward(self):
        return self.stack[-1] if self.stack else ""

    def backward(self):
        """Returns the path of the module whose backward pass runs."""
        node = self.node() if self.node is not None else None
        if node is None or not self.numbers:
            return ""
        variable = getattr(node, "variable", None)  # of a node that takes in a gradient
        if variable is not None:
            return self.names.get(id(variable), "").rpartition(".")[0]
        i = bisect.bisect_right(self.numbers, node._sequence_nr()) - 1
        return self.paths[i] if i >= 0 else ""


class Layers(object):
    """Numbers the layers of a model in the order in which they are met: the outermost modules whose paths have a number."""

    def __init__(self):
        self.numbers = {}  # by path

    def number(self, place):
        """Returns the number of the layer in which a module is, -1 if it is in none."""
        found = NUMBER.search(place)
        return self.numbers.setdefault(place[: found.end(1)], len(self.numbers)) if found else -1
