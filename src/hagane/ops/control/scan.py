"""Scan and SequenceMap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.errors import NotDifferentiable
from hagane.graph.types import SequenceType, TensorType, Type
from hagane.ops.builder import Call, is_continuous, op, type_of
from hagane.ops.context import InferContext
from hagane.ops.control.back import Iterations, changing, from_front, to_place, walk_back
from hagane.ops.control.join import join, same_kind
from hagane.ops.control.loop import stack
from hagane.ops.definition import Array, OpDef, RuntimeValue, Unsupported
from hagane.ops.functions.tensors.positions import extent
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.traits import Trait


def _scan(
    *inputs: Array,
    body: Callable[..., list[RuntimeValue]],
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
    n_outputs: int,
) -> tuple[RuntimeValue, ...]:
    n_state = len(inputs) - num_scan_inputs
    state: list[RuntimeValue] = list(inputs[:n_state])
    axes = scan_input_axes or (0,) * num_scan_inputs
    backwards = scan_input_directions or (0,) * num_scan_inputs
    sources = [
        np.flip(np.moveaxis(x, axis, 0), 0) if reverse else np.moveaxis(x, axis, 0)
        for x, axis, reverse in zip(inputs[n_state:], axes, backwards, strict=True)
    ]
    lengths = {len(source) for source in sources}
    if len(lengths) != 1:
        raise ValueError(f"expected scanned inputs of one length, got {sorted(lengths)}")
    scanned: list[list[RuntimeValue]] = [[] for _ in range(n_outputs - n_state)]
    for step in range(lengths.pop()):
        results = body(*state, *(np.asarray(source[step]) for source in sources))
        state = results[:n_state]
        for items, item in zip(scanned, results[n_state:], strict=True):
            items.append(item)
    out_axes = scan_output_axes or (0,) * len(scanned)
    out_backwards = scan_output_directions or (0,) * len(scanned)
    stacked = []
    for index, (items, axis, reverse) in enumerate(
        zip(scanned, out_axes, out_backwards, strict=True)
    ):
        array = stack(items, body, n_state + index)
        stacked.append(np.moveaxis(np.flip(array, 0) if reverse else array, 0, axis))
    return (*state, *stacked)


def _infer_scan(ctx: InferContext) -> Sequence[Any]:
    body = ctx.attr("body")
    n_scanned = ctx.attr("num_scan_inputs")
    n_state = ctx.n_inputs - n_scanned
    if len(body.inputs) != ctx.n_inputs or len(body.outputs) != ctx.n_outputs:
        ctx.fail(
            f"expected the body to have {ctx.n_inputs} inputs and {ctx.n_outputs} outputs, "
            f"got {len(body.inputs)} and {len(body.outputs)}"
        )
    axes = ctx.attr("scan_input_axes") or (0,) * n_scanned
    elements: list[Type | None] = []
    length: Any = None
    for i, axis in enumerate(axes):
        found = ctx.tensor(n_state + i)
        if found.shape is None:
            elements.append(found)
            continue
        axis = ctx.axis(axis, len(found.shape), "scan axis")
        size = found.shape[axis]
        length = size if length is None else ctx.unify(length, size, "expected equal scan lengths")
        elements.append(TensorType(found.dtype, (*found.shape[:axis], *found.shape[axis + 1 :])))
    state: list[Type | None] = [ctx.type(i) for i in range(n_state)]
    outputs: list[Type | None] = []
    for _ in range(8):
        inputs = [*state, *elements]
        outputs, _ = ctx.infer_graph(body, inputs, [None] * len(inputs))
        wider = []
        for index, (left, right) in enumerate(zip(state, outputs[:n_state], strict=True)):
            if not same_kind(left, right):
                ctx.fail(f"scan state {index} begins as {left} and becomes {right}")
            wider.append(join(left, right, ctx.fresh))
        if wider == state:
            break
        state = wider
    size = ctx.fresh("steps") if length is None else length
    out_axes = ctx.attr("scan_output_axes") or (0,) * (ctx.n_outputs - n_state)
    scanned = [
        _stacked(ctx, found, axis, size)
        for found, axis in zip(outputs[n_state:], out_axes, strict=True)
    ]
    return [*state, *scanned]


def _stacked(ctx: InferContext, found: Type | None, axis: int, size: Any) -> Type | None:
    if not isinstance(found, TensorType) or found.shape is None:
        return found
    axis = ctx.axis(axis, len(found.shape) + 1, "scan output axis")
    return TensorType(found.dtype, (*found.shape[:axis], size, *found.shape[axis:]))


def _sequence_map(
    sequence: list[RuntimeValue],
    *others: RuntimeValue,
    body: Callable[..., list[RuntimeValue]],
    n_outputs: int,
) -> tuple[RuntimeValue, ...]:
    results: list[list[RuntimeValue]] = [[] for _ in range(n_outputs)]
    for index, item in enumerate(sequence):
        rest = [other[index] if isinstance(other, list) else other for other in others]
        for items, value in zip(results, body(item, *rest), strict=True):
            items.append(value)
    return tuple(results)


def _infer_sequence_map(ctx: InferContext) -> Sequence[Any]:
    elements: list[Type | None] = []
    for i in range(ctx.n_inputs):
        found = ctx.type(i)
        elements.append(found.element if isinstance(found, SequenceType) else found)
    outputs, _ = ctx.infer_graph(ctx.attr("body"), elements, [None] * len(elements))
    return [SequenceType(_any_shape(found)) for found in outputs]


def _any_shape(found: Type | None) -> Type | None:
    """Return the type without sizes: elements of a sequence may differ in them."""
    return TensorType(found.dtype, None) if isinstance(found, TensorType) else found


def _scan_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    """Scan again for the states of each iteration, then walk back over the iterations."""
    from hagane.ops.gradient.reach import watched

    n_slices, body = call.attr("num_scan_inputs"), call.attributes["body"]
    count = len(call.inputs) - n_slices
    scanned = call.inputs[count:]
    axes = call.attr("scan_input_axes") or (0,) * n_slices
    backwards = call.attr("scan_input_directions") or (0,) * n_slices
    walks = list(zip(axes, map(bool, backwards), strict=True))

    def noting(*arguments: Any) -> Sequence[Any]:
        return [*body(*arguments)[:count], *arguments[:count]]

    noted: Sequence[Any] = ()
    if count:
        kept = {k: v for k, v in call.attributes.items() if not k.startswith("scan_output")}
        noted = op("Scan", *call.inputs, outputs=2 * count, **{**kept, "body": noting})
        for place in changing(call, noted[count:], call.inputs[:count]):
            raise NotDifferentiable(
                f"Scan has no gradient: its state {place} ({type_of(call.inputs[place])}) changes "
                "its size from iteration to iteration"
            )
    slices = [
        from_front(x, axis, reverse=reverse)
        for x, (axis, reverse) in zip(scanned, walks, strict=True)
    ]
    length = extent(slices[0], 0)
    reach = watched()
    comes = True if reach is None else reach.any_of(gradients)
    iterations = Iterations(
        lambda t, now, parts: _split_results(body(*now, *parts), count),
        length if isinstance(length, int) else op("Squeeze", length, [0]),
        noted[count:],
        slices,
        call.captured,
        reach is not None and reach.is_positive(slices[0]),
    )
    last = [
        zeros_like(state) if g is None and is_continuous(state) else g
        for g, state in zip(gradients[:count], noted[:count], strict=True)
    ]
    n_items = len(call.outputs) - count
    out_axes = call.attr("scan_output_axes") or (0,) * n_items
    out_backwards = call.attr("scan_output_directions") or (0,) * n_items
    of_items = [
        None if g is None else from_front(g, axis, reverse=bool(reverse))
        for g, axis, reverse in zip(gradients[count:], out_axes, out_backwards, strict=True)
    ]
    of_states, of_slices, of_captured = walk_back(iterations, last, of_items, comes)
    placed = [
        None if g is None else to_place(g, axis, reverse=reverse)
        for g, (axis, reverse) in zip(of_slices, walks, strict=True)
    ]
    return [*of_states, *placed, *of_captured]


def _split_results(results: Sequence[Any], count: int) -> tuple[Sequence[Any], Sequence[Any]]:
    return results[:count], results[count:]


OPERATORS = (
    OpDef("Scan", _infer_scan, _scan, traits=Trait.FREE, vjp=_scan_vjp),
    OpDef(
        "SequenceMap",
        _infer_sequence_map,
        _sequence_map,
        vjp=Unsupported("its body cannot be followed: write it as a Loop"),
    ),
)
