"""Reading pictures between their pixels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import add, cast, mul, sub, where
from hagane.ops.functions.tensors.shapes import size_as_number

# Positions along one axis and their weights, each (batch, places).
Tap = tuple[Any, Any]


def linear_taps(place: Any) -> list[Tap]:
    """Return the two neighbours of each place."""
    base = op("Floor", place)
    t = sub(place, base)
    return [(base, sub(1, t)), (add(base, 1), t)]


def sample(
    x: Any, taps: Sequence[Sequence[Tap]], moved: Callable[[Any, int], Any] | None = None
) -> Any:
    """Return weighted sums of pixels; those outside of the picture count 0.

    Args:
        x: (batch, channels, *spatial).
        taps: For each spatial axis the positions, whole numbers of a floating-point type, and
            their weights.
        moved: Maps positions along an axis to the positions read in their place.

    Returns:
        (batch, channels, places).
    """
    batch, channels, *sizes = shape_of(x)
    flat = op("Reshape", x, [batch, channels, math.prod(sizes)], allowzero=1)
    total = None
    for combination in product(*taps):
        index: Any = None
        weight: Any = None
        for axis, (position, share) in enumerate(combination):
            size = size_as_number(x, 2 + axis, position)
            at = position if moved is None else moved(position, axis)
            inside = op("And", op("GreaterOrEqual", at, 0), op("Less", at, size))
            part = where(inside, share, 0)
            weight = part if weight is None else mul(weight, part)
            at = op("Min", op("Max", at, 0), sub(size, 1))
            index = at if index is None else add(mul(index, size), at)
        wide = cast(index, ir.DataType.INT64)
        places = shape_of(wide)[1]
        wide = op("Expand", op("Unsqueeze", wide, [1]), [batch, channels, places])
        read = mul(
            op("GatherElements", flat, wide, axis=2),
            cast(op("Unsqueeze", weight, [1]), dtype_of(x)),
        )
        total = read if total is None else add(total, read)
    return total
