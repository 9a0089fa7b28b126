"""Convolution: register tiles over blocked images, depthwise rows, and a loop nest for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.contraction import (
    Contraction,
    Group,
    Pixels,
    emit_contraction,
    pack_weights,
    split_blocks,
)
from hagane.native.ending import Ending, bounded, follow
from hagane.native.kernel import Body
from hagane.native.lowering import Lowering, NotNative, Rule
from hagane.native.rules.narrow import is_narrow, lower_narrow
from hagane.native.tensor import Blocked, Buffer, Kind, Pads, Tensor, blocked_floats
from hagane.native.tile import Tile
from hagane.native.winograd import Shape, lower_winograd, tile_size
from hagane.ops.definition import Array

# Images with fewer channels than this are read as planes, without blocks.
_FEW_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution's sizes, in the two-dimensional form that a one-dimensional one takes too."""

    images: int
    channels: int
    height: int
    width: int
    out_channels: int
    out_height: int
    out_width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: Pads
    groups: int


def window_of(low: Lowering, node: ir.Node, kernel: Sequence[int], out_channels: int) -> Window:
    """Return the sizes of a convolution or pooling node with numbers for all of them.

    Raises:
        NotNative: It has more than two spatial axes, or sizes known only at run time.
    """
    attributes = low.attributes(node)
    shape, out = low.fixed_shape(node.inputs[0]), low.fixed_shape(node.outputs[0])
    rank = len(shape) - 2
    if rank not in (1, 2):
        raise NotNative(f"{rank} spatial axes")
    strides = list(attributes.get("strides") or [1] * rank)
    dilations = list(attributes.get("dilations") or [1] * rank)
    begin, end = _pads(attributes, shape[2:], out[2:], kernel, strides, dilations)
    if rank == 1:
        kernel, strides, dilations = [1, *kernel], [1, *strides], [1, *dilations]
        begin, end = [0, *begin], [0, *end]
        shape, out = (*shape[:2], 1, shape[2]), (*out[:2], 1, out[2])
    if min(*shape, *out) == 0:
        raise NotNative("an empty image")
    return Window(
        shape[0],
        shape[1],
        shape[2],
        shape[3],
        out_channels,
        out[2],
        out[3],
        (int(kernel[0]), int(kernel[1])),
        (int(strides[0]), int(strides[1])),
        (int(dilations[0]), int(dilations[1])),
        (int(begin[0]), int(begin[1]), int(end[0]), int(end[1])),
        int(attributes.get("group", 1)),
    )


def _pads(
    attributes: dict[str, Any],
    size: Sequence[int],
    out: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[int], list[int]]:
    rank = len(size)
    mode = attributes.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        given = (
            list(attributes.get("pads") or [0] * 2 * rank) if mode == "NOTSET" else [0] * 2 * rank
        )
        return given[:rank], given[rank:]
    begin, end = [], []
    for i in range(rank):
        total = max(0, (out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - size[i])
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return begin, end


def needed_pads(window: Window) -> Pads:
    """Return the border that an image needs so that the filter never leaves its memory."""
    top, left, _, _ = window.pads
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    bottom = max(0, (window.out_height - 1) * sh + (kh - 1) * dh + 1 - top - window.height)
    right = max(0, (window.out_width - 1) * sw + (kw - 1) * dw + 1 - left - window.width)
    return (top, left, bottom, right)


def winograd_size(low: Lowering, window: Window) -> int:
    """Return the tile of Winograd's algorithm where it is faster than the direct form, else 0."""
    if window.kernel != (3, 3) or window.strides != (1, 1) or window.dilations != (1, 1):
        return 0
    if window.groups != 1 or low.direct_only:
        return 0
    return tile_size(_winograd_shape(window), low.threads)


def _winograd_shape(window: Window) -> Shape:
    return Shape(
        window.images,
        window.channels,
        window.out_channels,
        window.out_height,
        window.out_width,
    )


def conv_pads(low: Lowering, window: Window) -> Pads:
    """Return the border that a convolution reads, in the form that it is computed in."""
    top, left, bottom, right = needed_pads(window)
    size = winograd_size(low, window)
    if size:
        rows, columns = _winograd_shape(window).tiles(size)
        bottom = max(bottom, rows * size + 2 - top - window.height)
        right = max(right, columns * size + 2 - left - window.width)
    return top, left, bottom, right


def reads_blocks(low: Lowering, node: ir.Node) -> Window | None:
    """Return the sizes of a convolution that reads images in blocks, or None."""
    if node.op_type != "Conv":
        return None
    try:
        shape = low.fixed_shape(node.inputs[1])
        window = window_of(low, node, shape[2:], shape[0])
        return window if low.is_float(node.inputs[0]) and _is_blocked(low, window) else None
    except NotNative:
        return None


def _is_blocked(low: Lowering, window: Window) -> bool:
    lanes = low.level.lanes
    if is_narrow(low, window):
        return False
    if window.groups == 1 or window.groups == window.channels == window.out_channels:
        return True
    return (
        window.channels // window.groups % lanes == 0
        and window.out_channels // window.groups % lanes == 0
    )


def lower_conv(low: Lowering, node: ir.Node) -> None:
    """Lower a convolution with constant weights."""
    x, weight = node.inputs[0], low.constant(node.inputs[1])
    bias_value = node.inputs[2] if len(node.inputs) > 2 else None
    bias = low.constant(bias_value) if bias_value is not None else None
    if weight is None or (bias_value is not None and bias is None):
        raise NotNative("weights that are not constant")
    if not low.is_float(x):
        raise NotNative(f"element type {low.dtype(x)}")
    window = window_of(low, node, weight.shape[2:], weight.shape[0])
    if is_narrow(low, window):
        lower_narrow(low, node, window, _four(weight), bias)
        return
    if not _is_blocked(low, window):
        _lower_by_loops(low, node, window, weight, bias)
        return
    if window.groups > 1 and window.groups == window.channels == window.out_channels:
        _lower_depthwise(low, node, window, weight, bias)
    else:
        _lower_direct(low, node, window, weight, bias)


def _four(weight: Array) -> Array:
    return weight if weight.ndim == 4 else weight[:, :, None, :]


def _bias_buffer(low: Lowering, node: ir.Node, window: Window, bias: Array | None) -> Buffer:
    lanes = low.level.lanes
    count = (-(-window.out_channels // lanes) + 8) * lanes

    def make() -> Array:
        padded = np.zeros(count, np.float32)
        if bias is not None:
            padded[: window.out_channels] = bias
        return padded

    return low.weight(("bias", id(node)), make, count * 4)


def _lower_direct(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    ending = follow(low, node.outputs[0])
    planes = window.channels <= _FEW_CHANNELS and not isinstance(low.get(x), Blocked)
    residual = None if ending.residual is None else low.blocked(ending.residual)
    target = low.new_blocked(ending.value, low.fixed_shape(ending.value))
    if planes:
        tensor, row, image = padded_planes(low, x, window)
        step, plane, channels, start = 1, row[1], 1, 0
        row_stride = row[0]
    else:
        source = low.blocked(x)
        pads = conv_pads(low, window)
        if any(have < want for have, want in zip(source.pads, pads, strict=True)):
            source = _with_border(low, x, source, pads)
        tensor = source.view()
        start = -window.pads[0] * source.row_stride - window.pads[1] * lanes
        step, plane, channels, row_stride = lanes, source.plane_stride, lanes, source.row_stride
        image = source.blocks * source.plane_stride
        size = winograd_size(low, window)
        if size:
            lower_winograd(
                low,
                node,
                _winograd_shape(window),
                size,
                source,
                start,
                weight,
                _bias_buffer(low, node, window, bias),
                ending,
                residual,
                target,
            )
            low.lowered[ending.value] = target
            return

    view = Source(tensor, start, step, plane, channels, row_stride, image)
    emit_direct(low, node, window, weight, bias, view, ending, residual, target)


@dataclass(frozen=True, slots=True)
class Source:
    """An image as a direct convolution reads it; strides count floats.

    Attributes:
        tensor: Its memory.
        start: From the tensor's first element to the first tap of the first pixel.
        step: From one pixel to the next.
        plane: From one block of channels to the next.
        channels: Channels of a block.
        row: From one row to the next.
        image: From one image to the next.
    """

    tensor: Tensor
    start: int
    step: int
    plane: int
    channels: int
    row: int
    image: int


def emit_direct(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    bias: Array | None,
    source: Source,
    ending: Ending,
    residual: Blocked | None,
    target: Blocked,
) -> None:
    """Write the kernel of a convolution in register tiles."""
    level, lanes = low.level, low.level.lanes
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    step, plane, channels, row_stride = source.step, source.plane, source.channels, source.row
    per_group = -(-window.out_channels // window.groups // lanes)
    depth = window.channels // window.groups
    pixel_count = window.out_height * window.out_width
    sizes = split_blocks(per_group, pixel_count, level)
    weight4 = _four(weight)
    block = per_group * lanes if window.groups > 1 else window.out_channels

    def make() -> Array:
        return np.concatenate(
            [
                pack_weights(weight4[g * block : (g + 1) * block], sizes, level, channels)
                for g in range(window.groups)
            ]
        )

    groups: list[Group] = []
    at = 0
    for g in range(window.groups):
        first = g * per_group
        for size in sizes:
            groups.append(Group(first, size, at, g * (depth // lanes) * plane if g else 0))
            at += size * lanes * depth * kh * kw
            first += size
    weights = low.weight(("conv", id(node), tuple(sizes)), make, at * 4)

    width = window.out_width
    flat = (kh, kw, sh, sw) == (1, 1, 1, 1) and row_stride == target.row_stride == width * lanes
    flat = flat and (residual is None or residual.row_stride == width * lanes)
    tile = Tile(
        blocks=1,
        sources=(),
        targets=(),
        residuals=None if residual is None else (),
        depth=depth // channels,
        channels=channels,
        rest=depth % channels,
        source_plane=plane,
        target_plane=target.plane_stride,
        residual_plane=0 if residual is None else residual.plane_stride,
        taps=(kh, kw),
        row_step=dh * row_stride,
        column_step=dw * step,
        activation=ending.activation,
    )
    pixels = Pixels(
        lambda i: i // width * sh * row_stride + i % width * sw * step,
        lambda i: i // width * target.row_stride + i % width * lanes,
        None
        if residual is None
        else lambda i: i // width * residual.row_stride + i % width * lanes,
        pixel_count,
        0 if flat else width,
    )
    plan = Contraction(
        tile,
        pixels,
        tuple(groups),
        window.images,
        source.image,
        target.blocks * target.plane_stride,
        0 if residual is None else residual.blocks * residual.plane_stride,
        0,
        source.image,
    )
    body = Body()
    names = (
        body.pointer(source.tensor, offset=source.start),
        body.raw(weights),
        body.raw(_bias_buffer(low, node, window, bias)),
        "0" if residual is None else body.pointer(residual.view()),
        body.pointer(target.view(), written=True),
    )
    tasks, work = emit_contraction(body, plan, level, names)
    flops = 2.0 * window.images * pixel_count * window.out_channels * depth * kh * kw
    low.emit(node, body, tasks, work=work, flops=flops, followers=ending.operators)
    low.lowered[ending.value] = target


def padded_planes(
    low: Lowering, value: ir.Value, window: Window
) -> tuple[Tensor, tuple[int, int], int]:
    """Return an image as planes within a zero border, its row and plane strides, and its size."""
    source = low.plain(value)
    top, left, bottom, right = needed_pads(window)
    row = window.width + left + right
    plane = (window.height + top + bottom) * row
    image = plane * window.channels
    border = (
        "planes",
        window.images,
        window.channels,
        window.height,
        window.width,
        top,
        left,
        row,
        plane,
    )
    # Tiles read whole rows; the last one may look past the end by a vector.
    count = window.images * image + 64
    kind = Kind.BORDERED if top or left or bottom or right else Kind.ARENA
    buffer = Buffer(f"{value.name} padded", count * 4, kind, border=border)
    shape = (window.images, window.channels, window.height, window.width)
    inner = Tensor(buffer, source.dtype, shape, (image, plane, row, 1), top * row + left)
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


def _with_border(low: Lowering, value: ir.Value, source: Blocked, pads: Pads) -> Blocked:
    lanes = low.level.lanes
    floats = blocked_floats(source.shape, lanes, pads)
    buffer = Buffer(f"{value.name} padded", floats * 4, Kind.BORDERED, border=(source.shape, pads))
    target = Blocked(buffer, source.shape, lanes, pads)
    low.copy(source.view(), target.view())
    return target


def _lower_depthwise(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    ending = follow(low, node.outputs[0], residuals=False)
    source = low.blocked(x)
    pads = needed_pads(window)
    if any(have < want for have, want in zip(source.pads, pads, strict=True)):
        source = _with_border(low, x, source, pads)
    target = low.new_blocked(ending.value, low.fixed_shape(ending.value))
    kh, kw = window.kernel
    taps = kh * kw
    blocks = source.blocks

    def make() -> Array:
        padded = np.zeros((blocks * lanes, taps), np.float32)
        padded[: window.channels] = weight.reshape(window.channels, taps)
        return padded.reshape(blocks, lanes, taps).transpose(0, 2, 1).reshape(-1)

    weights = low.weight(("depthwise", id(node)), make, blocks * lanes * taps * 4)
    body = Body()
    start = -window.pads[0] * source.row_stride - window.pads[1] * lanes
    s = body.pointer(source.view(), offset=start)
    w = body.raw(weights)
    b = body.raw(_bias_buffer(low, node, window, bias))
    d = body.pointer(target.view(), written=True)
    rows = max(1, min(window.out_height, 24_000 // max(1, window.out_width * taps * 2)))
    chunks = -(-window.out_height // rows)
    body.add(
        f"int64_t chunk = q % {chunks}, block = q / {chunks} % {blocks}, image = q / {chunks * blocks};",
        f"const float *s = {s} + (image * {blocks} + block) * {source.plane_stride};",
        f"float *d = {d} + (image * {blocks} + block) * {target.plane_stride};",
        f"const float *w = {w} + block * {taps * lanes};",
        f"vf bias = v_load({b} + block * {lanes});",
    )
    in_registers = taps <= (9 if low.level.registers == 32 else 0)
    if in_registers:
        body.add(*(f"vf w{i} = v_load(w + {i * lanes});" for i in range(taps)))
    body.add(
        f"for (int64_t y = chunk * {rows}; y < hg_min({window.out_height}, (chunk + 1) * {rows}); y++) {{",
        f"const float *row = s + y * {window.strides[0] * source.row_stride};",
        f"float *out = d + y * {target.row_stride};",
        "int64_t x = 0;",
    )
    width = min(window.out_width, 8 if low.level.registers == 32 else 4)
    for count in (width, 1):
        if count == 1 and window.out_width % width == 0 and width > 1:
            continue
        body.add(f"for (; x + {count} <= {window.out_width}; x += {count}) {{")
        body.add(f"const float *p = row + x * {window.strides[1] * lanes};")
        _depthwise_pixels(body, window, source.row_stride, lanes, count, in_registers, ending)
        body.add("}")
    body.add("}")
    flops = 2.0 * taps * window.channels * window.out_height * window.out_width * window.images
    low.emit(
        node,
        body,
        window.images * blocks * chunks,
        work=flops / 40,
        flops=flops,
        followers=ending.operators,
    )
    low.lowered[ending.value] = target


def _depthwise_pixels(
    body: Body,
    window: Window,
    row_stride: int,
    lanes: int,
    count: int,
    in_registers: bool,
    ending: Ending,
) -> None:
    (kh, kw), stride = window.kernel, window.strides[1]
    dh, dw = window.dilations
    body.add(" ".join(f"vf a{t} = bias;" for t in range(count)))
    for i in range(kh):
        columns: dict[int, list[tuple[int, int]]] = {}
        for t in range(count):
            for j in range(kw):
                columns.setdefault(t * stride + j * dw, []).append((t, j))
        for column, uses in sorted(columns.items()):
            at = i * dh * row_stride + column * lanes
            calls = []
            for t, j in uses:
                tap = i * kw + j
                value = f"w{tap}" if in_registers else f"v_load(w + {tap * lanes})"
                calls.append(f"a{t} = v_fma(v, {value}, a{t});")
            body.add(f"{{ vf v = v_load(p + {at}); {' '.join(calls)} }}")
    for t in range(count):
        body.add(f"v_store(out + (x + {t}) * {lanes}, {bounded(f'a{t}', ending.activation)});")


def _lower_by_loops(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    """Lower a grouped convolution whose groups are no whole blocks, on planes."""
    lanes = low.level.lanes
    x = node.inputs[0]
    assert x is not None
    tensor, (row, plane), image = padded_planes(low, x, window)
    depth = window.channels // window.groups
    outs = window.out_channels // window.groups
    kh, kw = window.kernel
    weights = low.constant_tensor(node.inputs[1], np.ascontiguousarray(_four(weight), np.float32))
    target = low.result(node.outputs[0])
    body = Body()
    s = body.pointer(tensor)
    w = body.pointer(weights)
    b = body.raw(_bias_buffer(low, node, window, bias))
    d = body.pointer(target, written=True)
    (sh, sw), (dh, dw) = window.strides, window.dilations
    body.add(
        f"int64_t channel = q % {window.out_channels}, image = q / {window.out_channels};",
        f"const float *s = {s} + image * {image} + channel / {outs} * {depth} * {plane};",
        f"const float *w = {w} + channel * {depth * kh * kw};",
        f"float *d = {d} + q * {window.out_height * window.out_width};",
        f"for (int64_t y = 0; y < {window.out_height}; y++)",
        f"for (int64_t x = 0; x < {window.out_width}; x += {lanes}) {{",
        f"int64_t n = hg_min({lanes}, {window.out_width} - x);",
        f"vf sum = v_set1({b}[channel]);",
        f"for (int64_t c = 0; c < {depth}; c++)",
        f"for (int64_t i = 0; i < {kh}; i++)",
        f"for (int64_t j = 0; j < {kw}; j++) {{",
        f"const float *p = s + c * {plane} + (y * {sh} + i * {dh}) * {row} + x * {sw} + j * {dw};",
        f"float k = w[(c * {kh} + i) * {kw} + j];",
        "sum += k * (v_load_n(p, n));" if sw == 1 else f"sum += k * v_load_strided(p, {sw}, n);",
        "}",
        f"v_store_n(d + y * {window.out_width} + x, sum, n);",
        "}",
    )
    flops = 2.0 * window.images * window.out_channels * depth * kh * kw * window.out_height
    flops *= window.out_width
    low.emit(node, body, window.images * window.out_channels, work=flops / 6, flops=flops)
    low.lowered[node.outputs[0]] = target


def lower_conv_transpose(low: Lowering, node: ir.Node) -> None:
    """Lower a transposed convolution: a convolution of the image with zeros between its pixels.

    Where the filter is as large as the stride, no two taps meet: a 1 × 1 convolution gives all of
    a pixel's taps as channels, which are then put in their places.
    """
    x, weight = node.inputs[0], low.constant(node.inputs[1])
    bias_value = node.inputs[2] if len(node.inputs) > 2 else None
    bias = low.constant(bias_value) if bias_value is not None else None
    attributes = low.attributes(node)
    if x is None or weight is None or (bias_value is not None and bias is None):
        raise NotNative("weights that are not constant")
    shape, out = low.fixed_shape(x), low.fixed_shape(node.outputs[0])
    if not low.is_float(x) or len(shape) != 4 or attributes.get("group", 1) != 1:
        raise NotNative("a transposed convolution in groups, or not of two axes")
    if 0 in (*shape, *out):
        raise NotNative("an empty image")
    kernel = weight.shape[2:]
    strides = list(attributes.get("strides") or [1, 1])
    dilations = list(attributes.get("dilations") or [1, 1])
    begin = [
        _transposed_pad(
            attributes, shape[2 + i], out[2 + i], kernel[i], strides[i], dilations[i], i
        )
        for i in range(2)
    ]
    flipped = np.ascontiguousarray(weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3))
    whole = list(kernel) == strides and begin == [0, 0] and dilations == [1, 1]
    if whole and [a * b for a, b in zip(shape[2:], strides, strict=True)] == list(out[2:]):
        _lower_shuffled(low, node, x, weight, bias, shape, out, strides)
        return
    inner = [(shape[2 + i] - 1) * strides[i] + 1 for i in range(2)]
    before = [(kernel[i] - 1) * dilations[i] - begin[i] for i in range(2)]
    if min(before) < 0:
        raise NotNative("more padding than the filter reaches")
    window = Window(
        shape[0],
        shape[1],
        inner[0],
        inner[1],
        out[1],
        out[2],
        out[3],
        (kernel[0], kernel[1]),
        (1, 1),
        (dilations[0], dilations[1]),
        (before[0], before[1], 0, 0),
        1,
    )
    lanes = low.level.lanes
    stuffed_shape = (shape[0], shape[1], inner[0], inner[1])
    pads = needed_pads(window)
    floats = blocked_floats(stuffed_shape, lanes, pads)
    border = ("stuffed", stuffed_shape, pads, tuple(strides))
    buffer = Buffer(f"{x.name} spread", floats * 4, Kind.BORDERED, border=border)
    stuffed = Blocked(buffer, stuffed_shape, lanes, pads)
    view, image = stuffed.view(), low.blocked(x).view()
    spread = Tensor(
        buffer,
        image.dtype,
        image.shape,
        (
            view.strides[0],
            view.strides[1],
            view.strides[2] * strides[0],
            view.strides[3] * strides[1],
            1,
        ),
        view.offset,
    )
    low.copy(image, spread)
    ending = follow(low, node.outputs[0], residuals=False)
    target = low.new_blocked(ending.value, low.fixed_shape(ending.value))
    start = -before[0] * stuffed.row_stride - before[1] * lanes
    source = Source(
        view,
        start,
        lanes,
        stuffed.plane_stride,
        lanes,
        stuffed.row_stride,
        stuffed.blocks * stuffed.plane_stride,
    )
    emit_direct(low, node, window, flipped, bias, source, ending, None, target)
    low.lowered[ending.value] = target


def _transposed_pad(
    attributes: dict[str, Any], size: int, out: int, kernel: int, stride: int, dilation: int, i: int
) -> int:
    mode = attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET" and not attributes.get("output_shape"):
        pads = attributes.get("pads")
        return int(pads[i]) if pads else 0
    extra = (attributes.get("output_padding") or [0, 0])[i]
    total = max(0, (size - 1) * stride + (kernel - 1) * dilation + 1 + extra - out)
    if mode == "VALID":
        return 0
    return int(total - total // 2 if mode == "SAME_LOWER" else total // 2)


def _lower_shuffled(
    low: Lowering,
    node: ir.Node,
    x: ir.Value,
    weight: Array,
    bias: Array | None,
    shape: tuple[int, ...],
    out: tuple[int, ...],
    strides: list[int],
) -> None:
    """Lower a transposed convolution whose filter is as large as its stride."""
    lanes = low.level.lanes
    sh, sw = strides
    channels = out[1]
    blocks = -(-channels // lanes)
    spread = np.zeros((sh, sw, blocks * lanes, shape[1], 1, 1), np.float32)
    spread[:, :, :channels, :, 0, 0] = weight.transpose(2, 3, 1, 0)
    wide = sh * sw * blocks * lanes
    row = np.zeros((sh * sw, blocks * lanes), np.float32)
    row[:, :channels] = 0 if bias is None else bias
    window = Window(
        shape[0],
        shape[1],
        shape[2],
        shape[3],
        wide,
        shape[2],
        shape[3],
        (1, 1),
        (1, 1),
        (1, 1),
        (0, 0, 0, 0),
        1,
    )
    image = low.blocked(x)
    ending = follow(low, node.outputs[0], residuals=False)
    target = low.new_blocked(ending.value, low.fixed_shape(ending.value))
    taps_shape = (shape[0], wide, shape[2], shape[3])
    size = blocked_floats(taps_shape, lanes, (0, 0, 0, 0)) * 4
    taps = Blocked(Buffer(f"{node.name} taps", size, Kind.ARENA), taps_shape, lanes)
    source = Source(
        image.view(),
        0,
        lanes,
        image.plane_stride,
        lanes,
        image.row_stride,
        image.blocks * image.plane_stride,
    )
    emit_direct(
        low,
        node,
        window,
        spread.reshape(wide, shape[1], 1, 1),
        row.reshape(-1),
        source,
        Ending(ending.value, None, ending.activation, ending.operators),
        None,
        taps,
    )
    view, result = taps.view(), target.view()
    plane = taps.plane_stride
    from_taps = Tensor(
        taps.buffer,
        view.dtype,
        (shape[0], blocks, shape[2], sh, shape[3], sw, lanes),
        (
            view.strides[0],
            plane,
            view.strides[2],
            sw * blocks * plane,
            lanes,
            blocks * plane,
            1,
        ),
    )
    to = Tensor(
        target.buffer,
        view.dtype,
        from_taps.shape,
        (
            result.strides[0],
            result.strides[1],
            result.strides[2] * sh,
            result.strides[2],
            lanes * sw,
            lanes,
            1,
        ),
        result.offset,
    )
    low.copy(from_taps, to)
    low.lowered[ending.value] = target


RULES: dict[str, Rule] = {"Conv": lower_conv, "ConvTranspose": lower_conv_transpose}
