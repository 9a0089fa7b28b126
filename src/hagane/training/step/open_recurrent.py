"""LSTMs of a training step as products and steps, whose values the way back reads."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, interpreting, op, size_of
from hagane.ops.functions.numbers.elementary import add, unsqueeze
from hagane.ops.inference import GraphTypes
from hagane.ops.recurrent.composed import hidden_size, one_direction, part
from hagane.ops.recurrent.steps import DOMAIN, STEPS
from hagane.passes.edit import attributes_of, nodes_before, remove_unread, replace_value

_LAST = 1 << 62


def open_recurrent(graph: ir.Graph, types: GraphTypes) -> None:
    """Write LSTMs as one product of all inputs, and the steps, whose gates are kept.

    The gradient of the operator itself would compute the forward half anew. Those with other
    activations, clipping, peepholes, coupled gates, lengths, or batches first stay as they are.
    """
    for node in list(graph):
        if node.op_type == "LSTM" and node.domain == "" and _is_plain(node):
            with interpreting(nodes_before(graph, types, node, node.name or "")):
                made = _opened(node)
            for old, new in zip(node.outputs, made, strict=False):
                replace_value(graph, types, old, new)
            remove_unread(graph, node)


def _is_plain(node: ir.Node) -> bool:
    attributes = attributes_of(node)
    activations = list(attributes.get("activations") or ())
    usual = ["Sigmoid", "Tanh", "Tanh"] * (len(activations) // 3)
    others = any(attributes.get(name) for name in ("clip", "input_forget", "layout"))
    return activations == usual and not others and not (_input(node, 4) or _input(node, 7))


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if len(node.inputs) > index else None


def _opened(node: ir.Node) -> list[Any]:
    x, w, r = node.inputs[:3]
    bias, direction = _input(node, 3), attributes_of(node)["direction"]
    hidden = hidden_size(r)
    sequences: list[Any] = []
    states: list[list[Any]] = [[], []]
    for d in range(2 if direction == "bidirectional" else 1):
        of_all = op("MatMul", x, op("Transpose", one_direction(w, d), perm=[1, 0]))
        if bias is not None:
            both = one_direction(bias, d)
            halves = part(both, 0, 4 * hidden), part(both, 4 * hidden, 8 * hidden)
            of_all = add(of_all, add(*halves))
        first = [_input(node, 5), _input(node, 6)]
        begun = [_zeros(x, hidden) if h is None else one_direction(h, d) for h in first]
        reverse = int(direction == "reverse" or d == 1)
        y, cells, _ = op(
            STEPS, of_all, one_direction(r, d), *begun, reverse=reverse, domain=DOMAIN, outputs=3
        )
        sequences.append(unsqueeze(y, [1]))
        for kept, steps in zip(states, (y, cells), strict=True):
            bounds = ([0], [1]) if reverse else ([-1], [_LAST])
            kept.append(op("Slice", steps, *bounds, [0]))
    return [op("Concat", *sequences, axis=1), *(op("Concat", *kept, axis=0) for kept in states)]


def _zeros(x: Any, hidden: Any) -> Any:
    return op("Expand", op("Cast", 0.0, to=dtype_of(x)), [size_of(x, 1), hidden])
