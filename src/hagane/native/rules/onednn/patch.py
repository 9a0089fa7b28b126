"""Copies between images in blocks of channels and images whose channels lie side by side.

They go over a few pixels at a time and all their channels, so that neither side is read or
written far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from hagane.native.kernels.kernel import Body
from hagane.native.kernels.tensor import Blocked
from hagane.native.layouts.pairs import Paired
from hagane.native.rules.convolution.window import Window
from hagane.native.rules.onednn.calls import Load
from hagane.native.tiles.tile import Activation, bounded

_PIXELS = 8


@dataclass(frozen=True, slots=True)
class Patch:
    """The part of an image that some rows of the result are computed of, border included.

    A kernel of one tap leaves most pixels out if its strides are above one; these are not copied.

    Attributes:
        rows: Its rows, and their distance in the image.
        columns: Its columns, and their distance in the image.
        strides: Those of the convolution over it.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    strides: tuple[int, int]


def patch_of(window: Window, rows: int) -> Patch:
    """Return the patch of some rows of a convolution's result."""
    counts, steps, strides = [], [], []
    for axis, size in enumerate((rows, window.sizes[3])):
        taps, stride, dilation = window.kernel[axis], window.strides[axis], window.dilations[axis]
        counts.append(size if taps == 1 else (size - 1) * stride + (taps - 1) * dilation + 1)
        steps.append(stride if taps == 1 else 1)
        strides.append(1 if taps == 1 else stride)
    return Patch((counts[0], steps[0]), (counts[1], steps[1]), (strides[0], strides[1]))


def copy_in(
    body: Body, window: Window, patch: Patch, source: Blocked | Paired, s: str, *, half: bool
) -> None:
    """Write the loops that bring the ``rows`` of a task, from ``top`` on, into ``patch``.

    Args:
        body: Where they go.
        window: The convolution.
        patch: That of the longest piece of rows.
        source: The image; of pairs only if the patch is.
        s: C name of its first pixel inside the border.
        half: Whether the patch is of bfloat16.
    """
    top, left, _, _ = window.border
    width = window.sizes[1]
    lanes, channels = source.lanes, window.channels
    columns, step = patch.columns
    inside = [x for x in range(columns) if 0 <= x * step - left < width]
    low, high = (inside[0], inside[-1] + 1) if inside else (columns, columns)
    taken = "rows"
    if window.kernel[0] > 1:
        rest = (window.kernel[0] - 1) * window.dilations[0] + 1
        taken = f"(rows - 1) * {window.strides[0]} + {rest}"
    body.add(
        f"for (int64_t i = 0; i < {taken}; i++) {{",
        f"int64_t y = top * {window.strides[0]} + i * {patch.rows[1]} - {top};",
        f"{'uint16_t' if half else 'float'} *row = patch + i * {columns * channels};",
        f"if (y < 0 || y >= {window.height}) {{ memset(row, 0, {columns * channels} * sizeof *row); continue; }}",
    )
    if low:
        body.add(f"memset(row, 0, {low * channels} * sizeof *row);")
    if high < columns:
        wide = (columns - high) * channels
        body.add(f"memset(row + {high * channels}, 0, {wide} * sizeof *row);")
    if isinstance(source, Paired):
        # A copy of known length is one instruction.
        whole, part = f"memcpy(to, from, {2 * lanes});", "memcpy(to, from, n * 2);"
    else:
        store = "v_store_pairs" if half else "v_store"
        whole, part = f"{store}(to, v_load(from));", f"{store}_n(to, v_load_n(from, n), n);"
    body.add(
        f"const float *line = {s} + image * {source.blocks * source.plane_stride}"
        f" + y * {source.row_stride};",
        f"for (int64_t x0 = {low}; x0 < {high}; x0 += {_PIXELS})",
        f"for (int64_t k = 0; k < {source.blocks}; k++) {{",
        f"int64_t n = hg_min({lanes}, {channels} - k * {lanes}), x1 = hg_min({high}, x0 + {_PIXELS});",
        "for (int64_t x = x0; x < x1; x++) {",
        f"const float *from = line + k * {source.plane_stride} + (x * {step} - {left}) * {source.step};",
        f"{'uint16_t' if half else 'float'} *to = row + x * {channels} + k * {lanes};",
        f"if (n == {lanes}) {whole} else {part}",
        "} } }",
    )


def copy_out(
    body: Body,
    window: Window,
    lanes: int,
    activation: Activation,
    residual: tuple[Blocked | Paired | None, str],
    target: tuple[Blocked | Paired, str],
) -> None:
    """Write the loops that bring ``rows`` × ``columns`` of a result from ``made`` to their place.

    Args:
        body: Where they go.
        window: The convolution.
        lanes: Of a vector.
        activation: Bounds of the result.
        residual: The addend before these, or None, and the C name of its first pixel inside
            the border.
        target: Where the result goes, and the same.
    """
    image, name = target
    added, added_name = residual
    width, paired = window.out_width, isinstance(image, Paired)
    store = "v_store_pairs" if paired else "v_store"
    # The filling of the last block is zero.
    whole = f"(columns + {image.lanes - 1}) / {image.lanes} * {image.lanes // lanes}"
    body.add(
        "for (int64_t i = 0; i < rows; i++)",
        f"for (int64_t x0 = 0; x0 < {width}; x0 += {_PIXELS})",
        f"for (int64_t k = 0; k < {whole}; k++) {{",
        f"int64_t n = hg_max(0, hg_min({lanes}, columns - k * {lanes}));",
        f"int64_t x1 = hg_min({width}, x0 + {_PIXELS}), vector = first / {lanes} + k;",
        f"const float *row = made + i * {width} * columns + k * {lanes};",
        _row("float *to0", image, name, lanes),
    )
    if added is not None:
        body.add(_row("const float *add0", added, added_name, lanes))

    def value(load: Load) -> str:
        text = load("row + x * columns")
        if isinstance(added, Paired):
            text += f" + v_load_bf16((const hg_bf16 *)(add0 + x * {added.step}))"
        elif added is not None:
            text += f" + v_load(add0 + x * {added.step})"
        return bounded(text, activation)

    body.add(
        "for (int64_t x = x0; x < x1; x++) {",
        f"{'uint16_t' if paired else 'float'} *to = (void *)(to0 + x * {image.step});",
        f"if (n == {lanes}) {store}(to, {value(lambda place: f'v_load({place})')});",
        f"else if (n) {store}(to, {value(lambda place: f'v_load_n({place}, n)')});",
        f"else {store}(to, (vf){{0}});",
        "} }",
    )


def _row(declared: str, image: Blocked | Paired, name: str, lanes: int) -> str:
    """Return C text that declares where a row of one vector of channels of an image begins."""
    plane, parts = image.plane_stride, image.lanes // lanes
    within = image.step // parts
    return (
        f"{declared} = {name} + image * {image.blocks * plane} + vector / {parts} * {plane}"
        f" + vector % {parts} * {within} + (top + i) * {image.row_stride};"
    )
