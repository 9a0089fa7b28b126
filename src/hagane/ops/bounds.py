"""Numbers and words that no operator makes sense of: ranges of attributes, sizes of results.

They are looked at before a type rule or a backend counts with them, so that the cost of loading
depends on the size of a model and not on the numbers in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from hagane.graph.types import TensorType, Type
from hagane.ops.context import InferContext
from hagane.symbolic import Dim, Expr

# Sizes and counts of kernels are 32-bit numbers in every engine.
MOST = 2**31 - 1
# Bytes of one tensor: sixteen tebibytes, more than any machine's memory.
MOST_BYTES = 2**44


def fits(type_: Type | None) -> bool:
    """Return whether the numbers in a declared type are sizes of a tensor that may exist."""
    if not isinstance(type_, TensorType) or type_.shape is None:
        return True
    sizes = [dim for dim in type_.shape if isinstance(dim, int)]
    return math.prod(max(1, size) for size in sizes) <= MOST_BYTES


_WINDOWS = {"AveragePool", "Col2Im", "Conv", "ConvInteger", "ConvTranspose", "DeformConv"}
_WINDOWS |= {"LpPool", "MaxPool", "MaxUnpool", "QLinearAveragePool", "QLinearConv"}
# Attribute -> least value, wherever it is.
_LEAST = {
    "blocksize": 1,
    "dilations": 1,
    "group": 1,
    "hidden_size": 1,
    "kernel_shape": 1,
    "kv_num_heads": 1,
    "num_groups": 1,
    "num_outputs": 1,
    "offset_group": 1,
    "output_padding": 0,
    "pooled_shape": 1,
    "q_num_heads": 1,
    "sampling_ratio": 0,
    "strides": 1,
}


# Attributes that say no or yes (or leave it open): engines differ in what other numbers would be.
_MOST = {
    "do_rotary": 1,
    "interleaved": 1,
    "is_causal": 1,
    "rotary_interleaved": 1,
    "smooth_softmax": 1,
    "unidirectional": 1,
}


# Words: another one would be taken for none of them, or for the default.
_PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_LOSS = ("mean", "sum", "none")
_ORDER = ("DCR", "CRD")
_AFTER = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_KERNEL = ("LINEAR", "POLY", "RBF", "SIGMOID")
_ROUNDING = ("up", "down", "nearest")

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)

# Attributes that have the same words wherever they are.
_ANYWHERE = {"auto_pad": _PADDING, "post_transform": _AFTER}

# Operator -> attribute -> the words that it may be. Some type rules look at others themselves.
_WORDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "Cast": {"round_mode": _ROUNDING},
    "CastLike": {"round_mode": _ROUNDING},
    "CastMap": {
        "cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"),
        "map_form": ("DENSE", "SPARSE"),
    },
    "CausalConvWithState": {"activation": ("none", "silu", "swish")},
    "DepthToSpace": {"mode": _ORDER},
    "GridSample": {
        "mode": ("linear", "bilinear", "nearest", "cubic", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    "ImageDecoder": {"pixel_format": ("RGB", "BGR", "Grayscale")},
    "LinearAttention": {"update_rule": ("linear", "gated", "delta", "gated_delta")},
    "NegativeLogLikelihoodLoss": {"reduction": _LOSS},
    "Normalizer": {"norm": ("MAX", "L1", "L2")},
    "Resize": {
        "coordinate_transformation_mode": _COORDINATES,
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
        "mode": ("nearest", "linear", "cubic"),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    },
    "RoiAlign": {
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
        "mode": ("avg", "max"),
    },
    "SVMClassifier": {"kernel_type": _KERNEL},
    "SVMRegressor": {"kernel_type": _KERNEL},
    "SoftmaxCrossEntropyLoss": {"reduction": _LOSS},
    "SpaceToDepth": {"mode": _ORDER},
    "StringNormalizer": {"case_change_action": ("NONE", "LOWER", "UPPER")},
    "TensorScatter": {"mode": ("linear", "circular")},
    "TfIdfVectorizer": {"mode": ("TF", "IDF", "TFIDF")},
    "TreeEnsembleRegressor": {"aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX")},
}


# Expressions beyond these are not followed: their values are computed when the model runs.
_MOST_TERMS = 64
_MOST_POWER = 16
_MOST_ATOMS = 256
# The product of the numbers in the sizes of one tensor; bytes take up to sixteen times as many.
_MOST_FACTOR = 2**56
# Sizes with numbers beyond it give way when the product is too large.
_WIDE = 2**10


def unwieldy(dim: object) -> bool:
    """Say whether an expression is too large to reckon with, as after sixty squarings.

    Extremes of extremes double with each operator where both sides of a sum follow from one size:
    after thirty, a text of them has gigabytes.
    """
    if not isinstance(dim, Expr):
        return False
    if len(dim.terms) > _MOST_TERMS or dim.weight > _MOST_ATOMS:
        return True
    return any(sum(power for _, power in monomial) > _MOST_POWER for monomial in dim.terms)


def handy(type_: Type | None, fresh: Callable[[str], Expr]) -> Type | None:
    """Return a type whose unwieldy sizes are dimensions that nothing is known about.

    So are sizes like ``1000000000*a`` and ``1000000000*b`` together: formulas of engines multiply
    them, in 64-bit numbers.
    """
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    sizes = tuple(fresh("size") if unwieldy(dim) else dim for dim in type_.shape)
    if math.prod(map(_factor, sizes)) > _MOST_FACTOR:
        sizes = tuple(
            fresh("size") if isinstance(dim, Expr) and _factor(dim) > _WIDE else dim
            for dim in sizes
        )
    return type_ if sizes == type_.shape else TensorType(type_.dtype, sizes)


def _factor(dim: Dim) -> int:
    """Return a size, or the sum of the numbers in an expression, of either sign."""
    if not isinstance(dim, Expr):
        return max(1, dim)
    return math.ceil(sum(n if n > 0 else -n for n in dim.terms.values()))


def check_attributes(ctx: InferContext) -> None:
    """Refuse attributes whose numbers lie outside the operator's range.

    Raises:
        TypeInferenceError: One of them, with its range.
    """
    windowed = ctx.op.name in _WINDOWS
    for name, value in ctx.attributes.items():
        least = 0 if name == "pads" and windowed else _LEAST.get(name)
        most = MOST
        if name in _MOST:
            least, most = -1 if name == "smooth_softmax" else 0, _MOST[name]
        if least is None or value is None:
            continue
        numbers: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        for number in numbers:
            if isinstance(number, int) and not least <= number <= most:
                shown = list(numbers) if isinstance(value, list | tuple) else number
                ctx.fail(f"expected {name} from {least} to {most}, got {shown}")


def check_words(ctx: InferContext) -> None:
    """Refuse attributes that are none of the words that their operator knows.

    Raises:
        TypeInferenceError: One of them, with those words.
    """
    own = _WORDS.get(ctx.op.name, {})
    for name, value in ctx.attributes.items():
        words = own.get(name) or _ANYWHERE.get(name)
        if words is not None and isinstance(value, str) and value not in words:
            ctx.fail(f"expected {name} to be {', '.join(words)}, got '{value}'")


def check_sizes(ctx: InferContext, types: Sequence[Type | None]) -> None:
    """Refuse results with an axis of negative size, or of more bytes than a machine can hold.

    Raises:
        TypeInferenceError: Such a result, with its shape.
    """
    for number, type_ in enumerate(types):
        if not isinstance(type_, TensorType) or type_.shape is None:
            continue
        sizes = [dim for dim in type_.shape if isinstance(dim, int)]
        if any(size < 0 for size in sizes):
            ctx.fail(
                f"output {number} would be {type_}, with an axis of negative size; "
                f"got {ctx.inputs_text()}"
            )
        bits = 8 if type_.dtype.name in ("UNDEFINED", "STRING") else type_.dtype.bitwidth
        count = 1
        for size in sizes:
            count *= max(1, size)
        if count * bits > 8 * MOST_BYTES:
            ctx.fail(
                f"output {number} would be {type_}, which is {count * bits // 8:,} bytes; "
                f"got {ctx.inputs_text()}"
            )
