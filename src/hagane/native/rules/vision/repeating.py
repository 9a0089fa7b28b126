"""Images that grow by whole factors, row by row: each element comes several times, then each row."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.written import as_bits, bits_type, emit_written
from hagane.native.lowering.state import Lowering
from hagane.symbolic import product

# FACTOR is a number, so that compilers take vectors of the repeated elements.
_ROWS = """
for (int64_t row = first; row < last; row++) {
const T *restrict from = x + row * width;
T *restrict to = y + row * width * FACTOR * TIMES;
for (int64_t i = 0; i < width; i++) { REPEATED }
for (int64_t k = 1; k < TIMES; k++)
memcpy(to + k * width * FACTOR, to, (size_t)(width * FACTOR) * sizeof(T)); }"""
# Copies of an element that are written one by one.
_MOST_COPIES = 8


def repeat_rows(low: Lowering, node: ir.Node, factors: Sequence[int]) -> bool:
    """Enlarge an image along its last two axes; whether it has a form for these factors."""
    *others, times, factor = factors
    if any(other != 1 for other in others) or factor > _MOST_COPIES:
        return False
    x, y = low.forms.contiguous(node.inputs[0]), low.forms.result(node.outputs[0])
    width = x.shape[-1]
    if factor == 1:
        copies = "to[i] = from[i];"
    else:
        copies = " ".join(f"to[{factor} * i + {k}] = from[i];" for k in range(factor))
    text = _ROWS.replace("REPEATED", copies)
    emit_written(
        low.recorder, node, text.replace("FACTOR", str(factor)).replace("TIMES", str(times)),
        reads={"x": as_bits(x)}, writes={"y": as_bits(y)}, sizes={"width": width},
        types={"T": bits_type(x.dtype)}, items=product(x.shape[:-1]),
        each=width * factor * times, cost=0.3,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y
    return True
