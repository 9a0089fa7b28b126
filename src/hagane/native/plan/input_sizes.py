"""Sizes of a part's inputs under names of their own, where nothing else tells the names in them.

A size such as ``32 * ((h + 31) // 32)`` does not tell ``h``. Where another part computes the value, and no
input has ``h`` itself, kernels could not know the sizes that follow; with a name for the whole they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.errors import HaganeError
from hagane.graph.types import TensorType
from hagane.native.lowering.found import given_sizes, values_read
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes, infer_given
from hagane.symbolic import Dim, Expr, symbol, symbols_of


def name_input_sizes(graph: ir.Graph, nodes: Sequence[ir.Node], types: GraphTypes) -> GraphTypes:
    """Return types in which sizes of inputs that give no name are names; the same if all do.

    Args:
        graph: That the nodes belong to.
        nodes: Of a part, in order.
        types: The results of inference.
    """
    given, read = given_sizes(graph, nodes, types), values_read(nodes)
    names: dict[Dim, Expr] = {}
    known: dict[ir.Value, TensorType] = {}
    for value in read:
        found = types.types.get(value)
        if not isinstance(found, TensorType) or not found.shape:
            continue
        for axis, dim in enumerate(found.shape):
            if symbols_of(dim) - given:
                names.setdefault(dim, symbol(f"{value.name} axis {axis}"))
        if any(dim in names for dim in found.shape):
            known[value] = TensorType(found.dtype, tuple(names.get(d, d) for d in found.shape))
    if not names:
        return types
    values = dict(types.values)
    for value in read:
        if value in values and (content := _renamed(values.pop(value), names, given)) is not None:
            values[value] = content
    invented = types.invented | {str(name) for name in names.values()}
    try:
        return infer_given(nodes, replace(types, values=values, invented=invented), known)
    except HaganeError:  # which says of sizes what their formulas told
        return types


def _renamed(content: Array, names: dict[Dim, Expr], given: frozenset[str]) -> Array | None:
    """Return sizes as content with names in their places; None if one has none."""
    if content.dtype != object:
        return content
    renamed = [names.get(item, item) for item in content.flat]
    own = given | {str(name) for name in names.values()}
    if any(symbols_of(item) - own for item in renamed):
        return None
    made = np.empty(len(renamed), object)
    made[:] = renamed
    return made.reshape(content.shape)
