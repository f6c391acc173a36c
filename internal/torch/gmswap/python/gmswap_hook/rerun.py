"""Operators whose results can be made again: the same bytes each time, with nothing else written."""

import struct
import sys

# They write only their results, and are worth rerunning, or lie on the way to what is.
PURE = frozenset((
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "rsub", "div", "neg", "rsqrt", "pow", "exp", "square", "_to_copy", "clone", "cat",
    "mean", "leaky_relu", "hardswish", "native_layer_norm", "native_group_norm", "_fused_rms_norm", "mm", "addmm", "bmm", "_softmax", "_safe_softmax",
    "sqrt", "reciprocal", "abs", "clamp", "clamp_min", "hardsigmoid", "hardtanh", "elu", "mish", "glu", "softplus", "where", "masked_fill", "roll",
    "stack", "linalg_vector_norm", "sum", "amax", "constant_pad_nd", "max_pool2d_with_indices", "upsample_nearest2d", "convolution", "baddbmm",
    "_adaptive_avg_pool2d", "embedding", "_log_softmax", "log_sigmoid_forward", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool3d",
    "max_pool3d_with_indices", "im2col", "col2im", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler", "upsample_bilinear2d", "upsample_bicubic2d",
    "upsample_nearest1d", "upsample_linear1d", "upsample_nearest3d", "upsample_trilinear3d", "reflection_pad1d", "reflection_pad2d", "replication_pad2d",
    "repeat", "index", "index_select", "gather", "_unsafe_index", "flip", "tril", "triu", "_weight_norm_interface", "_prelu_kernel", "softshrink", "threshold",
    "addcmul", "lerp", "maximum", "minimum", "amin", "var", "var_mean", "log", "log1p", "log2", "exp2", "expm1", "sin", "cos", "erf", "sign", "floor",
    "ceil", "round", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or",
    "logical_not", "scalar_tensor", "zeros_like", "ones_like", "full_like",
))
# Attention, whose first result is saved. Where it drops nothing at random it makes that again; what else it returns has gaps that nobody writes to.
ATTENTION = frozenset((
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward",
    "_efficient_attention_forward", "_cudnn_attention_forward", "_flash_attn_forward",
))
# These write to their first argument alone. On a copy of what was there before they do the same again.
IN_PLACE = frozenset(name + "_" for name in (
    "silu", "gelu", "relu", "sigmoid", "tanh", "mul", "add", "sub", "div", "leaky_relu", "hardswish", "hardsigmoid", "hardtanh", "elu", "mish",
    "clamp", "clamp_min", "masked_fill",
))
# These also keep running statistics, by arguments that may be None: the numbers of those, and of the one that says whether they do.
NORMS = {"native_batch_norm": ((3, 4), 5), "cudnn_batch_norm": ((3, 4), 5)}


DROPOUT = "native_dropout"  # draws at random what it keeps, which is its second result: with that its first one is made again


class Rerun(object):
    """What makes the results of an operator again."""

    __slots__ = ("name", "function", "in_place", "kept", "results")

    def __init__(self, name, function, in_place=False, kept=((), None), results=sys.maxsize):
        self.name, self.function, self.in_place, self.kept = name, function, in_place, kept
        self.results = results  # so many are made again, the first ones

    @property
    def draws(self):
        """Is whether its arguments are known once the operator has drawn what it keeps."""
        return self.name == DROPOUT

    def suits(self, function, args):
        """Returns whether it does so with these arguments."""
        if self.name in ATTENTION:
            return not dropped(function, args)
        if self.draws:
            return len(args) == 3 and args[2] is True and 0 < args[1] < 1
        flag = self.kept[1]
        return flag is None or len(args) > flag and args[flag] is True

    def drawn(self, args, result):
        """Returns the arguments to give to the function, by those of an operator that has drawn what it keeps, and its results."""
        kept = 1.0 - args[1]
        if args[0].is_cuda and args[0].element_size() < 8:
            kept = struct.unpack("f", struct.pack("f", kept))[0]  # as its kernel has it
        return args[0], result[1], 1.0 / kept

    def arguments(self, args):
        """Returns the arguments to give to the function."""
        return tuple(None if i in self.kept[0] else x for i, x in enumerate(args)) if self.kept[0] else args


def rerun(function, mutable):
    """Returns what makes the results of an operator again, None where nothing does."""
    packet = getattr(function, "overloadpacket", None)
    name = getattr(packet, "__name__", "")
    if name in IN_PLACE and getattr(function, "namespace", "") == "aten":
        return Rerun(name, lambda x, *args, **kwargs: function(x.clone(), *args, **kwargs), in_place=True)
    if mutable:
        return None
    if name in NORMS:
        return Rerun(name, function, kept=NORMS[name])
    if name in ATTENTION and getattr(function, "namespace", "") == "aten":
        return Rerun(name, function, results=1)
    if name == DROPOUT:
        return Rerun(name, sys.modules["torch"].ops.aten.native_dropout_backward.default, results=1)
    return Rerun(name, function) if name in PURE else None


def dropped(function, args):
    """Returns the probability with which attention drops what it is given, which no schema has among the arguments with names alone."""
    for at, argument in enumerate(function._schema.arguments):
        if argument.name == "dropout_p":
            return args[at] if at < len(args) else argument.default_value
    return 1.0


def narrowed(tensor, result):
    """Returns whether a tensor comes out of its copy of another type again, to the bit: each number of it is one of that type."""
    floats = tensor.is_floating_point() and result.is_floating_point() and tensor.element_size() > 1
    return floats and result.element_size() > tensor.element_size() and (tensor.size(), tensor.stride()) == (result.size(), result.stride())
