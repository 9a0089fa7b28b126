"""Models in ONNX Runtime's own format (``.ort``) as ONNX models.

The format is a FlatBuffers buffer with the identifier ``ORTM``; the numbers of fields below are
those of ONNX Runtime's schema ``ort.fbs``. Such files hold the graph after ONNX Runtime's
optimizations, some of whose operators belong to its own domains.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, TypeProto

from hagane.graph.flat import Table, damaged, root_of

_IDENTIFIER = b"ORTM"
# Graphs within graphs; models of people nest a handful.
_DEEPEST = 32


def is_ort(data: memoryview | bytes) -> bool:
    """Whether bytes are a model in ONNX Runtime's format."""
    return bytes(data[4:8]) == _IDENTIFIER


def read_ort(data: memoryview | bytes) -> onnx.ModelProto:
    """Return a model in ONNX Runtime's format as an ONNX model.

    Raises:
        InvalidModel: The bytes are damaged, or hold no model.
    """
    model = root_of(memoryview(data)).table(1)
    graph = None if model is None else model.table(7)
    if model is None or graph is None:
        raise damaged("it holds no graph")
    proto = onnx.ModelProto(
        ir_version=max(3, model.integer(0, "q")),
        producer_name=model.text(2),
        producer_version=model.text(3),
        domain=model.text(4),
        model_version=model.integer(5, "q"),
        doc_string=model.text(6),
    )
    for imported in model.tables(1):
        proto.opset_import.add(domain=imported.text(0), version=imported.integer(1, "q"))
    for entry in model.tables(9):
        proto.metadata_props.add(key=entry.text(0), value=entry.text(1))
    proto.graph.CopyFrom(_graph(graph, 0))
    proto.graph.name = proto.graph.name or "model"
    proto.graph.doc_string = model.text(8)
    return proto


def _graph(table: Table, depth: int) -> GraphProto:
    if depth > _DEEPEST:
        raise damaged(f"graphs lie in each other more than {_DEEPEST} deep")
    graph = GraphProto(name="body" if depth else "")
    graph.initializer.extend(_tensor(one) for one in table.tables(0))
    infos = {one.text(0): one for one in table.tables(1)}
    for names, values in ((table.texts(5), graph.input), (table.texts(6), graph.output)):
        for name in names:
            value = values.add(name=name)
            info = infos.get(name)
            type_ = None if info is None else info.table(2)
            if type_ is not None:
                value.type.CopyFrom(_type(type_, 0))
    graph.node.extend(_node(one, depth) for one in table.tables(2))
    return graph


def _node(table: Table, depth: int) -> NodeProto:
    node = NodeProto(
        name=table.text(0),
        doc_string=table.text(1),
        domain=table.text(2),
        op_type=table.text(5),
        input=table.texts(8),
        output=table.texts(9),
    )
    node.attribute.extend(_attribute(one, depth) for one in table.tables(10))
    return node


def _attribute(table: Table, depth: int) -> AttributeProto:
    kind = table.integer(2)
    made: dict[str, Any] = {}
    match kind:
        case AttributeProto.FLOAT:
            made["f"] = table.number(3, "f")
        case AttributeProto.INT:
            made["i"] = table.integer(4, "q")
        case AttributeProto.STRING:
            made["s"] = table.text(5).encode()
        case AttributeProto.TENSOR:
            made["t"] = _tensor(_required(table, 6))
        case AttributeProto.GRAPH:
            made["g"] = _graph(_required(table, 7), depth + 1)
        case AttributeProto.FLOATS:
            made["floats"] = table.numbers(8, "f")
        case AttributeProto.INTS:
            made["ints"] = table.numbers(9, "q")
        case AttributeProto.STRINGS:
            made["strings"] = [text.encode() for text in table.texts(10)]
        case AttributeProto.TENSORS:
            made["tensors"] = [_tensor(one) for one in table.tables(11)]
        case AttributeProto.GRAPHS:
            made["graphs"] = [_graph(one, depth + 1) for one in table.tables(12)]
        case _:
            raise damaged(f"the attribute '{table.text(0)}' has a type of number {kind}")
    return AttributeProto(name=table.text(0), type=kind, **made)


def _required(table: Table, field: int) -> Table:
    found = table.table(field)
    if found is None:
        raise damaged(f"the attribute '{table.text(0)}' is empty")
    return found


def _tensor(table: Table) -> TensorProto:
    tensor = TensorProto(name=table.text(0), dims=table.numbers(2, "q"), data_type=table.integer(3))
    if tensor.data_type == TensorProto.STRING:
        tensor.string_data.extend(text.encode() for text in table.texts(5))
        return tensor
    if table.integer(6, "q", -1) >= 0:
        raise damaged(
            f"the weight '{tensor.name}' lies in a file beside it, which hagane does not read; "
            "convert the .onnx model it was made of"
        )
    tensor.raw_data = table.content(4) or b""
    return tensor


def _type(table: Table, depth: int) -> TypeProto:
    made, kind, value = TypeProto(denotation=table.text(0)), table.integer(1, "B"), table.table(2)
    if value is None or depth > _DEEPEST:
        return made
    if kind == 1:
        made.tensor_type.elem_type = value.integer(0)
        shape = value.table(1)
        if shape is not None:
            made.tensor_type.shape.SetInParent()
            for one in shape.tables(0):
                _dimension(one, made.tensor_type.shape.dim.add())
    elif kind == 2:
        element = value.table(0)
        if element is not None:
            made.sequence_type.elem_type.CopyFrom(_type(element, depth + 1))
    elif kind == 3:
        made.map_type.key_type = value.integer(0)
        element = value.table(1)
        if element is not None:
            made.map_type.value_type.CopyFrom(_type(element, depth + 1))
    return made


def _dimension(table: Table, made: Any) -> None:
    made.denotation = table.text(1)
    value = table.table(0)
    kind = 0 if value is None else value.integer(0, "b")
    if value is not None and kind == 1:
        made.dim_value = value.integer(1, "q")
    elif value is not None and kind == 2:
        made.dim_param = value.text(2)
