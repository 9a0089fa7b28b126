"""Convolution into few channels: vectors run along rows of the image, not across channels.

Blocks of channels would stay mostly empty. The image is read as planes within a zero border; for
strides above one a plane is stored as that many planes, each with every stride-th column, so that
neighbouring outputs read neighbouring inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing, padded_rows
from hagane.native.kernels.tensor import Buffer, Kind, Tensor, keep_border
from hagane.native.lowering.epilogue import follow
from hagane.native.rules.convolution.images import new_planes
from hagane.native.rules.convolution.pooled import with_pool
from hagane.native.tiles.contraction import Pool
from hagane.native.tiles.tile import bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering
    from hagane.native.rules.convolution.window import Window


# Columns of a filter up to which loops over them are written out.
UNROLLED = 8
# Pooled rows may leave as much more of their vectors empty.
_FILLED = 0.75


def has_few_outputs(low: Lowering, window: Window) -> bool:
    """Whether so few output channels are computed that rows are the better direction."""
    lanes = low.facts.level.lanes
    work = window.channels * window.kernel[0] * window.kernel[1]
    return (
        window.groups == 1
        and window.out_channels * 2 <= lanes
        and not window.is_open
        and window.sizes[3] >= lanes
        and work >= 8
        and window.strides[1] <= 4
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """A tile's results: some maps, side by side some vectors of results, for each one of a window.

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
        _, _, height, width = window.sizes
        if pool is not None:
            height, width = pool.height, pool.width
        registers = (24 if low.facts.level.registers == 32 else 10) // (rows * columns)
        groups = -(-window.out_channels // max(1, registers))
        maps = -(-window.out_channels // groups)
        wide = max(1, min(registers // maps, 6, -(-width // low.facts.level.lanes)))
        return cls(maps, wide, rows, columns, window.strides[1] * columns, height, width)


def lower_few_outputs(
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
    lanes = low.facts.level.lanes
    x = node.inputs[0]
    assert x is not None

    def filled(width: int) -> float:
        return width / (-(-width // lanes) * lanes)

    epilogue = follow(low, node.outputs[0], residuals=False)
    high, across, out_height, out_width = window.sizes
    epilogue, pool = with_pool(
        low, epilogue, lambda pool: filled(pool.width) > _FILLED * filled(out_width)
    )
    form = _Form.of(low, window, pool)
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left, _, _ = window.border
    rows = max(high + top, (out_height - 1) * sh + (kh - 1) * dh + 1)
    columns = max(across + left, (out_width - 1) * sw + (kw - 1) * dw + 1)
    row = -(-columns // form.phases)
    plane = rows * row
    image = window.channels * form.phases * plane
    out = window.out_channels
    # Tiles read whole vectors: past the end of a row the next one, past the last one any memory.
    slack = form.wide * lanes
    buffer = Buffer(f"{x.name} planes", (window.images * image + slack) * 4, Kind.ARENA)
    _fill_planes(low, x, window, buffer, form.phases, row, plane)

    weights = low.recorder.weight(
        ("few outputs", id(node)),
        Packing(outputs_last, (weight,)),
        weight.size * 4,
    )
    start = np.zeros(out, np.float32) if bias is None else bias
    first = low.recorder.weight(
        ("few outputs bias", id(node)), Packing(padded_rows, ((start,), out, "float32")), out * 4
    )
    target = new_planes(low, epilogue.value)
    d_image, d_plane, *d_rows, _ = target.strides
    d_row: Dim = d_rows[0] if d_rows else 0
    body = Body()
    s, w, b = body.raw(buffer), body.raw(weights), body.raw(first)
    d = body.pointer(target, written=True)
    places = {
        (v, r, k): v * lanes + r * sh * row
        for v, r, k in itertools.product(range(form.wide), range(form.rows), range(form.columns))
    }
    taps = [
        [
            (k * sw + j * dw) % form.phases * plane + (k * sw + j * dw) // form.phases
            for k in range(form.columns)
        ]
        for j in range(kw)
    ]
    body.add(
        f"int64_t y = q % {form.height}, image = q / {form.height};",
        f"const float *s = {s} + image * {image} + y * {form.rows * sh * row};",
        f"float *d = {d} + image * {body.number(d_image)} + y * {body.number(d_row)};",
        f"for (int64_t x = 0; x < {form.width}; x += {form.wide * lanes}) {{",
        f"const int64_t n = {form.width} - x;",
    )
    for begin in range(0, out, form.maps):
        maps = range(begin, min(out, begin + form.maps))
        names = {(o, at): f"a{o}_" + "_".join(map(str, at)) for o in maps for at in places}
        body.add(
            "{",
            *(f"vf {name} = v_set1({b}[{o}]);" for (o, _), name in names.items()),
            f"const float *w = {w};",
            f"for (int64_t c = 0; c < {window.channels}; c++)",
            f"for (int64_t i = 0; i < {kh}; i++) {{",
            f"const float *p = s + c * {form.phases * plane} + i * {dh * row} + x;",
        )
        _multiply(body, names, places, taps, out)
        body.add("}")
        for o, v in itertools.product(maps, range(form.wide)):
            values = [bounded(names[o, at], epilogue.activation) for at in places if at[0] == v]
            value = values[0] if pool is None else pool.reduced(values)
            place = f"d + {body.number(o * d_plane)} + x + {v * lanes}"
            body.add(
                f"if (n >= {(v + 1) * lanes}) v_store({place}, {value});",
                f"else if (n > {v * lanes}) v_store_n({place}, {value}, n - {v * lanes});",
            )
        body.add("}")
    body.add("}")
    pixels = form.height * form.width if pool is None else pool.pixels
    flops = 2.0 * pixels * weight.size
    low.recorder.emit(
        node,
        body,
        window.images * form.height,
        work=work_of(window.images, flops / 60),
        flops=work_of(window.images, flops),
        followers=epilogue.nodes,
        name=window.name("conv_few_outputs"),
    )
    low.forms[epilogue.value] = target


def _multiply(
    body: Body,
    names: Mapping[tuple[int, tuple[int, int, int]], str],
    places: Mapping[tuple[int, int, int], int],
    taps: Sequence[Sequence[int]],
    out: int,
) -> None:
    """Write the sums over one row of the filter, of ``p`` times ``w``, which it leaves at the next row.

    Args:
        body: The kernel.
        names: Sums, by channel and place.
        places: Floats from ``p`` to each vector of results, by vector, row and column of a window.
        taps: From there to each tap, for every column of a window.
        out: Channels of the result.
    """
    unrolled = len(taps) <= UNROLLED
    if not unrolled:
        table = ", ".join(f"{{{', '.join(map(str, tap))}}}" for tap in taps)
        size = f"[{len(taps)}][{len(taps[0])}]"
        body.helper(f"static const int32_t KERNEL_columns{size} = {{{table}}};")
        body.add(f"for (int64_t j = 0; j < {len(taps)}; j++, w += {out}) {{")
    for j, tap in enumerate(taps if unrolled else [[0] * len(taps[0])]):
        body.add("{")
        for at, offset in places.items():
            far = str(offset + tap[at[2]]) if unrolled else f"{offset} + KERNEL_columns[j][{at[2]}]"
            body.add(f"vf x{'_'.join(map(str, at))} = v_load(p + {far});")
        for o in dict.fromkeys(o for o, _ in names):
            sums = " ".join(
                f"{names[o, at]} = v_fma(x{'_'.join(map(str, at))}, k, {names[o, at]});"
                for at in places
            )
            body.add(f"{{ vf k = v_set1(w[{j * out + o}]); {sums} }}")
        body.add("}")
    body.add(f"w += {len(taps) * out};" if unrolled else "}")


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
    source = low.forms.plain(x)
    top, left, _, _ = window.border
    width = window.sizes[1]
    image = window.channels * stride * plane
    strides = (
        source.strides if len(source.shape) == 4 else (*source.strides[:2], 0, source.strides[2])
    )
    for phase in range(stride):
        first = (phase - left) % stride
        count = max(0, -(-(width - first) // stride))
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
            emit_copy(low.recorder, part, pixels)


def outputs_last(weight: Array) -> Array:
    """Return filters ``(out, in, rows, columns)`` as ``(in, rows, columns, out)``."""
    return np.ascontiguousarray(weight.transpose(1, 2, 3, 0), np.float32)
