"""Sizes of a loop's states that are the same in all iterations if two names stand for one number.

A state ``[s]`` to which rows ``[w]`` are added is ``[max(s, w)]`` from the first iteration on, for it may
broadcast. Nearly always ``s`` and ``w`` are equal. The part is compiled for sizes that are, and a run
compares them: other sizes go to the reference kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType, Type
from hagane.graph.walk import all_nodes, captured
from hagane.ops.control.growth import Growth, growths, with_sizes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, Expr, evaluate, symbol, symbols_of

# Loops in loops tell each other of their sizes; so many rounds.
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class SteadySizes:
    """Names of sizes, the sizes that they are, and what has to be equal for that.

    Attributes:
        sizes: By name.
        equal: Sizes that a run has to compare, by the loop.
    """

    sizes: Mapping[str, Dim]
    equal: Mapping[ir.Node, tuple[tuple[Dim, Dim], ...]]


def steady_sizes(nodes: Iterable[ir.Node], types: GraphTypes) -> SteadySizes:
    """Return the sizes of states, in loops among nodes and in their bodies, that can be steady."""
    loops = [node for node in all_nodes(nodes) if _is_loop(node)]
    sizes: dict[str, Dim] = {}
    equal: dict[ir.Node, tuple[tuple[Dim, Dim], ...]] = {}
    for _ in range(_ROUNDS if loops else 0):
        found: dict[str, Dim] = {}
        for node in loops:
            made, pairs = _of_loop(node, types, {**sizes, **found})
            found |= made
            if pairs:
                equal[node] = (*equal.get(node, ()), *pairs)
        if not found:
            break
        sizes = {name: evaluate(dim, found) for name, dim in (sizes | found).items()}
    told = {
        node: tuple((evaluate(left, sizes), evaluate(right, sizes)) for left, right in pairs)
        for node, pairs in equal.items()
    }
    return SteadySizes(sizes, told)


def with_steady_sizes(nodes: Sequence[ir.Node], types: GraphTypes) -> GraphTypes:
    """Return types in which steady sizes stand for their names, and the loops assume them."""
    found = steady_sizes(nodes, types)
    if not found.sizes:
        return types
    names, sizes = found.sizes.keys(), found.sizes

    def pairs_of(
        noted: Mapping[ir.Node, tuple[tuple[Dim, Dim], ...]],
    ) -> dict[ir.Node, tuple[tuple[Dim, Dim], ...]]:
        return {
            node: tuple((evaluate(left, sizes), evaluate(right, sizes)) for left, right in pairs)
            for node, pairs in noted.items()
        }

    assumed = pairs_of(types.assumed)
    for node, pairs in found.equal.items():
        assumed[node] = (*assumed.get(node, ()), *pairs)
    kept: dict[ir.Value, Type] = {}
    for value, type_ in types.types.items():
        made = with_sizes(type_, sizes)
        assert made is not None
        kept[value] = made
    return replace(
        types,
        types=kept,
        values={value: _content(array, sizes) for value, array in types.values.items()},
        invented=types.invented - names,
        assumed=assumed,
        broadcast=pairs_of(types.broadcast),
    )


def _content(array: Array, sizes: Mapping[str, Dim]) -> Array:
    """Return known content with sizes in the place of names."""
    if array.dtype != object or not any(isinstance(item, Expr) for item in array.flat):
        return array
    made = np.empty(array.shape, object)
    flat = [evaluate(item, sizes) if isinstance(item, Expr) else item for item in array.flat]
    made.reshape(-1)[:] = flat
    return made


def _is_loop(node: ir.Node) -> bool:
    return node.op_type in ("Loop", "Scan") and node.domain in ("", "ai.onnx")


def _of_loop(
    node: ir.Node, types: GraphTypes, sizes: Mapping[str, Dim]
) -> tuple[dict[str, Dim], list[tuple[Dim, Dim]]]:
    """Return the steady sizes of one loop, and the sizes that have to be equal."""
    body = node.attributes["body"].as_graph()
    if node.op_type == "Loop":
        skipped, passed, count = 2, 1, len(node.inputs) - 2
    else:
        skipped, passed = 0, 0
        count = len(node.inputs) - node.attributes["num_scan_inputs"].as_int()
    if count <= 0:
        return {}, []

    def types_of(values: Sequence[ir.Value | None]) -> list[Type | None]:
        return [with_sizes(types.types.get(v), sizes) if v is not None else None for v in values]

    grown = growths(
        types_of(node.inputs[skipped : skipped + count]),
        types_of(body.inputs[skipped : skipped + count]),
        types_of(body.outputs[passed : passed + count]),
    )
    outside = {name for each in types_of((*node.inputs, *captured(body))) for name in _names(each)}
    steady = _steady_names(
        grown.values(), types.invented, _pairs_within(body, types, sizes), outside
    )
    if not steady:
        return {}, []
    made = dict(steady)
    pairs: dict[tuple[Dim, Dim], None] = {}
    results = types_of(node.outputs[:count])
    for (index, axis), growth in grown.items():
        name, result = str(growth.before), results[index]
        if name not in steady:
            continue
        pairs[growth.start, steady[name]] = None
        last = result.shape[axis] if isinstance(result, TensorType) and result.shape else 0
        if isinstance(last, Expr) and {str(last)} == symbols_of(last) & types.invented:
            made[str(last)] = steady[name]
    items = types_of(body.outputs[passed + count :])
    axes = node.attributes.get("scan_output_axes")
    for i, (item, whole) in enumerate(zip(items, types_of(node.outputs[count:]), strict=True)):
        made |= _names_of_items(item, whole, axes.as_ints()[i] if axes else 0, steady, types)
    return made, list(pairs)


def _names(type_: Type | None) -> frozenset[str]:
    """Return the names of sizes in a type."""
    shape = type_.shape if isinstance(type_, TensorType) else None
    return frozenset(name for dim in shape or () for name in symbols_of(dim))


def _steady_names(
    grown: Collection[Growth],
    invented: Collection[str],
    pairs: Iterable[tuple[Dim, Dim]],
    outside: Collection[str],
) -> dict[str, Dim]:
    """Return names that stand for one size from the first iteration on, and these sizes.

    Args:
        grown: The sizes of states.
        invented: Names that no input tells.
        pairs: Sizes that the body needs to be equal.
        outside: Names of sizes of values that the loop reads.
    """
    own = {
        str(growth.before): growth
        for growth in grown
        if {str(growth.before)} == symbols_of(growth.before) & set(invented)
    }
    if any(own.get(str(g.before), g) != g for g in grown):
        return {}  # one name, two courses
    firsts = {name: growth.start for name, growth in own.items()}
    then = {name: evaluate(growth.after, firsts) for name, growth in own.items()}
    tied = {name for pair in pairs for dim in pair for name in symbols_of(dim)}
    steady = {
        name: then[name]
        for name, growth in own.items()
        # A start of known length broadcasts, or does not: nothing is left for a run to compare.
        if name in tied
        and isinstance(growth.start, Expr)
        and evaluate(growth.after, then) == then[name]
        # What each iteration finds anew, such as the count of kept rows, is not steady.
        and not (symbols_of(then[name]) & set(invented)) - set(outside)
    }
    # A size that follows from one that differs is not steady.
    while late := {n for n in steady if symbols_of(own[n].after) & (own.keys() - steady.keys())}:
        steady = {name: dim for name, dim in steady.items() if name not in late}
    return steady


def _pairs_within(
    body: ir.Graph, types: GraphTypes, sizes: Mapping[str, Dim]
) -> Iterator[tuple[Dim, Dim]]:
    """Yield the sizes that the nodes of a body need to be equal."""
    for node in all_nodes(body):
        for left, right in types.assumed.get(node, ()):
            yield evaluate(left, sizes), evaluate(right, sizes)


def _names_of_items(
    item: Type | None,
    whole: Type | None,
    axis: int,
    steady: Mapping[str, Dim],
    types: GraphTypes,
) -> dict[str, Dim]:
    """Return the names that a stack of items has for sizes that are steady."""
    if not isinstance(item, TensorType) or not isinstance(whole, TensorType):
        return {}
    if item.shape is None or whole.shape is None:
        return {}
    axis %= len(whole.shape)
    made: dict[str, Dim] = {}
    sides = whole.shape[:axis] + whole.shape[axis + 1 :]
    for one, of_all in zip(item.shape, sides, strict=True):
        inside = symbols_of(one) & steady.keys()
        outside = (symbols_of(of_all) - symbols_of(one)) & types.invented
        if len(inside) == 1 and len(outside) == 1:
            (name,), (other,) = inside, outside
            if evaluate(one, {name: symbol(other)}) == of_all:
                made[other] = steady[name]
    return made
