"""Convolutions that oneDNN computes.

Its fast kernels want the channels of a pixel side by side. A task copies its rows of the image
from blocks of channels into that order, with the zero border, rounded where products are of
bfloat16, lets oneDNN compute, and brings the result back into blocks, with what follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native import onednn
from hagane.native.choices import BY_RULE, convolution_key
from hagane.native.ending import Ending, bounded
from hagane.native.kernel import Body
from hagane.native.lowering import Lowering
from hagane.native.onednn import Operation
from hagane.native.pairs import Paired
from hagane.native.rules.images import FEW_CHANNELS, four_axes
from hagane.native.rules.library import (
    ALIGNED,
    COLUMNS,
    FAILURE,
    FLOPS_PER_NS,
    PIECE_BYTES,
    WEIGHTS_BYTES,
    Load,
    Split,
    aligned,
    bias_of,
    call,
    chosen,
    declare_calls,
    packed,
    split,
    tasks_wanted,
)
from hagane.native.rules.window import Window
from hagane.native.tensor import Blocked
from hagane.ops.definition import Array


@dataclass(frozen=True, slots=True)
class Pieces:
    """How a convolution is divided.

    Attributes:
        rows: Of the result.
        channels: Of the result.
        by_channels: Whether a task computes one piece of the channels, or else all of them.
        operations: For each length of rows one for each length of channels.
    """

    rows: Split
    channels: Split
    by_channels: bool
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class _Patch:
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


def _patch(window: Window, rows: int) -> _Patch:
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    high = (rows, sh) if kh == 1 else ((rows - 1) * sh + (kh - 1) * dh + 1, 1)
    width = window.out_width
    wide = (width, sw) if kw == 1 else ((width - 1) * sw + (kw - 1) * dw + 1, 1)
    return _Patch(high, wide, (1 if kh == 1 else sh, 1 if kw == 1 else sw))


def calls_library(low: Lowering, window: Window) -> bool:
    """Whether a convolution that reads blocks is computed by oneDNN."""
    choice = chosen(low, convolution_key(low, window))
    return choice is not None and divided_convolution(low, window, order=choice.order) is not None


def divided_convolution(
    low: Lowering, window: Window, *, biased: bool = False, order: str | None = None
) -> Pieces | None:
    """Return how oneDNN computes a convolution, or None if it does not."""
    depth = window.channels // window.groups
    if depth <= FEW_CHANNELS:
        return None
    itemsize = 2 if low.pairs else 4
    taps = window.kernel[0] * window.kernel[1]
    weights = window.out_channels * depth * taps
    most = WEIGHTS_BYTES // (depth * taps * itemsize)
    channels = split(window.out_channels, most if window.groups == 1 else weights, COLUMNS)
    pixels = window.out_height * window.out_width
    image = window.channels * window.height * window.width
    by_channels = weights > max(image, pixels * window.out_channels)
    by_channels = (by_channels if order is None else order == "groups") and window.groups == 1
    patch = _patch(window, 1)
    row = patch.columns[0] * window.channels * itemsize * max(1, window.strides[0])
    row += window.out_width * channels.length * 4
    rows = split(window.out_height, PIECE_BYTES // row, 1)
    wanted = -(-tasks_wanted(low.threads, 2.0 * weights * pixels) // window.images)
    if by_channels and rows.count * channels.count < wanted:
        parts = -(-wanted // rows.count)
        channels = split(window.out_channels, -(-window.out_channels // parts), COLUMNS)
    elif not by_channels and rows.count < wanted:
        rows = split(window.out_height, max(1, window.out_height // wanted), 1)
    operations: list[Operation] = []
    for high in rows.lengths:
        for wide in channels.lengths:
            part = _patch(window, high)
            found = onednn.convolution(
                (window.channels, part.rows[0], part.columns[0]),
                (wide, depth, *window.kernel),
                window.groups,
                part.strides,
                window.dilations,
                low.pairs,
                biased,
            )
            if found is None:
                return None
            operations.append(found)
    return Pieces(rows, channels, by_channels, tuple(operations))


def lower_by_library(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    bias: Array | None,
    source: Blocked | Paired,
    ending: Ending,
    residual: Blocked | None,
    target: Blocked | Paired,
) -> None:
    """Write the kernel of a convolution that ``calls_library``.

    Args:
        low: Takes the kernel.
        node: The convolution.
        window: Its sizes.
        weight: ``(out, in / groups, rows, columns)``, or without rows.
        bias: One number a channel, or None.
        source: The image; of pairs only where products are of bfloat16.
        ending: Its bounds are kept.
        residual: What is added before these, or None.
        target: The result.
    """
    order = low.choices.get(convolution_key(low, window), BY_RULE).order
    pieces = divided_convolution(low, window, biased=bias is not None, order=order)
    assert pieces is not None, "calls_library said that oneDNN computes it"
    rows, channels = pieces.rows, pieces.channels
    itemsize = 2 if low.pairs else 4
    patch = _patch(window, rows.length)
    body = Body()
    declare_calls(low, body, node, pieces.operations)
    weight4 = four_axes(weight)
    own = pieces.operations[: len(channels.lengths)]

    def weights_of(first: int, last: int) -> Array:
        part = weight4[first:last]
        if window.groups == 1:
            return part
        return np.ascontiguousarray(part).reshape(window.groups, -1, *part.shape[1:])

    weights, step = packed(low, node, channels, own, weights_of)
    s, w = body.pointer(source.word_view()), body.raw(weights, ctype="char")
    row = bias_of(low, node, bias)
    b = "0" if row is None else f"{body.raw(row)} + first"
    r = "" if residual is None else body.pointer(residual.view())
    d = body.pointer(target.word_view(), written=True)
    patch_bytes = aligned(patch.rows[0] * patch.columns[0] * window.channels * itemsize)
    made_bytes = aligned(rows.length * window.out_width * channels.length * 4)
    per_image = rows.count * (channels.count if pieces.by_channels else 1)
    body.add(
        f"int64_t image = q / {per_image}, piece = q % {per_image};",
        f"int64_t a = piece % {rows.count}, top = a * {rows.length}, rows = {rows.size('a')};",
        f"{_element(low)} *patch = ({_element(low)} *)scratch;",
        f"float *made = (float *)(scratch + {patch_bytes});",
    )
    _copy_in(body, window, patch, source, s, low.pairs)
    begin, end = "0", str(channels.count)
    if pieces.by_channels:
        begin, end = f"piece / {rows.count}", f"piece / {rows.count} + 1"
    body.add(
        f"for (int64_t b = {begin}; b < {end}; b++) {{",
        f"int64_t first = b * {channels.length}, columns = {channels.size('b')};",
        call(
            f"{rows.number('a')} * {len(channels.lengths)} + {channels.number('b')}",
            "patch",
            f"{w} + b * {step}",
            b,
            "made",
            f"scratch + {patch_bytes + made_bytes}",
        ),
    )
    _copy_out(body, window, ending, residual, r, target, d)
    body.add("}")
    depth = window.channels // window.groups
    pixels = window.images * window.out_height * window.out_width
    flops = 2.0 * pixels * window.out_channels * depth * window.kernel[0] * window.kernel[1]
    low.emit(
        node,
        body,
        window.images * per_image,
        work=flops / FLOPS_PER_NS,
        flops=flops,
        scratch=patch_bytes
        + made_bytes
        + max(made.scratch_bytes for made in pieces.operations)
        + 2 * ALIGNED,
        failure=FAILURE,
        followers=ending.operators,
    )
    low.keep_image(ending.value, target)


def _element(low: Lowering) -> str:
    return "uint16_t" if low.pairs else "float"


def _copy_in(
    body: Body, window: Window, patch: _Patch, source: Blocked | Paired, s: str, half: bool
) -> None:
    """Write the loops that bring the rows of a task from blocks into the patch."""
    top, left, _, _ = window.pads
    lanes, channels = source.lanes, window.channels
    rows, row_step = patch.rows
    columns, column_step = patch.columns
    in_image = [x for x in range(columns) if 0 <= x * column_step - left < window.width]
    low, high = (in_image[0], in_image[-1] + 1) if in_image else (columns, columns)
    each = columns * channels
    if rows == 1 or window.kernel[0] == 1:
        taken = "rows"
    else:
        taken = (
            f"(rows - 1) * {window.strides[0]} + {(window.kernel[0] - 1) * window.dilations[0] + 1}"
        )
    blocks = source.blocks
    body.add(
        f"for (int64_t i = 0; i < {taken}; i++) {{",
        f"int64_t y = top * {window.strides[0]} + i * {row_step} - {top};",
        f"{'uint16_t' if half else 'float'} *to = patch + i * {each};",
        f"if (y < 0 || y >= {window.height}) {{ memset(to, 0, {each} * sizeof *to); continue; }}",
    )
    if low:
        body.add(f"memset(to, 0, {low * channels} * sizeof *to);")
    if high < columns:
        body.add(f"memset(to + {high * channels}, 0, {(columns - high) * channels} * sizeof *to);")
    image = blocks * source.plane_stride
    first = low * column_step - left
    copied = {
        True: "memcpy(to + x * {c} + k * {v}, from, n * 2);",
        False: "if (n == {v}) {store}(to + x * {c} + k * {v}, v_load(from)); "
        "else {store}_n(to + x * {c} + k * {v}, v_load_n(from, n), n);",
    }[isinstance(source, Paired)]
    store = "v_store_pairs" if half else "v_store"
    text = copied.format(c=channels, v=lanes, store=store)
    if isinstance(source, Paired):
        # A copy of known length is one instruction.
        whole = text.replace("n * 2", str(lanes * 2))
        text = f"if (n == {lanes}) {whole} else {text}"
    body.add(
        f"for (int64_t k = 0; k < {blocks}; k++) {{",
        f"int64_t n = hg_min({lanes}, {channels} - k * {lanes});",
        f"const float *from = {s} + image * {image} + k * {source.plane_stride}"
        f" + y * {source.row_stride} + {first * source.step};",
        f"for (int64_t x = {low}; x < {high}; x++, from += {column_step * source.step}) {{ {text} }}",
        "} }",
    )


def _copy_out(
    body: Body,
    window: Window,
    ending: Ending,
    residual: Blocked | None,
    r: str,
    target: Blocked | Paired,
    d: str,
) -> None:
    """Write the loops that bring a result into blocks, with what follows."""
    lanes = target.lanes
    store = "v_store_pairs" if isinstance(target, Paired) else "v_store"
    at = f"image * {target.blocks * target.plane_stride} + (first / {lanes} + k) * {target.plane_stride}"
    at += f" + (top + i) * {target.row_stride}"
    body.add(
        f"for (int64_t k = 0; k * {lanes} < columns; k++)",
        "for (int64_t i = 0; i < rows; i++) {",
        f"int64_t n = hg_min({lanes}, columns - k * {lanes});",
        f"const float *from = made + i * {window.out_width} * columns + k * {lanes};",
        f"float *to = {d} + {at};",
    )
    if residual is not None:
        plane, row = residual.plane_stride, residual.row_stride
        body.add(
            f"const float *add = {r} + image * {residual.blocks * plane} + "
            f"(first / {lanes} + k) * {plane} + (top + i) * {row};"
        )

    def value(load: Load) -> str:
        text = load("from + x * columns")
        if residual is not None:
            text += f" + v_load(add + x * {lanes})"
        return bounded(text, ending.activation)

    whole = value(lambda place: f"v_load({place})")
    part = value(lambda place: f"v_load_n({place}, n)")
    place = f"to + x * {target.step}"
    place = f"(uint16_t *)({place})" if isinstance(target, Paired) else place
    body.add(
        f"if (n == {lanes}) for (int64_t x = 0; x < {window.out_width}; x++) {store}({place}, {whole});",
        f"else for (int64_t x = 0; x < {window.out_width}; x++) {store}({place}, {part});",
        "}",
    )
