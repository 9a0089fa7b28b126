"""Values for an observation, and the addition of each blend to them.

Layers are computed on the differences as long as that is exact: linear ones without their bias, and
activations as ``f(b + d) - f(b)``. Small changes keep their digits so, where a network that is
asked about each blend loses them in the rounding of every layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from onnx import helper, numpy_helper

from hagane.tools.rl.blends.drawing import Drawing

_ACTIVATIONS = frozenset(
    (
        *("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu"),
        *("Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
    )
)
_POOLS = frozenset(("AveragePool", "GlobalAveragePool"))
_WEIGHTY = frozenset(("Conv", "Gemm", "MatMul"))


@dataclass(frozen=True, slots=True)
class Difference:
    """A value for an observation and the change by each blend.

    Attributes:
        base: for the observation, with a batch of 1.
        change: with a batch of all blends.
        last: whether channels are the last axis of both, instead of the second of four.
    """

    base: str
    change: str
    last: bool = False

    def through(
        self, node: onnx.NodeProto, drawing: Drawing, held: Mapping[str, onnx.TensorProto]
    ) -> Difference | None:
        """Return the value behind a node, None if changes cannot pass through it alone."""
        kind = node.op_type
        if len(node.output) != 1 or node.domain not in ("", "ai.onnx"):
            return None
        if kind in _ACTIVATIONS:
            base = drawing.again(node, self.base)
            moved = drawing.again(node, drawing.node("Add", self.change, self.base))
            return Difference(base, drawing.node("Sub", moved, base), self.last)
        first = self.first(drawing)
        others = list(node.input[1:])
        if kind in _WEIGHTY and others[0] in held and not _turns(node):
            base = drawing.again(node, first.base, *others)
            return Difference(base, drawing.again(node, first.change, others[0]))
        keeps = kind == "Flatten" or (kind == "Reshape" and others[0] in held)
        if kind in _POOLS or (keeps and _keeps_batch(node, held)):
            base = drawing.again(node, first.base, *others)
            return Difference(base, drawing.again(node, first.change, *others))
        return None

    def first(self, drawing: Drawing) -> Difference:
        """Return the value with channels as the second axis."""
        if not self.last:
            return self
        order = [0, 3, 1, 2]
        base = drawing.node("Transpose", self.base, perm=order)
        return Difference(base, drawing.node("Transpose", self.change, perm=order))

    def whole(self, drawing: Drawing, name: str) -> None:
        """Make the value itself under a name: the observation's, then each blend's."""
        first = self.first(drawing)
        moved = drawing.node("Add", first.change, first.base)
        drawing.node("Concat", first.base, moved, name=name, axis=0)


def _turns(node: onnx.NodeProto) -> bool:
    """Return whether the batch is not the first axis of a product."""
    return any(a.name == "transA" and a.i for a in node.attribute)


def _keeps_batch(node: onnx.NodeProto, held: Mapping[str, onnx.TensorProto]) -> bool:
    facts = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Flatten":
        return bool(facts.get("axis", 1) == 1)
    sizes = numpy_helper.to_array(held[node.input[1]]).tolist()
    return not facts.get("allowzero") and bool(sizes) and sizes[0] in (0, -1)
