"""Convolution in the direct form: register tiles over pixels and groups of channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body, Work, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.layouts.pairs import Paired, paired_weights, split_weights
from hagane.native.layouts.quads import Quads, quad_weights
from hagane.native.lowering.choices import BY_RULE
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.images import bias_buffer, four_axes
from hagane.native.rules.convolution.window import Window
from hagane.native.tiles.contraction import (
    Band,
    Contraction,
    Group,
    Pixels,
    Pool,
    pack_weights,
    split_blocks,
)
from hagane.native.tiles.open_pixels import OpenContraction, Place, emit_open
from hagane.native.tiles.register_loops import emit_contraction
from hagane.native.tiles.tile import Parameters, Store, Tile, Words, uses_tiles, whole_words
from hagane.ops.definition import Array
from hagane.symbolic import Dim

# How weights are kept.
_KEPT: Mapping[Words, Callable[[Array, Level], Array]] = {
    Words.FLOAT: lambda weight, level: weight,
    Words.PAIR: paired_weights,
    Words.TRIPLE: split_weights,
    Words.QUAD: quad_weights,
}

_NAMES = {
    Words.FLOAT: "conv",
    Words.PAIR: "conv_bf16",
    Words.TRIPLE: "conv_split",
    Words.QUAD: "conv_int8",
}

# As many pixels as images of open sizes are taken to have.
_MANY = 1024
# Pixels of an image whose matrix tiles, which are listed one by one, are worth it.
MOST_PIXELS = 1 << 21
# Floats from the first to the last block of channels: what instructions count, in bytes, in 32 bits.
_FARTHEST = (1 << 31) // 4 - 1
# Pixels of a row of windows: enough for a register tile, and few enough for the nearest caches.
_BAND = range(8, 1024)


def band_pays(pool: Pool) -> bool:
    """Whether rows of windows make register tiles that are worth pooling at once."""
    return pool.pixels // pool.height in _BAND


def _store(target: Blocked | Paired | Quads, words: Words) -> Store:
    if isinstance(target, Paired):
        return Store.of(target.words)
    if isinstance(target, Quads):
        return Store.QUAD
    return Store.SCALED if words is Words.QUAD else Store.SUM


def _residual_words(residual: Blocked | Paired | Quads | None) -> Words:
    if isinstance(residual, Quads):
        return Words.QUAD
    return residual.words if isinstance(residual, Paired) else Words.FLOAT


def _parts(image: Blocked | Paired | Quads, lanes: int) -> int:
    """Return how many vectors of channels one block of an image holds."""
    return image.lanes // lanes


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
        words: The contents of a word of it; "floats" and "channels" count words.
        floats: Where the image lies in blocks of float32 and is split by the task that reads it, the
            distance of the blocks and how many channels they hold; ``start`` and ``image`` then count
            floats.
    """

    tensor: Tensor
    start: Dim
    step: int
    plane: Dim
    channels: int
    row: Dim
    image: Dim
    words: Words = Words.FLOAT
    floats: tuple[int, int] | None = None


def emit_direct(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    bias: Array | Parameters | None,
    source: Source,
    epilogue: Epilogue,
    residual: Blocked | Paired | Quads | None,
    target: Blocked | Paired | Quads,
    key: str = "",
    flops: Work | None = None,
    after: Expression | None = None,
    pool: Pool | None = None,
    number: int = 0,
) -> None:
    """Write the kernel of a convolution in register tiles or matrix tiles.

    Args:
        low: Takes the kernel.
        node: The convolution.
        window: Its sizes.
        weight: ``(out, in / groups, rows, columns)``, or without rows.
        bias: One number a channel; of quads all the numbers that a tile of them reads.
        source: The image.
        epilogue: The operations computed with it.
        residual: An image that is added.
        target: The result.
        key: Names the layer among the forms that were found to be fastest, if it is measured.
        flops: Operations, for profiles, if they are not those of these sizes.
        after: Computed on results before they are stored, by matrix tiles.
        pool: Windows of results that the target has one of each, where register tiles compute them.
        number: Which it is of several convolutions that compute the node.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    (kh, kw), dw = window.kernel, window.dilations[1]
    if uses_tiles(level, source.words):
        if window.is_open:
            raise NotNative(AT_RUN_TIME)
        if window.sizes[2] * window.sizes[3] > 8 * MOST_PIXELS:
            raise NotNative("an image of more pixels than matrix tiles are listed for")
    step, channels = source.step, source.channels
    parts = _parts(target, lanes)
    per_group = -(-window.out_channels // window.groups // (lanes * parts)) * parts
    if isinstance(target, Quads):
        # The filling of a block of bytes is multiplied by zeros; of other numbers it might be NaN.
        per_group = -(-window.out_channels // window.groups // lanes)
    inputs = window.channels // window.groups
    depth = whole_words(inputs, source.words, level)
    choice = low.facts.choices.get(key, BY_RULE)
    pixel_count = _MANY if window.is_open else window.sizes[2] * window.sizes[3]
    sizes = split_blocks(per_group, pixel_count, level, choice.blocks, source.words)
    weight4 = four_axes(weight)
    block = per_group * lanes if window.groups > 1 else window.out_channels
    packing = Packing(
        pack_groups, (weight4, window.groups, block, tuple(sizes), level, channels, source.words)
    )
    plane: Dim = 1 if window.is_open else source.plane
    groups: list[Group] = []
    at = 0
    for g in range(window.groups):
        first = g * per_group
        for size in sizes:
            begin = g * (inputs // (channels * source.words.each)) * int(plane)
            groups.append(Group(first, size, at, begin))
            at += size * lanes * depth * kh * kw * source.words.weights
            first += size
    weights = low.recorder.weight(("conv", id(node), number, tuple(sizes)), packing, at * 4)

    numbers = bias
    if not isinstance(numbers, Parameters):
        numbers = Parameters(bias_buffer(low, node, window, numbers), 0)
    tile = Tile(
        blocks=1,
        sources=(),
        targets=(),
        residuals=None if residual is None else (),
        depth=depth // channels,
        channels=channels,
        rest=depth % channels,
        source_plane=0,
        target_plane=0,
        taps=(kh, kw),
        column_step=dw * step,
        activation=epilogue.activation,
        words=source.words,
        store=_store(target, source.words),
        parameters=numbers.distance,
        limited=numbers.limited,
        target_parts=parts,
        residual_parts=1 if residual is None else _parts(residual, lanes),
        residual_words=_residual_words(residual),
    )
    body = Body()
    names = (
        body.pointer(source.tensor, offset=source.start),
        body.raw(weights),
        body.raw(numbers.buffer),
        "0" if residual is None else body.pointer(residual.word_view()),
        body.pointer(target.word_view(), written=True),
    )
    if window.is_open:
        assert pool is None, "windows of open sizes are pooled apart"
        assert after is None, "vectors of floats do without"
        opened = _open(tile, window, groups, source, target, residual, choice.order)
        tasks, work = emit_open(body, opened, level, names)
    else:
        plan = _fixed(tile, window, groups, source, target, residual, choice.order, pool)
        plan = replace(plan, threads=low.facts.threads)
        tasks, work = emit_contraction(body, plan, level, names, after)
    if flops is None:
        pixels = window.images * window.out_height * window.out_width
        if pool is not None:
            pixels = window.images * pool.pixels
        flops = work_of(pixels, 2.0 * window.out_channels * inputs * kh * kw)
    low.recorder.emit(
        node,
        body,
        tasks,
        work=work,
        flops=flops,
        followers=epilogue.nodes,
        name=window.name(_NAMES[source.words]),
    )
    low.forms[epilogue.value] = target


def _fixed(
    tile: Tile,
    window: Window,
    groups: Sequence[Group],
    source: Source,
    target: Blocked | Paired | Quads,
    residual: Blocked | Paired | Quads | None,
    order: str | None,
    pool: Pool | None,
) -> Contraction:
    """Return the sums of images whose sizes are numbers; arguments are those of ``emit_direct``."""
    _, _, out_height, out_width = window.sizes
    step, plane, row_stride = source.step, int(source.plane), int(source.row)
    planes = [target.plane_stride, plane, 0 if residual is None else residual.plane_stride]
    if max(map(int, planes)) * len(groups) > _FARTHEST:
        raise NotNative("an image of blocks of channels too far apart for one instruction")
    (kh, kw), (sh, sw) = window.kernel, window.strides
    pixel_count = out_height * out_width
    width = out_width if pool is None else pool.width * pool.columns
    band, target_row, target_plane = None, int(target.row_stride), int(target.plane_stride)
    residual_row = 0 if residual is None else int(residual.row_stride)
    if pool is not None:
        assert isinstance(target, Blocked)
        pixel_count = pool.rows * width
        band = Band(pool, pool.rows * sh * row_stride, target_row, target_plane)
        target_row, target_plane = width * target.lanes, pixel_count * target.lanes
    flat = (kh, kw, sh, sw) == (1, 1, 1, 1) and row_stride == width * step
    flat = flat and target_row == width * target.step
    flat = flat and (residual is None or residual_row == width * residual.step)
    pixels = Pixels(
        lambda i: i // width * sh * row_stride + i % width * sw * step,
        lambda i: i // width * target_row + i % width * target.step,
        None
        if residual is None
        else lambda i: i // width * residual_row + i % width * residual.step,
        pixel_count,
        0 if flat else width,
    )
    return Contraction(
        replace(
            tile,
            source_plane=plane,
            target_plane=target_plane,
            residual_plane=0 if residual is None else int(residual.plane_stride),
            row_step=window.dilations[0] * row_stride,
        ),
        pixels,
        tuple(groups),
        window.images,
        source.image,
        target.blocks * target.plane_stride,
        0 if residual is None else residual.blocks * residual.plane_stride,
        width=window.out_channels,
        padded=True,
        source_floats=int(source.image),
        order=order,
        float_plane=None if source.floats is None else source.floats[0],
        float_channels=0 if source.floats is None else source.floats[1],
        band=band,
    )


def _open(
    tile: Tile,
    window: Window,
    groups: Sequence[Group],
    source: Source,
    target: Blocked | Paired | Quads,
    residual: Blocked | Paired | Quads | None,
    order: str | None,
) -> OpenContraction:
    """Return the sums of images whose sizes only a run knows; groups count planes of the source."""
    sh, sw = window.strides
    return OpenContraction(
        tile,
        tuple(groups),
        window.images,
        window.out_height,
        window.out_width,
        Place(source.image, source.plane, sh * source.row, sw * source.step),
        window.dilations[0] * source.row,
        _place(target),
        None if residual is None else _place(residual),
        width=window.out_channels,
        order=order,
    )


def _place(image: Blocked | Paired | Quads) -> Place:
    plane = image.plane_stride
    return Place(image.blocks * plane, plane, image.row_stride, image.step)


def pack_groups(
    weight: Array,
    groups: int,
    block: int,
    sizes: Sequence[int],
    level: Level,
    channels: int,
    words: Words,
) -> Iterator[Array]:
    """Yield the filters of each group of channels in the order in which tiles read them.

    Args:
        weight: ``(out, in, rows, columns)``.
        groups: How many groups of channels there are.
        block: Output channels of a group.
        sizes: Channel blocks of each group of a tile.
        level: Vector instructions.
        channels: Input channels of one block.
        words: The operands of products.
    """
    for g in range(groups):
        own = _KEPT[words](weight[g * block : (g + 1) * block], level)
        yield from pack_weights(own, sizes, level, channels, words)
