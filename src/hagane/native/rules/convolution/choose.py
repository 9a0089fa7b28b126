"""Convolution: which of its forms a node is computed in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Blocked, Pads, Tensor
from hagane.native.layouts.pairs import Paired
from hagane.native.lowering.choices import BY_RULE
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.convolution.depthwise import lower_depthwise
from hagane.native.rules.convolution.direct import MOST_PIXELS, Source, band_pays, emit_direct
from hagane.native.rules.convolution.few_outputs import has_few_outputs, lower_few_outputs
from hagane.native.rules.convolution.filtered import filtered_axis, filtered_pads, lower_filtered
from hagane.native.rules.convolution.images import (
    FEW_CHANNELS,
    bias_buffer,
    four_axes,
    padded_planes,
    with_border,
)
from hagane.native.rules.convolution.pooled import with_pool
from hagane.native.rules.convolution.stem import folded, folds_rows
from hagane.native.rules.convolution.volume import lower_volume
from hagane.native.rules.convolution.window import (
    Window,
    convolution_key,
    covers,
    is_depthwise,
    needed_pads,
    window_of,
)
from hagane.native.rules.convolution.winograd import lower_winograd
from hagane.native.rules.convolution.winograd_sizes import Shape, tile_size
from hagane.native.rules.elementwise import function_of
from hagane.native.rules.onednn.convolution import calls_library as is_chosen
from hagane.native.rules.onednn.convolution import lower_by_library
from hagane.native.rules.varying import lower_varying
from hagane.native.tiles.matrix import takes_rows
from hagane.native.tiles.tile import Words, block_words, uses_tiles
from hagane.native.tiles.triples import splits, tiles_ns, tiles_of_image
from hagane.ops.definition import Array
from hagane.symbolic import Dim, maximum


def calls_library(low: Lowering, window: Window) -> bool:
    """Whether oneDNN computes a convolution: where measurements chose it."""
    return bool(low.facts.choices) and is_chosen(low, window)


def winograd_sizes(window: Window) -> tuple[int, ...]:
    """Return the tiles of Winograd's algorithm that there are for a convolution."""
    if window.strides != (1, 1) or window.dilations != (1, 1) or window.groups != 1:
        return ()
    if not all(isinstance(pad, int) for pad in window.pads):
        return ()
    return shape_of_winograd(window).sizes


def winograd_size(low: Lowering, window: Window) -> int:
    """Return the tile of Winograd's algorithm where it is faster than the direct form, else 0."""
    if (
        not winograd_sizes(window)
        or (low.facts.direct_only and not low.facts.varying)
        or (low.facts.pairs and low.facts.level.tiles)
    ):
        return 0
    if calls_library(low, window):
        return 0
    chosen = low.facts.choices.get(convolution_key(low, window), BY_RULE).winograd
    if chosen is not None:
        return chosen
    direct = None
    if _direct_words(low, window) is Words.TRIPLE:
        direct = tiles_ns(*_product_of(window), low.facts.threads)
    return tile_size(
        shape_of_winograd(window),
        low.facts.threads,
        2.0 if low.facts.pairs and not window.is_open else 1.0,
        direct,
        packs=low.facts.varying,
    )


def _words(low: Lowering, window: Window) -> Words:
    """Return the words of a convolution that reads blocks, in the form it is computed in."""
    return Words.FLOAT if winograd_size(low, window) else _direct_words(low, window)


def _direct_words(low: Lowering, window: Window) -> Words:
    """Return the words of the direct form."""
    inputs = window.channels // window.groups
    pairs = (
        low.facts.words is not Words.FLOAT
        and inputs > FEW_CHANNELS
        and not (window.groups > 1 and window.groups == window.channels)
        and (window.groups == 1 or _has_whole_blocks(low, window))
    )
    if window.is_open:
        return Words.FLOAT
    if low.facts.level.tiles and window.sizes[2] * window.sizes[3] > MOST_PIXELS:
        return Words.FLOAT
    if pairs and low.facts.words is Words.TRIPLE:
        height, width, out_height, out_width = window.sizes
        pixels = out_height * out_width
        read = inputs * -(-height * width // pixels)
        pairs = not calls_library(low, window) and not low.facts.direct_only
        taps = window.kernel[0] * window.kernel[1]
        product = _product_of(window)
        near = window.follows or takes_rows(product[0] // window.likely_images)
        pairs = pairs and splits(
            low.facts.threads,
            window.likely_images * pixels,
            inputs * taps,
            product,
            read,
            near=near,
        )
    return low.facts.words if pairs else Words.FLOAT


def _splits_rows(low: Lowering, window: Window) -> bool:
    """Whether tasks split the part of an image of floats that they read."""
    if window.groups > 1 or _words(low, window) is not Words.TRIPLE:
        return False
    tiles, _, _ = _product_of(window)
    return takes_rows(tiles // window.likely_images)


def _product_of(window: Window) -> tuple[int, int, int]:
    """Return tiles of rows, inputs, blocks filled up, and outputs of a group's product."""
    left, right = needed_pads(window)[1::2]
    columns = int(window.width + left + right)
    tiles = tiles_of_image(*window.sizes[2:], window.strides, columns)
    taps = window.kernel[0] * window.kernel[1]
    inputs, outs = window.channels // window.groups, window.out_channels // window.groups
    return window.likely_images * tiles, -(-inputs // 32) * 32 * taps, outs


def _has_whole_blocks(low: Lowering, window: Window) -> bool:
    """Whether each group of channels begins with a block of pairs."""
    lanes = low.facts.words.each * block_words(low.facts.level, low.facts.words)
    sizes = (window.channels // window.groups, window.out_channels // window.groups)
    return not any(size % lanes for size in sizes)


def shape_of_winograd(window: Window) -> Shape:
    """Return the sizes that Winograd's algorithm has for a convolution of stride one."""
    return Shape(
        window.images,
        window.channels,
        window.out_channels,
        window.out_height,
        window.out_width,
        window.kernel,
    )


def conv_pads(low: Lowering, window: Window) -> Pads:
    """Return the border that a convolution reads, in the form that it is computed in."""
    if calls_library(low, window):
        return 0, 0, 0, 0
    top, left, bottom, right = needed_pads(window)
    size = winograd_size(low, window)
    if size:
        shape = shape_of_winograd(window)
        (rows, columns), (high, wide) = shape.tiles(size), shape.axes(size)
        if window.is_open:  # for any sizes, the last tiles reach no farther
            return top, left, bottom + high.size - 1, right + wide.size - 1
        bottom = maximum(bottom, rows * high.size + high.taps - 1 - top - window.height)
        right = maximum(right, columns * wide.size + wide.taps - 1 - left - window.width)
    return top, left, bottom, right


def border_read(low: Lowering, node: ir.Node) -> Pads | None:
    """Return the zero border that a convolution reads of an image, or None if it is none of ours."""
    window = sizes_of(low, node)
    if window is None:
        return None
    found = filtered_axis(low, node, window)
    if found is not None:
        return filtered_pads(window, found)
    return conv_pads(low, window) if _is_blocked(low, window) else None


def reads_blocks(low: Lowering, node: ir.Node) -> Window | None:
    """Return the sizes of a convolution that reads images in blocks, or None."""
    window = sizes_of(low, node)
    if window is None or filtered_axis(low, node, window) is not None:
        return None
    return window if _is_blocked(low, window) else None


def sizes_of(low: Lowering, node: ir.Node) -> Window | None:
    """Return the sizes of a convolution of float32 over one or two axes, or None."""
    if node.op_type != "Conv":
        return None
    try:
        shape = [dim for dim in low.facts.shape(node.inputs[1]) if isinstance(dim, int)]
        if len(shape) < len(low.facts.shape(node.inputs[1])):
            return None
        window = window_of(low, node, shape[2:], shape[0])
        return window if low.facts.is_float(node.inputs[0]) else None
    except NotNative:
        return None


def _is_blocked(low: Lowering, window: Window) -> bool:
    lanes = low.facts.level.lanes
    if has_few_outputs(low, window):
        return False
    if window.groups == 1 or is_depthwise(window):
        return True
    return calls_library(low, window) or (
        window.channels // window.groups % lanes == 0
        and window.out_channels // window.groups % lanes == 0
    )


def lower_conv(low: Lowering, node: ir.Node) -> None:
    """Lower a convolution; weights that are not constant are packed when it runs."""
    x, weight = node.inputs[0], low.facts.constant(node.inputs[1])
    bias_value = node.inputs[2] if len(node.inputs) > 2 else None
    bias = low.facts.constant(bias_value) if bias_value is not None else None
    if weight is None or (bias_value is not None and bias is None):
        given = [value for value in node.inputs[1:3] if value is not None]
        lower_varying(low, node, lower_conv, dict.fromkeys(given))
        return
    if not low.facts.is_float(x):
        raise NotNative(f"element type {low.facts.dtype(x)}")
    if weight.ndim == 5:
        lower_volume(low, node, weight, bias)
        return
    window = window_of(low, node, weight.shape[2:], weight.shape[0])
    found = filtered_axis(low, node, window)
    if found is not None:
        lower_filtered(low, node, window, found, four_axes(weight), bias)
        return
    if has_few_outputs(low, window):
        lower_few_outputs(low, node, window, four_axes(weight), bias)
        return
    if not _is_blocked(low, window):
        _lower_by_loops(low, node, window, weight, bias)
        return
    if is_depthwise(window):
        lower_depthwise(low, node, window, weight, bias)
    else:
        _lower_direct(low, node, window, weight, bias)


def _lower_direct(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    x = node.inputs[0]
    assert x is not None
    epilogue = follow(low, node.outputs[0])
    folds = low.facts.pairs and folds_rows(low.facts.level, window)
    tiles = low.facts.level.tiles and (folds or _words(low, window) is not Words.FLOAT)
    after = None
    if tiles and not calls_library(low, window):
        epilogue, after = _with_function(low, epilogue)
    pool, size = None, winograd_size(low, window)
    if (size or low.facts.words is Words.FLOAT) and not calls_library(low, window):
        pays = partial(shape_of_winograd(window).pools, size) if size else band_pays
        epilogue, pool = with_pool(low, epilogue, pays)
    shape = low.facts.shape(epilogue.value)
    target: Blocked | Paired
    # Vectors of floats do not write the wide blocks that matrix tiles read.
    if (tiles or not low.facts.level.tiles) and _read_as_pairs(low, epilogue.value):
        target = low.forms.new_paired(epilogue.value, shape)
    else:
        target = low.forms.new_blocked(epilogue.value, shape)
    if calls_library(low, window):
        lower_by_library(low, node, window, weight, bias, epilogue, target)
        return
    if size:
        residual = None if epilogue.residual is None else low.forms.blocked(epilogue.residual)
        image = _bordered(low, x, window)
        start = _first_tap(window, image.row_stride, image.lanes)
        lower_winograd(
            low,
            node,
            shape_of_winograd(window),
            size,
            image,
            start,
            weight,
            bias_buffer(low, node, window, bias),
            epilogue,
            residual,
            target,
            pool,
        )
        return
    key = convolution_key(low, window)
    pixels = window.out_height * window.out_width if pool is None else pool.pixels
    flops = work_of(window.images * pixels, 2.0 * weight.size)
    if folds:
        window, weight, source = folded(low, x, window, four_axes(weight))
    else:
        source = _source(low, x, window)
    added = None if epilogue.residual is None else _added(low, epilogue.residual, source.words)
    emit_direct(
        low, node, window, weight, bias, source, epilogue, added, target, key, flops, after, pool
    )


def _with_function(low: Lowering, epilogue: Epilogue) -> tuple[Epilogue, Expression | None]:
    """Return an epilogue that includes the function that is computed of it alone, and that."""
    found = function_of(low, epilogue.value)
    if found is None:
        return epilogue, None
    node, expression = found
    low.done.add(node)
    nodes = (*epilogue.nodes, node)
    return replace(epilogue, value=node.outputs[0], nodes=nodes), expression


def _added(low: Lowering, value: ir.Value, words: Words) -> Blocked | Paired:
    """Return an image to add, in pairs if it lies in them and a matrix tile adds it."""
    pairs = low.forms.only_paired(value)
    return (
        pairs
        if pairs is not None and uses_tiles(low.facts.level, words)
        else low.forms.blocked(value)
    )


def _source(low: Lowering, x: ir.Value, window: Window) -> Source:
    """Return the image in the form that the direct convolution of these sizes reads."""
    words = _words(low, window)
    if _splits_rows(low, window):
        return _floats(low, x, window)
    if words is not Words.FLOAT:
        pairs = low.forms.paired(x)
        if not covers(pairs.pads, needed_pads(window)):
            raise NotNative("an image of pairs without its border")
        start = _first_tap(window, pairs.row_stride, pairs.step)
        plane, row = pairs.plane_stride, pairs.row_stride
        image, channels = pairs.blocks * plane, pairs.lanes // 2
        return Source(pairs.word_view(), start, pairs.step, plane, channels, row, image, words)
    if _reads_planes(low, x, window):
        tensor, (row, plane), image = padded_planes(low, x, window)
        return Source(tensor, 0, 1, plane, 1, row, image)
    source = _bordered(low, x, window)
    start = _first_tap(window, source.row_stride, source.lanes)
    plane, row = source.plane_stride, source.row_stride
    image = source.blocks * plane
    return Source(source.view(), start, source.lanes, plane, source.lanes, row, image)


def _reads_planes(low: Lowering, x: ir.Value, window: Window) -> bool:
    """Whether an image of few channels is read as planes, or any one that lies in them with a border."""
    found = low.forms.get(x)
    if isinstance(found, Tensor) and found.buffer in low.forms.planes:
        return window.channels <= low.facts.level.lanes
    return window.channels <= FEW_CHANNELS and not isinstance(found, Blocked)


def _floats(low: Lowering, x: ir.Value, window: Window) -> Source:
    """Return an image of floats that matrix tiles read in pieces, split by each task."""
    image, words = _bordered(low, x, window), Words.TRIPLE
    start = _first_tap(window, image.row_stride, image.lanes)
    step = image.lanes * words.pieces
    row = image.row_stride * words.pieces
    floats = (int(image.plane_stride), window.channels)
    whole = image.blocks * image.plane_stride
    return Source(image.view(), start, step, 0, image.lanes, row, whole, words, floats)


def _first_tap(window: Window, row: Dim, step: int) -> Dim:
    return -window.pads[0] * row - window.pads[1] * step


def _bordered(low: Lowering, x: ir.Value, window: Window) -> Blocked:
    """Return an image in blocks with the zero border that a convolution reads."""
    source, pads = low.forms.blocked(x), conv_pads(low, window)
    if not covers(source.pads, pads):
        return with_border(low, x, source, pads)
    return source


def _read_as_pairs(low: Lowering, value: ir.Value) -> bool:
    """Whether all that reads a value are convolutions of pairs in this segment.

    Matrix tiles also add images of pairs to their results.
    """
    if low.facts.words is Words.FLOAT or value in low.facts.outputs:
        return False
    for use in value.uses():
        if use.node not in low.facts.nodes:
            return False
        if low.facts.level.tiles and use.node.op_type == "Add" and _is_added(low, use.node, value):
            continue
        if use.idx != 0 or not _reads_pairs(low, use.node):
            return False
    return bool(value.uses())


def _reads_pairs(low: Lowering, node: ir.Node) -> bool:
    window = reads_blocks(low, node)
    if window is None or _splits_rows(low, window):
        return False
    return _words(low, window) is not Words.FLOAT


def _is_added(low: Lowering, node: ir.Node, value: ir.Value) -> bool:
    """Whether an addition is computed with a convolution of pairs that gives its other side."""
    (other,) = [v for v in node.inputs if v is not value] or [None]
    producer = None if other is None else other.producer()
    return (
        other is not None
        and producer is not None
        and producer in low.facts.nodes
        and low.facts.uses(other) == 1
        and low.facts.shape(other) == low.facts.shape(value)
        and _reads_pairs(low, producer)
    )


# Maps of a group that are summed together on planes.
_MAPS = 4


def _lower_by_loops(
    low: Lowering, node: ir.Node, window: Window, weight: Array, bias: Array | None
) -> None:
    """Lower a grouped convolution whose groups are no whole blocks, on planes."""
    lanes = low.facts.level.lanes
    x = node.inputs[0]
    assert x is not None
    tensor, (row, plane), image = padded_planes(low, x, window)
    depth = window.channels // window.groups
    outs = window.out_channels // window.groups
    kh, kw = window.kernel
    weights = low.recorder.constant(
        node.inputs[1], np.ascontiguousarray(four_axes(weight), np.float32)
    )
    target = low.forms.result(node.outputs[0])
    body = Body()
    n = body.number
    s = body.pointer(tensor)
    w = body.pointer(weights)
    b = body.raw(bias_buffer(low, node, window, bias))
    d = body.pointer(target, written=True)
    (sh, sw), (dh, dw) = window.strides, window.dilations
    maps, taps = range(min(_MAPS, outs)), depth * kh * kw
    chunks = -(-outs // len(maps))

    def row_of_sums(vectors: int, load: str) -> str:
        """Return C that sums some vectors of pixels of all maps; ``load`` reads one of them."""
        each = [(m, v) for m in maps for v in range(vectors)]
        loads = "".join(f"const vf p{v} = {load.format(v=v)};" for v in range(vectors))
        sums = "".join(
            f"{{ const vf k = v_set1(w{m}[at]); "
            + "".join(f"a{m}_{v} = v_fma(k, p{v}, a{m}_{v});" for v in range(vectors))
            + "}"
            for m in maps
        )
        stores = "".join(
            f"v_store_n(d{m} + y * width + x + {v * lanes}, a{m}_{v}, hg_min({lanes}, hg_max(0, n - {v * lanes})));"
            for m, v in each
        )
        return f"""
vf {", ".join(f"a{m}_{v} = v_set1(b{m})" for m, v in each)}; int64_t at = 0;
for (int64_t c = 0; c < {depth}; c++)
for (int64_t i = 0; i < {kh}; i++) {{
const float *line = s + c * plane + (y * {sh} + i * {dh}) * row + x * {sw};
for (int64_t j = 0; j < {kw}; j++, at++) {{ const float *p = line + j * {dw}; {loads} {sums} }} }}
{stores}"""

    last = f"hg_min({lanes}, n - {{v}} * {lanes})"
    strided = f"v_load_strided(p + {{v}} * {lanes * sw}, {sw}, {lanes})"
    whole = strided if sw > 1 else f"v_load(p + {{v}} * {lanes})"
    rest = f"v_load_strided(p, {sw}, {last})" if sw > 1 else f"v_load_n(p, {last})"
    body.add(
        f"const int64_t chunk = q % {chunks}, group = q / {chunks} % {window.groups}, image = q / {chunks * window.groups};",
        f"const int64_t plane = {n(plane)}, row = {n(row)}, width = {n(window.out_width)}, height = {n(window.out_height)};",
        f"const float *s = {s} + image * {n(image)} + group * {depth} * plane;",
        *(
            f"const int64_t m{m} = group * {outs} + hg_min({outs - 1}, chunk * {len(maps)} + {m});"
            f" const float *w{m} = {w} + m{m} * {taps}, b{m} = {b}[m{m}];"
            f" float *d{m} = {d} + (image * {window.out_channels} + m{m}) * width * height;"
            for m in maps
        ),
        "for (int64_t y = 0; y < height; y++) { int64_t x = 0;",
        f"for (; x + {2 * lanes} <= width; x += {2 * lanes}) {{ const int64_t n = {2 * lanes}; {row_of_sums(2, whole)} }}",
        f"for (; x < width; x += {lanes}) {{ const int64_t n = width - x; {row_of_sums(1, rest)} }}",
        "}",
    )
    each = 2.0 * taps
    low.recorder.emit(
        node,
        body,
        window.images * (window.groups * chunks),
        work=work_of(window.elements, each / 25),
        flops=work_of(window.elements, each),
    )
    low.forms[node.outputs[0]] = target


RULES: dict[str, Rule] = {"Conv": lower_conv}
