"""Elementwise kernels over images whose blocks of channels are not equally wide.

Images of floats have as many channels in a block as a vector has lanes; images for matrix
tiles have two or four times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import Apply, Constant, Expression, Leaf, leaves
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Tensor


def emit_image(
    recorder: Recorder,
    label: str,
    expression: Expression,
    target: Tensor,
    *,
    store: str = "",
    nodes: Sequence[ir.Node] = (),
) -> None:
    """Write kernels that compute an expression over images ``(N, blocks, rows, columns, lanes)``.

    The rest of a wide target's last block is zero. Arguments are those of
    ``emit_elementwise``.
    """
    lanes = recorder.level.lanes
    widths = {int(t.shape[-1]) for t in (target, *leaves(expression)) if t.shape} - {1}
    if len(widths) <= 1:
        emit_elementwise(recorder, label, expression, target, store=store, nodes=nodes)
        return
    parts = max(widths) // lanes
    for part in range(parts):
        into = _part(target, part, parts, lanes)
        mine = _map(expression, partial(_part, part=part, parts=parts, lanes=lanes))
        count = min(int(t.shape[1]) for t in (into, *leaves(mine)) if len(t.shape) == 5)
        if count:
            mine = _map(mine, partial(_first, count=count))
            emit_elementwise(recorder, label, mine, _first(into, count), store=store, nodes=nodes)
        left = int(into.shape[1]) - count
        if left:
            at = into.offset + count * into.strides[1]
            last = replace(_first(into, left), offset=at)
            emit_elementwise(
                recorder, label, Constant(0, target.dtype), last, store=store, nodes=nodes
            )


def clear_beyond(
    recorder: Recorder, label: str, channels: int, target: Tensor, *, store: str
) -> None:
    """Write the kernel that clears the rest of the vector of an image's last channels.

    A function of zero need not be zero, or finite: ``Log``, say. Arguments are those of
    ``emit_elementwise``.
    """
    wide, left = int(target.shape[-1]), -channels % recorder.level.lanes
    if left:
        block, first = divmod(channels, wide)
        at = target.offset + block * target.strides[1] + first
        shape = (target.shape[0], 1, *target.shape[2:-1], left)
        beyond = replace(target, shape=shape, offset=at)
        emit_elementwise(recorder, label, Constant(0, target.dtype), beyond, store=store)


def _part(tensor: Tensor, part: int, parts: int, lanes: int) -> Tensor:
    """Return one vector of every wide block, or the blocks of one vector that match it."""
    if not tensor.shape or tensor.shape[-1] == 1:
        return tensor
    if tensor.shape[-1] == parts * lanes:
        at = tensor.offset + part * lanes
        return replace(tensor, shape=(*tensor.shape[:-1], lanes), offset=at)
    assert tensor.shape[-1] == lanes
    axis = len(tensor.shape) - 4
    assert axis >= 0, "channels without blocks"
    shape, strides = list(tensor.shape), list(tensor.strides)
    step = strides[axis]
    shape[axis] = len(range(part, int(shape[axis]), parts))
    strides[axis] = step * parts
    at = tensor.offset + part * step
    return replace(tensor, shape=tuple(shape), strides=tuple(strides), offset=at)


def _first(tensor: Tensor, count: int) -> Tensor:
    """Return the first blocks of an image; other tensors stay as they are."""
    if len(tensor.shape) != 5 or tensor.shape[-1] == 1:
        return tensor
    shape = (tensor.shape[0], count, *tensor.shape[2:])
    return replace(tensor, shape=shape)


def _map(expression: Expression, change: Callable[[Tensor], Tensor]) -> Expression:
    """Return an expression over other tensors."""
    if isinstance(expression, Leaf):
        return Leaf(change(expression.tensor))
    if isinstance(expression, Apply):
        arguments = tuple(_map(argument, change) for argument in expression.arguments)
        return replace(expression, arguments=arguments)
    return expression
