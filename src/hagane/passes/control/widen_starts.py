"""Let states of a loop begin with the shape that its iterations give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from hagane.graph.types import Shape
from hagane.graph.walk import bodies, captured
from hagane.ops.builder import branch, op
from hagane.ops.control.loop import hands_on, is_true
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    building,
    constant,
    given,
    name_of,
    remove,
    replace_value,
    shape_of,
    shown_by,
)
from hagane.symbolic import Dim, Expr, maximum, symbols_of

# Operators all of whose inputs broadcast to one shape.
_BROADCASTING = frozenset(
    {
        "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
        "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow",
        "Sub", "Sum", "Where", "Xor",
    }
)  # fmt: skip


def widen_starts(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Expand initial values of Loops that broadcast in the first iteration; return where.

    A sum that begins as 0, or as one element, has the shape of what is added from the first
    iteration on, and kernels are for states of one shape. All that the body computes of such a
    state up to its outputs must be elementwise, in branches too, and its outputs the same if the
    state is expanded. Where nothing tells that there is an iteration, the loop goes into a branch,
    for its result is the initial value if there is none; a loop that leaves stacked values stays
    where it is, and the branch behind it picks the result.

    Sizes must be numbers, or names that inputs of the graph show.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Loop" or node.domain != "":
            continue
        for index in range(2, len(node.inputs)):
            shape = _lasting(graph, node, index, types) if node.graph is graph else None
            if shape is not None and _widen(graph, node, index, shape, types):
                changed.append(f"{name_of(node)} {node.outputs[index - 2].name}".strip())
    return changed


def _widen(graph: ir.Graph, node: ir.Node, index: int, shape: Shape, types: GraphTypes) -> bool:
    """Expand an initial value, or let a branch do so; return whether that may be done."""
    limit, going, start = node.inputs[0], node.inputs[1], node.inputs[index]
    assert start is not None
    count, begins = constant(limit, types), going is None or is_true(constant(going, types))
    certain = limit is None or (count is not None and count.size == 1 and int(count.max()) > 0)
    if certain and begins:
        with building(graph, types, node):
            wide = op("Expand", start, [*shape])
        node.replace_input_with(index, wide)
        result = node.outputs[index - 2]
        if _names(shape_of(result, types)) & types.invented:
            result.shape = None  # a name of a size that is another now
        return True
    with building(graph, types, node):
        runs = op("Greater", 1 if limit is None else op("Reshape", limit, [1]), [0])
        if not begins:
            runs = op("And", runs, op("Reshape", going, [1]))
        if _leaves_states_alone(node):
            _part(graph, node, index, runs, shape, types)
        else:
            _choose(graph, node, index, runs, shape, types)
    return True


def _leaves_states_alone(node: ir.Node) -> bool:
    """Whether nobody reads more of a loop than its states, of which each has an initial value."""
    states = len(node.inputs) - 2
    rest = node.outputs[states:]
    return None not in node.inputs[2:] and not any(v.uses() or v.is_graph_output() for v in rest)


def _names(shape: Shape | None) -> set[str]:
    return {name for dim in shape or () for name in symbols_of(dim)}


def _part(
    graph: ir.Graph, node: ir.Node, index: int, runs: ir.Value, shape: Shape, types: GraphTypes
) -> None:
    """Put a loop into the branch that is taken if there is an iteration; called while building."""
    states = node.outputs[: len(node.inputs) - 2]

    def then() -> Sequence[ir.Value]:
        inputs = list(node.inputs)
        inputs[index] = op("Expand", inputs[index], [*shape])
        made = op("Loop", *inputs, outputs=len(node.outputs), **given(node))
        return (made if isinstance(made, tuple) else (made,))[: len(states)]

    results = branch(runs, then, lambda: node.inputs[2:], len(states))
    for old, new in zip(states, results, strict=True):
        if old in types.types:
            types.types[new] = types.types[old]
        replace_value(graph, types, old, new)
    remove(graph, [node])


def _choose(
    graph: ir.Graph, node: ir.Node, index: int, runs: ir.Value, shape: Shape, types: GraphTypes
) -> None:
    """Choose behind a loop between a state's last value and its first; called while building."""
    start = node.inputs[index]
    inputs = list(node.inputs)
    inputs[index] = op("Expand", start, [*shape])
    found = op("Loop", *inputs, outputs=len(node.outputs), **given(node))
    made = list(found if isinstance(found, tuple) else (found,))
    result = node.outputs[index - 2]
    if result.uses() or result.is_graph_output():
        last = made[index - 2]
        if last.shape is not None and _names(shape_of(result, types)) & types.invented:
            last.shape = None  # a name of a size that is another now
        (made[index - 2],) = branch(runs, lambda: (last,), lambda: (start,), 1)
    for old, new in zip(node.outputs, made, strict=True):
        if old in types.types:
            types.types[new] = types.types[old]
        replace_value(graph, types, old, new)
    remove(graph, [node])


def _lasting(graph: ir.Graph, node: ir.Node, index: int, types: GraphTypes) -> Shape | None:
    """Return the shape of a state after any iteration, if it begins with one that broadcasts."""
    body = node.attributes["body"].as_graph()
    before, after = body.inputs[index], body.outputs[index - 1]
    begun = shape_of(node.inputs[index], types)
    if begun is None or hands_on(after) is before:
        return None
    first = _shapes(body, before, begun, types)
    lasting = None if first is None else first.get(after)
    if first is None or lasting is None or lasting == begun:
        return None
    if _names(lasting) - shown_by(graph, types):
        return None
    then = _shapes(body, before, lasting, types)
    if then is None or any(first.get(value) != then.get(value) for value in body.outputs):
        return None
    return lasting


def _shapes(
    body: ir.Graph, before: ir.Value, shape: Shape, types: GraphTypes
) -> Mapping[ir.Value, Shape] | None:
    """Return the shapes of all that follows from a value of some shape, element by element.

    None if something else follows from it, or a shape is not known.
    """
    found: dict[ir.Value, Shape] = {before: shape}
    return found if _follow(body, found, types) else None


def _follow(graph: ir.Graph, found: dict[ir.Value, Shape], types: GraphTypes) -> bool:
    """Add the shapes of a graph's values that follow from known ones; whether all can be told.

    The branches of an If are followed alike, if both give its results the same shapes.
    """
    for node in graph:
        inner = list(bodies(node))
        if any(value in found for each in inner for value in captured(each)):
            if not _follow_branches(node, inner, found, types):
                return False
            continue
        read = [i for i, value in enumerate(node.inputs) if value in found]
        if not read:
            continue
        plain = Trait.ELEMENTWISE in find(node).traits or node.op_type == "Identity"
        if not plain or len(node.outputs) != 1:
            return False
        if read != [0] and (node.domain != "" or node.op_type not in _BROADCASTING):
            return False
        made: Shape | None = ()
        for value in node.inputs:
            given = found.get(value) if value in found else shape_of(value, types)
            if value is not None:
                made = _broadcast(made, given)
        if made is None:
            return False
        found[node.outputs[0]] = made
    return True


def _follow_branches(
    node: ir.Node, branches: Sequence[ir.Graph], found: dict[ir.Value, Shape], types: GraphTypes
) -> bool:
    """Add the shapes of an If's results; whether they can be told, and do not depend on it."""
    if node.op_type != "If" or node.domain != "" or node.inputs[0] in found:
        return False
    if not all(_follow(each, found, types) for each in branches):
        return False
    for result, *values in zip(node.outputs, *(each.outputs for each in branches), strict=True):
        shapes = [found.get(v) if v in found else shape_of(v, types) for v in values]
        if shapes[0] is None or any(shape != shapes[0] for shape in shapes):
            return False
        found[result] = shapes[0]
    return True


def _broadcast(left: Shape | None, right: Shape | None) -> Shape | None:
    """Return the shape of two that broadcast; of sizes with names, the larger one's."""
    if left is None or right is None:
        return None
    rank = max(len(left), len(right))
    pairs = zip(_lifted(left, rank), _lifted(right, rank), strict=True)
    made = tuple(_larger(a, b) for a, b in pairs)
    return None if None in made else made  # type: ignore[return-value]


def _larger(left: Dim, right: Dim) -> Dim | None:
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    if isinstance(left, Expr) and isinstance(right, Expr):
        return maximum(left, right)
    return None


def _lifted(shape: Shape, rank: int) -> tuple[Dim, ...]:
    return (1,) * (rank - len(shape)) + tuple(shape)
