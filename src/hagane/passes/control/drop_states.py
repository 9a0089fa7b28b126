"""Take out of loops what they carry and leave for nobody."""

from __future__ import annotations

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.passes.edit import building, given, name_of, remove, replace_value


def drop_states(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Remove values of a Loop that nothing reads, neither in its body nor behind it; return where.

    These are states that the body leaves unread until it has computed the next one, and stacked
    results; a variable that only the last iteration sets for its own use becomes the former. A loop
    that leaves nothing else stays as it is: `remove_dead` removes it.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type == "Loop" and node.domain == "" and _rewrite(graph, node, types):
            changed.append(name_of(node))
    return changed


def _rewrite(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> bool:
    """Put a Loop without its unread values in the place of one; whether it has any."""
    body = node.attributes["body"].as_graph()
    n = max(0, len(node.inputs) - 2)
    unread = [not value.uses() and not value.is_graph_output() for value in node.outputs]
    if all(unread):
        return False
    gone = [
        i
        for i, free in enumerate(unread)
        if free and (i >= n or not (body.inputs[2 + i].uses() or _is_left(body, i)))
    ]
    if not gone:
        return False
    last = [body.outputs[1 + i] for i in gone]
    for i in reversed(gone):
        del body.outputs[1 + i]
        if i < n:
            del body.inputs[2 + i]
    inputs = [value for i, value in enumerate(node.inputs) if i - 2 not in gone]
    kept = [value for i, value in enumerate(node.outputs) if i not in gone]
    with building(graph, types, node):
        made = op("Loop", *inputs, outputs=len(kept), **given(node))
    results: tuple[ir.Value, ...] = made if isinstance(made, tuple) else (made,)
    loop = results[0].producer()
    assert loop is not None
    loop.name = node.name
    loop.metadata_props.update(node.metadata_props)
    for old, new in zip(kept, results, strict=True):
        if old in types.types:
            types.types[new] = types.types[old]
        if not old.name:
            new.name = old.name
        replace_value(graph, types, old, new)
    remove(graph, [node])
    _clear(body, last)
    return True


def _is_left(body: ir.Graph, index: int) -> bool:
    """Whether a state before an iteration is left as another value."""
    before = body.inputs[2 + index]
    return any(v is before for i, v in enumerate(body.outputs) if i != 1 + index)


def _clear(body: ir.Graph, values: list[ir.Value]) -> None:
    """Remove what only made values that are no outputs of a body any more."""
    waiting = [value.producer() for value in values]
    while waiting:
        one = waiting.pop()
        if one is None or one.graph is not body:
            continue
        if any(out.uses() or any(out is each for each in body.outputs) for out in one.outputs):
            continue
        makers = [value.producer() for value in one.inputs if value is not None]
        body.remove(one, safe=True)
        waiting += makers
