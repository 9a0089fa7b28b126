"""A session's facts of its model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import onnx_ir as ir

from hagane.graph.types import DECLARED, TensorType, Type, from_ir_shape
from hagane.graph.verify import describe
from hagane.graph.walk import all_nodes
from hagane.ops.inference import GraphTypes, declared_type
from hagane.ops.schema import type_string
from hagane.runtime.values.described import ModelMetadata, NodeArg
from hagane.symbolic import Dim, Expr, evaluate, line_in, symbol, symbols_of

# Operators that take no sizes but equal ones where they need these.
_STRICT = frozenset(
    {"Conv", "ConvInteger", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "QLinearConv"}
)
# The version of a model that states none, as ONNX Runtime tells it.
_NO_VERSION = 2**63 - 1


def node_arg(name: str, type_: Type | None, dims: Sequence[Dim | None] | None) -> NodeArg:
    """Return the description of a value."""
    shape = [dim if isinstance(dim, int) or dim is None else str(dim) for dim in dims or ()]
    return NodeArg(name, "" if type_ is None else type_string(type_), shape)


def model_metadata(model: ir.Model) -> ModelMetadata:
    """Return the model's description of itself."""
    return ModelMetadata(
        producer_name=model.producer_name or "",
        graph_name=model.graph.name or "",
        graph_description=model.graph.doc_string or "",
        domain=model.domain or "",
        description=model.doc_string or "",
        version=_NO_VERSION if model.model_version is None else model.model_version,
        custom_metadata_map=dict(model.metadata_props),
    )


def largest_value(graph: ir.Graph, types: GraphTypes) -> str:
    """Return the node whose output, of a size that is known ahead, takes most bytes; '' if none."""
    most, found = 0, ""
    for node in all_nodes(graph):
        for value in node.outputs:
            type_ = types.types.get(value)
            if not isinstance(type_, TensorType) or type_.dtype.name in ("STRING", "UNDEFINED"):
                continue
            count = type_.dtype.bitwidth
            for dim in type_.shape or (0,):
                count *= dim if isinstance(dim, int) else 0
            if count // 8 > most:
                most = count // 8
                found = f"{describe(node)}, whose output {type_} takes {most:,} bytes"
    return found


def fix_dimensions(model: ir.Model, sizes: Mapping[str, int], denoted: Mapping[str, int]) -> None:
    """Give named dimensions of the inputs, and those with a denotation, their size in place."""
    for value in model.graph.inputs:
        dims = from_ir_shape(value.shape)
        if value.shape is None or dims is None or not (sizes or denoted):
            continue
        for axis, dim in enumerate(dims):
            fixed = None if dim is None else evaluate(dim, sizes)
            if not isinstance(fixed, int):
                fixed = denoted.get(value.shape.get_denotation(axis) or "")
            if fixed is not None and fixed != dim:
                value.shape = _with_size(value.shape, axis, fixed)


def open_untold(model: ir.Model) -> None:
    """Leave sizes of inputs open whose names no input tells, such as ``h*w`` alone, in place."""
    dims = {value: from_ir_shape(value.shape) or () for value in model.graph.inputs}
    sizes = [dim for shape in dims.values() for dim in shape if dim is not None]
    told = {n for dim in sizes for n in symbols_of(dim) if line_in(dim, n) is not None}
    for value, shape in dims.items():
        for axis, dim in enumerate(shape):
            if dim is not None and not symbols_of(dim) <= told:
                assert value.shape is not None
                value.shape = _with_size(value.shape, axis, None)


def told_sizes(model: ir.Model, types: GraphTypes) -> dict[str, int]:
    """Return the numbers of named sizes that nodes of every run need to be these.

    Args:
        model: In current form.
        types: Of its values.
    """
    found = [types.types.get(value) for value in model.graph.inputs]
    shapes = [type_.shape or () for type_ in found if isinstance(type_, TensorType)]
    open_ = {name for shape in shapes for dim in shape for name in symbols_of(dim)}
    told: dict[str, int] = {}
    for node in model.graph if open_ else ():
        if node.op_type not in _STRICT or (node.op_type == "Gemm" and len(node.inputs) > 2):
            continue
        may_be_one = types.broadcast.get(node, ())
        for pair in types.assumed.get(node, ()):
            if pair in may_be_one:
                continue
            for dim, size in (pair, pair[::-1]):
                if not isinstance(dim, Expr) or not isinstance(size, int):
                    continue
                name = str(dim)
                if name in open_ and dim == symbol(name) and size > 0:
                    told.setdefault(name, size)
    return told


def _with_size(shape: ir.Shape, axis: int, size: int | None) -> ir.Shape:
    denotations = [shape.get_denotation(i) for i in range(len(shape))]
    return ir.Shape([*shape[:axis], size, *shape[axis + 1 :]], denotations)


def declared_types(model: ir.Model, sizes: Mapping[str, int]) -> dict[str, Type | None]:
    """Return the declared type of each input by name; sizes that are left open get names.

    Args:
        model: As it was loaded.
        sizes: Numbers for named dimensions.
    """
    result: dict[str, Type | None] = {}
    for value in model.graph.inputs:
        dims = from_ir_shape(value.shape)
        shape = None
        if dims is not None:
            shape = tuple(
                evaluate(symbol(_unnamed(value.name, axis)) if dim is None else dim, sizes)
                for axis, dim in enumerate(dims)
            )
        result[str(value.name)] = value.meta.get(DECLARED) or declared_type(value.type, shape)
    return result


def unnamed_sizes(inputs: Iterable[NodeArg]) -> set[str]:
    """Return the names that stand for sizes of inputs to which the file gives none."""
    return {
        _unnamed(item.name, axis)
        for item in inputs
        for axis, dim in enumerate(item.shape)
        if dim is None
    }


def _unnamed(name: str | None, axis: int) -> str:
    return f"{name}_{axis}"


def input_argument(value: ir.Value, type_: Type | None) -> NodeArg:
    """Return the description of an input of a declared type."""
    return node_arg(str(value.name), type_, from_ir_shape(value.shape))


def output_argument(
    value: ir.Value,
    declared: Sequence[Dim | None] | None,
    invented: Collection[str],
    unnamed: Collection[str],
) -> NodeArg:
    """Return the description of an output.

    Args:
        value: The output, with its inferred type.
        declared: The shape that the file declares: it tells sizes that only a run finds.
        invented: Names that inference gave.
        unnamed: Names that stand for sizes of inputs to which the file gives none.
    """
    dims = from_ir_shape(value.shape)
    if dims is not None and declared is not None and len(dims) == len(declared):
        dims = tuple(
            name if name is not None and symbols_of(dim or 0) & set(invented) else dim
            for dim, name in zip(dims, declared, strict=True)
        )
    if dims is not None:
        dims = tuple(None if symbols_of(dim or 0) & set(unnamed) else dim for dim in dims)
    type_ = value.meta.get(DECLARED) or declared_type(value.type, ())
    return node_arg(str(value.name), type_, dims)
