"""Rules from operators to kernels, one module or package a family."""

from __future__ import annotations

from hagane.native.lowering.state import Rule
from hagane.native.rules import attention, elementwise, movement, recurrent, rotary, rows
from hagane.native.rules.bytes import convolution as byte_convolution
from hagane.native.rules.bytes import products as byte_products
from hagane.native.rules.bytes import quantization
from hagane.native.rules.control import operators as control
from hagane.native.rules.convolution import choose as convolution
from hagane.native.rules.convolution import pooling, transposed
from hagane.native.rules.products import matrix

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
