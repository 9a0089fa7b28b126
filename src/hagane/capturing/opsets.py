"""Captured graphs in opsets before the current one: 13 to 20."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.defs import OpSchema, SchemaError, get_schema

from hagane.capturing.earlier import bitwise, scattered
from hagane.errors import InvalidArgument
from hagane.graph import to_proto
from hagane.graph.names import separate_names
from hagane.graph.types import TensorType
from hagane.ops.builder import content_of, op, rank_of
from hagane.ops.builder.control import branch
from hagane.ops.builder.node import node_of
from hagane.ops.functions.chainer.elementwise import cumulative_product
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.inference import GraphTypes, infer_types
from hagane.ops.registry import operators
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    building,
    constant,
    keeping_place,
    put_in_place,
    replace_value,
)
from hagane.passes.expanding.expand_composed import expand_node

_LEAST = 13


def in_opset(model: ir.Model, opset: int) -> ir.Model:
    """Return a model in an earlier opset: the same model, changed in place.

    Operators that the opset lacks are written in others where hagane can; inputs that were
    attributes become attributes again; attributes that it lacks go where they say nothing.

    Raises:
        InvalidArgument: A node has no form in it.
    """
    if opset < _LEAST:
        raise InvalidArgument(f"opset={opset}: expected {_LEAST} or later")
    types = infer_types(model)
    for graph in _graphs(model.graph):
        for node in list(graph):
            if not node.domain and _schema(node, opset) is None:
                _write(graph, node, types)
        for node in list(graph):
            if not node.domain:
                _lower(graph, node, opset, types)
    for graph in _graphs(model.graph):
        _forget_unread(graph)
    separate_names(model.graph)
    _name_apart(model.graph)
    model.graph.opset_imports[""] = opset
    try:
        onnx.checker.check_model(to_proto(model), full_check=True)
    except Exception as error:
        raise InvalidArgument(
            f"the graph has no form in opset {opset}: {error}; leave out opset, or give a later one"
        ) from None
    return model


def _graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    for node in list(graph):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _graphs(attribute.as_graph())
    yield graph


def _schema(node: ir.Node, opset: int) -> OpSchema | None:
    try:
        return get_schema(node.op_type, opset, "")
    except SchemaError:
        return None


def _lower(graph: ir.Graph, node: ir.Node, opset: int, types: GraphTypes) -> None:
    schema = _schema(node, opset)
    if schema is None:
        raise InvalidArgument(
            f"{_name(node)}: opset {opset} has no {node.op_type}, and hagane cannot write it in "
            f"other operators; it is there from opset {_since(node)} on"
        )
    form = _FORMS.get(node.op_type)
    if form is not None:
        form(graph, node, schema, types)
    if node.graph is None:  # another one took its place
        return
    known = attributes_of(node)
    current = get_schema(node.op_type, onnx.defs.onnx_opset_version(), "")
    for name in [name for name in node.attributes if name not in schema.attributes]:
        default = onnx.helper.get_attribute_value(current.attributes[name].default_value)
        default = default.decode() if isinstance(default, bytes) else default
        if known.get(name) != default:
            raise InvalidArgument(
                f"{_name(node)}: opset {opset} has no attribute '{name}' of {node.op_type}; leave "
                "out opset, or give a later one"
            )
        del node.attributes[name]


def _write(graph: ir.Graph, node: ir.Node, types: GraphTypes) -> None:
    """Write a node in other operators, if there is a way; they keep its place."""
    with keeping_place(graph, node):
        if not expand_node(graph, node, types) and node.op_type in _WRITTEN:
            with building(graph, types, node):
                made = _WRITTEN[node.op_type](node, attributes_of(node))
            put_in_place(graph, types, node, made)


def _forget_unread(graph: ir.Graph) -> None:
    """Take out initializers that were inputs of nodes before, and are attributes now."""
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
            del graph.initializers[name]


def _name_apart(graph: ir.Graph) -> None:
    """Give each node a name of its own, as ONNX Runtime wants it."""
    seen: set[str] = set()
    for node in graph.all_nodes():
        name, count = node.name or node.op_type, 1
        while node.name in seen or not node.name:
            node.name, count = f"{name}_{count}", count + 1
        seen.add(node.name)


def _name(node: ir.Node) -> str:
    return node.metadata_props.get("hagane.place") or f"{node.op_type} '{node.name}'"


def _since(node: ir.Node) -> int:
    schemas = onnx.defs.get_all_schemas_with_history()
    versions = [s.since_version for s in schemas if s.name == node.op_type and not s.domain]
    return int(min(versions))


def _axes(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Make an attribute of the axes of a reduction."""
    if "axes" not in schema.attributes or len(node.inputs) < 2:
        return
    axes = node.inputs[1]
    if axes is not None:
        node.attributes["axes"] = ir.AttrInt64s("axes", _known(node, axes, types, "axes"))
    elif attributes_of(node).get("noop_with_empty_axes"):
        replace_value(graph, types, node.outputs[0], _input(node, 0))
        graph.remove(node)
        return
    node.resize_inputs(1)


def _pad(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Say the widths of all axes."""
    if len(schema.inputs) > 3 or len(node.inputs) < 4 or node.inputs[3] is None:
        node.resize_inputs(min(len(node.inputs), len(schema.inputs)))
        return
    rank = len(_input(node, 0).shape or ())
    axes = _known(node, _input(node, 3), types, "axes")
    widths = _known(node, _input(node, 1), types, "widths")
    whole = np.zeros(2 * rank, np.int64)
    for place, axis in enumerate(axes):
        whole[axis % rank] = widths[place]
        whole[axis % rank + rank] = widths[place + len(axes)]
    node.replace_input_with(1, add_initializer(graph, f"{node.name}_pads", whole))
    node.resize_inputs(3)


def _split(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Say the sizes of parts that are not all the same."""
    del graph, types
    if "num_outputs" in schema.attributes or "num_outputs" not in node.attributes:
        return
    axis = attributes_of(node).get("axis", 0)
    shape = _input(node, 0).shape
    size = None if shape is None else shape[axis]
    if not isinstance(size, int) or size % len(node.outputs):
        raise InvalidArgument(
            f"{_name(node)}: before opset 18, a Split into {len(node.outputs)} parts needs a size "
            f"that divides, got {size}; give opset=18 or a later one"
        )
    del node.attributes["num_outputs"]


def _shape(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Take a part of the shape by a node of its own."""
    if "start" in schema.attributes or not {"start", "end"} & {*node.attributes}:
        return
    found = attributes_of(node)
    bounds = [found.get("start") or 0, found.get("end")]
    bounds[1] = np.iinfo(np.int64).max if bounds[1] is None else bounds[1]
    whole = node_of(operators()["", "Shape"], [_input(node, 0)], {}, 1)
    whole.outputs[0].name = f"{node.outputs[0].name}_whole"
    inputs = [
        add_initializer(graph, f"{node.outputs[0].name}_{name}", np.array([bound], np.int64))
        for name, bound in zip(("first", "end"), bounds, strict=True)
    ]
    part = node_of(operators()["", "Slice"], [whole.outputs[0], *inputs], {}, 1)
    for made in (whole, part):
        made.metadata_props.update(node.metadata_props)
    old = node.outputs[0]
    part.outputs[0].type, part.outputs[0].shape = old.type, old.shape
    part.outputs[0].name = f"{old.name}_part"
    graph.insert_before(node, [whole, part])
    replace_value(graph, types, old, part.outputs[0])
    graph.remove(node)


def _reshape(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Leave out that a 0 is a size, or branch where only a run knows whether there is one."""
    if "allowzero" in schema.attributes or not attributes_of(node).get("allowzero"):
        return
    shape = constant(node.inputs[1], types)
    if shape is not None and np.all(shape != 0):
        del node.attributes["allowzero"]
        return
    before = {*graph}
    with building(graph, types, node):
        made = _reshaped(_input(node, 0), _input(node, 1))
    put_in_place(graph, types, node, made)
    for added in {*graph} - before:
        added.metadata_props.update(node.metadata_props)


def _reshaped(x: ir.Value, shape: ir.Value) -> Any:
    """Return a tensor in another shape, in which 0 is a size: of nothing, it is made anew."""
    zeros = np.zeros(1, _dtype(x))

    def of_nothing() -> list[Any]:
        return [op("ConstantOfShape", op("Max", shape, np.zeros(1, np.int64)), value=zeros)]

    empty = op("Equal", op("Size", x), np.zeros((), np.int64))
    return branch(empty, of_nothing, lambda: [op("Reshape", x, shape)], 1)[0]


def _sampled(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Call the ways of sampling by their former names."""
    del graph, types
    if schema.since_version < 20:
        mode = attributes_of(node).get("mode", "linear")
        former = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        node.attributes["mode"] = ir.AttrString("mode", former)


def _transformed(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Make an attribute of the axis of a Fourier transform."""
    del graph
    if "axis" not in schema.attributes:
        return
    given = node.inputs[2] if len(node.inputs) > 2 else None
    axis = -2 if given is None else _known(node, given, types, "axis")[0]
    found = types.types.get(_input(node, 0))
    rank = len(found.shape or ()) if isinstance(found, TensorType) else 0
    node.attributes["axis"] = ir.AttrInt64("axis", axis % rank if rank else axis)
    node.resize_inputs(min(2, len(node.inputs)))


def _joined(graph: ir.Graph, node: ir.Node, schema: OpSchema, types: GraphTypes) -> None:
    """Write a scatter that joins elements as a loop."""
    known = attributes_of(node)
    how = known.get("reduction", "none")
    least = {"none": 0, "add": 16, "mul": 16}.get(how, 18)
    if schema.since_version >= least:
        return
    before = {*graph}
    with building(graph, types, node):
        made = scattered(node, known)
    put_in_place(graph, types, node, made)
    for added in {*graph} - before:
        added.metadata_props.update(node.metadata_props)


def _known(node: ir.Node, value: ir.Value, types: GraphTypes, what: str) -> list[int]:
    found = constant(value, types)
    if found is None or found.dtype == object:
        raise InvalidArgument(
            f"{_name(node)}: the {what} of {node.op_type} come with the data, which takes opset "
            f"{20 if node.op_type == 'DFT' else 18} or a later one"
        )
    return [int(item) for item in found.reshape(-1)]


def _input(node: ir.Node, place: int) -> ir.Value:
    value = node.inputs[place]
    assert value is not None
    return value


def _gelu(node: ir.Node, known: dict[str, Any]) -> Any:
    x = _input(node, 0)
    dtype = _dtype(x)
    if known.get("approximate") == "tanh":
        cubes = op("Mul", op("Mul", x, x), x)
        inner = op("Add", x, op("Mul", cubes, np.array(0.044715, dtype)))
        gate = op("Tanh", op("Mul", inner, np.array(np.sqrt(2 / np.pi), dtype)))
    else:
        gate = op("Erf", op("Mul", x, np.array(np.sqrt(0.5), dtype)))
    return op("Mul", op("Mul", x, np.array(0.5, dtype)), op("Add", gate, np.array(1, dtype)))


def _hard_swish(node: ir.Node, known: dict[str, Any]) -> Any:
    del known
    x = _input(node, 0)
    return op("Mul", x, op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def _mish(node: ir.Node, known: dict[str, Any]) -> Any:
    del known
    x = _input(node, 0)
    return op("Mul", x, op("Tanh", op("Softplus", x)))


def _cumulative_product(node: ir.Node, known: dict[str, Any]) -> Any:
    axis = content_of(_input(node, 1))
    if known.get("exclusive") or known.get("reverse") or axis is None:
        raise InvalidArgument(
            f"{_name(node)}: a CumProd that is exclusive or reverse, or along an axis that data "
            "tell, needs opset 26 or a later one"
        )
    return cumulative_product(_input(node, 0), int(axis) % len(_input(node, 0).shape or (0,)))


def _layer_normalization(node: ir.Node, known: dict[str, Any]) -> Any:
    x, scale = _input(node, 0), _input(node, 1)
    if len(node.outputs) > 1 and any(value.uses() for value in node.outputs[1:]):
        raise InvalidArgument(f"{_name(node)}: mean and deviation need opset 17 or a later one")
    rank, axis = len(x.shape or ()), known.get("axis", -1)
    axes = np.array(range(axis % rank, rank), np.int64)
    centred = op("Sub", x, op("ReduceMean", x, axes, keepdims=1))
    variance = op("ReduceMean", op("Mul", centred, centred), axes, keepdims=1)
    epsilon = np.array(known.get("epsilon", 1e-5), _dtype(x))
    made = op("Mul", op("Div", centred, op("Sqrt", op("Add", variance, epsilon))), scale)
    return op("Add", made, _input(node, 2)) if len(node.inputs) > 2 else made


def _triangle(node: ir.Node, known: dict[str, Any]) -> Any:
    x = _input(node, 0)
    rank = rank_of(x)
    rows, columns = positions_along(x, rank - 2), positions_along(x, rank - 1)
    past = op("Sub", op("Unsqueeze", columns, [0]), op("Unsqueeze", rows, [1]))
    first = node.inputs[1] if len(node.inputs) > 1 else None
    diagonal = np.zeros((), np.int64) if first is None else first
    outside = op("Less" if known.get("upper", 1) else "Greater", past, diagonal)
    if x.dtype == ir.DataType.BOOL:  # ONNX Runtime has no Where of truth values
        return op("And", x, op("Not", outside))
    return op("Where", outside, np.zeros((), _dtype(x)), x)


def _dtype(value: ir.Value) -> Any:
    assert value.dtype is not None
    return value.dtype.numpy()


# Operators that an opset may lack, written in others.
_WRITTEN: dict[str, Callable[[ir.Node, dict[str, Any]], Any]] = {
    **{f"Bitwise{name}": bitwise for name in ("And", "Or", "Xor", "Not")},
    "CumProd": _cumulative_product,
    "Gelu": _gelu,
    "HardSwish": _hard_swish,
    "Mish": _mish,
    "LayerNormalization": _layer_normalization,
    "Trilu": _triangle,
}
_Form = Callable[[ir.Graph, ir.Node, OpSchema, GraphTypes], None]
_FORMS: dict[str, _Form] = {
    **{
        f"Reduce{name}": _axes
        for name in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
    },
    "Pad": _pad, "Split": _split, "Shape": _shape, "Reshape": _reshape,
    "GridSample": _sampled, "DFT": _transformed, "ScatterND": _joined, "ScatterElements": _joined,
}  # fmt: skip

__all__ = ["in_opset"]
