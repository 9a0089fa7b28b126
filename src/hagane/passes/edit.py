"""Common work of passes: reading types, constants and users, making nodes, replacing values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import Shape, TensorType
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.context import known_attributes
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import schema_of
from hagane.ops.values import tensor_to_array
from hagane.symbolic import symbols_of


def name_of(node: ir.Node) -> str:
    """Return a reader's name of a node: its own, or that of its first output."""
    return node.name or next((value.name for value in node.outputs if value.name), node.op_type)


def attributes_of(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a node, those left out with their defaults."""
    return known_attributes(node, schema_of(node).defaults)


def given(node: ir.Node) -> dict[str, Any]:
    """Return the attributes of a node that are written out, for a call of ``op``."""
    return dict(node.attributes)


def type_of(value: ir.Value | None, types: GraphTypes) -> TensorType | None:
    """Return the type of a tensor, if its rank is known."""
    if value is None:
        return None
    found = types.types.get(value)
    if found is None and value.const_value is not None:
        shape = tuple(int(str(dim)) for dim in value.const_value.shape)
        return TensorType(value.const_value.dtype, shape)
    return found if isinstance(found, TensorType) and found.shape is not None else None


def shape_of(value: ir.Value | None, types: GraphTypes) -> Shape | None:
    """Return the shape of a tensor, if its rank is known."""
    found = type_of(value, types)
    return None if found is None else found.shape


def shown_by(graph: ir.Graph, types: GraphTypes) -> set[str]:
    """Return the named sizes that inputs of a graph show, and that stand for one size each."""
    found: set[str] = set()
    for value in graph.inputs:
        for dim in shape_of(value, types) or ():
            found |= symbols_of(dim) if {str(dim)} == symbols_of(dim) else set()
    return found - types.invented


def has_dtype(value: ir.Value | None, types: GraphTypes, *dtypes: ir.DataType) -> bool:
    """Whether a value is known to be a tensor of one of these element types."""
    found = type_of(value, types)
    return found is not None and found.dtype in dtypes


def is_read_once(value: ir.Value) -> bool:
    """Whether one node reads a value, in one place, and no graph returns it."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def readers(value: ir.Value, op_type: str) -> Iterator[ir.Node]:
    """Yield the nodes of an operator that read a value, each as often as it does."""
    for use in value.uses():
        if use.node.op_type == op_type and use.node.domain == "":
            yield use.node


def only_reader(value: ir.Value, op_type: str) -> ir.Node | None:
    """Return the node that alone reads a value, if it is of this operator."""
    if not is_read_once(value):
        return None
    return next(readers(value, op_type), None)


def constant(value: ir.Value | None, types: GraphTypes) -> Array | None:
    """Return the content of a value that the model fixes."""
    if value is None:
        return None
    if value.const_value is not None:
        return tensor_to_array(value.const_value)
    producer = value.producer()
    if producer is not None and producer.op_type == "Constant" and producer.domain == "":
        attribute = producer.attributes.get("value")
        if attribute is not None and attribute.type == ir.AttributeType.TENSOR:
            return tensor_to_array(attribute.value)
    known = types.values.get(value)
    return known if known is not None and known.dtype != object else None


def scalar(value: ir.Value | None, types: GraphTypes) -> float | None:
    """Return the number that a constant of one element holds."""
    array = constant(value, types)
    if array is None or array.size != 1 or array.dtype.kind not in "fiu":
        return None
    return float(array.reshape(-1)[0])


def producer(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """Return the node that makes a value, if it is of this operator."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type == op_type and node.domain == "" else None


def other_input(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """Return the other input of a node of two."""
    left, right = node.inputs
    return right if left is value else left


def replace_value(graph: ir.Graph, types: GraphTypes, old: ir.Value, new: ir.Value) -> None:
    """Let all readers of ``old`` read ``new``, outputs of the graph included."""
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    if any(output is old for output in graph.outputs):
        # The graph's outputs keep their names.
        name, old.name = old.name, None
        anchor = new.producer()
        # Results of a body are made in it: a value from outside would need two names.
        if anchor is None or anchor.graph is not graph or new.is_graph_output():
            with interpreting(Nodes(graph, types, name=f"{name} output")):
                new = op("Identity", new)
        new.name = name
        for i, output in enumerate(graph.outputs):
            if output is old:
                graph.outputs[i] = new


def add_initializer(graph: ir.Graph, name: str, content: Array | ir.TensorProtocol) -> ir.Value:
    """Return a new constant of the graph under a name that is free; a tensor is taken as it is."""
    free, number = name, 0
    while free in graph.initializers:
        number += 1
        free = f"{name}_{number}"
    if isinstance(content, np.ndarray | np.generic):
        # (ascontiguousarray would give a scalar an axis.)
        content = ir.tensor(np.asarray(content, order="C"))
    content.name = free
    value = ir.Value(name=free, const_value=content)
    value.shape = ir.Shape([int(str(dim)) for dim in content.shape])
    value.type = ir.TensorType(content.dtype)
    graph.register_initializer(value)
    return value


@contextmanager
def building(graph: ir.Graph, types: GraphTypes, before: ir.Node, name: str = "") -> Iterator[None]:
    """Let ``op`` insert nodes in front of another; ``name`` begins their names.

    Sizes that the shapes of its inputs show can be operands.
    """
    with interpreting(nodes_before(graph, types, before, name)):
        yield


def nodes_before(
    graph: ir.Graph,
    types: GraphTypes,
    before: ir.Node,
    name: str = "",
    added: Callable[[ir.Node], None] = lambda node: None,
) -> Nodes:
    """Return the builder that inserts nodes in front of another, and knows the sizes it reads."""
    nodes = Nodes(graph, types, before=before, name=name, added=added)
    for value in before.inputs:
        if value is not None:
            nodes.note_sizes(value)
    return nodes


@contextmanager
def keeping_place(graph: ir.Graph, node: ir.Node) -> Iterator[None]:
    """Give nodes that are put in the place of one its place in the source."""
    before, props = {*graph}, dict(node.metadata_props)
    yield
    for added in graph:
        if added not in before:
            added.metadata_props.update(props)


def put_in_place(graph: ir.Graph, types: GraphTypes, node: ir.Node, made: ir.Value) -> None:
    """Let readers of a node's first output read a value made for it; the node goes.

    The value keeps the type that the output had, and its node takes the name of the one that goes.
    """
    old, maker = node.outputs[0], made.producer()
    assert maker is not None
    maker.name = node.name
    if old in types.types:
        types.types[made] = types.types[old]
    replace_value(graph, types, old, made)
    remove_unread(graph, node)


def substitute(
    graph: ir.Graph,
    types: GraphTypes,
    node: ir.Node,
    op_type: str,
    inputs: Sequence[Any],
    **attributes: Any,
) -> None:
    """Put a new node of the same name in the place of one, and remove its own inputs."""
    with building(graph, types, node):
        made = op(op_type, *inputs, **attributes)
    put_in_place(graph, types, node, made)


def remove_unread(graph: ir.Graph, node: ir.Node) -> None:
    """Remove a node whose outputs nobody reads any more, and all that only it needed."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.graph is not graph or any(
            out.uses() or out.is_graph_output() for out in one.outputs
        ):
            continue
        makers = [value.producer() for value in one.inputs if value is not None]
        graph.remove(one, safe=True)
        waiting += [maker for maker in makers if maker is not None]


def remove(graph: ir.Graph, nodes: Sequence[ir.Node]) -> None:
    """Remove nodes whose outputs nobody reads any more."""
    graph.remove(nodes, safe=True)
