"""Sums of bytes that become floats, to which an image is added, and bytes again at once.

Residual networks of bytes are made of these: a convolution, the image of the branch beside it, a
rectification, and the rounding of the sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.tensor import Blocked
from hagane.native.layouts.quads import Quads
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.forms import Lazy
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import MOST, parameters
from hagane.native.rules.bytes.scaled import Scaled
from hagane.native.rules.bytes.sums import dequantized_quads
from hagane.native.tiles.tile import IN_ROWS, Parameters
from hagane.ops.definition import Array

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
# Larger factors, or the inverse of such, might be too large for floats.
_MOST = 2.0**60


@dataclass(frozen=True, slots=True)
class Rounded:
    """A sum of floats that is rounded to bytes.

    Attributes:
        epilogue: All that is computed with the sums, the rounding included.
        scale: That of the bytes.
        zero: Their zero point.
        residual: The image that is added, of bytes or of floats.
        factor: From a number of that image to its value.
        offset: Its zero point, as it is kept.
    """

    epilogue: Epilogue
    scale: float
    zero: int
    residual: Blocked | Quads
    factor: float
    offset: float


def rounded(low: Lowering, epilogue: Epilogue, scales: Array) -> Rounded | None:
    """Return how a sum with a residual is rounded, if it is; that node counts as lowered.

    The residual is an image of bytes, or the result of another convolution of bytes: of what else
    there is, some may be no number, and a processor rounds that in its own way.

    Args:
        low: The state.
        epilogue: The sum.
        scales: From whole numbers to floats, one a channel.
    """
    node, value = low.only_use(epilogue.value), epilogue.residual
    if node is None or node.op_type != "QuantizeLinear" or value is None:
        return None
    scale = low.facts.constant(node.inputs[1])
    zero_value = node.inputs[2] if len(node.inputs) > 2 else None
    zero = low.facts.constant(zero_value)
    out = node.outputs[0]
    if low.facts.dtype(out) not in _BYTES or low.facts.attributes(node).get("precision"):
        return None
    if scale is None or scale.size != 1 or scale.dtype != np.float32:
        return None
    if zero is None and zero_value is not None:
        return None
    if zero is not None and zero.size != 1:
        return None
    by = float(scale.reshape(-1)[0])
    found = low.forms.found(value)
    kept = dequantized_quads(low, found.expression) if isinstance(found, Lazy) else None
    shape = low.facts.shape(out)
    residual: Blocked | Quads
    if kept is not None and kept[0].shape == shape:
        residual, factor, offset = kept
    elif isinstance(found, Blocked) and found.shape == shape and _is_sum_of_bytes(low, value):
        residual, factor, offset = found, 1.0, 0.0
    else:
        return None
    if not np.all(np.abs([1.0, factor, *scales]) < _MOST * by) or not by < _MOST:
        return None
    low.done.add(node)
    point = 0 if zero is None else int(zero.reshape(-1)[0])
    both = Epilogue(out, value, nodes=(*epilogue.nodes, node))
    return Rounded(both, by, point, residual, factor, offset)


def _is_sum_of_bytes(low: Lowering, value: ir.Value) -> bool:
    """Whether a value is a sum of whole numbers times constants, plus constants."""
    node = value.producer()
    for operator in ("Add", "Mul"):
        if node is not None and node.op_type == operator:
            known = [low.facts.constant(other) for other in node.inputs]
            others = [
                other
                for other, array in zip(node.inputs, known, strict=True)
                if array is None or not np.isfinite(array).all()
            ]
            node = others[0].producer() if len(others) == 1 and others[0] is not None else None
    return (
        node is not None and node.op_type == "Cast" and low.facts.dtype(node.inputs[0]).kind == "i"
    )


def rounded_numbers(
    low: Lowering,
    key: object,
    length: int,
    sums: tuple[Array, Array],
    found: Scaled,
    how: Rounded,
    bounds: tuple[float | None, float | None],
    target: Quads,
) -> Parameters:
    """Return the numbers that a tile reads whose sums are rounded to bytes after an addition.

    Args:
        low: The state.
        key: Names them.
        length: Numbers of a row.
        sums: The starts of sums, one a channel, and the largest that there are without these.
        found: From sums to floats.
        how: The addition and the rounding.
        bounds: Those of the rectification or clip between them.
        target: The result.
    """
    start, largest = sums
    by = np.float64(how.scale)
    info = np.iinfo(target.dtype)
    least, most = (None if b is None else int(np.rint(b / by)) for b in bounds)
    lowest = info.min if least is None else int(np.clip(least + how.zero, info.min, info.max))
    scale = found.factor / by
    shift = (found.shift - how.factor * how.offset) / by
    added = np.full(len(scale), how.factor / by)
    far = (largest + np.abs(start)) * np.abs(scale) + np.abs(shift) + 255 * np.abs(added)
    free = isinstance(how.residual, Quads) and float(far.max(initial=0)) < 2.0**30
    numbers = parameters(
        low,
        key,
        length,
        start.astype(np.int32),
        scale.astype(np.float32),
        np.full(2 * length, target.zero, np.int16),
        np.full(4 * length, lowest + target.shift, np.uint8),
        np.full(length, MOST if most is None else most, np.float32),
        np.resize(np.array(IN_ROWS, np.int32), length),
        shift.astype(np.float32),
        added.astype(np.float32),
    )
    return Parameters(numbers.buffer, numbers.distance, limited=most is not None or not free)
