"""Images as convolutions want them: in wide enough zero borders, or as planes; their biases."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.native.lowering import Lowering
from hagane.native.rules.window import Window, needed_pads
from hagane.native.tensor import Blocked, Buffer, Kind, Pads, Tensor, blocked_floats, keep_border
from hagane.ops.definition import Array

# Images of no more channels than this are read as planes, or a pixel after the other, without blocks.
FEW_CHANNELS = 4


def four_axes(weight: Array) -> Array:
    """Return weights ``(out, in, rows, columns)``; those of one spatial axis have one row."""
    return weight if weight.ndim == 4 else weight[:, :, None, :]


def bias_buffer(low: Lowering, node: ir.Node, window: Window, bias: Array | None) -> Buffer:
    """Return the biases, zero where there are none, with room for the widest group of blocks."""
    lanes = low.level.lanes
    count = (-(-window.out_channels // lanes) + 8) * lanes

    def make() -> Array:
        padded = np.zeros(count, np.float32)
        if bias is not None:
            padded[: window.out_channels] = bias
        return padded

    return low.weight(("bias", id(node)), make, count * 4)


def padded_planes(
    low: Lowering, value: ir.Value, window: Window
) -> tuple[Tensor, tuple[int, int], int]:
    """Return an image as planes within a zero border, its row and plane strides, and its size."""
    source = low.plain(value)
    top, left, bottom, right = needed_pads(window)
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
    low.copy(source, inner)
    return Tensor(buffer, source.dtype, shape, (image, plane, row, 1), 0), (row, plane), image


def with_border(low: Lowering, value: ir.Value, source: Blocked, pads: Pads) -> Blocked:
    """Return a copy of an image within a wider zero border."""
    lanes = low.level.lanes
    floats = blocked_floats(source.shape, lanes, pads)
    buffer = Buffer(f"{value.name} padded", floats * 4, Kind.ARENA)
    target = Blocked(buffer, source.shape, lanes, pads)
    keep_border(target.view(), target.plane_stride)
    low.copy(source.view(), target.view())
    return target
