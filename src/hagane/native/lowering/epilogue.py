"""What follows a convolution or a matrix product and is computed on its registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.native.tiles.tile import NO_ACTIVATION, Activation, float_text

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering


@dataclass(frozen=True, slots=True)
class Ending:
    """What follows a convolution or matrix product at once, computed on its registers.

    Attributes:
        value: The value that is stored in the end.
        residual: A value added before the activation.
        activation: The bounds of the result.
        operators: The operators that are computed with it.
    """

    value: ir.Value
    residual: ir.Value | None = None
    activation: Activation = NO_ACTIVATION
    operators: tuple[str, ...] = ()


def follow(low: Lowering, value: ir.Value, *, residuals: bool = True) -> Ending:
    """Return the addition and the activation that may be computed with ``value``."""
    ending = Ending(value)
    while (node := low.only_use(ending.value)) is not None:
        if node.op_type == "Add" and residuals and ending.residual is None:
            (other,) = [v for v in node.inputs if v is not ending.value] or [None]
            if other is None or ending.activation != NO_ACTIVATION:
                break
            if low.shape(other) != low.shape(ending.value) or not _is_ready(low, other):
                break
            ending = Ending(node.outputs[0], other, operators=(*ending.operators, "Add"))
        elif (found := _bounds(low, node)) is not None and ending.activation == NO_ACTIVATION:
            names = (*ending.operators, node.op_type)
            ending = Ending(node.outputs[0], ending.residual, found, names)
        else:
            break
        low.done.add(node)
    return ending


def _is_ready(low: Lowering, value: ir.Value) -> bool:
    return (
        low.is_placed(value) or low.constant(value) is not None or value.producer() not in low.nodes
    )


def _bounds(low: Lowering, node: ir.Node) -> Activation | None:
    if node.op_type == "Relu":
        return Activation(0.0)
    if node.op_type != "Clip":
        return None
    bounds: list[float | None] = [None, None]
    for i, value in enumerate(node.inputs[1:3]):
        if value is not None:
            array = low.constant(value)
            if array is None:
                return None
            bounds[i] = float(array.reshape(-1)[0])
    return Activation(bounds[0], bounds[1])


def bounded(value: str, activation: Activation) -> str:
    """Return C text of a vector within an activation's bounds."""
    if activation.low is not None:
        value = f"v_max2(v_set1({float_text(activation.low)}), {value})"
    if activation.high is not None:
        value = f"v_min2(v_set1({float_text(activation.high)}), {value})"
    return value
