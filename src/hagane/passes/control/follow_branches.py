"""Let nodes behind branches whose results have different ranks follow one branch, or each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.errors import HaganeError
from hagane.graph.types import TensorType, Type
from hagane.graph.walk import bodies, has_bodies, read_values
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.inference import GraphTypes, infer_given
from hagane.passes.control.inline_branches import inline
from hagane.passes.edit import building, given, name_of, remove, remove_unread, replace_value
from hagane.symbolic import symbol

# More nodes, or bytes of constants that they read, are not written twice.
_MOST_NODES, _MOST_BYTES = 256, 4 << 20
# No tensor has so many elements.
_NOWHERE = np.iinfo(np.int64).max


def follow_branches(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Give values a rank that an If leaves open; return which nodes were rewritten.

    Exporters write ``squeeze`` as a branch: the axis goes if its size is one, else all stays. No
    kernel is for values of unknown rank, so that all behind would run on reference kernels. Where
    what follows is valid for the result of one branch alone and this branch is a Squeeze, which
    fails on other sizes, it takes the place of the If; any other branch has its rank, and the one
    that nothing can follow fails. Where both are valid, what follows becomes part of each branch,
    if it is little.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "If" or node.domain != "" or node.graph is not graph:
            continue
        if not any(_is_open(types.types.get(value)) for value in node.outputs):
            continue
        tail = _behind(graph, node)
        branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        if not tail or any(_is_open(types.types.get(v)) for b in branches for v in b.outputs):
            continue
        valid = [branch for branch in branches if _is_valid(node, branch, tail, types)]
        if len(valid) == 1 and _checks_itself(valid[0]):
            condition = node.inputs[0]
            changed.append(name_of(node))
            inline(graph, types, node, valid[0])
            maker = None if condition is None else condition.producer()
            if maker is not None and maker.graph is graph:
                remove_unread(graph, maker)
        elif len(valid) == 1:
            changed.append(name_of(node))
            _fail(node, valid[0], branches, types)
        elif len(valid) == 2 and _is_little(tail):
            changed.append(name_of(node))
            _share(graph, node, branches, tail, types)
    return changed


def _is_open(found: Type | None) -> bool:
    """Whether nothing tells the rank of a value."""
    return found is None or (isinstance(found, TensorType) and found.shape is None)


def _behind(graph: ir.Graph, node: ir.Node) -> list[ir.Node]:
    """Return the nodes that depend on one, in order."""
    known = set(node.outputs)
    found: list[ir.Node] = []
    for other in graph:
        if any(value in known for value in read_values(other)):
            found.append(other)
            known.update(other.outputs)
    return found


def _is_valid(node: ir.Node, branch: ir.Graph, tail: Sequence[ir.Node], types: GraphTypes) -> bool:
    """Whether nodes can follow the results of a branch."""
    results = zip(node.outputs, branch.outputs, strict=True)
    known = {value: types.types[result] for value, result in results}
    try:
        infer_given(tail, types, known)
    except HaganeError:
        return False
    return True


def _checks_itself(branch: ir.Graph) -> bool:
    """Whether a branch fails where its condition does not hold, as a Squeeze does."""
    nodes = [node for node in branch if node.op_type != "Constant"]
    if len(nodes) != 1:
        return False
    (last,) = nodes
    return (
        (last.domain, last.op_type) == ("", "Squeeze")
        and list(branch.outputs) == list(last.outputs)
        and len(last.inputs) > 1
        and last.inputs[1] is not None
    )


def _fail(node: ir.Node, valid: ir.Graph, branches: Sequence[ir.Graph], types: GraphTypes) -> None:
    """Let the branch that nothing can follow fail, in results of the other's rank."""
    (other,) = (branch for branch in branches if branch is not valid)
    fails_at = other is branches[1]  # in the else branch the condition is false
    for i, result in enumerate(node.outputs):
        wanted, found = types.types[valid.outputs[i]], types.types.get(result)
        if not _is_open(found) or not isinstance(wanted, TensorType) or wanted.shape is None:
            continue
        if wanted.dtype == ir.DataType.STRING:
            continue
        name = f"{name_of(node)}, of whose results {result.name} has a rank that none can follow"
        with interpreting(Nodes(other, types, name=name)):
            place = (0, _NOWHERE) if fails_at else (_NOWHERE, 0)
            at = op("Where", op("Reshape", node.inputs[0], []), *place)
            # (Gather is given a place that there is not.)
            zero = ir.tensor(np.zeros(1, wanted.dtype.numpy()), dtype=wanted.dtype)
            row: Any = op("ConstantOfShape", [1], value=zero)
            sizes = [dim if isinstance(dim, int) else 1 for dim in wanted.shape]
            other.outputs[i] = op("Expand", op("Gather", row, at), np.array(sizes, np.int64))
        names = [f"{result.name} axis {axis}" for axis in range(len(wanted.shape))]
        types.invented.update(names)  # until they are inferred
        types.types[result] = TensorType(wanted.dtype, tuple(map(symbol, names)))
        result.shape = None


def _is_little(tail: Sequence[ir.Node]) -> bool:
    """Whether nodes may be written twice."""
    read = {value for node in tail for value in node.inputs if value is not None}
    constants = [value.const_value for value in read if value.const_value is not None]
    return (
        len(tail) <= _MOST_NODES
        and not any(has_bodies(node) or list(bodies(node)) for node in tail)
        and sum(each.nbytes for each in constants) <= _MOST_BYTES
    )


def _share(
    graph: ir.Graph,
    node: ir.Node,
    branches: Sequence[ir.Graph],
    tail: Sequence[ir.Node],
    types: GraphTypes,
) -> None:
    """Move nodes behind a branch into both."""
    made = [value for each in (node, *tail) for value in each.outputs]
    results = [value for value in graph.outputs if value in made]
    for branch in branches:
        copies: dict[ir.Value, ir.Value] = dict(zip(node.outputs, branch.outputs, strict=True))
        with interpreting(Nodes(branch, types, name=name_of(node))):
            for each in tail:
                inputs = [None if v is None else copies.get(v, v) for v in each.inputs]
                count = len(each.outputs)
                found = op(each.op_type, *inputs, outputs=count, domain=each.domain, **given(each))
                values = found if isinstance(found, tuple) else (found,)
                copies.update(zip(each.outputs, values, strict=True))
            branch.outputs[:] = [op("Identity", copies[value]) for value in results]
    with building(graph, types, tail[-1], name_of(node)):
        last = op("If", node.inputs[0], outputs=len(results), **given(node))
    for old, new in zip(results, last if isinstance(last, tuple) else (last,), strict=True):
        replace_value(graph, types, old, new)
    remove(graph, [node, *tail])
