"""Convolution into few channels: vectors run along rows of the image, not across channels.

Blocks of channels would stay mostly empty. The image is read as planes within a zero border; for
strides above one a plane is stored as that many planes, each with every stride-th column, so that
neighbouring outputs read neighbouring inputs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.ending import bounded, follow
from hagane.native.kernel import Body
from hagane.native.pooled import Pool, with_pool
from hagane.native.rules.images import new_planes
from hagane.native.tensor import Buffer, Kind, Tensor, keep_border
from hagane.ops.definition import Array

if TYPE_CHECKING:
    from hagane.native.lowering import Lowering
    from hagane.native.rules.window import Window


# Pooled rows may leave as much more of their vectors empty.
_FILLED = 0.75


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


@dataclass(frozen=True, slots=True)
class _Form:
    """What a tile computes: some maps, side by side some vectors of results, for each one of a window.

    Attributes:
        maps: Output channels at once.
        wide: Vectors of results.
        rows: Rows of pixels that are pooled to one, or 1.
        columns: Columns of these.
        phases: Planes that a plane of the image is stored as: the results of a vector lie as many
            pixels apart.
        height: Rows of the result.
        width: Columns of the result.
    """

    maps: int
    wide: int
    rows: int
    columns: int
    phases: int
    height: int
    width: int

    @classmethod
    def of(cls, low: Lowering, window: Window, pool: Pool | None) -> _Form:
        rows, columns = (1, 1) if pool is None else (pool.rows, pool.columns)
        height, width = window.out_height, window.out_width
        if pool is not None:
            height, width = pool.height, pool.width
        registers = (24 if low.level.registers == 32 else 10) // (rows * columns)
        groups = -(-window.out_channels // max(1, registers))
        maps = -(-window.out_channels // groups)
        wide = max(1, min(registers // maps, 6, -(-width // low.level.lanes)))
        return cls(maps, wide, rows, columns, window.strides[1] * columns, height, width)


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

    def filled(width: int) -> float:
        return width / (-(-width // lanes) * lanes)

    ending = follow(low, node.outputs[0], residuals=False)
    ending, pool = with_pool(
        low, ending, lambda pool: filled(pool.width) > _FILLED * filled(window.out_width)
    )
    form = _Form.of(low, window, pool)
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left, _, _ = window.pads
    rows = max(window.height + top, (window.out_height - 1) * sh + (kh - 1) * dh + 1)
    columns = max(window.width + left, (window.out_width - 1) * sw + (kw - 1) * dw + 1)
    row = -(-columns // form.phases)
    plane = rows * row
    image = window.channels * form.phases * plane
    out = window.out_channels
    # Tiles read whole vectors: past the end of a row what follows, past the last one what is there.
    slack = form.wide * lanes
    buffer = Buffer(f"{x.name} planes", (window.images * image + slack) * 4, Kind.ARENA)
    _fill_planes(low, x, window, buffer, form.phases, row, plane)

    weights = low.weight(
        ("narrow", id(node)),
        lambda: np.ascontiguousarray(weight.transpose(1, 2, 3, 0), np.float32),
        weight.size * 4,
    )
    start = np.zeros(out, np.float32) if bias is None else bias.astype(np.float32)
    first = low.weight(("narrow bias", id(node)), lambda: start, out * 4)
    target = new_planes(low, ending.value)
    d_image, d_plane, d_row = (target.strides[0], target.strides[1], target.strides[-2])
    if len(target.shape) == 3:
        d_row = 0
    body = Body()
    s, w, b = body.raw(buffer), body.raw(weights), body.raw(first)
    d = body.pointer(target, written=True)
    body.add(
        f"int64_t y = q % {form.height}, image = q / {form.height};",
        f"const float *s = {s} + image * {image} + y * {form.rows * sh * row};",
        f"float *d = {d} + image * {d_image} + y * {d_row};",
        f"for (int64_t x = 0; x < {form.width}; x += {form.wide * lanes}) {{",
        f"const int64_t n = {form.width} - x;",
    )
    offsets = [
        [
            (k * sw + j * dw) % form.phases * plane + (k * sw + j * dw) // form.phases
            for k in range(form.columns)
        ]
        for j in range(kw)
    ]
    for begin in range(0, out, form.maps):
        maps = range(begin, min(out, begin + form.maps))
        places = list(itertools.product(range(form.wide), range(form.rows), range(form.columns)))
        body.add(
            "{",
            *(f"vf a{o}_{v}_{r}_{k} = v_set1({b}[{o}]);" for o in maps for v, r, k in places),
            f"const float *w = {w};",
            f"for (int64_t c = 0; c < {window.channels}; c++)",
            f"for (int64_t i = 0; i < {kh}; i++, w += {kw * out}) {{",
            f"const float *p = s + c * {form.phases * plane} + i * {dh * row} + x;",
        )
        for j in range(kw):
            body.add(
                "{",
                *(
                    f"vf x{v}_{r}_{k} = v_load(p + {offsets[j][k] + r * sh * row + v * lanes});"
                    for v, r, k in places
                ),
            )
            for o in maps:
                updates = " ".join(
                    f"a{o}_{v}_{r}_{k} = v_fma(x{v}_{r}_{k}, k, a{o}_{v}_{r}_{k});"
                    for v, r, k in places
                )
                body.add(f"{{ vf k = v_set1(w[{j * out + o}]); {updates} }}")
            body.add("}")
        body.add("}")
        for o, v in itertools.product(maps, range(form.wide)):
            values = [
                bounded(f"a{o}_{v}_{r}_{k}", ending.activation)
                for r in range(form.rows)
                for k in range(form.columns)
            ]
            value = values[0] if pool is None else pool.reduced(values)
            place = f"d + {o * d_plane} + x + {v * lanes}"
            body.add(
                f"if (n >= {(v + 1) * lanes}) v_store({place}, {value});",
                f"else if (n > {v * lanes}) v_store_n({place}, {value}, n - {v * lanes});",
            )
        body.add("}")
    body.add("}")
    pixels = form.height * form.width if pool is None else pool.pixels
    flops = 2.0 * window.images * pixels * weight.size
    low.emit(
        node,
        body,
        window.images * form.height,
        work=flops / 60,
        flops=flops,
        followers=ending.operators,
    )
    low.lowered[ending.value] = target


def _fill_planes(
    low: Lowering, x: ir.Value, window: Window, buffer: Buffer, stride: int, row: int, plane: int
) -> None:
    """Copy an image into planes of every stride-th column, within a zero border.

    Args:
        low: Where the copies go.
        x: The image.
        window: Sizes of the convolution.
        buffer: The planes' memory.
        stride: How many planes a plane becomes.
        row: Floats of a row with its border.
        plane: Floats of a plane with its border.
    """
    source = low.plain(x)
    top, left, _, _ = window.pads
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
