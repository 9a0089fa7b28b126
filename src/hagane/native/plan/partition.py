"""Which nodes run natively, together, and which run on their reference kernels in between."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes, read_values
from hagane.machine import Level, best_level
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.lowering.choices import Choices
from hagane.native.lowering.state import AT_RUN_TIME, Lowering, NotNative
from hagane.native.plan.apply_rules import has_rule, lower_nodes
from hagane.native.rules.control.operators import grown_outputs
from hagane.native.run.segment import Segment, names_of_sizes
from hagane.ops.definition import Array
from hagane.ops.folding import fold_nodes
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, product

_NO_CHOICES: Choices = {}


@dataclass(frozen=True, slots=True)
class NativePart:
    """Nodes that are compiled together, the values that they read and those that others read."""

    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    segment: Segment


@dataclass
class Plan:
    """A graph in execution order.

    Attributes:
        parts: Compiled parts, and single nodes that run on their reference kernels.
        folded: Values that were computed ahead.
        refused: Why nodes are not native.
    """

    parts: list[NativePart | ir.Node]
    folded: dict[ir.Value, Array]
    refused: dict[ir.Node, str] = field(default_factory=dict)


class SizesUnknown(Exception):
    """Kernels of a graph need sizes that its types leave open."""


def plan_graph(
    graph: ir.Graph,
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    *,
    level: Level | None = None,
    threads: int = 1,
    pairs: bool = False,
    choices: Choices = _NO_CHOICES,
    wait_for_sizes: bool = False,
    settle: Callable[[], None] = lambda: None,
) -> Plan:
    """Return the parts of a legalised, type-checked graph, the native ones compiled.

    Args:
        graph: A graph or subgraph.
        types: What inference found for it.
        constants: Arrays of its initializers and of outer constants.
        level: Vector instructions to generate for; the best of this machine if None.
        threads: How many threads a run may use.
        pairs: Whether products may be computed in bfloat16.
        choices: Forms of kernels that were found to be fastest.
        wait_for_sizes: Compile nothing if some node could be native once sizes are known.
        settle: Called now and then while weights are copied, to let go of what was read.

    Raises:
        SizesUnknown: ``wait_for_sizes``, and there is such a node.
    """
    level = best_level() if level is None else level
    lowered, folded, refused = lower_graph(graph, types, constants, level, threads, pairs, choices)
    if wait_for_sizes and AT_RUN_TIME in refused.values():
        raise SizesUnknown
    parts: list[NativePart | ir.Node] = []
    for item in lowered:
        if isinstance(item, ir.Node):
            parts.append(item)
            continue
        members, low = item
        if not low.outputs:
            continue
        equal = [pair for node in all_nodes(members) for pair in types.assumed.get(node, ())]
        _read_sizes(low, graph, members, equal)
        inputs = tuple(low.inputs)
        outputs = tuple(sorted(low.outputs, key=lambda value: str(value.name)))
        segment = Segment(
            low.kernels,
            [(low.inputs[value], low.shape(value), low.dtype(value)) for value in inputs],
            [
                (low.results[value], _size_before_run(low, value), low.dtype(value))
                for value in outputs
            ],
            level,
            threads,
            settle,
            equal,
        )
        parts.append(NativePart(tuple(members), inputs, outputs, segment))
    return Plan(parts, folded, refused)


def _size_before_run(low: Lowering, value: ir.Value) -> tuple[Dim, ...]:
    """Return the shape of an output, 0 in the place of a size that the run finds."""
    return low.grown.get(value) or low.shape(value)


def _read_sizes(
    low: Lowering,
    graph: ir.Graph,
    members: Sequence[ir.Node],
    equal: Sequence[tuple[Dim, Dim]],
) -> None:
    """Make values inputs of a part whose shapes alone it needs, to know its named sizes."""
    shapes = [low.shape(value) for value in low.inputs]
    shapes += [_size_before_run(low, value) for value in low.outputs]
    needed = names_of_sizes(low.kernels, shapes, equal)
    needed -= {str(dim) for value in low.inputs for dim in low.shape(value)}
    made = {value for node in members for value in node.outputs}
    read = [value for node in members for value in read_values(node) if value not in made]
    for value in (*read, *graph.inputs):
        found = low.types.types.get(value)
        if not needed or not isinstance(found, TensorType) or found.shape is None:
            continue
        given = needed & {str(dim) for dim in found.shape}
        if given and value not in low.inputs and value not in low.constants:
            with contextlib.suppress(NotNative):
                size = product(found.shape) * low.dtype(value).itemsize
                low.inputs[value] = Buffer(str(value.name), size, Kind.INPUT)
                needed -= given


def lower_graph(
    graph: ir.Graph,
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    level: Level,
    threads: int,
    pairs: bool = False,
    choices: Choices = _NO_CHOICES,
) -> tuple[
    list[tuple[list[ir.Node], Lowering] | ir.Node], dict[ir.Value, Array], dict[ir.Node, str]
]:
    """Return parts that are ready to be compiled, values computed ahead, and refusals."""
    nodes = list(graph)
    folded = fold_nodes(nodes, constants)
    known = {**constants, **folded}
    nodes = [node for node in nodes if not all(value in folded for value in node.outputs)]
    refused: dict[ir.Node, str] = {}
    while True:
        clusters = _clusters(nodes, refused, types, known)
        lowered: list[tuple[list[ir.Node], Lowering] | ir.Node] = []
        before = len(refused)
        for native, members in clusters:
            if not native:
                lowered += members
                continue
            low = _lower(members, graph, types, known, level, threads, pairs, choices, refused)
            lowered.append((members, low))
        if len(refused) == before:
            break
    return lowered, folded, refused


def reference_nodes(
    graph: ir.Graph, types: GraphTypes, constants: Mapping[ir.Value, Array]
) -> dict[ir.Node, str]:
    """Return the nodes that run on their reference kernels, and why; nothing is compiled."""
    lowered, _, refused = lower_graph(graph, types, constants, best_level(), 1)
    return {
        node: refused.get(node, "there is no kernel for it")
        for node in lowered
        if isinstance(node, ir.Node)
    }


def _clusters(
    nodes: Sequence[ir.Node],
    refused: Mapping[ir.Node, str],
    types: GraphTypes,
    known: Mapping[ir.Value, Array],
) -> list[tuple[bool, list[ir.Node]]]:
    """Group nodes in an order that keeps native ones together."""

    def is_native(node: ir.Node) -> bool:
        return node not in refused and has_rule(node, types)

    produced = {value for node in nodes for value in node.outputs}
    waiting = {
        node: {value for value in read_values(node) if value in produced and value not in known}
        for node in nodes
    }
    done: set[ir.Value] = set()
    # A part cannot read what it only knows the size of when it has run.
    grown = {value for node in nodes for value in grown_outputs(node, types)}
    left = list(nodes)
    clusters: list[tuple[bool, list[ir.Node]]] = []
    native = True
    while left:
        members: list[ir.Node] = []
        rest: list[ir.Node] = []
        late: set[ir.Value] = set()
        for node in left:
            if is_native(node) == native and waiting[node] <= done:
                members.append(node)
                done.update(value for value in node.outputs if value not in grown)
                late.update(value for value in node.outputs if value in grown)
            else:
                rest.append(node)
        done |= late
        left = rest
        if members:
            clusters.append((native, members))
        native = not native
    return clusters


def _lower(
    members: Sequence[ir.Node],
    graph: ir.Graph,
    types: GraphTypes,
    known: Mapping[ir.Value, Array],
    level: Level,
    threads: int,
    pairs: bool,
    choices: Choices,
    refused: dict[ir.Node, str],
) -> Lowering:
    inside = frozenset(all_nodes(members))
    graph_outputs = set(graph.outputs)
    outputs = frozenset(
        value
        for node in members
        for value in node.outputs
        if value in graph_outputs or any(use.node not in inside for use in value.uses())
    )
    low = Lowering(level, types, known, outputs, threads, pairs, choices, nodes=frozenset(members))
    refused.update(lower_nodes(low, members))
    try:
        low.finish()
    except NotNative as reason:
        for value in outputs:
            producer = value.producer()
            if producer is not None and not _can_hold(low, value):
                refused[producer] = str(reason)
    return low


def _can_hold(low: Lowering, value: ir.Value) -> bool:
    try:
        low.dtype(value)
    except NotNative:
        return False
    return True
