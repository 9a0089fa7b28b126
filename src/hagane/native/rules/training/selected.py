"""Choice of one of two numbers by a comparison, as an expression over images in blocks or others."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.expression import BOOL, FLOAT32
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.forms import Lazy
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.elementwise import keep, nodes_of, operands_of
from hagane.native.rules.formulas import BUILDERS


def lower_select(low: Lowering, node: ir.Node) -> None:
    """Make the result a lazy expression over its operands."""
    out = node.outputs[0]
    if not low.facts.is_float(out):
        raise NotNative(f"element type {low.facts.dtype(out)}")
    blocked, operands = operands_of(low, node.inputs, out)
    a, b, x, y = (found for found in operands if found is not None)
    greater = BUILDERS["Greater"]({}, (a, b), BOOL)
    expression = BUILDERS["Where"]({}, (greater, x, y), FLOAT32)
    low.stretched.add(node)
    keep(low, out, Lazy(expression, FLOAT32, low.facts.shape(out), blocked, nodes_of(low, node)))


RULES: dict[tuple[str, str], list[Rule]] = {("hagane", "SelectGreater"): [lower_select]}
