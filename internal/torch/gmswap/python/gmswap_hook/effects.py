"""What operators do beside reading and making tensors, and of which type they are."""

import re

from .operators import flat, targets

CONV, POOL, ACTIVATION, NORM, LINEAR, ATTENTION, DROPOUT, SOFTMAX, JOIN = range(1, 10)  # as swap.OpType has them

LIBRARY = r"_?(?:cudnn_|mkldnn_|miopen_|slow_|thnn_)?"
TYPES = [(re.compile(pattern), number) for pattern, number in (
    (r"_?scaled_dot_product|_?flash_attn|_?(?:flash|efficient|cudnn)_attention", ATTENTION),
    (LIBRARY + "conv", CONV),
    (r"_?(?:adaptive_|fractional_)?(?:max|avg)_pool", POOL),
    (LIBRARY + r"(?:native_|fused_)?(?:batch|layer|group|instance|rms)_norm", NORM),
    (r"(?:add)?(?:mm|bmm|mv)$|baddbmm$|linear|_scaled_mm", LINEAR),
    (r"native_dropout|bernoulli", DROPOUT),
    (r"_?(?:log_)?softmax", SOFTMAX),
    (r"(?:cat|add_?)$", JOIN),
    (r"(?:relu|gelu|silu|elu|selu|celu|mish|glu|tanh|sigmoid|softplus|leaky_relu|hardswish|hardsigmoid|hardtanh|log_sigmoid|threshold)"
     r"(?:_|$)", ACTIVATION),
)]

# These wait for the device, and tell the program what came out: a number, or the size of the result.
ANSWERS = frozenset(("_local_scalar_dense", "equal", "nonzero", "masked_select", "_unique2", "unique_dim"))
ANSWERING = ("data_dependent_output", "dynamic_output_shape")  # tags that say so
SILENT = frozenset(("prim", "profiler"))  # namespaces


class Call(object):
    """An operator and its arguments."""

    __slots__ = ("torch", "function", "args", "kwargs", "packet")

    def __init__(self, torch, function, args, kwargs):
        self.torch, self.function, self.args, self.kwargs = torch, function, args, kwargs
        self.packet = getattr(getattr(function, "overloadpacket", None), "__name__", "")

    def tagged(self, name):
        tag = getattr(getattr(self.torch, "Tag", None), name, None)
        return tag is not None and tag in getattr(self.function, "tags", ())

    def collective(self):
        return "c10d" in namespace(self.function)

    def random(self):
        """Returns whether it draws random numbers."""
        if not self.tagged("nondeterministic_seeded"):
            return False
        for i, a in enumerate(self.function._schema.arguments):
            if a.name == "dropout_p":
                return (self.args[i] if i < len(self.args) else self.kwargs.get(a.name, a.default_value)) != 0
        return True

    def answers(self):
        return self.packet in ANSWERS or any(map(self.tagged, ANSWERING))

    def written(self, arguments):
        """Returns those of its tensors that it writes to: all of them where it does not declare that."""
        if namespace(self.function) == "c10d":
            return arguments
        return list(targets(self.function, self.args, self.kwargs)) if mutable(self.function) else []


def type_of(packet):
    """Returns the type of an operator, 0 for any other."""
    return next((number for pattern, number in TYPES if pattern.match(packet)), 0)


def namespace(function):
    return getattr(getattr(function, "_schema", None), "name", "").partition("::")[0]


def mutable(function):
    return getattr(getattr(function, "_schema", None), "is_mutable", True)


def silent(function):
    """Returns whether an operator is declared to return views of its arguments alone, or computes nothing."""
    returns = getattr(getattr(function, "_schema", None), "returns", None)
    views = bool(returns) and not mutable(function) and all(r.alias_info is not None for r in returns)
    return views or namespace(function) in SILENT


def tensors(torch, x):
    return [t for t in flat(x) if isinstance(t, torch.Tensor)]
