"""Walk a graph once and give every value its type, and its content where that is known.

Values that hold dimensions are computed along with the types (``Shape`` → ``Gather`` → ``Concat``
→ ``Reshape``), so shapes that a model computes for itself resolve to expressions over the sizes
of its inputs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError, UnsupportedModel
from hagane.graph.types import (
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
    from_ir_shape,
    to_ir_shape,
    to_ir_type,
)
from hagane.graph.verify import describe
from hagane.ops.context import InferContext, RankUnknown, as_data, known_attributes
from hagane.ops.definition import Array, OpDef, Unsupported
from hagane.ops.registry import find, schema_of, unsupported_nodes
from hagane.ops.schema import Parameter, Schema, describe_types, tensor_dtype, type_string
from hagane.ops.values import tensor_to_array
from hagane.symbolic import Dim, Expr, evaluate, parse_dim, symbol

# Values up to this many elements are followed; shape arithmetic stays far below it.
_MAX_KNOWN_ELEMENTS = 2048


@dataclass
class GraphTypes:
    """What inference found.

    Attributes:
        types: The type of each value; missing where nothing is known.
        values: The content of each value that is known; object arrays hold dimensions.
        invented: Names of dimensions that no input determines, such as NonZero's count.
    """

    types: dict[ir.Value, Type] = field(default_factory=dict)
    values: dict[ir.Value, Array] = field(default_factory=dict)
    invented: set[str] = field(default_factory=set)


def infer_types(
    model: ir.Model,
    *,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[Dim | str]] | None = None,
    lenient: bool = False,
) -> GraphTypes:
    """Return the types of all values of a legalised ``model`` and write them into its graph.

    Args:
        model: A model in current form; shapes and types of its values are updated in place.
        sizes: Values for named dimensions of the inputs.
        shapes: Shapes of inputs by name, in place of the declared ones.
        lenient: Leave the types of a subgraph unknown where they do not fit: a branch that inputs
            of these shapes do not take may be wrong for them.

    Raises:
        UnsupportedModel: Some operators have no definition; all are listed.
        TypeInferenceError: A node's inputs do not fit its operator.
    """
    problems = unsupported_nodes(model.graph)
    if problems:
        raise UnsupportedModel(problems)
    walker = _Walker(GraphTypes(), lenient)
    for value in model.graph.inputs:
        walker.result.types.update(
            _declared_input(value, sizes or {}, (shapes or {}).get(str(value.name)))
        )
    walker.graph(model.graph)
    _write_back(walker.result)
    return walker.result


def _declared_input(
    value: ir.Value, sizes: Mapping[str, int], given: Sequence[Dim | str] | None
) -> dict[ir.Value, Type]:
    shape = from_ir_shape(value.shape)
    if given is not None:
        shape = tuple(parse_dim(dim) if isinstance(dim, str) else dim for dim in given)
    if shape is not None:
        shape = tuple(
            symbol(f"{value.name}_{axis}") if dim is None else evaluate(dim, sizes)
            for axis, dim in enumerate(shape)
        )
    found = declared_type(value.type, shape)
    return {} if found is None else {value: found}


def declared_type(type_: ir.TypeProtocol | None, shape: Shape | None) -> Type | None:
    """Return the type that a graph value declares; ``shape`` is that of its tensors."""
    if isinstance(type_, ir.SequenceType):
        return SequenceType(declared_type(type_.elem_type, shape))
    if isinstance(type_, ir.OptionalType):
        return OptionalType(declared_type(type_.elem_type, shape))
    if isinstance(type_, ir.TensorType) and type_.dtype != ir.DataType.UNDEFINED:
        return TensorType(type_.dtype, shape)
    return None


class _Walker:
    def __init__(self, result: GraphTypes, lenient: bool):
        self.result = result
        self.lenient = lenient
        self._numbers = itertools.count()

    def graph(self, graph: ir.Graph) -> None:
        for value in graph.initializers.values():
            self._initializer(value)
        for node in graph:
            try:
                self._node(node)
            except RecursionError:
                raise TypeInferenceError(f"{describe(node)}: graph nested too deeply") from None

    def subgraph(
        self, graph: ir.Graph, types: Sequence[Type | None], values: Sequence[Array | None]
    ) -> tuple[list[Type | None], list[Array | None]]:
        for value, type_, known in zip(graph.inputs, types, values, strict=False):
            self._assign(value, type_, known)
        try:
            self.graph(graph)
        except TypeInferenceError:
            if not self.lenient:
                raise
        return (
            [self.result.types.get(value) for value in graph.outputs],
            [self.result.values.get(value) for value in graph.outputs],
        )

    def _assign(self, value: ir.Value, type_: Type | None, known: Array | None) -> None:
        self.result.types.pop(value, None)
        self.result.values.pop(value, None)
        if type_ is not None:
            self.result.types[value] = type_
        if known is not None:
            self.result.values[value] = known

    def _initializer(self, value: ir.Value) -> None:
        tensor = value.const_value
        if tensor is None:
            return
        shape = tuple(int(str(dim)) for dim in tensor.shape)
        self.result.types[value] = TensorType(tensor.dtype, shape)
        if tensor.size <= _MAX_KNOWN_ELEMENTS:
            self.result.values[value] = tensor_to_array(tensor)

    def _fresh(self, label: str) -> Expr:
        name = f"{label}_{next(self._numbers)}"
        self.result.invented.add(name)
        return symbol(name)

    def _node(self, node: ir.Node) -> None:
        op, schema = find(node), schema_of(node)
        types = [None if v is None else self.result.types.get(v) for v in node.inputs]
        values = [None if v is None else self.result.values.get(v) for v in node.inputs]
        attributes = known_attributes(node, schema.defaults)
        names = [parameter.name for parameter in schema.inputs]
        ctx = InferContext(node, op, types, values, attributes, self._fresh, self.subgraph, names)
        bound = _check_node(ctx, schema, node)
        try:
            inferred: Sequence[Shape | Type | None] = op.infer(ctx)
        except RankUnknown:
            inferred = [None] * len(node.outputs)
        known = self._known_values(ctx, schema)
        for index, output in enumerate(node.outputs):
            found = inferred[index] if index < len(inferred) else None
            type_ = _complete(found, schema.output(index) if schema.outputs else None, bound)
            type_ = self._merge_declared(type_, output)
            value = known[index] if known is not None and index < len(known) else None
            if value is not None and isinstance(type_, TensorType):
                value = as_data(value, type_.dtype)
            self._assign(output, type_, value)

    def _known_values(self, ctx: InferContext, schema: Schema) -> Sequence[Array | None] | None:
        """Return the outputs that the inputs determine, or None."""
        op = ctx.op
        inputs = [ctx.data(i) for i in range(ctx.n_inputs)]
        missing = [
            i for i, value in enumerate(ctx.node.inputs) if value is not None and inputs[i] is None
        ]
        plain = all(
            value is None or value.dtype != object or ctx.dtype(i) == ir.DataType.STRING
            for i, value in enumerate(inputs)
        )
        has_graph = any(a.type == ir.AttributeType.GRAPH for a in ctx.node.attributes.values())
        if not missing and plain and not op.random and not has_graph:
            with contextlib.suppress(Exception), np.errstate(all="ignore"):
                outputs = _fold(op, inputs, ctx)
                if outputs is not None:
                    return outputs
        if op.data is None:
            return None
        with contextlib.suppress(RankUnknown, ZeroDivisionError, TypeError, ValueError, IndexError):
            return op.data(ctx)
        return None

    def _merge_declared(self, inferred: Type | None, value: ir.Value) -> Type | None:
        """Fill what inference could not tell from what the file declares for the value."""
        declared = from_ir_shape(value.shape)
        if inferred is None:
            return declared_type(value.type, self._named(value, declared))
        if not isinstance(inferred, TensorType) or declared is None:
            return inferred
        if inferred.shape is None:
            return TensorType(inferred.dtype, self._named(value, declared))
        if len(inferred.shape) != len(declared):
            return inferred
        merged = tuple(
            other if other is not None and self._is_invented(dim) else dim
            for dim, other in zip(inferred.shape, declared, strict=True)
        )
        return TensorType(inferred.dtype, merged)

    def _named(self, value: ir.Value, dims: Sequence[Dim | None] | None) -> Shape | None:
        if dims is None:
            return None
        return tuple(
            self._fresh(f"{value.name}_{axis}") if dim is None else dim
            for axis, dim in enumerate(dims)
        )

    def _is_invented(self, dim: Dim) -> bool:
        return isinstance(dim, Expr) and str(dim) in self.result.invented


def _fold(op: OpDef, inputs: Sequence[Array | None], ctx: InferContext) -> list[Array] | None:
    if isinstance(op.reference, Unsupported):
        return None
    total = sum(value.size for value in inputs if value is not None)
    if total > _MAX_KNOWN_ELEMENTS or not _is_small(ctx):
        return None
    outputs = op(list(inputs), ctx.attributes, ctx.n_outputs)
    if any(isinstance(output, list | dict) or output is None for output in outputs):
        return None
    arrays = [np.asarray(output) for output in outputs]
    return arrays if sum(a.size for a in arrays) <= _MAX_KNOWN_ELEMENTS else None


# Operators whose output can be much larger than all their inputs together.
_EXPANDING = frozenset({"ConstantOfShape", "Expand", "Range", "Tile", "EyeLike", "Resize", "Pad"})


def _is_small(ctx: InferContext) -> bool:
    """Whether the node's output, as far as its type rule tells, is worth computing."""
    if ctx.op.name not in _EXPANDING:
        return True
    try:
        outputs = ctx.op.infer(ctx)
    except RankUnknown:
        return False
    shape = outputs[0].shape if isinstance(outputs[0], TensorType) else outputs[0]
    if not isinstance(shape, tuple) or not all(isinstance(dim, int) for dim in shape):
        return False
    size = 1
    for dim in shape:
        size *= int(dim)
    return size <= _MAX_KNOWN_ELEMENTS


def _check_node(ctx: InferContext, schema: Schema, node: ir.Node) -> dict[str, Type]:
    """Check counts, attributes and element types; return what the type variables stand for."""
    _check_counts(ctx, schema, node)
    bound: dict[str, Type] = {}
    for index in range(ctx.n_inputs):
        if not ctx.has(index) or not schema.inputs:
            continue
        _check_type(ctx, schema.input(index), index, bound)
    return bound


def _check_counts(ctx: InferContext, schema: Schema, node: ir.Node) -> None:
    count = ctx.n_inputs
    while count > 0 and node.inputs[count - 1] is None:
        count -= 1
    if not schema.min_inputs <= count <= schema.max_inputs:
        ctx.fail(f"expected {_span(schema.min_inputs, schema.max_inputs)} inputs, got {count}")
    if not schema.min_outputs <= len(node.outputs) <= max(schema.max_outputs, 1):
        ctx.fail(
            f"expected {_span(schema.min_outputs, schema.max_outputs)} outputs, "
            f"got {len(node.outputs)}"
        )
    for index in range(min(count, len(schema.inputs))):
        parameter = schema.inputs[index]
        if node.inputs[index] is None and not (parameter.optional or parameter.variadic):
            ctx.fail(f"expected input '{parameter.name}' (number {index}), which is absent")
    for name in sorted(schema.required - node.attributes.keys()):
        ctx.fail(f"expected the attribute '{name}', which is absent")
    for name, attribute in node.attributes.items():
        expected = schema.attribute_types.get(name)
        if expected is None:
            known = ", ".join(sorted(schema.attribute_types)) or "none"
            ctx.fail(f"unknown attribute '{name}'; its attributes are: {known}")
        if attribute.type != expected:
            ctx.fail(
                f"expected the attribute '{name}' to be {expected.name}, got {attribute.type.name}"
            )


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}" if high < 2**30 else f"at least {low}"


def _check_type(
    ctx: InferContext, parameter: Parameter, index: int, bound: dict[str, Type]
) -> None:
    found = ctx.type(index)
    text = type_string(found)
    if "?" in text or (isinstance(found, TensorType) and found.dtype == ir.DataType.UNDEFINED):
        return
    if text not in parameter.types:
        ctx.fail(
            f"expected {describe_types(parameter.types)} input '{parameter.name}', got {found}"
        )
    if parameter.variadic and not parameter.homogeneous:
        return
    earlier = bound.setdefault(parameter.type_variable, found)
    if type_string(earlier) != text:
        ctx.fail(
            f"expected inputs of one element type {parameter.type_variable}, "
            f"got {ctx.inputs_text()}"
        )


def _complete(
    found: Shape | Type | None, parameter: Parameter | None, bound: Mapping[str, Type]
) -> Type | None:
    """Give a bare shape the element type that the schema determines."""
    if found is not None and not isinstance(found, tuple):
        return found
    if parameter is None:
        return None
    source = bound.get(parameter.type_variable)
    if isinstance(source, TensorType):
        return TensorType(source.dtype, found)
    if source is not None and found is None:
        return source
    if len(parameter.types) == 1:
        dtype = tensor_dtype(next(iter(parameter.types)))
        if dtype is not None:
            return TensorType(dtype, found)
    return None


def _write_back(result: GraphTypes) -> None:
    for value, type_ in result.types.items():
        value.type = to_ir_type(type_)
        inner = type_
        while isinstance(inner, SequenceType | OptionalType) and inner.element is not None:
            inner = inner.element
        value.shape = to_ir_shape(inner.shape) if isinstance(inner, TensorType) else None
