"""Margins around tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import cast
from hagane.symbolic import Dim


def padded_around(x: Any, amounts: Sequence[Dim], value: Any, mode: str) -> Any:
    """Return a tensor with margins; negative amounts cut.

    Args:
        x: A tensor.
        amounts: Before all axes, then behind them.
        value: The content of margins of the mode ``constant``: a number, or an array without axes
            of the element type of ``x``.
        mode: ``constant``, ``edge``, ``reflect`` or ``wrap``.
    """
    if all(isinstance(n, int) and n == 0 for n in amounts):
        return x
    dtype = dtype_of(x)
    if dtype == ir.DataType.BOOL:
        return cast(padded_around(cast(x, ir.DataType.UINT8), amounts, value, mode), dtype)
    known = isinstance(value, int | float)
    fill = None if mode != "constant" else number_like(value, x) if known else value
    return op("Pad", x, list(amounts), fill, mode=mode)
