"""What a first convolution gives for an observation and for its blends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from hagane.ops.builder import Nodes, op
from hagane.tools.rl.blends.nodes import again

_ACTIVATIONS = frozenset(
    (
        *("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Selu"),
        *("Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu"),
    )
)


@dataclass(frozen=True, slots=True)
class Windows:
    """Values at each window, once for the observation and once for each mask that reaches it.

    Most masks reach few windows, and leave the observation's value at the others.

    Attributes:
        value: ``(windows, near, channels)``, the observation's first.
        where: ``(1 + masks, windows)``: rows of ``(windows · near, channels)``.
        sizes: height and width, whose product is the windows.
    """

    value: ir.Value
    where: npt.NDArray[np.int64]
    sizes: tuple[int, int]

    def through(self, node: ir.Node, nodes: Nodes) -> Windows | None:
        """Return the value behind an activation, None behind other nodes."""
        if node.op_type not in _ACTIVATIONS or node.domain != "":
            return None
        return Windows(again(nodes, node, self.value), self.where, self.sizes)

    def whole(self) -> ir.Value:
        """Return the value for the observation, then for each blend, channels second."""
        channels = op("Shape", self.value, start=2)
        rows = op("Reshape", self.value, op("Concat", [-1], channels, axis=0))
        found = op("Reshape", op("Gather", rows, self.where), [len(self.where), *self.sizes, -1])
        made: ir.Value = op("Transpose", found, perm=(0, 3, 1, 2))
        return made
