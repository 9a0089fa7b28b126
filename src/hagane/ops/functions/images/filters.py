"""Convolutions of vectors, which keep their element type."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import cast, unsqueeze
from hagane.ops.functions.tensors.padding import padded_around
from hagane.ops.functions.tensors.parts import flip


def convolved(x: Any, kernel: Any, mode: str, *, turned: bool) -> Any:
    """Return the sums of products of a vector with the places of a kernel.

    Args:
        x: (n,), numbers.
        kernel: (m,), of the same element type; m is n at most, but for ``full``.
        mode: ``full`` (all places that overlap), ``same`` (n of them) or ``valid`` (overlap whole).
        turned: Whether the kernel is turned round, as a convolution has it.
    """
    dtype = dtype_of(x)
    wide = dtype if dtype.is_floating_point() else ir.DataType.DOUBLE
    x, kernel = cast(x, wide), cast(flip(kernel, [0]) if turned else kernel, wide)
    size = shape_of(kernel)[0]
    before = {"full": size - 1, "same": size // 2, "valid": 0}[mode]
    after = {"full": size - 1, "same": size - 1 - size // 2, "valid": 0}[mode]
    x = padded_around(x, [before, after], 0, "constant")
    found = op("Conv", unsqueeze(x, [0, 1]), unsqueeze(kernel, [0, 1]))
    found = op("Squeeze", found, [0, 1])
    return found if wide == dtype else cast(op("Round", found), dtype)
