"""Tells whether a number that an operator is given stands in the program's text: then it is the same in each step."""

import builtins
import dis
import math

OURS = __name__.split(".")[0]
# What runs between an operator and the program that calls it: not torch's own functions, which are looked at like the program's.
BETWEEN = frozenset(("torch._tensor", "torch._compile", "torch._dynamo.eval_frame", "torch._dynamo.external_utils", "torch.utils._python_dispatch"))
# Instructions that make numbers of what is on the stack, or of the program's text and names.
MAKING = frozenset(("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "PUSH_NULL", "UNARY_NEGATIVE", "PRECALL", "CALL", "CALL_FUNCTION",
                    "CALL_METHOD", "NOP", "CACHE", "EXTENDED_ARG"))
NAMES = {"math": math, "float": builtins.float, "int": builtins.int, "abs": builtins.abs}  # that are what they seem to be


class Literals(object):
    """Looks at the instructions that call operators."""

    def __init__(self):
        self.known = {}  # whether the number at a place is in the text, by the code's id and offset
        self.codes = {}  # instructions, by the ids of codes, which are kept with them

    def written(self, number, frame):
        """Returns whether the number that an operator is given by the program stands in its text: an operand, or the last argument. Frame is one of ours."""
        while frame is not None and between(str(frame.f_globals.get("__name__"))):
            frame = frame.f_back
        if frame is None:
            return False
        key = id(frame.f_code), frame.f_lasti
        if key not in self.known:
            try:
                self.known[key] = self.find(number, frame)
            except ValueError:  # an instruction that dis does not know
                self.known[key] = False
        return self.known[key]

    def find(self, number, frame):
        code = frame.f_code
        if id(code) not in self.codes:
            self.codes[id(code)] = code, list(dis.get_instructions(code))
        before = [i for i in self.codes[id(code)][1] if i.offset <= frame.f_lasti]
        if not before:
            return False
        last = before.pop()
        if before and before[-1].opname == "PRECALL":  # of Python 3.11
            before.pop()
        right = [] if last.is_jump_target else operand(before)
        if text(right, number, frame):
            return binary(last) or last.opname.startswith("CALL")
        left = [] if any(i.is_jump_target for i in right) else operand(before[: len(before) - len(right)])
        return binary(last) and text(left, number, frame)


def between(module):
    return module in BETWEEN or module.split(".")[0] == OURS


def binary(instruction):
    return instruction.opname.startswith(("BINARY_", "INPLACE_"))


def operand(instructions):
    """Returns the last of some instructions, those that make what is on top of the stack, none where that may be made by others."""
    depth = 0
    for count, i in enumerate(reversed(instructions), 1):
        depth += effect(i)
        if depth >= 1:
            return instructions[-count:] if depth == 1 else []
        if i.is_jump_target or i.opcode in dis.hasjrel or i.opcode in dis.hasjabs:
            return []
    return []


def effect(instruction):
    """Returns by how much an instruction makes the stack deeper."""
    return dis.stack_effect(instruction.opcode, instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None)


def text(instructions, number, frame):
    """Returns whether what instructions make is a number, and depends on nothing but the program's text."""
    if len(instructions) == 1:
        return instructions[0].opname in MAKING and instructions[0].argval == number
    return len(instructions) > 0 and all((i.opname in MAKING or binary(i)) and (i.opname != "LOAD_GLOBAL" or known(i.argval, frame)) for i in instructions)


def known(name, frame):
    """Returns whether a name is that of something that never changes."""
    missing = object()
    value = frame.f_globals.get(name, getattr(builtins, name, missing))
    return NAMES.get(name, None) is value
