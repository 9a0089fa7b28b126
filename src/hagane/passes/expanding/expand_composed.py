"""Write operators that ONNX lacks in operators that it has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, wraps
from typing import Any

import onnx_ir as ir

from hagane.errors import HaganeError, TypeInferenceError
from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes
from hagane.ops.builder import dtype_of, interpreting, op
from hagane.ops.definition import Kernel, OpDef
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import find
from hagane.ops.schema import onnx_schema
from hagane.ops.vjp import call_composed
from hagane.passes import WRITTEN_IN_OTHERS
from hagane.passes.edit import attributes_of, name_of, nodes_before, remove_unread, replace_value

# Operators for which engines may have kernels: of weights while packing, of windows in place, of
# all steps at once.
_LATE = frozenset(
    {("com.microsoft", "MatMulNBits"),
     *(("hagane", name) for name in (
         "AveragePoolGradient", "BatchNormTraining", "BatchNormTrainingGradient",
         "ConvWeightGradient", "LSTMSteps", "LSTMStepsGradient", "LayerNormTraining",
         "LayerNormTrainingGradient", "MaxPoolGradient", "SelectGreater",
     ))}
)  # fmt: skip


def expand_composed(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace nodes of operators that ONNX does not define, and of losses, by their compositions.

    Definitions have these (``OpDef.compose``). The nodes in their place have the same element
    types, and other passes and all kernels serve them. Nothing changes where a definition cannot
    write a call in other operators, or where the type of an input or output is not known.
    """
    changed: list[str] = []
    for node in list(graph):
        definition = find(node)
        if not callable(definition.compose) or definition.key in _LATE:
            continue
        if _is_onnx(*definition.key) and node.op_type not in WRITTEN_IN_OTHERS:
            continue
        if all(_is_typed(value, types) for value in (*node.inputs, *node.outputs)):
            name = name_of(node)
            if _expand(graph, node, definition, _if_typed(definition.compose), types):
                changed.append(name)
    return changed


def expand_own(graph: ir.Graph, types: GraphTypes) -> None:
    """Write operators of hagane's own, which other engines do not know, in others."""
    for node in list(all_nodes(graph)):
        if node.domain == "hagane" and isinstance(node.graph, ir.Graph):
            expand_node(node.graph, node, types)


def expand_node(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> bool:
    """Replace one node by its composition, of an operator of ONNX too, if there is one."""
    definition = find(node)
    if not callable(definition.compose):
        return False
    if not all(_is_typed(value, types) for value in (*node.inputs, *node.outputs)):
        return False
    return _expand(graph, node, definition, _or_nothing(definition.compose), types)


def _or_nothing(compose: Kernel) -> Kernel:
    """Return a composition that gives up where it needs numbers for sizes that are open."""

    @wraps(compose)
    def attempt(*inputs: Any, **attributes: Any) -> Any:
        try:
            return compose(*inputs, **attributes)
        except (HaganeError, ArithmeticError, AssertionError, TypeError, ValueError):
            return None

    return attempt


def _if_typed(compose: Kernel) -> Kernel:
    """Return a composition that gives up where its operators lack the operator's element types.

    So it does where fixed sizes make no operation, which the reference kernel says in a run.
    """

    @wraps(compose)
    def attempt(*inputs: Any, **attributes: Any) -> Any:
        try:
            return compose(*inputs, **attributes)
        except (TypeInferenceError, ArithmeticError):
            return None

    return attempt


@cache
def _is_onnx(domain: str, name: str) -> bool:
    return onnx_schema(domain, name) is not None


def _is_typed(value: ir.Value | None, types: GraphTypes) -> bool:
    if value is None or not value.name:
        return True
    found = types.types.get(value)
    return isinstance(found, TensorType) and found.shape is not None


def _expand(
    graph: ir.Graph, node: ir.Node, definition: OpDef, compose: Kernel, types: GraphTypes
) -> bool:
    added: list[ir.Node] = []
    with interpreting(nodes_before(graph, types, node, name_of(node), added.append)):
        results = call_composed(compose, node.inputs, attributes_of(node), len(node.outputs))
        made = None if results is None else _typed(results, node.outputs, types)
    for old, new in zip(node.outputs, made or (), strict=False):
        if new is not None:
            replace_value(graph, types, old, new)
    for one in reversed(added):  # results that nobody reads, or all where there are none
        remove_unread(graph, one)
    if made is not None:
        _hand_on(node, [one for one in added if one.graph is not None], types)
        remove_unread(graph, node)
    return made is not None


def _hand_on(node: ir.Node, made: Sequence[ir.Node], types: GraphTypes) -> None:
    """Let a node of a composition need what the operator needs of sizes, beside its own needs.

    (Where sizes may broadcast, it is the nodes of the composition that let them.)
    """
    free = types.broadcast.get(node, ())
    pairs = tuple(pair for pair in types.assumed.get(node, ()) if pair not in free)
    if pairs:
        types.need(reversed(made), pairs)


def _typed(
    results: Sequence[Any], outputs: Sequence[ir.Value], types: GraphTypes
) -> list[ir.Value | None] | None:
    """Return results with the element types of the outputs, None for outputs that nobody reads."""
    made: list[ir.Value | None] = []
    for old, new in zip(outputs, results, strict=True):
        wanted = types.types.get(old)
        if not old.uses() and not old.is_graph_output():
            new = None
        elif new is None:
            return None
        elif isinstance(wanted, TensorType) and dtype_of(new) != wanted.dtype:
            new = op("Cast", new, to=wanted.dtype)
        made.append(new)
    return made
