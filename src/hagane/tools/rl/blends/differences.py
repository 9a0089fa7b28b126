"""Values for an observation, and the addition of each blend to them.

Layers are computed on the differences as long as that is exact: linear ones without their bias, and
activations as ``f(b + d) - f(b)``. Small changes keep their digits so, where a network that is
asked about each blend loses them in the rounding of every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from hagane.ops.builder import Nodes, op
from hagane.ops.gradient.replay import call_of
from hagane.tools.rl.blends.nodes import again, held

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

    base: ir.Value
    change: ir.Value
    last: bool = False

    def through(self, node: ir.Node, nodes: Nodes) -> Difference | None:
        """Return the value behind a node, None if changes cannot pass through it alone."""
        kind = node.op_type
        if len(node.outputs) != 1 or node.domain != "":
            return None
        if kind in _ACTIVATIONS:
            base = again(nodes, node, self.base)
            moved = again(nodes, node, op("Add", self.change, self.base))
            return Difference(base, op("Sub", moved, base), self.last)
        others = list(node.inputs[1:])
        if kind in _WEIGHTY and held(others[0]) is not None and not call_of(node).attr("transA"):
            first = self.first()
            base = again(nodes, node, first.base, *others)
            return Difference(base, again(nodes, node, first.change, others[0]))
        if kind in _POOLS or _keeps_batch(node):
            first = self.first()
            base = again(nodes, node, first.base, *others)
            return Difference(base, again(nodes, node, first.change, *others))
        return None

    def first(self) -> Difference:
        """Return the value with channels as the second axis."""
        if not self.last:
            return self
        order = (0, 3, 1, 2)
        base = op("Transpose", self.base, perm=order)
        return Difference(base, op("Transpose", self.change, perm=order))

    def whole(self) -> ir.Value:
        """Return the value itself: the observation's, then each blend's."""
        first = self.first()
        moved = op("Add", first.change, first.base)
        made: ir.Value = op("Concat", first.base, moved, axis=0)
        return made


def _keeps_batch(node: ir.Node) -> bool:
    """Return whether a node lays numbers out anew, each observation's for itself."""
    call = call_of(node)
    if node.op_type == "Flatten":
        return bool(call.attr("axis") == 1)
    sizes = held(node.inputs[1]) if node.op_type == "Reshape" else None
    return sizes is not None and not call.attr("allowzero") and sizes[:1].tolist() in ([0], [-1])
