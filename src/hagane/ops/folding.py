"""The one constant folder: what follows from constants is computed by reference kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.walk import has_bodies
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array, OpDef, RuntimeValue, Unsupported
from hagane.ops.registry import find, schema_of

# Folding may make a constant larger by this much, in bytes, but not more.
_MOST_ADDED = 64 << 20


def fold_call(
    op: OpDef, inputs: Sequence[RuntimeValue], attributes: dict[str, Any], n_outputs: int
) -> list[Array] | None:
    """Return the tensors that an operator makes of known inputs.

    Args:
        op: The operator.
        inputs: Its inputs, None for absent ones.
        attributes: All of them, defaults filled in.
        n_outputs: How many outputs the call has.

    Returns:
        None where two runs may differ, where an output is no tensor, and where the kernel fails:
        a division of integers by zero is to fail when it is run.
    """
    if op.random or isinstance(op.reference, Unsupported):
        return None
    with contextlib.suppress(Exception), np.errstate(all="ignore"):
        results = op(inputs, attributes, n_outputs)
        if all(isinstance(result, np.ndarray | np.generic) for result in results):
            return [np.asarray(result) for result in results]
    return None


def fold_node(node: ir.Node, inputs: Sequence[Array | None]) -> list[Array] | None:
    """Return the tensors that a node without bodies makes of known inputs, as ``fold_call``."""
    if has_bodies(node) or not node.outputs:
        return None
    attributes = known_attributes(node, schema_of(node).defaults)
    return fold_call(find(node), inputs, attributes, len(node.outputs))


def fold_nodes(
    nodes: Sequence[ir.Node], constants: Mapping[ir.Value, Array]
) -> dict[ir.Value, Array]:
    """Return the outputs of those nodes, in order, that read constants and each other only.

    Left out are results that are much larger than the constants that they are made of.
    """
    known = dict(constants)
    folded: dict[ir.Value, Array] = {}
    for node in nodes:
        inputs = [value for value in node.inputs if value is not None]
        if any(value not in known for value in inputs):
            continue
        arrays = fold_node(node, [None if v is None else known[v] for v in node.inputs])
        if arrays is None:
            continue
        size = sum(array.nbytes for array in arrays)
        if size <= _MOST_ADDED + sum(known[value].nbytes for value in inputs):
            found = dict(zip(node.outputs, arrays, strict=False))
            known.update(found)
            folded.update(found)
    return folded
