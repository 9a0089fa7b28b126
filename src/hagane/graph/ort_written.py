"""ONNX models in ONNX Runtime's own format (``.ort``); ``ort_format.py`` reads them.

ONNX Runtime does not look at a model in this format again: attributes that an operator has by
default, the version of each operator and the edges between nodes stand in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx
import onnx_ir as ir
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from hagane.errors import InvalidArgument
from hagane.graph.flat_written import Content, NewTable, Number, Numbers, written

_IDENTIFIER = b"ORTM"
_VERSION = "6"  # of the format, since ONNX Runtime 1.18
_PROVIDER = "CPUExecutionProvider"


def write_ort(model: onnx.ModelProto) -> bytes:
    """Return a model in ONNX Runtime's format.

    Args:
        model: Of a current opset; its weights lie in it.

    Raises:
        InvalidArgument: It has functions of its own, or 2 GiB or more.
    """
    if model.functions:
        names = ", ".join(function.name for function in model.functions)
        raise InvalidArgument(f"ONNX Runtime's format has no functions of the model's own: {names}")
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    made = NewTable(
        {
            0: Number("q", model.ir_version),
            1: [
                NewTable({0: entry.domain, 1: Number("q", entry.version)})
                for entry in model.opset_import
            ],
            2: model.producer_name,
            3: model.producer_version,
            4: model.domain,
            5: Number("q", model.model_version),
            6: model.doc_string,
            7: _graph(model.graph, opsets, {}),
            8: model.graph.doc_string,
            9: [NewTable({0: entry.key, 1: entry.value}) for entry in model.metadata_props],
        }
    )
    return written(NewTable({0: _VERSION, 1: made, 3: _resolver(model.graph, opsets)}), _IDENTIFIER)


_Types: TypeAlias = Mapping[str, TypeProto | None]


def _graph(graph: GraphProto, opsets: Mapping[str, int], outside: _Types) -> NewTable:
    """Return a graph.

    Args:
        graph: Its nodes are in order.
        opsets: Versions by domain.
        outside: What graphs around it define, with their types.
    """
    types = {
        **outside,
        **{tensor.name: _type_of(tensor) for tensor in graph.initializer},
        **{info.name: info.type for info in (*graph.value_info, *graph.output, *graph.input)},
    }
    names = dict.fromkeys(name for name in types if name not in outside)
    for node in graph.node:
        names.update(dict.fromkeys((*node.input, *node.output)))
    implicit = [_implicit(node) for node in graph.node]
    for captured in implicit:
        names.update(dict.fromkeys(captured))
    known = {**outside, **{name: types.get(name) for name in names}}
    return NewTable(
        {
            0: [_tensor(tensor) for tensor in graph.initializer],
            1: [_value(ValueInfoProto(name=name, type=types.get(name))) for name in names],
            2: [
                _node(node, number, opsets, known, implicit[number])
                for number, node in enumerate(graph.node)
            ],
            3: Number("I", len(graph.node)),
            4: _edges(graph.node, implicit),
            5: [info.name for info in graph.input],
            6: [info.name for info in graph.output],
        }
    )


def _type_of(tensor: TensorProto) -> TypeProto:
    return onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _bodies(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _implicit(node: NodeProto) -> list[str]:
    """Return the names that the bodies of a node read from outside."""
    found: dict[str, None] = {}
    for body in _bodies(node):
        own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer}
        own |= {name for inner in body.node for name in inner.output}
        reads = [name for inner in body.node for name in (*inner.input, *_implicit(inner))]
        reads += [info.name for info in body.output]
        found.update(dict.fromkeys(name for name in reads if name and name not in own))
    return list(found)


@dataclass(frozen=True, slots=True)
class _Schema:
    """What ONNX says of an operator."""

    version: int
    counts: list[int]
    defaults: list[AttributeProto]


def _definition(node: NodeProto, opsets: Mapping[str, int]) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return None


def _schema(node: NodeProto, opsets: Mapping[str, int]) -> _Schema:
    count = len(node.input)
    found = _definition(node, opsets)
    if found is None:
        return _Schema(1, [1] * count, [])
    counts = [1] * min(count, len(found.inputs))
    if count > len(counts):  # of the last one there are any number
        counts[-1] += count - len(counts)
    given = {attribute.name for attribute in node.attribute}
    defaults = [
        attribute.default_value
        for name, attribute in found.attributes.items()
        if name not in given and attribute.default_value.type
    ]
    return _Schema(found.since_version, counts, defaults)


def _resolver(graph: GraphProto, opsets: Mapping[str, int]) -> NewTable:
    """Return for each operator which of its arguments have the types that its kernels name."""
    found: dict[str, dict[str, list[NewTable]]] = {}
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            graphs.extend(_bodies(node))
            schema = _definition(node, opsets)
            if schema is not None:
                name = f"{node.domain}:{node.op_type}:{schema.since_version}"
                found[name] = _typed_arguments(schema)
    return NewTable(
        {
            0: [
                NewTable({0: name, 1: [NewTable({0: n, 1: each[n]}) for n in sorted(each)]})
                for name, each in sorted(found.items())
            ]
        }
    )


def _typed_arguments(schema: onnx.defs.OpSchema) -> dict[str, list[NewTable]]:
    """Return the arguments of each type, by its name or, where it has none, by the argument's."""
    named = {constraint.type_param_str for constraint in schema.type_constraints}
    found: dict[str, list[NewTable]] = {}
    for side, arguments in enumerate((schema.inputs, schema.outputs)):
        for place, argument in enumerate(arguments):
            name = argument.type_str if argument.type_str in named else argument.name
            made = NewTable({0: Number("b", side), 1: Number("I", place)})
            found.setdefault(name, []).append(made)
    return found


def _node(
    node: NodeProto,
    number: int,
    opsets: Mapping[str, int],
    outside: _Types,
    implicit: Sequence[str],
) -> NewTable:
    schema = _schema(node, opsets)
    return NewTable(
        {
            0: node.name,
            1: node.doc_string,
            2: node.domain,
            3: Number("i", schema.version),
            4: Number("I", number),
            5: node.op_type,
            7: _PROVIDER,
            8: list(node.input),
            9: list(node.output),
            10: [
                _attribute(attribute, opsets, outside)
                for attribute in (*node.attribute, *schema.defaults)
            ],
            11: Numbers("i", schema.counts),
            12: [name for name in implicit if name in outside],
        }
    )


def _edges(nodes: Sequence[NodeProto], implicit: Sequence[Sequence[str]]) -> list[NewTable]:
    """Return for each node the ends of the edges to those before and behind it."""
    makers = {name: (n, i) for n, node in enumerate(nodes) for i, name in enumerate(node.output)}
    before: list[list[int]] = [[] for _ in nodes]
    behind: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes):
        for place, name in enumerate((*node.input, *implicit[number])):
            if name and name in makers:
                maker, source = makers[name]
                before[number] += [maker, source, place]
                behind[maker] += [number, source, place]
    return [
        NewTable({0: Number("I", n), 1: Numbers("Iii", before[n]), 2: Numbers("Iii", behind[n])})
        for n in range(len(nodes))
    ]


def _attribute(attribute: AttributeProto, opsets: Mapping[str, int], outside: _Types) -> NewTable:
    fields: dict[int, Content] = {0: attribute.name, 2: Number("i", attribute.type)}
    match attribute.type:
        case AttributeProto.FLOAT:
            fields[3] = Number("f", attribute.f)
        case AttributeProto.INT:
            fields[4] = Number("q", attribute.i)
        case AttributeProto.STRING:
            fields[5] = attribute.s.decode()
        case AttributeProto.TENSOR:
            fields[6] = _tensor(attribute.t)
        case AttributeProto.GRAPH:
            fields[7] = _graph(attribute.g, opsets, outside)
        case AttributeProto.FLOATS:
            fields[8] = Numbers("f", list(attribute.floats))
        case AttributeProto.INTS:
            fields[9] = Numbers("q", list(attribute.ints))
        case AttributeProto.STRINGS:
            fields[10] = [text.decode() for text in attribute.strings]
        case AttributeProto.TENSORS:
            fields[11] = [_tensor(tensor) for tensor in attribute.tensors]
        case AttributeProto.GRAPHS:
            fields[12] = [_graph(graph, opsets, outside) for graph in attribute.graphs]
        case _:
            kind = AttributeProto.AttributeType.Name(attribute.type)
            raise InvalidArgument(
                f"ONNX Runtime's format has no attributes such as '{attribute.name}' ({kind})"
            )
    return NewTable(fields)


def _tensor(tensor: TensorProto) -> NewTable:
    fields: dict[int, Content] = {
        0: tensor.name,
        2: Numbers("q", list(tensor.dims)),
        3: Number("i", tensor.data_type),
    }
    if tensor.data_type == TensorProto.STRING:
        fields[5] = [text.decode() for text in tensor.string_data]
    else:
        fields[4] = tensor.raw_data or ir.serde.deserialize_tensor(tensor).tobytes()
    return NewTable(fields)


def _value(info: ValueInfoProto) -> NewTable:
    fields: dict[int, Content] = {0: info.name}
    if info.type.WhichOneof("value"):
        fields[2] = _type(info.type)
    return NewTable(fields)


def _type(type_: TypeProto) -> NewTable:
    fields: dict[int, Content] = {0: type_.denotation}
    match type_.WhichOneof("value"):
        case "tensor_type":
            inner: dict[int, Content] = {0: Number("i", type_.tensor_type.elem_type)}
            if type_.tensor_type.HasField("shape"):
                inner[1] = NewTable({0: [_dimension(dim) for dim in type_.tensor_type.shape.dim]})
            fields |= {1: Number("B", 1), 2: NewTable(inner)}
        case "sequence_type":
            fields |= {
                1: Number("B", 2),
                2: NewTable({0: _type(type_.sequence_type.elem_type)}),
            }
        case "map_type":
            key = Number("i", type_.map_type.key_type)
            fields |= {
                1: Number("B", 3),
                2: NewTable({0: key, 1: _type(type_.map_type.value_type)}),
            }
        case kind:
            raise InvalidArgument(f"ONNX Runtime's format has no values of the type {kind}")
    return NewTable(fields)


def _dimension(dim: onnx.TensorShapeProto.Dimension) -> NewTable:
    value: dict[int, Content] = {}
    if dim.HasField("dim_value"):
        value = {0: Number("b", 1), 1: Number("q", dim.dim_value)}
    elif dim.HasField("dim_param"):
        value = {0: Number("b", 2), 2: dim.dim_param}
    return NewTable({0: NewTable(value), 1: dim.denotation})
