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
LOADING = frozenset(("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"))  # what is in a local variable
CALLS = frozenset(("PRECALL", "CALL", "CALL_FUNCTION", "CALL_METHOD"))
NAMES = {"math": math, "float": builtins.float, "int": builtins.int, "abs": builtins.abs}  # that are what they seem to be
ALIASES = {"multiply": "mul", "divide": "div", "true_divide": "div", "subtract": "sub"}  # of operators


class Literals(object):
    """Looks at the instructions that call operators."""

    def __init__(self):
        self.known = {}  # by the id of a code and an offset: the number that is in the text there, None for none
        self.codes = {}  # instructions, by the ids of codes, which are kept with them

    def written(self, packet, number, frame):
        """Returns whether the number that an operator is given by the program stands in its text: an operand, or the last argument. Frame is one of ours."""
        while frame is not None and inner(str(frame.f_globals.get("__name__"))):
            frame = frame.f_back
        if frame is None or "__name__" not in frame.f_globals or frame.f_code.co_filename.startswith("<"):
            return False  # text that is made while the program runs may be another one each time
        key = id(frame.f_code), frame.f_lasti
        if key not in self.known:
            try:
                self.known[key] = number if self.find(packet, number, frame) else None
            except Exception:  # of instructions that dis does not know
                self.known[key] = None
        if self.known[key] != number:
            self.known[key] = None
        return self.known[key] is not None

    def find(self, packet, number, frame):
        return any(text(operand_, number, frame) for operand_ in self.operands(packet, frame))

    def attributes(self, packet, frame):
        """Returns the names of what is loaded of the only local variable from which a number is made that an operator called in a frame is given, beside the program's text."""
        names = set()
        for one in self.operands(packet, frame):
            variables = [i for i in one if i.opname in LOADING]
            rest = [i for i in one if i.opname not in LOADING]
            if len(variables) == 1 and all(i.opname in MAKING or binary(i) for i in rest) and all(known(i.argval, frame) for i in rest if i.opname == "LOAD_GLOBAL"):
                names.update(i.argval for i in rest if i.opname == "LOAD_ATTR")
        return names

    def variables(self, packet, frame):
        """Returns the names of the local variables that are such a number, None where it is not known what makes that."""
        all_ = self.operands(packet, frame)
        return [one[0].argval for one in all_ if len(one) == 1 and one[0].opname in LOADING] if all_ and all(all_) else None

    def operands(self, packet, frame):
        """Returns the instructions that make each number that an operator called in a frame may be given, none where they are not known: both operands, or the last argument, and none
        for the others."""
        code = frame.f_code
        if id(code) not in self.codes:
            self.codes[id(code)] = code, [one for i in dis.get_instructions(code) for one in apart(i)]
        before = [i for i in self.codes[id(code)][1] if i.offset <= frame.f_lasti]
        last = before.pop()
        if last.is_jump_target:
            return []  # something else may have made the number
        if before and before[-1].opname == "PRECALL":  # of Python 3.11, where it is what is jumped to
            last = before.pop()
            if last.is_jump_target:
                return []
        if last.opname in CALLS:
            return [operand(before)] + [[]] * (last.arg > 1) if called(before, last.arg) in (packet, packet.rstrip("_")) else []
        if not binary(last):
            return []
        right = operand(before)
        left = [] if not right or any(i.is_jump_target for i in right) else operand(before[: len(before) - len(right)])
        return [right, left]


def called(before, count):
    """Returns the name of what is called with so many arguments, which instructions have put onto the stack, "" where that is not known."""
    for _ in range(count):
        argument = operand(before)
        if not argument or any(i.is_jump_target for i in argument):
            return ""
        before = before[: len(before) - len(argument)]
    while before and before[-1].opname == "PUSH_NULL":
        before = before[:-1]
    name = before[-1].argval if before and before[-1].opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL") else ""
    return ALIASES.get(name, name)


def inner(module):
    """Returns whether a module lies between an operator and the program."""
    return module in BETWEEN or module.split(".")[0] == OURS


def binary(instruction):
    return instruction.opname.startswith(("BINARY_", "INPLACE_"))


def apart(instruction):
    """Returns the instructions that one stands for which loads two local variables."""
    names = instruction.argval
    if not (instruction.opname.startswith("LOAD_FAST_") and isinstance(names, tuple) and len(names) == 2):
        return [instruction]
    first = instruction._replace(opname="LOAD_FAST", opcode=dis.opmap["LOAD_FAST"], arg=0, argval=names[0])
    return [first, first._replace(argval=names[1])]


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
        value = instructions[0].argval
        return instructions[0].opname in MAKING and type(value) in (int, float, complex) and value == number
    return len(instructions) > 0 and all((i.opname in MAKING or binary(i)) and (i.opname != "LOAD_GLOBAL" or known(i.argval, frame)) for i in instructions)


def known(name, frame):
    """Returns whether a name is that of something that never changes."""
    missing = object()
    value = frame.f_globals.get(name, getattr(builtins, name, missing))
    return NAMES.get(name, None) is value
