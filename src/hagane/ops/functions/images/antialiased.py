"""Images of other sizes whose pixels are sums over all pixels of the source that they cover.

Keys, *Cubic Convolution Interpolation for Digital Image Processing*, 1981, eq. 15, for the cubic
filter. A filter is widened where an image is made smaller, as in Pillow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    sub,
    sum_over,
    swapped,
    unsqueeze,
    where,
)
from hagane.symbolic import Dim

_SHARPNESS = -0.5  # of the cubic filter: Keys's a


def antialiased(
    x: Any, sizes: Sequence[Dim], scales: Sequence[float] | None, cubic: bool, corners: bool
) -> Any:
    """Return images of other sizes.

    Args:
        x: Floats (batch, channels, height, width).
        sizes: Height and width of the results.
        scales: Factors, where they say how places of pixels follow; else the sizes do.
        cubic: Whether the filter is cubic; else linear.
        corners: Whether the middles of corner pixels stay in place.
    """
    dtype = dtype_of(x)
    wide = dtype if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
    height, width = shape_of(x)[-2:]
    given = scales or (None, None)
    rows = _weights(height, sizes[0], given[0], wide, cubic=cubic, corners=corners)
    columns = _weights(width, sizes[1], given[1], wide, cubic=cubic, corners=corners)
    across = op("MatMul", cast(x, wide), swapped(columns))
    return cast(op("MatMul", rows, across), dtype)


def _weights(
    source: Dim, size: Dim, scale: float | None, dtype: ir.DataType, *, cubic: bool, corners: bool
) -> Any:
    """Return the shares of the pixels along an axis of an image in those of another: (to, from)."""

    def number(value: Any) -> Any:
        return np.array(value, dtype.numpy())

    def count(dim: Dim, least: int) -> Any:
        if isinstance(dim, int):
            return number(max(dim, least))
        return op("Max", op("Cast", dim, to=dtype), number(least))

    if corners:
        steps = count(size - 1, 0)
        step = div(count(source - 1, 0), op("Max", steps, number(1)))
        step = mul(step, op("Min", steps, number(1)))  # one pixel lies on the first corner
    elif scale is None:
        step = div(count(source, 0), count(size, 1))
    else:  # an axis whose size stays is copied
        stays = op("Equal", count(source, 0), count(size, 0))
        step = where(stays, number(1), number(1 / scale))
    widened = op("Max", step, number(1))
    half = number(0.5)
    to = op("Cast", op("Range", 0, size, 1), to=dtype)
    from_ = op("Cast", op("Range", 0, source, 1), to=dtype)
    middles = mul(add(to, half), step)
    distances = op("Abs", sub(unsqueeze(add(from_, half), [0]), unsqueeze(middles, [1])))
    filtered = (_cubic if cubic else _linear)(div(distances, widened), number)
    return div(filtered, sum_over(filtered, [1]))


def _linear(x: Any, number: Any) -> Any:
    return op("Max", sub(number(1), x), number(0))


def _cubic(x: Any, number: Any) -> Any:
    a = _SHARPNESS
    near = add(mul(mul(sub(mul(x, number(a + 2)), number(a + 3)), x), x), number(1))
    far = mul(sub(mul(add(mul(sub(x, number(5)), x), number(8)), x), number(4)), number(a))
    beyond = where(op("Less", x, number(2)), far, number(0))
    return where(op("Less", x, number(1)), near, beyond)


__all__ = ["antialiased"]
