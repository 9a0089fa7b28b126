"""Convolutions that oneDNN computes.

Its fast kernels want the channels of a pixel side by side. A task copies its rows of the image
from blocks of channels into that order, with the zero border, rounded where products are of
bfloat16, lets oneDNN compute, and brings the result back into blocks, with the epilogue.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Blocked
from hagane.native.layouts.pairs import Paired
from hagane.native.lowering.choices import BY_RULE
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.images import FEW_CHANNELS, four_axes
from hagane.native.rules.convolution.window import Window, convolution_key, is_depthwise
from hagane.native.rules.onednn.calls import (
    ALIGNED,
    COLUMNS,
    FAILURE,
    FLOPS_PER_NS,
    PIECE_BYTES,
    WEIGHTS_BYTES,
    Split,
    aligned,
    bias_of,
    call,
    chosen,
    declare_calls,
    label,
    packed,
    split,
    tasks_wanted,
)
from hagane.native.rules.onednn.operations import Operation, convolution
from hagane.native.rules.onednn.patch import copy_in, copy_out, patch_of
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


def calls_library(low: Lowering, window: Window) -> bool:
    """Whether a convolution of more channels than a few is computed by oneDNN."""
    if is_depthwise(window):
        return False
    choice = chosen(low, convolution_key(low, window))
    return choice is not None and divided_convolution(low, window, order=choice.order) is not None


def divided_convolution(
    low: Lowering, window: Window, *, biased: bool = False, order: str | None = None
) -> Pieces | None:
    """Return how oneDNN computes a convolution, or None if it does not."""
    if window.channels <= FEW_CHANNELS or window.is_open:
        return None
    depth = window.channels // window.groups
    itemsize = 2 if low.facts.pairs else 4
    taps = window.kernel[0] * window.kernel[1]
    weights = window.out_channels * depth * taps
    most = WEIGHTS_BYTES // (depth * taps * itemsize)
    channels = split(window.out_channels, most if window.groups == 1 else weights, COLUMNS)
    height, width, out_height, out_width = window.sizes
    pixels = out_height * out_width
    image = window.channels * height * width
    by_channels = weights > max(image, pixels * window.out_channels)
    by_channels = (by_channels if order is None else order == "groups") and window.groups == 1
    patch = patch_of(window, 1)
    row = patch.columns[0] * window.channels * itemsize * max(1, window.strides[0])
    row += out_width * channels.length * 4
    rows = split(out_height, PIECE_BYTES // row, 1)
    wanted = -(-tasks_wanted(low.facts.threads, 2.0 * weights * pixels) // window.likely_images)
    if by_channels and rows.count * channels.count < wanted:
        parts = -(-wanted // rows.count)
        channels = split(window.out_channels, -(-window.out_channels // parts), COLUMNS)
    elif not by_channels and rows.count < wanted:
        rows = split(out_height, max(1, out_height // wanted), 1)
    operations: list[Operation] = []
    for high in rows.lengths:
        for wide in channels.lengths:
            part = patch_of(window, high)
            found = convolution(
                (window.channels, part.rows[0], part.columns[0]),
                (wide, depth, *window.kernel),
                window.groups,
                part.strides,
                window.dilations,
                low.facts.pairs,
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
    epilogue: Epilogue,
    target: Blocked | Paired,
) -> None:
    """Write the kernel of a convolution that ``calls_library``.

    Args:
        low: Takes the kernel.
        node: The convolution.
        window: Its sizes.
        weight: ``(out, in / groups, rows, columns)``, or without rows.
        bias: One number a channel, or None.
        epilogue: The operations computed with it.
        target: The result.
    """
    order = low.facts.choices.get(convolution_key(low, window), BY_RULE).order
    x = node.inputs[0]
    assert x is not None
    source = low.forms.image(x) if low.facts.pairs else low.forms.blocked(x)
    residual = None
    if epilogue.residual is not None:
        residual = low.forms.only_paired(epilogue.residual) or low.forms.blocked(epilogue.residual)
    pieces = divided_convolution(low, window, biased=bias is not None, order=order)
    assert pieces is not None, "calls_library said that oneDNN computes it"
    rows, channels = pieces.rows, pieces.channels
    itemsize = 2 if low.facts.pairs else 4
    patch = patch_of(window, rows.length)
    body = Body()
    declare_calls(low, body, node, pieces.operations)
    weight4 = four_axes(weight)
    own = pieces.operations[: len(channels.lengths)]
    weights, step = packed(low, node, channels, own, weight4, 0, window.groups)
    s, w = body.pointer(source.word_view()), body.raw(weights, ctype="char")
    row = bias_of(low, node, bias)
    b = "0" if row is None else f"{body.raw(row)} + first"
    r = "" if residual is None else body.pointer(residual.word_view())
    d = body.pointer(target.word_view(), written=True)
    patch_bytes = aligned(patch.rows[0] * patch.columns[0] * window.channels * itemsize)
    made_bytes = aligned(rows.length * window.sizes[3] * channels.length * 4)
    element = "uint16_t" if low.facts.pairs else "float"
    per_image = rows.count * (channels.count if pieces.by_channels else 1)
    body.add(
        f"int64_t image = q / {per_image}, piece = q % {per_image};",
        f"int64_t a = piece % {rows.count}, top = a * {rows.length}, rows = {rows.size('a')};",
        f"{element} *patch = ({element} *)scratch;",
        f"float *made = (float *)(scratch + {patch_bytes});",
    )
    copy_in(body, window, patch, source, s, half=low.facts.pairs)
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
    copy_out(body, window, low.facts.level.lanes, epilogue.activation, (residual, r), (target, d))
    body.add("}")
    depth = window.channels // window.groups
    flops = 2.0 * depth * window.kernel[0] * window.kernel[1]
    low.recorder.emit(
        label(node, epilogue.nodes),
        body,
        window.images * per_image,
        work=work_of(window.elements, flops / FLOPS_PER_NS),
        flops=work_of(window.elements, flops),
        scratch=patch_bytes
        + made_bytes
        + max(made.scratch_bytes for made in pieces.operations)
        + 2 * ALIGNED,
        failure=FAILURE,
        followers=(node, *epilogue.nodes),
    )
    low.forms[epilogue.value] = target
