"""Operators of element types that ONNX Runtime lacks or rounds, written in others.

https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md (version 1.22)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir

from hagane.capturing import in_double, whole_numbers
from hagane.graph.names import separate_names
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import where
from hagane.ops.inference import infer_types
from hagane.passes.edit import attributes_of, building, keeping_place, put_in_place

_BOOL, _DOUBLE = ir.DataType.BOOL, ir.DataType.DOUBLE
_INT32, _INT64 = ir.DataType.INT32, ir.DataType.INT64
_WIDER = {
    ir.DataType.INT8: _INT32, ir.DataType.INT16: _INT32, ir.DataType.UINT16: _INT32,
    ir.DataType.UINT32: _INT64, ir.DataType.UINT64: _INT64,
}  # fmt: skip


def portable(model: ir.Model) -> ir.Model:
    """Write operators in others where ONNX Runtime lacks their element types; return the model.

    Those without such a form stay (convolutions of float64, for one).
    """
    _name_results(model.graph)
    found = [node for node in model.graph.all_nodes() if _lacks(node)]
    if not found:
        return model
    types = infer_types(model)
    for node in found:
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        with keeping_place(graph, node):
            with building(graph, types, node):
                made = _FORMS[node.op_type](node, attributes_of(node))
            put_in_place(graph, types, node, made)
    for graph in {node.graph for node in model.graph.all_nodes()} | {model.graph}:
        assert isinstance(graph, ir.Graph)
        separate_names(graph)
    _name_apart(model.graph)
    return model


def _name_results(graph: ir.Graph) -> None:
    """Give results the names of outputs, without copies.

    ONNX Runtime (1.32) loses a tensor that a copy and a Pad before a convolution read.
    """
    for place, output in enumerate(graph.outputs):
        copy = output.producer()
        if copy is None or copy.op_type != "Identity" or copy.domain:
            continue
        source = copy.inputs[0]
        assert source is not None
        node = source.producer()
        if node is None or node.graph is not graph or source.is_graph_output():
            continue
        graph.outputs[place] = source
        output.replace_all_uses_with(source)
        graph.remove(copy, safe=True)
        source.name, output.name = output.name, None


def _name_apart(graph: ir.Graph) -> None:
    nodes = [*graph.all_nodes()]
    known = Counter(node.name for node in nodes)
    for number, node in enumerate(nodes):
        if not node.name or known[node.name] > 1:  # others may say what is expected of them
            node.name = f"node_{node.op_type}_{number}"
            while known[node.name]:
                node.name += "'"


def _lacks(node: ir.Node) -> bool:
    """Whether ONNX Runtime has an operator, but not for these element types, or not exactly."""
    if node.domain or node.op_type not in _FORMS:
        return False
    if node.op_type not in _LACKING:
        return whole_numbers.rounds(node)
    value = node.inputs[1 if node.op_type == "Where" else 0]
    return value is not None and value.dtype in _LACKING[node.op_type]


def _operands(node: ir.Node) -> Iterator[Any]:
    return (value for value in node.inputs if value is not None)


def _where(node: ir.Node, known: dict[str, Any]) -> Any:
    del known
    condition, yes, no = _operands(node)
    dtype = yes.dtype
    if dtype == _BOOL:
        return op("Or", op("And", condition, yes), op("And", op("Not", condition), no))
    wide = _WIDER[dtype]
    made = where(condition, op("Cast", yes, to=wide), op("Cast", no, to=wide))
    return op("Cast", made, to=dtype)


def _of_one(function: Callable[[Any], Any]) -> Callable[[ir.Node, dict[str, Any]], Any]:
    def form(node: ir.Node, known: dict[str, Any]) -> Any:
        del known
        return function(*_operands(node))

    return form


_FORMS: dict[str, Callable[[ir.Node, dict[str, Any]], Any]] = {
    "Where": _where,
    "Elu": lambda node, known: in_double.elu(node.inputs[0], **known),
    "Gelu": lambda node, known: in_double.gelu(node.inputs[0], **known),
    "Pow": whole_numbers.power,
    "ReduceSum": whole_numbers.total,
    "NonZero": _of_one(lambda x: op("NonZero", op("Cast", x, to=_BOOL))),
    **{
        name.capitalize(): _of_one(getattr(in_double, name))
        for name in (
            "tan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan", "asin", "acos", "softplus",
            "softsign", "mish", "erf",
        )
    },
}  # fmt: skip
_LACKING: dict[str, frozenset[ir.DataType]] = {
    **dict.fromkeys(_FORMS.keys() - {"Pow", "ReduceSum"}, frozenset((_DOUBLE,))),
    "Where": frozenset((_BOOL, *_WIDER)),
}
