"""Transpose, Squeeze, Unsqueeze, ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, data_by_reference
from hagane.ops.traits import Trait
from hagane.ops.vjp import reshaped


def _infer_transpose(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    order = ctx.attr("perm")
    if order is None:
        return [shape[::-1]]
    if sorted(order) != list(range(len(shape))):
        ctx.fail(
            f"expected perm to order the {len(shape)} axes of {ctx.tensor(0)}, got {list(order)}"
        )
    return [tuple(shape[axis] for axis in order)]


def _transpose(x: Array, *, perm: Sequence[int] | None = None) -> Array:
    return np.transpose(x, perm)


def _squeeze(x: Array, axes: Array | None = None) -> Array:
    return np.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


def _infer_squeeze(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if ctx.has(1):
        given = ctx.ints(1)
        if given is None:
            return [None]
        axes = {ctx.axis(axis, len(shape)) for axis in given}
    else:
        if not all(isinstance(dim, int) for dim in shape):
            return [None]  # which axes have size 1 shows only when the model runs
        axes = {axis for axis, dim in enumerate(shape) if dim == 1}
    for axis in axes:
        ctx.unify(shape[axis], 1, f"expected size 1 on the squeezed axis {axis}")
    return [tuple(dim for axis, dim in enumerate(shape) if axis not in axes)]


def _unsqueeze(x: Array, axes: Array) -> Array:
    return np.expand_dims(x, tuple(int(axis) for axis in axes.ravel()))


def _infer_unsqueeze(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    given = ctx.ints(1)
    if given is None:
        return [None]
    rank = len(shape) + len(given)
    axes = [ctx.axis(axis, rank) for axis in given]
    if len(set(axes)) != len(axes):
        ctx.fail(f"expected distinct axes, got {list(given)}")
    rest = iter(shape)
    return [tuple(1 if axis in axes else next(rest) for axis in range(rank))]


def _reverse_sequence(
    x: Array, lengths: Array, *, batch_axis: int = 1, time_axis: int = 0
) -> Array:
    result = x.copy()
    by_batch = np.moveaxis(result, (batch_axis, time_axis), (0, 1))
    source = np.moveaxis(x, (batch_axis, time_axis), (0, 1))
    if lengths.shape != (batch := x.shape[batch_axis],):
        raise ValueError(f"expected lengths of {batch} sequences, got shape {list(lengths.shape)}")
    if wrong := _wrong_lengths(lengths, x.shape[time_axis]):
        raise ValueError(wrong)
    for entry, length in enumerate(int(n) for n in lengths):
        by_batch[entry, :length] = source[entry, :length][::-1]
    return result


def _wrong_lengths(lengths: Array, steps: int) -> str:
    """Return the faults of the lengths of sequences of some steps; nothing if all is well."""
    if not lengths.size or (lengths.min() >= 0 and lengths.max() <= steps):
        return ""
    return f"expected sequence lengths from 0 to {steps}, got {lengths.tolist()}"


def _infer_reverse_sequence(ctx: InferContext) -> Sequence[Any]:
    shape, lengths = ctx.shape(0), ctx.constant(1)
    (count,) = ctx.shape(1, rank=1)
    batch = shape[ctx.axis(ctx.attr("batch_axis"), len(shape))]
    ctx.unify(count, batch, f"expected lengths of {batch} sequences")
    steps = shape[ctx.axis(ctx.attr("time_axis"), len(shape))]
    if lengths is not None and isinstance(steps, int) and (wrong := _wrong_lengths(lengths, steps)):
        ctx.fail(wrong)
    return [shape]


def _transpose_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    order = call.attr("perm")
    if order is None:
        return [op("Transpose", gradients[0])]
    back = sorted(range(len(order)), key=lambda axis: order[axis])
    return [op("Transpose", gradients[0], perm=back)]


def _reverse_sequence_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    return [op("ReverseSequence", gradients[0], call.inputs[1], **call.attributes), None]


OPERATORS = (
    OpDef(
        "ReverseSequence",
        _infer_reverse_sequence,
        _reverse_sequence,
        vjp=_reverse_sequence_vjp,
        traits=Trait.MOVING,
    ),
    OpDef(
        "Squeeze",
        _infer_squeeze,
        _squeeze,
        data=data_by_reference,
        vjp=reshaped,
        traits=Trait.FREE | Trait.MOVING | Trait.RESHAPING,
    ),
    OpDef(
        "Transpose",
        _infer_transpose,
        _transpose,
        data=data_by_reference,
        vjp=_transpose_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
    OpDef(
        "Unsqueeze",
        _infer_unsqueeze,
        _unsqueeze,
        data=data_by_reference,
        vjp=reshaped,
        traits=Trait.FREE | Trait.MOVING | Trait.RESHAPING,
    ),
)
