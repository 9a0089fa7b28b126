"""Rules from operators to kernels, one module a family."""

from __future__ import annotations

from hagane.native.lowering import Rule
from hagane.native.rules import (
    attention,
    byte_convolution,
    byte_products,
    control,
    convolution,
    elementwise,
    matrix,
    movement,
    pooling,
    quantization,
    recurrent,
    rotary,
    rows,
    transposed,
)

RULES: dict[str, Rule] = {
    **attention.RULES,
    **byte_convolution.RULES,
    **byte_products.RULES,
    **elementwise.RULES,
    **control.RULES,
    **convolution.RULES,
    **matrix.RULES,
    **movement.RULES,
    **pooling.RULES,
    **quantization.RULES,
    **recurrent.RULES,
    **rotary.RULES,
    **rows.RULES,
    **transposed.RULES,
}
