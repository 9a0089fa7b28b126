"""Rules from operators to kernels, one module or package a family."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.lowering.state import Rule
from hagane.native.rules import (
    attention,
    elementwise,
    movement,
    recurrent,
    resize,
    rotary,
    rows,
)
from hagane.native.rules.bytes import convolution as byte_convolution
from hagane.native.rules.bytes import products as byte_products
from hagane.native.rules.bytes import quantization
from hagane.native.rules.control import operators as control
from hagane.native.rules.convolution import choose as convolution
from hagane.native.rules.convolution import pooling, transposed
from hagane.native.rules.products import matrix

_FAMILIES = (
    attention,
    byte_convolution,
    byte_products,
    elementwise,
    control,
    convolution,
    matrix,
    movement,
    pooling,
    quantization,
    recurrent,
    resize,
    rotary,
    rows,
    transposed,
)

# By domain and name. What other domains have, passes write in operators of ONNX.
RULES: dict[tuple[str, str], Rule] = {
    ("", name): rule for family in _FAMILIES for name, rule in family.RULES.items()
}


def rule_of(node: ir.Node) -> Rule | None:
    """Return the rule that makes kernels of a node, if its operator has one."""
    return RULES.get((node.domain, node.op_type))
