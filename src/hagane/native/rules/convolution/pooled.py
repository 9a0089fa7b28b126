"""Pooling without overlap, computed with the convolution before it: nothing else is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.native.lowering.epilogue import Epilogue
from hagane.native.tiles.contraction import Pool

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering


def with_pool(
    low: Lowering, epilogue: Epilogue, pays: Callable[[Pool], bool]
) -> tuple[Epilogue, Pool | None]:
    """Return an epilogue that includes the pooling that alone reads it, if that pays, and that."""
    found = None if epilogue.residual is not None else _pool_of(low, epilogue.value)
    if found is None or not pays(found[1]):
        return epilogue, None
    node, pool = found
    low.done.add(node)
    nodes = (*epilogue.nodes, node)
    return replace(epilogue, value=node.outputs[0], nodes=nodes), pool


def _pool_of(low: Lowering, value: ir.Value) -> tuple[ir.Node, Pool] | None:
    node = low.only_use(value)
    if node is None or node.op_type not in ("MaxPool", "AveragePool"):
        return None
    if len(node.outputs) > 1 and low.facts.uses(node.outputs[1]):
        return None
    attributes = low.facts.attributes(node)
    size = [dim for dim in low.facts.shape(value)[2:] if isinstance(dim, int)]
    out = [dim for dim in low.facts.shape(node.outputs[0])[2:] if isinstance(dim, int)]
    if len(size) < len(low.facts.shape(value)) - 2 or len(out) < len(size):
        return None  # whole windows are counted on
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
