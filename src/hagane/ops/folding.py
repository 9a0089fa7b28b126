"""The one constant folder: nodes over constants are computed by reference kernels."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.graph.walk import has_bodies
from hagane.ops.context import known_attributes
from hagane.ops.cost import flops
from hagane.ops.definition import Array, OpDef, RuntimeValue, Unsupported
from hagane.ops.registry import find, has_trait, schema_of
from hagane.ops.traits import Trait

# Folding may make a constant larger by this much, in bytes, but not more.
_MOST_ADDED = 64 << 20
# The same of operators that compute each element that they add, as Resize does.
_MOST_COMPUTED = 4 << 20
# The limit of all results that are many times as large as their constants:
# a small file may name any number of them.
_MOST_BLOWN, _BLOWN = 128 << 20, 16
# Operations of one node that loading does in a second or two.
_MOST_OPERATIONS = 10**10


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


def fold_node(
    node: ir.Node, inputs: Sequence[Array | None], types: Mapping[ir.Value, Type]
) -> list[Array] | None:
    """Return the tensors that a node without bodies makes of known inputs, as ``fold_call``.

    None also where they would be much larger than the inputs, or take long to compute.
    """
    if has_bodies(node) or not node.outputs or _is_costly(node, inputs, types):
        return None
    attributes = known_attributes(node, schema_of(node).defaults)
    return fold_call(find(node), inputs, attributes, len(node.outputs))


def _is_costly(
    node: ir.Node, inputs: Sequence[Array | None], types: Mapping[ir.Value, Type]
) -> bool:
    """Say from the types, before anything is computed, whether folding is worth its cost."""
    size = _expected_bytes(node, types)
    computes = has_trait(node, Trait.EXPANDING) and not has_trait(node, Trait.FREE)
    most = _MOST_COMPUTED if computes else _MOST_ADDED
    if size is None or size > most + _bytes(inputs):
        return True
    with contextlib.suppress(Exception):
        operations = flops(node, types)
        return isinstance(operations, int) and operations > _MOST_OPERATIONS
    return False


def _expected_bytes(node: ir.Node, types: Mapping[ir.Value, Type]) -> int | None:
    """Return the known size of the outputs in bytes; None where they might be any number."""
    total = 0
    for value in node.outputs:
        type_ = types.get(value)
        if (
            not isinstance(type_, TensorType)
            or type_.shape is None
            or not all(isinstance(dim, int) for dim in type_.shape)
        ):
            if has_trait(node, Trait.EXPANDING):
                return None
            continue
        bits = 8 if type_.dtype.name in ("UNDEFINED", "STRING") else type_.dtype.bitwidth
        total += math.prod(int(dim) for dim in type_.shape if isinstance(dim, int)) * bits // 8
    return total


def _bytes(arrays: Sequence[Array | None]) -> int:
    return sum(array.nbytes for array in arrays if array is not None)


def fold_nodes(
    nodes: Sequence[ir.Node],
    constants: Mapping[ir.Value, Array],
    types: Mapping[ir.Value, Type],
) -> dict[ir.Value, Array]:
    """Return the outputs of those nodes, in order, that read constants and each other only.

    Left out are results that are much larger than the constants that they are made of, or that take
    long to compute: loading costs by the size of the file, not by the numbers in it.

    Args:
        nodes: In order.
        constants: The known values.
        types: Of the nodes' values.
    """
    known = dict(constants)
    folded: dict[ir.Value, Array] = {}
    blown = 0
    for node in nodes:
        if any(value is not None and value not in known for value in node.inputs):
            continue
        inputs = [None if value is None else known[value] for value in node.inputs]
        given = _bytes(inputs)
        expected = _expected_bytes(node, types) or 0
        if expected > _BLOWN * given:
            blown += expected
            if blown > _MOST_BLOWN:
                continue
        arrays = fold_node(node, inputs, types)
        if arrays is None:
            continue
        if _bytes(arrays) <= _MOST_ADDED + given:
            found = dict(zip(node.outputs, arrays, strict=False))
            known.update(found)
            folded.update(found)
    return folded
