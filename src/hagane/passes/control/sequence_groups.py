"""Sequences that nodes hand to one another, and what these nodes do to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hagane.graph.types import SequenceType, TensorType
from hagane.graph.walk import bodies
from hagane.ops.inference import GraphTypes, infer_added
from hagane.passes.edit import constant
from hagane.symbolic import Dim, symbol

MAKERS = ("SequenceEmpty", "SequenceConstruct", "SplitToSequence")
CHANGERS = ("SequenceInsert", "SequenceErase")
READERS = ("SequenceAt", "SequenceLength", "ConcatFromSequence")
# A place of a sequence that only the run knows.
SOMEWHERE = np.iinfo(np.int64).max


@dataclass(eq=False, slots=True)
class Group:
    """Sequences of one kind.

    Attributes:
        nodes: Nodes that make, change, read or hand them on, with the graphs that they are in, as
            they run; loops and branches behind what is in their bodies.
        carried: Inputs of bodies, and results of loops and branches.
        stays: Something else reads or makes them.
    """

    nodes: list[tuple[ir.Graph, ir.Node]] = field(default_factory=list)
    carried: dict[ir.Value, None] = field(default_factory=dict)
    stays: bool = False


class _Joined:
    """Values by the group that they belong to."""

    def __init__(self) -> None:
        self._parents: dict[ir.Value, ir.Value] = {}

    def find(self, value: ir.Value) -> ir.Value:
        while (parent := self._parents.setdefault(value, value)) is not value:
            value = parent
        return value

    def join(self, *values: ir.Value) -> ir.Value:
        first = self.find(values[0])
        for value in values[1:]:
            self._parents[self.find(value)] = first
        return first


def groups(graph: ir.Graph, types: GraphTypes) -> Iterator[Group]:
    """Yield the sequences in a graph and its bodies, but not those that others make or read."""
    joined = _Joined()
    made: set[ir.Value] = set()  # by nodes that the groups hold, or carried
    stay: list[ir.Value] = []
    carried: list[ir.Value] = []
    nodes: list[tuple[ir.Graph, ir.Node, ir.Value]] = []
    for each, node in _as_they_run(graph):
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        touched = [value for value in values if is_sequence(value, types)]
        kind = node.op_type if node.domain == "" else ""
        if kind in ("Loop", "If"):
            for one, own in _handed_on(node, kind):
                given = [value for value in one if value is not None]
                if not any(is_sequence(value, types) for value in given):
                    continue
                nodes.append((each, node, joined.join(*given)))
                carried += own
                made.update(own)
                touched = [value for value in touched if value not in given]
                if len(given) < len(one):
                    stay += given
            stay += touched
        elif kind in (*MAKERS, *CHANGERS, *READERS, "Identity"):
            if touched:
                made.update(v for v in node.outputs if is_sequence(v, types))
                nodes.append((each, node, joined.join(*touched)))
        else:
            stay += touched
    stay += [value for value in (*graph.inputs, *graph.outputs) if is_sequence(value, types)]
    groups: dict[ir.Value, Group] = {}
    for each, node, first in nodes:
        groups.setdefault(joined.find(first), Group()).nodes.append((each, node))
        read = [value for value in node.inputs if is_sequence(value, types)]
        stay += [value for value in read if value is not None and value not in made]
    for value in carried:
        groups.setdefault(joined.find(value), Group()).carried[value] = None
    for value in stay:
        groups.setdefault(joined.find(value), Group()).stays = True
    yield from (group for group in groups.values() if group.nodes and not group.stays)


def _as_they_run(graph: ir.Graph) -> Iterator[tuple[ir.Graph, ir.Node]]:
    """Yield all nodes with their graphs, those of bodies before the node that has them."""
    for node in graph:
        for body in bodies(node):
            yield from _as_they_run(body)
        yield graph, node


def is_sequence(value: ir.Value | None, types: GraphTypes) -> bool:
    """Whether a value is known to be a sequence."""
    return value is not None and isinstance(types.types.get(value), SequenceType)


def _handed_on(
    node: ir.Node, kind: str
) -> Iterator[tuple[tuple[ir.Value | None, ...], tuple[ir.Value, ...]]]:
    """Yield the values that are one, a state of a loop or a result of branches.

    The second tuple has those among them that the node itself gives, to its body and its readers.
    """
    if kind == "Loop":
        body = node.attributes["body"].as_graph()
        n = len(node.inputs) - 2
        states = zip(body.inputs[2:], body.outputs[1 : 1 + n], node.outputs[:n], strict=True)
        for start, (before, after, result) in zip(node.inputs[2:], states, strict=True):
            yield (start, before, after, result), (before, result)
    else:
        graphs = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        for *values, result in zip(*(body.outputs for body in graphs), node.outputs, strict=True):
            yield (*values, result), (result,)


# ---- places ----


def place_of(node: ir.Node, types: GraphTypes) -> int | None:
    """Return the place at which a node inserts or erases an item.

    The end is None, a place that only the run knows ``SOMEWHERE``.
    """
    at = 2 if node.op_type == "SequenceInsert" else 1
    if len(node.inputs) <= at or node.inputs[at] is None:
        return None
    found = constant(node.inputs[at], types)
    return SOMEWHERE if found is None or found.size != 1 else int(found.reshape(-1)[0])


# ---- tensors in their place ----


def carry_tensors(
    found: Group, types: GraphTypes, dtype: ir.DataType, axes: Sequence[Dim | None]
) -> None:
    """Give the values that bodies, loops and branches hand on the type of tensors.

    Args:
        found: The sequences.
        types: Their types; changed.
        dtype: Of the tensors.
        axes: Their sizes; None for one that each value has for itself.
    """
    for value in found.carried:
        name = f"items of {value.name}"
        types.invented.add(name)
        shape = tuple(symbol(name) if dim is None else dim for dim in axes)
        types.types[value] = TensorType(dtype, shape)
        value.type, value.shape = ir.TensorType(dtype), None


def is_handed_on(node: ir.Node, types: GraphTypes) -> bool:
    """Let a loop, branch or Identity have tensors where it had sequences; False for other nodes."""
    if node.op_type in ("Loop", "If"):
        infer_added(node, types)
        return True
    if node.op_type != "Identity":
        return False
    (source,), (made,) = node.inputs, node.outputs
    assert source is not None
    found = types.types[source]
    assert isinstance(found, TensorType)
    types.types[made] = found
    made.type, made.shape = ir.TensorType(found.dtype), None
    return True
