"""Epilogues: sums and activations computed on the registers of a product before it is stored."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from hagane.native.lowering.state import Lowering
from hagane.native.tiles.tile import NO_ACTIVATION, Activation


@dataclass(frozen=True, slots=True)
class Epilogue:
    """Nodes behind a convolution or matrix product, computed on its registers.

    Attributes:
        value: The value that is stored in the end.
        residual: A value added before the activation.
        activation: The bounds of the result.
        nodes: The nodes that are computed with it.
    """

    value: ir.Value
    residual: ir.Value | None = None
    activation: Activation = NO_ACTIVATION
    nodes: tuple[ir.Node, ...] = ()


def follow(low: Lowering, value: ir.Value, *, residuals: bool = True) -> Epilogue:
    """Return the addition and the activation that may be computed with ``value``."""
    epilogue = Epilogue(value)
    while (node := low.only_use(epilogue.value)) is not None:
        if node.op_type == "Add" and residuals and epilogue.residual is None:
            (other,) = [v for v in node.inputs if v is not epilogue.value] or [None]
            if other is None or epilogue.activation != NO_ACTIVATION:
                break
            if low.facts.shape(other) != low.facts.shape(epilogue.value) or not is_ready(
                low, other
            ):
                break
            epilogue = Epilogue(node.outputs[0], other, nodes=(*epilogue.nodes, node))
        elif (found := _bounds(low, node)) is not None and epilogue.activation == NO_ACTIVATION:
            nodes = (*epilogue.nodes, node)
            epilogue = Epilogue(node.outputs[0], epilogue.residual, found, nodes)
        else:
            break
        low.done.add(node)
    return epilogue


def is_ready(low: Lowering, value: ir.Value) -> bool:
    """Whether a value is there before the node that is lowered, or a constant."""
    return (
        low.forms.is_placed(value)
        or low.facts.constant(value) is not None
        or value.producer() not in low.facts.nodes
    )


def _bounds(low: Lowering, node: ir.Node) -> Activation | None:
    if node.op_type == "Relu":
        return Activation(0.0)
    if node.op_type != "Clip":
        return None
    bounds: list[float | None] = [None, None]
    for i, value in enumerate(node.inputs[1:3]):
        if value is not None:
            array = low.facts.constant(value)
            if array is None:
                return None
            bounds[i] = float(array.reshape(-1)[0])
    return Activation(bounds[0], bounds[1])
