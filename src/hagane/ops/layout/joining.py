"""Concat and Split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, rank_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef, data_by_reference
from hagane.ops.functions.tensors.positions import extent
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.ops.traits import Trait
from hagane.symbolic import Dim, ceildiv, maximum


def _concat(*xs: Array, axis: int) -> Array:
    return np.concatenate(xs, axis)


def _infer_concat(ctx: InferContext) -> Sequence[Any]:
    shapes = [ctx.shape(i) for i in range(ctx.n_inputs)]
    rank = len(shapes[0])
    if any(len(shape) != rank for shape in shapes):
        ctx.fail(f"expected inputs of one rank, got {ctx.inputs_text()}")
    axis = ctx.axis(ctx.attr("axis"), rank)
    result: list[Dim] = list(shapes[0])
    for shape in shapes[1:]:
        for i in range(rank):
            if i == axis:
                result[i] = result[i] + shape[i]
            else:
                result[i] = ctx.unify(
                    result[i],
                    shape[i],
                    f"expected equal sizes on axis {i} (all axes but {axis} have to agree)",
                )
    return [tuple(result)]


def _lengths(total: int, parts: int) -> list[int]:
    """Equal lengths, rounded up; the last part takes the rest."""
    length = -(-total // parts)
    return [max(0, min(length, total - start * length)) for start in range(parts)]


def _split(
    x: Array,
    split: Array | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    if split is not None:
        lengths = [int(length) for length in split]
    else:
        lengths = _lengths(x.shape[axis], num_outputs or n_outputs)
    if min(lengths, default=0) < 0:
        raise ValueError(f"expected lengths that are not negative, got {lengths}")
    if sum(lengths) != x.shape[axis]:
        raise ValueError(f"parts {lengths} do not add up to size {x.shape[axis]} of axis {axis}")
    return tuple(np.split(x, np.cumsum(lengths)[:-1], axis))


def _infer_split(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    axis = ctx.axis(ctx.attr("axis"), len(shape))
    total = shape[axis]
    count = ctx.attr("num_outputs") or ctx.n_outputs
    if count != ctx.n_outputs:
        ctx.fail(f"expected num_outputs to be the number of outputs ({ctx.n_outputs}), got {count}")
    lengths: Sequence[Dim]
    if ctx.has(1):
        given = ctx.dims(1)
        lengths = given if given is not None else [ctx.fresh() for _ in range(ctx.n_outputs)]
        if len(lengths) != ctx.n_outputs:
            ctx.fail(f"expected one length an output ({ctx.n_outputs}), got {len(lengths)}")
        if ctx.data(1) is not None:
            whole: Dim = 0
            for length in lengths:
                ctx.unify(length, maximum(length, 0), "expected lengths that are not negative")
                whole = whole + length
            ctx.unify(whole, total, f"expected the parts to add up to size {total} of axis {axis}")
    elif isinstance(total, int):
        lengths = _lengths(total, count)
    else:
        part = ceildiv(total, count)
        rest = total - part * (count - 1)
        ctx.unify(rest, maximum(rest, 0), f"expected a size of axis {axis} that has {count} parts")
        lengths = [part] * (count - 1) + [rest]
    return [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]


def _concat_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (g,), axis = gradients, call.attr("axis") % rank_of(call.inputs[0])
    if len(call.inputs) == 1:
        return [g]
    lengths = [extent(x, axis) for x in call.inputs]
    if all(isinstance(length, int) for length in lengths):
        split: Any = lengths
    else:
        columns = [[length] if isinstance(length, int) else length for length in lengths]
        split = op("Concat", *columns, axis=0)
    return list(op("Split", g, split, axis=axis, outputs=len(lengths)))


def _split_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    parts = [
        zeros_like(part) if g is None else g
        for part, g in zip(call.outputs, gradients, strict=True)
    ]
    return [op("Concat", *parts, axis=call.attr("axis")), *(None for _ in call.inputs[1:])]


OPERATORS = (
    OpDef(
        "Concat",
        _infer_concat,
        _concat,
        data=data_by_reference,
        vjp=_concat_vjp,
        traits=Trait.FREE | Trait.VARIADIC,
    ),
    OpDef(
        "Split",
        _infer_split,
        _split,
        data=data_by_reference,
        vjp=_split_vjp,
        traits=Trait.FREE | Trait.MOVING,
    ),
)
