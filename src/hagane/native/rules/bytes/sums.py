"""Sums of two images of bytes, as residual networks have them: dequantised, added, quantised."""

from __future__ import annotations

import numpy as np

from hagane.native.kernels.expression import FLOAT32, Apply, Constant, Expression, Leaf, float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.layouts.quads import QUAD, Quads, store_pixels
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import has_quads
from hagane.native.rules.formulas import BUILDERS

# A dequantised value, of the value, its scale and its zero point.
DEQUANTIZE = "(({0} - {2}) * {1})"
# Bytes of a vector, and of one of 32-bit numbers once it is packed to bytes.
_ROW, _PIECE = 64, 16
# One task handles about so many bytes.
_TASK_BYTES = 32_768


def sums_bytes(
    low: Lowering, label: str, expression: Expression, scale: float, zero: int, target: Quads
) -> bool:
    """Write the kernel of a sum of two images in quads, if an expression is one that it can do.

    Args:
        low: Takes the kernel.
        label: Names it.
        expression: The sum, before it is quantised.
        scale: The scale of the result.
        zero: What is added to rounded numbers, as they are kept.
        target: The result; around its zero point, if that is not added but part of the sum.
    """
    if not isinstance(expression, Apply) or not has_quads(low):
        return False
    point = summand(expression) if zero != target.zero else None
    if point is not None:
        expression = expression.arguments[0]
        if not isinstance(expression, Apply) or zero + point != target.zero:
            return False
    rectified = expression.template == _template("Relu", 1)
    if rectified:
        (expression,) = expression.arguments
    if not isinstance(expression, Apply) or expression.template != _template("Add", 2):
        return False
    sides = [dequantized_quads(low, side) for side in expression.arguments]
    if any(side is None or side[0].shape != target.shape for side in sides):
        return False
    (a, a_scale, a_zero), (b, b_scale, b_zero) = (side for side in sides if side is not None)
    if not 255 * (abs(a_scale) + abs(b_scale)) < 2.0**30 * scale:
        return False
    body = Body()
    d = body.pointer(target.word_view(), written=True, ctype="uint8_t")
    p = [body.pointer(side.word_view(), ctype="uint8_t") for side in (a, b)]
    rows, columns, lanes = target.rows, target.columns, target.lanes
    if not isinstance(rows, int) or not isinstance(columns, int):
        return False
    # Of an image of few channels, the rest of its one block is left out.
    used = -(-target.channels // _PIECE) * _PIECE if target.blocks == 1 else lanes
    used = lanes if _ROW % used else used
    pixels = _ROW // used
    of_task = max(1, min(rows, _TASK_BYTES // (columns * used)))
    chunks = -(-rows // of_task)
    planes = target.shape[0] * target.blocks
    places = [
        f"plane * {QUAD * image.plane_stride} + y * {QUAD * image.row_stride}"
        for image in (target, a, b)
    ]
    inverse = float_text(float(1 / np.float32(scale)))
    body.add(
        f"int64_t chunk = q % {chunks}, plane = q / {chunks};",
        f"const __m512i zero = _mm512_set1_epi16({zero});",
        f"const vf by = v_set1({float_text(scale)}), inverse = v_set1({inverse});",
        f"for (int64_t y = chunk * {of_task}; y < hg_min({rows}, (chunk + 1) * {of_task}); y++) {{",
        f"uint8_t *o = {d} + {places[0]};",
        f"const uint8_t *a = {p[0]} + {places[1]}, *b = {p[1]} + {places[2]};",
    )
    sums = _sums((a_scale, a_zero), (b_scale, b_zero), point, used, lanes)
    if rectified:
        sums.append(f"y = _mm512_max_epu8(y, _mm512_set1_epi8((char){target.zero}));")
    whole, rest = divmod(columns, pixels)
    step = pixels * lanes
    body.add(
        f"for (int64_t i = 0; i < {whole}; i++, a += {step}, b += {step}, o += {step}) {{",
        *sums,
        *store_pixels("o", pixels, used, lanes),
        "}",
    )
    if rest:
        body.add("{", *sums, *store_pixels("o", rest, used, lanes), "}")
    body.add("}")
    elements = planes * rows * columns * used
    low.recorder.emit(
        label, body, planes * chunks, work=work_of(elements, 0.15), flops=work_of(elements, 1.0)
    )
    return True


def _template(operator: str, arguments: int) -> str:
    made = BUILDERS[operator]({}, (Constant(0.0, FLOAT32),) * arguments, FLOAT32)
    assert isinstance(made, Apply)
    return made.template


def dequantized_quads(low: Lowering, side: Expression) -> tuple[Quads, float, float] | None:
    """Return the image in quads that is dequantised, its scale and its zero point as it is kept."""
    if not isinstance(side, Apply) or side.template != DEQUANTIZE:
        return None
    kept, scale, zero = side.arguments
    if not isinstance(kept, Leaf):
        return None
    image = next((q for q in low.forms.quads.values() if q.buffer is kept.tensor.buffer), None)
    if image is None or not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    return image, float(scale.value), float(zero.value)


def summand(expression: Expression) -> float | None:
    """Return the constant that an expression adds last to another."""
    if not isinstance(expression, Apply) or expression.template != _template("Add", 2):
        return None
    last = expression.arguments[1]
    return float(last.value) if isinstance(last, Constant) else None


def _sums(
    a: tuple[float, float], b: tuple[float, float], point: float | None, used: int, lanes: int
) -> list[str]:
    """Return the code of ``y``, 64 bytes of results; sides are scales and zero points.

    ``point`` is added before they are rounded.
    """
    added = "" if point is None else f" t{{0}} += v_set1({float_text(point)});"
    lines: list[str] = []
    for i in range(_ROW // _PIECE):
        pixel, piece = divmod(i * _PIECE, used)
        at = pixel * lanes + piece
        first, second = (
            f"v_alone((v_load_u8({name} + {at}) - v_set1({float_text(zero)})) * v_set1({float_text(scale)}))"
            for name, (scale, zero) in (("a", a), ("b", b))
        )
        lines += [
            f"vf t{i} = {first}; t{i} += {second};{added.format(i)}",
            f"vf q{i} = t{i} * inverse; q{i} = v_fma(v_fma(-q{i}, by, t{i}), inverse, q{i});",
        ]
    whole = ", ".join(f"_mm512_cvtps_epi32((__m512)q{i})" for i in range(4))
    return [*lines, f"__m512i y = hg_bytes_in_rows({whole}, zero);"]
