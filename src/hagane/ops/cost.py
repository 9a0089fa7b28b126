"""How much arithmetic a node does, as a number or an expression over the input sizes.

A multiplication and an addition count as two operations. Operators that only move elements
count as none, elementwise ones as one an output element.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.ops.context import known_attributes
from hagane.ops.registry import has_trait, schema_of
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, product

_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "QLinearConv", "FusedConv"})
_PRODUCTS = frozenset(
    {
        "MatMul",
        "FusedMatMul",
        "SparseToDenseMatMul",
        "TransposeMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul",
    }
)
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
_POOLS = frozenset({"AveragePool", "MaxPool", "LpPool"})


def flops(node: ir.Node, types: Mapping[ir.Value, Type]) -> Dim | None:
    """Return the floating-point (or integer) operations of a node, None if sizes are missing."""
    if has_trait(node, Trait.FREE):
        return 0
    inputs = [None if value is None else _shape(types.get(value)) for value in node.inputs]
    output = _shape(types.get(node.outputs[0]))
    attributes = known_attributes(node, schema_of(node).defaults)
    name = node.op_type
    if name in _GATES:
        return _recurrent(inputs, _GATES[name])
    if output is None:
        return None
    if name in _CONVOLUTIONS:
        weight = inputs[3 if name == "QLinearConv" else 1]
        return None if weight is None else 2 * product(output) * product(weight[1:])
    if name in ("LSTMSteps", "LSTMStepsGradient"):
        states = inputs[2]
        return None if inputs[0] is None or not states else 2 * product(inputs[0]) * states[1]
    if name == "ConvWeightGradient":
        return None if inputs[1] is None else 2 * product(inputs[1]) * product(output[1:])
    if name == "ConvTranspose":
        if inputs[0] is None or inputs[1] is None:
            return None
        return 2 * product(inputs[0]) * product(inputs[1][1:])
    if name in _PRODUCTS:
        left = inputs[0]
        turned = attributes.get("transA") and left is not None and len(left) > 1
        return None if not left else 2 * product(output) * left[-2 if turned else -1]
    if name == "QLinearMatMul":
        return None if not inputs[0] else 2 * product(output) * inputs[0][-1]
    if name in ("Gemm", "FusedGemm", "QGemm"):
        left = inputs[0]
        return (
            None if left is None else 2 * product(output) * left[0 if attributes["transA"] else 1]
        )
    if name in ("MatMulBnb4", "MatMulNBits"):
        return 2 * product(output) * attributes["K"]
    if name == "Attention" and not node.domain:
        query, key = inputs[0], inputs[1]
        if query is None or key is None:
            return None
        # QKᵀ and PV: two products over all pairs of query and key.
        return 4 * product(query) * (key[1] if len(key) == 3 else key[2])
    if name in _POOLS:
        return product(output) * product(attributes["kernel_shape"])
    if has_trait(node, Trait.REDUCING | Trait.ROWWISE):
        return None if inputs[0] is None else product(inputs[0])
    return product(output)


def _recurrent(inputs: list[tuple[Dim, ...] | None], gates: int) -> Dim | None:
    x, w, r = inputs[:3]
    if x is None or w is None or r is None:
        return None
    hidden = min((dim for dim in r[1:] if isinstance(dim, int)), default=r[-1])
    return 2 * x[0] * x[1] * w[0] * gates * hidden * (x[2] + hidden)


def _shape(type_: Type | None) -> tuple[Dim, ...] | None:
    return type_.shape if isinstance(type_, TensorType) else None
