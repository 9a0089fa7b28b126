"""Common parts of rules along an axis: the parts of a shape around it, and its operands."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.tensor import Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, product


def axis_of(low: Lowering, node: ir.Node, rank: int, name: str = "axis") -> int:
    """Return the axis that an attribute names, counted from the front."""
    return int(low.facts.attributes(node)[name]) % max(rank, 1)


def around(shape: Sequence[Dim], axis: int) -> tuple[Dim, Dim, Dim]:
    """Return how many elements lie outside of an axis, along it, and inside."""
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])


def number_input(low: Lowering, node: ir.Node, index: int) -> ir.Value | None:
    """Return an input, None where the node has none."""
    return node.inputs[index] if len(node.inputs) > index else None


def whole_numbers(low: Lowering, value: ir.Value | None) -> Tensor:
    """Return indices or sizes, which have to be int32 or int64."""
    found = low.forms.contiguous(value)
    if found.dtype.name not in ("int32", "int64"):
        raise NotNative(f"indices of type {found.dtype}")
    return found
