"""Tells where a number comes from that an operator is given: from an attribute of a module, as a scale or a probability, or from the size of a tensor."""

import math
import sys
import weakref

from .literals import inner

FRAMES = 8  # calls that may lie between an operator and the code that names the attribute
LIMITS = frozenset((float("inf"), 65504.0, 255 * 2.0**120, (2 - 2.0**-23) * 2.0**127, sys.float_info.max))  # of float16, bfloat16, float32 and float64
FILL = 1e4  # larger numbers are what masks fill in, with these operators
FILLING = frozenset(("masked_fill", "masked_fill_", "scalar_tensor", "full_like"))
SDPA = "scaled_dot_product_attention"  # which gives operators numbers that come from its arguments
MOST = 1e18  # a larger one has no roots here
PLAIN = frozenset((0, 1, -1, 2, 0.5))  # numbers that too many have


class Origin(object):
    """An attribute of a module, or of what is one, as a configuration."""

    __slots__ = ("module", "names", "value", "kind")

    def __init__(self, module, names, value):
        self.module, self.names, self.value = weakref.ref(module), names, value
        self.kind = type(module), names

    def same(self):
        """Returns whether it is as it was."""
        found = self.module()
        for name in self.names:
            found = getattr(found, "__dict__", {}).get(name)
        return type(found) is type(self.value) and found == self.value


class Origins(object):
    """Finds origins, but for attributes that were other ones in another step."""

    def __init__(self, torch):
        self.torch, self.varying = torch, set()  # kinds of these

    def same(self, origins):
        """Returns whether all of some are as they were, and notes those that are not."""
        others = [o.kind for o in origins if not o.same()]
        self.varying.update(others)
        return not others

    def of(self, packet, number, frame, literals):
        """Returns what a number comes from that an operator called in a frame is given, none if that cannot change, None where that is not known. Where it may be several
        attributes, all are returned."""
        try:
            return None if isinstance(number, complex) or number != number else self.find(packet, number, frame, literals)
        except Exception:  # of what a program has among its variables
            return None

    def find(self, packet, number, frame, literals):
        found, frames, sure = {}, 0, abs(number) in LIMITS or packet in FILLING and abs(number) >= FILL
        while frame is not None and frames < FRAMES:
            if not inner(str(frame.f_globals.get("__name__"))):
                frames += 1
                code, values = frame.f_code, list(frame.f_locals.values())
                if frames == 1 and packet == "scalar_tensor" and attention(code):
                    return ()
                if frames == 1:
                    loaded, variables = literals.attributes(packet, frame), literals.variables(packet, frame)
                    held = [frame.f_locals[name] for name in variables or ()]
                held += [x for x in values if variables is None and type(x) is float]
                sure = sure or self.sized(number, code, values)
                for origin in self.attributes(number, code.co_names, values):
                    found.setdefault((id(origin.module()), origin.names), origin)
                    passed = number == origin.value and any(x is origin.value for x in held)
                    sure = sure or passed or origin.names[-1] in loaded or number not in PLAIN and SDPA in code.co_names
            frame = frame.f_back
        return None if not sure or any(o.kind in self.varying for o in found.values()) else tuple(found.values())

    def sized(self, number, code, values):
        """Returns whether a number follows from the last dimension of a tensor that code has, as attention's scale does."""
        if number in PLAIN or not (SDPA in code.co_names or "sqrt" in code.co_names or {0.5, -0.5}.intersection(code.co_consts)):
            return False
        return any(number in of(x.shape[-1])[1:] for x in values if isinstance(x, self.torch.Tensor) and x.dim() > 1 and x.shape[-1] > 1)

    def attributes(self, number, names, values):
        """Yields the attributes that code names, of modules that it has, from which a number may follow."""
        for module in values:
            if isinstance(module, self.torch.nn.Module):
                for path, value in numbers_of(module, names):
                    if number in of(value):
                        yield Origin(module, path, value)


def attention(code):
    """Returns whether code has attention make numbers of its own, as those that its mask stands for, and makes none."""
    return SDPA in code.co_names and not {"where", "scalar_tensor"}.intersection(code.co_names)


def numbers_of(module, names):
    """Yields the numbers among some attributes of a module, and of what it has under such names, with their paths."""
    for name in names:
        value = module.__dict__.get(name)
        if type(value) in (int, float):
            yield (name,), value
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            for inner_name in names:
                part = value.__dict__.get(inner_name)
                if type(part) in (int, float):
                    yield (name, inner_name), part


def of(value):
    """Returns a number, and what attention's scale and what is kept of a probability are of it."""
    if value <= 0 or value > MOST:
        return (value,)
    root, least = math.sqrt(value), value**-0.5
    return value, root, 1 / root, least, math.sqrt(1 / root), math.sqrt(least), 1 / value, 1 - value
