"""Convolution into few channels along rows of the image, with Winograd's algorithm along columns.

Of the rows that some rows of results are made of, as many sums are taken as F(size, rows of the
filter) has points (``filtering.py``). For each point, vectors run along a row, as in ``few_outputs.py``;
the rows of results are found from these products, bounded and pooled. A task does all that for some
rows, in memory of its own.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing, padded_rows
from hagane.native.kernels.tensor import Pads
from hagane.native.lowering.epilogue import follow
from hagane.native.rules.convolution.few_outputs import UNROLLED
from hagane.native.rules.convolution.filtering import Axis, Matrix, axis, sizes_of, transform
from hagane.native.rules.convolution.images import new_planes, padded_planes
from hagane.native.rules.convolution.pooled import with_pool
from hagane.native.tiles.contraction import Pool
from hagane.native.tiles.tile import Activation, bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering
    from hagane.native.rules.convolution.window import Window

# Bytes of images that are computed as planes though blocks of channels would be full.
_SMALL = 32 << 10
# Bytes of a task's points and products that should stay in the second cache.
_NEAR = 1 << 20
# Channels of results that are computed at once, at most.
_MOST_MAPS = 16
# Vectors of results that share a weight in a register.
_WIDE = 3
# Turns of the loop along a row that are written out.
_WRITTEN = 4
# The least duration of a task, in nanoseconds, and its operations.
_TASK_NS, _FLOPS_PER_NS = 2_000.0, 100.0


def filtered_axis(low: Lowering, node: ir.Node, window: Window) -> Axis | None:
    """Return the transforms of a convolution that is estimated to be fastest in this form, or None."""
    lanes, (kh, kw) = low.facts.level.lanes, window.kernel
    if (
        window.groups > 1
        or window.strides[0] > 1
        or window.dilations[0] > 1
        or window.is_open
        or low.facts.direct_only
    ):
        return None
    if window.strides[1] > 1 or window.out_channels > _MOST_MAPS:
        return None
    height, width, out_height, out_width = window.sizes
    sizes = [size for size in sizes_of(kh) if size <= out_height] if kh > 1 else []
    if not sizes:
        return None
    found = axis(max(sizes), kh)
    if 4 * found.side * (window.channels + window.out_channels) * out_width > _NEAR:
        return None
    if window.out_channels * 2 > lanes:
        pixels = window.out_channels * out_height * out_width
        read = window.channels * height * width
        small = 4 * max(pixels, read) <= _SMALL
        if not small or not _lies_in_planes(low, node.inputs[0]) or window.channels * 2 > lanes:
            return None
    across = -(-out_width // lanes)
    tall = -(-out_height // found.size)
    taps = window.channels * kw * window.out_channels
    moved = 3 * found.side * (window.channels + window.out_channels)
    here = tall * across * (found.side * taps + moved)
    rows = out_height * across * kh * taps
    blocks = out_height * out_width * kh * kw * window.channels
    blocks *= -(-window.out_channels // lanes)
    return found if here < 0.8 * min(rows, blocks) else None


def _lies_in_planes(low: Lowering, value: ir.Value | None) -> bool:
    """Whether an image is given, or the result of a convolution into few channels."""
    while value is not None and (node := value.producer()) is not None:
        if node.op_type == "Conv":
            weight = low.facts.shape(node.inputs[1])
            return isinstance(weight[0], int) and weight[0] * 2 <= low.facts.level.lanes
        if node.op_type not in ("Relu", "Clip", "MaxPool", "AveragePool"):
            return False
        value = node.inputs[0]
    return True


def filtered_pads(window: Window, found: Axis) -> Pads:
    """Return the border that is read: whole tiles, and whole vectors of them."""
    height, width, out_height, out_width = window.sizes
    top, left, _, _ = window.border
    tall = -(-out_height // found.size)
    bottom = max(0, tall * found.size + found.taps - 1 - top - height)
    reach = out_width + (window.kernel[1] - 1) * window.dilations[1]
    return top, left, bottom, max(0, reach - left - width)


@dataclass(frozen=True, slots=True)
class _Task:
    """A task's results, and the memory that it needs, in floats.

    Attributes:
        axis: The transforms.
        tiles: Rows of tiles.
        together: How many of these are multiplied at once.
        across: Vectors of results in a row.
        length: Of a transformed row.
        channels: Of the image.
        maps: Of the result.
    """

    axis: Axis
    tiles: int
    together: int
    across: int
    length: int
    channels: int
    maps: int

    @property
    def transformed(self) -> int:
        """Of all points of some rows of tiles."""
        return self.together * self.axis.side * self.channels * self.length

    def groups(self, lanes: int) -> list[range]:
        """Return the channels of the result that are multiplied at once."""
        registers = 24 if lanes == 16 else 10
        most = max(1, registers // (min(self.across, _WIDE) * self.together))
        count = -(-self.maps // most)
        ends = [self.maps * i // count for i in range(count + 1)]
        return [range(low, high) for low, high in itertools.pairwise(ends)]

    def products(self, lanes: int) -> int:
        """The same of their products."""
        return self.together * self.axis.side * self.maps * self.across * lanes

    def results(self, lanes: int) -> int:
        """Of the rows before they are pooled."""
        return self.tiles * self.axis.size * self.maps * self.across * lanes


def lower_filtered(
    low: Lowering,
    node: ir.Node,
    window: Window,
    found: Axis,
    weight: Array,
    bias: Array | None,
) -> None:
    """Write the kernel; the result is a plain image.

    Args:
        low: Where it goes.
        node: The convolution.
        window: Its sizes.
        found: The transforms of columns.
        weight: ``(out, in, rows, columns)``.
        bias: One number a channel, or None.
    """
    lanes = low.facts.level.lanes
    x = node.inputs[0]
    assert x is not None
    epilogue = follow(low, node.outputs[0], residuals=False)
    epilogue, pool = with_pool(low, epilogue, lambda pool: pool.rows <= 4)
    kw, dw = window.kernel[1], window.dilations[1]
    out, channels = window.out_channels, window.channels
    _, _, height, width = window.sizes
    if pool is not None:
        height, width = pool.height * pool.rows, pool.width * pool.columns
    source, (row, plane), image = padded_planes(low, x, window, filtered_pads(window, found))

    across = -(-width // lanes)
    length = -(-(across * lanes + (kw - 1) * dw) // lanes) * lanes
    flops = 2.0 * height * width * weight.size  # of an image, by the direct form
    whole = found.size if pool is None else math.lcm(found.size, pool.rows)
    tall = -(-height // whole)
    each = max(1, min(tall, round(_TASK_NS * _FLOPS_PER_NS * tall / flops)))
    tiles = each * whole // found.size
    task = _Task(found, tiles, min(tiles, max(1, _WIDE // across)), across, length, channels, out)

    weights = low.recorder.weight(
        ("filtered", id(node)),
        Packing(pack_filtered, (weight, found.weight)),
        found.side * channels * kw * out * 4,
    )
    start = np.zeros(out, np.float32) if bias is None else bias
    first = low.recorder.weight(
        ("filtered bias", id(node)), Packing(padded_rows, ((start,), out, "float32")), out * 4
    )
    target = new_planes(low, epilogue.value)
    d_image, d_plane, *d_rows, _ = target.strides
    d_row: Dim = d_rows[0] if d_rows else 0
    tasks = -(-height // (each * whole))
    # Few rows: threads share the channels, and each finds all points for itself.
    parts = len(task.groups(lanes)) if tasks * window.likely_images < low.facts.threads else 1
    body = Body()
    n = body.number
    s, w, b = body.pointer(source), body.raw(weights), body.raw(first)
    d = body.pointer(target, written=True)
    body.scratch = 4 * (task.transformed + task.products(lanes) + task.results(lanes) + lanes) + 64
    body.add(
        f"const int64_t y0 = q % {tasks} * {each * whole}, image = q / {tasks} % {body.number(window.images)};",
        f"const int64_t part = q / {body.number(tasks * window.images)}, o0 = {out} * part / {parts};",
        f"const int64_t o1 = {out} * (part + 1) / {parts};",
        f"const float *s = {s} + image * {body.number(image)};",
        "float *U = (float *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63);",
        f"float *M = U + {task.transformed}, *R = M + {task.products(lanes)};",
        f"const int64_t tall = hg_min({task.tiles}, ({height} - y0 + {found.size - 1}) / {found.size});",
        f"for (int64_t t0 = 0; t0 < tall; t0 += {task.together}) {{",
    )
    _transform(body, task, lanes, int(row), int(plane))
    _multiply(body, task, lanes, w, kw, dw, parts)
    _collect(body, task, lanes, b, epilogue.activation)
    body.add("}")
    if pool is None:
        body.add(
            f"const int64_t high = hg_min({each * whole}, {height} - y0);",
            "for (int64_t o = o0; o < o1; o++)",
            "for (int64_t y = 0; y < high; y++)",
            f"memcpy({d} + image * {n(d_image)} + o * {n(d_plane)} + (y0 + y) * {n(d_row)}, "
            f"R + (o * {task.tiles * found.size} + y) * {across * lanes}, {width * 4});",
        )
    else:
        _pool(body, task, lanes, pool, f"{d} + image * {n(d_image)} + o * {n(d_plane)}", n(d_row))
    low.recorder.emit(
        node,
        body,
        window.images * tasks * parts,
        work=work_of(window.images, flops / 2 / _FLOPS_PER_NS),
        # Those of the transformed filter: `side` for `size` rows of all its taps.
        flops=work_of(window.images, flops * found.side / (found.size * found.taps)),
        followers=epilogue.nodes,
        name=window.name("conv_filtered"),
    )
    low.forms[epilogue.value] = target


def _transform(body: Body, task: _Task, lanes: int, row: int, plane: int) -> None:
    """Write the loop that takes the points of rows."""
    side, length = task.axis.side, task.length
    loads, made = [f"d{y}" for y in range(side)], [f"e{p}" for p in range(side)]
    body.add(
        f"for (int64_t t = 0; t < {task.together}; t++)",
        f"for (int64_t c = 0; c < {task.channels}; c++) {{",
        # Tiles beyond the last one are that again.
        f"const float *from = s + c * {plane} + (y0 + hg_min(t0 + t, tall - 1) * {task.axis.size}) * {row};",
        f"float *to = U + (t * {side * task.channels} + c) * {length};",
        f"for (int64_t x = 0; x < {length}; x += {lanes}) {{",
        *(f"vf d{y} = v_load(from + {y * row} + x);" for y in range(side)),
        *transform(task.axis.input, loads, made),
        *(
            f"v_store(to + {p * task.channels * length} + x, {name});"
            for p, name in enumerate(made)
        ),
        "} }",
    )


def _multiply(
    body: Body, task: _Task, lanes: int, weights: str, kw: int, dw: int, parts: int
) -> None:
    """Write the products: for each point a convolution along rows."""
    wide = min(task.across, _WIDE)
    point, side = task.channels * task.length, task.axis.side
    body.add(f"for (int64_t p = 0; p < {side}; p++) {{")
    for part, maps in enumerate(task.groups(lanes)):
        if parts > 1:
            body.add(f"if (part == {part}) {{")
        for first, times, vectors in _stretches(task.across, wide):
            places = list(itertools.product(range(task.together), range(vectors)))
            body.add(
                f"for (int64_t left = {first}; left < {first + times * vectors}; left += {vectors}) {{",
                *(f"vf a{o}_{t}_{v} = {{0}};" for o in maps for t, v in places),
                f"const float *u = U + p * {point} + left * {lanes};",
                f"const float *w = {weights} + p * {task.channels * kw * task.maps};",
                f"for (int64_t c = 0; c < {task.channels}; c++, u += {task.length}) {{",
            )
            unrolled = range(kw) if kw <= UNROLLED else range(1)
            if len(unrolled) < kw:
                body.add(f"const float *line = u; for (int64_t j = 0; j < {kw}; j++) {{")
            for j in unrolled:
                near = "u" if len(unrolled) == kw else "line"
                offsets = [t * side * point + j * dw + v * lanes for t, v in places]
                body.add(
                    "{",
                    *(
                        f"vf x{t}_{v} = v_load({near} + {offset});"
                        for (t, v), offset in zip(places, offsets, strict=True)
                    ),
                )
                for o in maps:
                    updates = " ".join(
                        f"a{o}_{t}_{v} = v_fma(x{t}_{v}, k, a{o}_{t}_{v});" for t, v in places
                    )
                    body.add(f"{{ vf k = v_set1(w[{j * task.maps + o}]); {updates} }}")
                body.add("}")
            if len(unrolled) < kw:
                body.add(f"line += {dw}; w += {task.maps}; }}")
            else:
                body.add(f"w += {kw * task.maps};")
            row = task.across * lanes
            body.add(
                "}",
                *(
                    f"v_store(M + ({t * side * task.maps + o} + p * {task.maps}) * {row} + "
                    f"(left + {v}) * {lanes}, a{o}_{t}_{v});"
                    for o, (t, v) in itertools.product(maps, places)
                ),
                "}",
            )
        if parts > 1:
            body.add("}")
    body.add("}")


def _stretches(across: int, wide: int) -> list[tuple[int, int, int]]:
    """Return the first vector, the number of turns and the vectors of each of the loops along a row."""
    times, rest = divmod(across, wide)
    found = [(0, times, wide)] if times > _WRITTEN else [(i * wide, 1, wide) for i in range(times)]
    return [*found, *([(times * wide, 1, rest)] if rest else [])]


def _collect(body: Body, task: _Task, lanes: int, bias: str, activation: Activation) -> None:
    """Write the loop that finds rows of results from the products of all points."""
    row, side = task.across * lanes, task.axis.side
    loads, made = [f"d{p}" for p in range(side)], [f"e{y}" for y in range(task.axis.size)]
    body.add(
        f"for (int64_t t = 0; t < hg_min({task.together}, tall - t0); t++)",
        "for (int64_t o = o0; o < o1; o++)",
        f"for (int64_t x = 0; x < {row}; x += {lanes}) {{",
        f"const float *from = M + (t * {side * task.maps} + o) * {row} + x;",
        f"float *to = R + (o * {task.tiles} + t0 + t) * {task.axis.size * row} + x;",
        f"vf bias = v_set1({bias}[o]);",
        *(f"vf d{p} = v_load(from + {p * task.maps * row});" for p in range(side)),
        *transform(task.axis.output, loads, made),
        *(
            f"v_store(to + {y * row}, {bounded(f'{name} + bias', activation)});"
            for y, name in enumerate(made)
        ),
        "}",
    )


def _pool(body: Body, task: _Task, lanes: int, pool: Pool, plane: str, d_row: str) -> None:
    """Write the loop that pools rows of results."""
    row = task.across * lanes
    rows = task.tiles * task.axis.size // pool.rows
    mean = "" if pool.largest else f" / {pool.rows * pool.columns}.f"
    body.add(
        f"const int64_t high = hg_min({rows}, {pool.height} - y0 / {pool.rows});",
        "for (int64_t o = o0; o < o1; o++) for (int64_t y = 0; y < high; y++) {",
        f"const float *from = R + (o * {rows} + y) * {pool.rows * row};",
        f"float *to = {plane} + (y0 / {pool.rows} + y) * {d_row};",
    )

    def column(at: str) -> str:
        return pool.combined([f"v_load(from + {y * row} + {at})" for y in range(pool.rows)])

    if pool.columns == 2:
        halves = [f"hg_every_other(a, b, {i})" for i in range(2)]
        body.add(
            f"for (int64_t x = 0; x < {pool.width}; x += {lanes}) {{",
            f"vf a = {column('2 * x')}, b = {column(f'2 * x + {lanes}')};",
            f"v_store_n(to + x, {pool.combined(halves)}{mean}, hg_min({lanes}, {pool.width} - x));",
            "} }",
        )
        return
    # Of all windows, of which those between are of no use: maxima of single numbers would be branches, whose
    # way no processor foresees in new data.
    shifted = [f"v_load(r + x + {i})" for i in range(pool.columns)]
    behind = -(-(pool.columns - 1) // lanes) * lanes
    body.add(
        f"float r[{row + behind}] __attribute__((aligned(64))), all[{row}] __attribute__((aligned(64)));",
        f"for (int64_t x = 0; x < {row}; x += {lanes}) v_store(r + x, {column('x')});",
        *(f"v_store(r + {row + x}, (vf){{0}});" for x in range(0, behind, lanes)),
        f"for (int64_t x = 0; x < {row}; x += {lanes}) v_store(all + x, {pool.combined(shifted)});",
        f"for (int64_t x = 0; x < {pool.width}; x++) to[x] = all[x * {pool.columns}]{mean};",
        "}",
    )


def pack_filtered(weight: Array, matrix: Matrix) -> Array:
    """Return filters ``(out, in, rows, columns)`` as ``(points, in, columns, out)``."""
    points = np.einsum("pi,ocij->pcjo", np.array(matrix), weight.astype(np.float64))
    return np.ascontiguousarray(points, np.float32)
