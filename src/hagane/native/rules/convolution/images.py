"""Images as convolutions want them: in wide enough zero borders, or as planes; their biases."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.packing import Packing, padded_rows
from hagane.native.kernels.tensor import (
    Blocked,
    Buffer,
    Kind,
    Pads,
    Tensor,
    blocked_floats,
    keep_border,
)
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.window import Window, covers, needed_pads
from hagane.ops.definition import Array
from hagane.symbolic import Dim

# Images of no more channels than this are read as planes, or a pixel after the other, without blocks.
FEW_CHANNELS = 4
_zero = np.zeros(1, np.float32)


def four_axes(weight: Array) -> Array:
    """Return weights ``(out, in, rows, columns)``; those of one spatial axis have one row."""
    return weight if weight.ndim == 4 else weight[:, :, None, :]


def bias_buffer(low: Lowering, node: ir.Node, window: Window, bias: Array | None) -> Buffer:
    """Return the biases, zero where there are none, with room for the widest group of blocks."""
    lanes = low.facts.level.lanes
    count = (-(-window.out_channels // lanes) + 8) * lanes
    own = _zero if bias is None else np.broadcast_to(bias.reshape(-1), (window.out_channels,))
    packing = Packing(padded_rows, ((own,), count, "float32"))
    return low.recorder.weight(("bias", id(node)), packing, count * 4)


def padded_planes(
    low: Lowering, value: ir.Value, window: Window, pads: Pads | None = None
) -> tuple[Tensor, tuple[Dim, Dim], Dim]:
    """Return an image as planes within a zero border, its row and plane strides, and its size.

    The border is the one that the filter reads, or ``pads``.
    """
    source = low.forms.plain(value)
    needed = top, left, bottom, right = needed_pads(window) if pads is None else pads
    have = low.forms.planes.get(source.buffer)
    if have is not None and covers(have, needed):
        return _from_border(source, window)
    row = window.width + left + right
    plane = (window.height + top + bottom) * row
    image = plane * window.channels
    # Tiles read whole rows; the last one may look past the end by a vector.
    count = window.images * image + 64
    buffer = Buffer(f"{value.name} padded", count * 4, Kind.ARENA)
    shape = (window.images, window.channels, window.height, window.width)
    inner = Tensor(buffer, source.dtype, shape, (image, plane, row, 1), top * row + left)
    keep_border(inner, plane)
    if len(source.shape) == 3:
        source = Tensor(
            source.buffer,
            source.dtype,
            shape,
            (source.strides[0], source.strides[1], 0, source.strides[2]),
            source.offset,
        )
    emit_copy(low.recorder, source, inner)
    return Tensor(buffer, source.dtype, shape, (image, plane, row, 1), 0), (row, plane), image


def _from_border(source: Tensor, window: Window) -> tuple[Tensor, tuple[Dim, Dim], Dim]:
    """Return planes from where a filter begins to read their border."""
    image, plane, *rows, _ = source.strides
    row = rows[0] if rows else 0
    top, left, _, _ = window.pads
    shape = (window.images, window.channels, window.height, window.width)
    tensor = Tensor(
        source.buffer,
        source.dtype,
        shape,
        (image, plane, row, 1),
        source.offset - top * row - left,
    )
    return tensor, (row, plane), image


def new_planes(low: Lowering, value: ir.Value) -> Tensor:
    """Return fresh memory for a plain image, with the zero border that its readers want."""
    pads = low.forms.wanted_pads.get(value)
    channels = low.facts.shape(value)[1]
    if (
        pads is None
        or value in low.facts.outputs
        or value in low.forms.places
        or not isinstance(channels, int)
    ):
        return low.forms.result(value)
    # Blocks of one channel are planes.
    image = Blocked(Buffer(f"{value.name} planes", 0, Kind.ARENA), low.facts.shape(value), 1, pads)
    image.buffer.bytes = (image.floats + 64) * 4
    keep_border(image.view(), image.plane_stride)
    low.forms.planes[image.buffer] = pads
    view = image.view()
    shape, strides = view.shape[:-1], view.strides[:-1]
    if len(image.shape) == 3:
        shape, strides = (*shape[:2], shape[3]), (*strides[:2], strides[3])
    return Tensor(image.buffer, view.dtype, shape, strides, view.offset)


def with_border(low: Lowering, value: ir.Value, source: Blocked, pads: Pads) -> Blocked:
    """Return a copy of an image within a wider zero border."""
    lanes = low.facts.level.lanes
    floats = blocked_floats(source.shape, lanes, pads)
    buffer = Buffer(f"{value.name} padded", floats * 4, Kind.ARENA)
    target = Blocked(buffer, source.shape, lanes, pads)
    keep_border(target.view(), target.plane_stride)
    emit_copy(low.recorder, source.view(), target.view())
    return target
