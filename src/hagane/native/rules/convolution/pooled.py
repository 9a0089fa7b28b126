"""Pooling without overlap, computed with the convolution before it: nothing else is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.native.lowering.epilogue import Ending

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows side by side that cover an image but for rows and columns at its end.

    Attributes:
        rows: Of a window.
        columns: Of a window.
        height: Of the result.
        width: Of the result.
        largest: Whether the largest number of a window counts, or else the mean.
    """

    rows: int
    columns: int
    height: int
    width: int
    largest: bool

    @property
    def pixels(self) -> int:
        """Pixels of all windows."""
        return self.rows * self.columns * self.height * self.width

    def combined(self, vectors: Sequence[str]) -> str:
        """Return C text of the largest number, or of the sum."""
        text = vectors[0]
        for vector in vectors[1:]:
            text = f"v_max2({text}, {vector})" if self.largest else f"({text} + {vector})"
        return text

    def reduced(self, vectors: Sequence[str]) -> str:
        """Return C text of a window's result."""
        text = self.combined(vectors)
        return text if self.largest else f"{text} / {len(vectors)}.f"


def with_pool(
    low: Lowering, ending: Ending, pays: Callable[[Pool], bool]
) -> tuple[Ending, Pool | None]:
    """Return an ending that includes the pooling that alone reads it, if that pays, and that."""
    found = None if ending.residual is not None else _pool_of(low, ending.value)
    if found is None or not pays(found[1]):
        return ending, None
    node, pool = found
    low.done.add(node)
    names = (*ending.operators, node.op_type)
    return replace(ending, value=node.outputs[0], operators=names), pool


def _pool_of(low: Lowering, value: ir.Value) -> tuple[ir.Node, Pool] | None:
    node = low.only_use(value)
    if node is None or node.op_type not in ("MaxPool", "AveragePool"):
        return None
    if len(node.outputs) > 1 and low.uses(node.outputs[1]):
        return None
    attributes = low.attributes(node)
    size, out = low.fixed_shape(value)[2:], low.fixed_shape(node.outputs[0])[2:]
    kernel = list(attributes["kernel_shape"])
    rank = len(kernel)
    strides = list(attributes.get("strides") or [1] * rank)
    dilated = any(d != 1 for d in attributes.get("dilations") or ())
    padded = any(attributes.get("pads") or ()) or attributes.get("auto_pad", "NOTSET") not in (
        "NOTSET",
        "VALID",
    )
    inside = all(n * k <= whole for n, k, whole in zip(out, kernel, size, strict=True))
    if rank > 2 or strides != kernel or dilated or padded or not inside or 0 in out:
        return None
    height, width = (1, *out)[-2:]
    rows, columns = (1, *kernel)[-2:]
    return node, Pool(rows, columns, height, width, node.op_type == "MaxPool")
