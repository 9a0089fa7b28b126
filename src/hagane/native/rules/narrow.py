"""Convolution into few channels: vectors run along rows of the image, not across channels.

Blocks of channels would stay mostly empty. The image is read as planes within a zero border; for
strides above one a plane is stored as that many planes, each with every stride-th column, so that
neighbouring outputs read neighbouring inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.ending import bounded, follow
from hagane.native.kernel import Body
from hagane.native.tensor import Buffer, Kind, Tensor, keep_border
from hagane.ops.definition import Array

if TYPE_CHECKING:
    from hagane.native.lowering import Lowering
    from hagane.native.rules.window import Window


def is_narrow(low: Lowering, window: Window) -> bool:
    """Whether so few output channels are computed that rows are the better direction."""
    lanes = low.level.lanes
    work = window.channels * window.kernel[0] * window.kernel[1]
    return (
        window.groups == 1
        and window.out_channels * 2 <= lanes
        and window.out_width >= lanes
        and work >= 8
        and window.strides[1] <= 4
    )


def lower_narrow(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    """Write the kernel; the result is a plain image.

    Args:
        low: Where it goes.
        node: The convolution.
        window: Its sizes.
        weight: ``(out, in, rows, columns)``.
        bias: One number a channel, or None.
    """
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    ending = follow(low, node.outputs[0], residuals=False)
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left, _, _ = window.pads
    rows = max(window.height + top, (window.out_height - 1) * sh + (kh - 1) * dh + 1)
    columns = max(window.width + left, (window.out_width - 1) * sw + (kw - 1) * dw + 1)
    row = -(-columns // sw)
    plane = rows * row
    image = window.channels * sw * plane
    registers = 24 if low.level.registers == 32 else 10
    out = window.out_channels
    wide = max(1, min(registers // out, 6, -(-window.out_width // lanes)))
    # Tiles read whole vectors: past the end of a row what follows, past the last one what is there.
    buffer = Buffer(f"{x.name} planes", (window.images * image + wide * lanes) * 4, Kind.ARENA)
    _fill_planes(low, x, window, buffer, row, plane)

    weights = low.weight(
        ("narrow", id(node)),
        lambda: np.ascontiguousarray(weight.transpose(1, 2, 3, 0), np.float32),
        weight.size * 4,
    )
    start = np.zeros(out, np.float32) if bias is None else bias.astype(np.float32)
    first = low.weight(("narrow bias", id(node)), lambda: start, out * 4)
    target = low.result(ending.value)
    body = Body()
    offsets = ", ".join(str(j * dw % sw * plane + j * dw // sw) for j in range(kw))
    body.helper(f"static const int32_t KERNEL_columns[{kw}] = {{{offsets}}};")
    s, w, b = body.raw(buffer), body.raw(weights), body.raw(first)
    d = body.pointer(target, written=True)
    step = wide * lanes
    body.add(
        f"int64_t y = q % {window.out_height}, image = q / {window.out_height};",
        f"const float *s = {s} + image * {image} + y * {sh * row};",
        f"float *d = {d} + image * {out * window.out_height * window.out_width} + y * {window.out_width};",
        f"for (int64_t x = 0; x < {window.out_width}; x += {step}) {{",
        *(f"vf a{o}_{v} = v_set1({b}[{o}]);" for o in range(out) for v in range(wide)),
        f"const float *w = {w};",
        f"for (int64_t c = 0; c < {window.channels}; c++)",
        f"for (int64_t i = 0; i < {kh}; i++) {{",
        f"const float *line = s + c * {sw * plane} + i * {dh * row} + x;",
        f"for (int64_t j = 0; j < {kw}; j++, w += {out}) {{",
        "const float *p = line + KERNEL_columns[j];",
        *(f"vf x{v} = v_load(p + {v * lanes});" for v in range(wide)),
    )
    for o in range(out):
        updates = " ".join(f"a{o}_{v} = v_fma(x{v}, k, a{o}_{v});" for v in range(wide))
        body.add(f"{{ vf k = v_set1(w[{o}]); {updates} }}")
    body.add("} }", f"int64_t n = {window.out_width} - x;")
    for o in range(out):
        at = o * window.out_height * window.out_width
        for v in range(wide):
            value = bounded(f"a{o}_{v}", ending.activation)
            place = f"d + {at} + x + {v * lanes}"
            body.add(
                f"if (n >= {(v + 1) * lanes}) v_store({place}, {value});",
                f"else if (n > {v * lanes}) v_store_n({place}, {value}, n - {v * lanes});",
            )
    body.add("}")
    flops = 2.0 * window.images * window.out_height * window.out_width * weight.size
    low.emit(
        node,
        body,
        window.images * window.out_height,
        work=flops / 60,
        flops=flops,
        followers=ending.operators,
    )
    low.lowered[ending.value] = target


def _fill_planes(
    low: Lowering, x: ir.Value, window: Window, buffer: Buffer, row: int, plane: int
) -> None:
    """Copy an image into planes of every stride-th column, within a zero border.

    Args:
        low: Where the copies go.
        x: The image.
        window: Sizes of the convolution.
        buffer: The planes' memory.
        row: Floats of a row with its border.
        plane: Floats of a plane with its border.
    """
    source = low.plain(x)
    top, left, _, _ = window.pads
    stride = window.strides[1]
    image = window.channels * stride * plane
    strides = (
        source.strides if len(source.shape) == 4 else (*source.strides[:2], 0, source.strides[2])
    )
    for phase in range(stride):
        first = (phase - left) % stride
        count = max(0, -(-(window.width - first) // stride))
        shape = (window.images, window.channels, window.height, count)
        part = Tensor(
            source.buffer,
            source.dtype,
            shape,
            (*strides[:3], strides[3] * stride),
            source.offset + first * strides[3],
        )
        at = phase * plane + top * row + (first + left) // stride
        pixels = Tensor(buffer, source.dtype, shape, (image, stride * plane, row, 1), at)
        keep_border(pixels, plane, start=phase * plane, step=stride * plane)
        if count:
            low.copy(part, pixels)
