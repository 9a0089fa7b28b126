"""Numbers that a kernel leaves for sizes, and that rules take from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.found import Place, find_sizes
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim

INT64 = np.dtype(np.int64)


def found_numbers(
    low: Lowering,
    node: ir.Node,
    text: str,
    wanted: Sequence[Dim],
    *,
    reads: Mapping[str, Tensor],
    sizes: Mapping[str, Dim] | None = None,
) -> None:
    """Append a kernel that computes numbers ``found[i]``, and take them for sizes.

    Args:
        low: The state of lowering.
        node: The node whose result has the sizes.
        text: The kernel's C.
        wanted: The size that each number is.
        reads: Operands by name.
        sizes: Known sizes by name.
    """
    place = low.recorder.new(f"{node.outputs[0].name} sizes", INT64, (len(wanted),))
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"found": place}, sizes=sizes, tasks=1, cost=10.0,
    )  # fmt: skip
    find_sizes(low, node, [(dim, Place(place, i)) for i, dim in enumerate(wanted)])


def length_of(low: Lowering, value: ir.Value | None) -> int:
    """Return the known number of elements of a value with one axis."""
    size = low.facts.type(value).shape
    count = 1 if size == () else size[0] if size else None
    if not isinstance(count, int):
        raise NotNative("as many numbers as the data have")
    return count
