"""Numbers that no operator makes sense of: ranges of attributes, sizes of results.

They are looked at before a type rule or a backend counts with them, so that the cost of loading
depends on the size of a model and not on the numbers in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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


# Expressions beyond these are not followed: their values are computed when the model runs.
_MOST_TERMS = 64
_MOST_POWER = 16
# The product of the numbers in the sizes of one tensor; bytes take up to sixteen times as many.
_MOST_FACTOR = 2**56
# Sizes with numbers beyond it give way when the product is too large.
_WIDE = 2**10


def unwieldy(dim: object) -> bool:
    """Say whether an expression is too large to reckon with, as after sixty squarings."""
    if not isinstance(dim, Expr):
        return False
    return len(dim.terms) > _MOST_TERMS or any(
        sum(power for _, power in monomial) > _MOST_POWER for monomial in dim.terms
    )


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
        if least is None or value is None:
            continue
        numbers: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        for number in numbers:
            if isinstance(number, int) and not least <= number <= MOST:
                shown = list(numbers) if isinstance(value, list | tuple) else number
                ctx.fail(f"expected {name} from {least} to {MOST}, got {shown}")


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
