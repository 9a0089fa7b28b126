"""Type one node: counts, attributes and element types against its schema, then its own rule."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from hagane.errors import HaganeError
from hagane.graph.types import Shape, TensorType, Type
from hagane.graph.verify import describe
from hagane.graph.walk import has_bodies
from hagane.ops.bounds import check_attributes, check_sizes, check_words, handy, unwieldy
from hagane.ops.context import InferContext, Judge, RankUnknown, as_data, known_attributes
from hagane.ops.definition import Array, OpDef
from hagane.ops.folding import fold_call
from hagane.ops.registry import find, schema_of
from hagane.ops.schema import Parameter, Schema, describe_types, tensor_dtype, type_string
from hagane.ops.traits import Trait
from hagane.ops.values import kernel_failed
from hagane.symbolic import Expr

# Values up to this many elements are followed; shape arithmetic stays far below it.
MAX_KNOWN_ELEMENTS = 2048


def infer_node(
    node: ir.Node,
    types: Sequence[Type | None],
    values: Sequence[Array | None],
    *,
    fresh: Callable[[str], Expr],
    infer_graph: Callable[..., tuple[list[Type | None], list[Array | None]]],
    judge: Judge | None = None,
) -> list[tuple[Type | None, Array | None]]:
    """Return the type of each output of ``node``, and its content where that is known.

    Args:
        node: The node.
        types: The type of each input; None for an absent or unknown one.
        values: The known content of each input, or None; object arrays hold dimensions.
        fresh: Makes a dimension that nothing is known about.
        infer_graph: Infers a subgraph from the types and values of its inputs.
        judge: Says whether two dimensions differ; by default only as far as cheap rules show.

    Raises:
        UnsupportedModel: The operator has no definition.
        TypeInferenceError: The inputs do not fit the operator.
    """
    op, schema = find(node), schema_of(node)
    attributes = known_attributes(node, schema.defaults)
    names = [parameter.name for parameter in schema.inputs]
    ctx = InferContext(node, op, types, values, attributes, fresh, infer_graph, names, judge)
    bound = _check_node(ctx, schema, node)
    for name in sorted(op.needed):
        if ctx.attr(name) is None:
            ctx.fail(f"expected the attribute '{name}', which is absent")
    check_attributes(ctx)
    check_words(ctx)
    try:
        inferred: Sequence[Shape | Type | None] = op.infer(ctx)
    except RankUnknown:
        inferred = [None] * len(node.outputs)
    except (HaganeError, RecursionError):
        raise
    except MemoryError as error:
        raise kernel_failed(describe(node), error, values) from error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        ctx.fail(
            f"its attributes and inputs do not make an operation ({type(error).__name__}: "
            f"{error}); got {ctx.inputs_text()}"
        )
    known = _known_values(ctx)
    results: list[tuple[Type | None, Array | None]] = []
    for index in range(len(node.outputs)):
        found = inferred[index] if index < len(inferred) else None
        type_ = _complete(found, schema.output(index) if schema.outputs else None, bound)
        type_ = handy(type_, fresh)
        value = known[index] if known is not None and index < len(known) else None
        if value is not None and not _followed(value):
            value = None
        if value is not None and isinstance(type_, TensorType):
            value = as_data(value, type_.dtype)
        results.append((type_, value))
    check_sizes(ctx, [type_ for type_, _ in results])
    return results


def _followed(value: Array) -> bool:
    """Say whether a known value is small enough to reckon with."""
    if value.size > MAX_KNOWN_ELEMENTS:
        return False
    return value.dtype != object or not any(map(unwieldy, value.flat))


def _known_values(ctx: InferContext) -> Sequence[Array | None] | None:
    """Return the outputs that the inputs determine, or None."""
    op = ctx.op
    inputs = [ctx.data(i) for i in range(ctx.n_inputs)]
    missing = [
        i for i, value in enumerate(ctx.node.inputs) if value is not None and inputs[i] is None
    ]
    plain = all(
        value is None or value.dtype != object or _is_text(ctx, i) for i, value in enumerate(inputs)
    )
    if not missing and plain and not has_bodies(ctx.node):
        with contextlib.suppress(Exception):
            outputs = _fold(op, inputs, ctx)
            if outputs is not None:
                return outputs
    if op.data is None or not _is_small(ctx):
        return None
    with contextlib.suppress(RankUnknown, ZeroDivisionError, TypeError, ValueError, IndexError):
        return op.data(ctx)
    return None


def _is_text(ctx: InferContext, index: int) -> bool:
    """Say whether an input holds texts, and not dimensions; its type may be unknown."""
    with contextlib.suppress(RankUnknown):
        return ctx.dtype(index) == ir.DataType.STRING
    return False


def _fold(op: OpDef, inputs: Sequence[Array | None], ctx: InferContext) -> list[Array] | None:
    total = sum(value.size for value in inputs if value is not None)
    if total > MAX_KNOWN_ELEMENTS or not _is_small(ctx):
        return None
    arrays = fold_call(op, inputs, ctx.attributes, ctx.n_outputs)
    if arrays is None or sum(array.size for array in arrays) > MAX_KNOWN_ELEMENTS:
        return None
    return arrays


def _is_small(ctx: InferContext) -> bool:
    """Whether the node's output, as far as its type rule tells, is worth computing."""
    if Trait.EXPANDING not in ctx.op.traits:
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
    return size <= MAX_KNOWN_ELEMENTS


def _check_node(ctx: InferContext, schema: Schema, node: ir.Node) -> dict[str, Type]:
    """Check counts, attributes and element types; return the types of the type variables."""
    _check_counts(ctx, schema, node)
    bound: dict[str, Type] = {}
    for index in range(ctx.n_inputs):
        if not ctx.has(index) or not schema.inputs:
            continue
        _check_type(ctx, schema.input(index), index, bound)
    return bound


def _check_counts(ctx: InferContext, schema: Schema, node: ir.Node) -> None:
    count, optional = ctx.n_inputs, [parameter.optional for parameter in schema.inputs]
    # An absent input at the end counts where the operator knows it: a Loop has at least two.
    while count > 0 and node.inputs[count - 1] is None and not any(optional[count - 1 : count]):
        count -= 1
    if not schema.min_inputs <= count <= schema.max_inputs:
        ctx.fail(f"expected {_span(schema.min_inputs, schema.max_inputs)} inputs, got {count}")
    if not schema.min_outputs <= len(node.outputs) <= max(schema.max_outputs, 1):
        ctx.fail(
            f"expected {_span(schema.min_outputs, schema.max_outputs)} outputs, "
            f"got {len(node.outputs)}"
        )
    for index in range(count if schema.inputs else 0):
        parameter = schema.input(index)
        # Of values of different kinds, as a loop carries them, one may be absent.
        free = parameter.optional or (parameter.variadic and not parameter.homogeneous)
        if node.inputs[index] is None and not free:
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
