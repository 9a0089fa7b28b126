"""Products and convolutions of a training step in numbers of 16 bits."""

from __future__ import annotations

import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.ops.builder import interpreting, op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    given,
    has_dtype,
    name_of,
    nodes_before,
    remove_unread,
    replace_value,
)

# By name, as ``hagane.compile`` takes them.
PRECISIONS = {"fp32": None, "bf16": ir.DataType.BFLOAT16, "fp16": ir.DataType.FLOAT16}
# The work of a step is in these, and their sums are made in float32 for factors of any type.
_LOWERED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def checked_precision(precision: str | None) -> ir.DataType | None:
    """Return the element type that products are made of; None for float32.

    Raises:
        InvalidArgument: There is no such precision.
    """
    name = "fp32" if precision is None else precision
    if name not in PRECISIONS:
        raise InvalidArgument(
            f"compile: expected precision to be one of {', '.join(PRECISIONS)}, got {precision!r}"
        )
    return PRECISIONS[name]


def lower_precision(graph: ir.Graph, types: GraphTypes, dtype: ir.DataType) -> None:
    """Let products and convolutions take operands of another type, and return float32.

    Parameters stay float32, and so do sums, normalisations, losses and all of the update. The
    gradients of these operators, made afterwards, take operands of that type, too. Bodies of loops
    and branches stay as they are.

    Args:
        graph: A legalised graph.
        types: Of its values; those of new ones are added.
        dtype: The type of operands.
    """
    narrow: dict[ir.Value, ir.Value] = {}
    for node in list(graph):
        if node.domain or node.op_type not in _LOWERED:
            continue
        given_values = [value for value in node.inputs if value is not None]
        if not all(has_dtype(value, types, ir.DataType.FLOAT) for value in given_values):
            continue
        with interpreting(nodes_before(graph, types, node, name_of(node))):
            for value in given_values:
                _narrow(value, narrow, dtype)
            operands = [None if value is None else narrow[value] for value in node.inputs]
            made = op(node.op_type, *operands, **given(node))
            wide = op("Cast", made, to=ir.DataType.FLOAT)
        replace_value(graph, types, node.outputs[0], wide)
        remove_unread(graph, node)


def _narrow(value: ir.Value, narrow: dict[ir.Value, ir.Value], dtype: ir.DataType) -> ir.Value:
    """Return a value in another type, noted in ``narrow``; a transposed one is a view of that."""
    if value not in narrow:
        node = value.producer()
        if node is not None and not node.domain and node.op_type == "Transpose":
            source = node.inputs[0]
            assert source is not None
            narrow[value] = op("Transpose", _narrow(source, narrow, dtype), **given(node))
        else:
            narrow[value] = op("Cast", value, to=dtype)
    return narrow[value]
