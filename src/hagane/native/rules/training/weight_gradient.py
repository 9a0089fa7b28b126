"""The gradient of a convolution by its weight, on images in blocks, without a matrix of windows.

Element (map, channel, tap) is the sum over all positions of the gradient of the map there times the
channel where the tap reads. A tile of registers holds some channels times some blocks of maps of one
tap; it runs over the positions of a chunk that fits the first cache, for each tap. Positions whose
tap lies outside the image are left out, so that no image needs a border.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Blocked, Buffer, Kind, Tensor, blocked_floats
from hagane.native.kernels.written import emit_written
from hagane.native.layouts.blocks import emit_block
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.products.left_side import turn_function
from hagane.symbolic import Dim, ceildiv, maximum, minimum, product

# Positions of a chunk: a gradient's blocks and a channel's for so many stay in the first cache.
_PIXELS = 64
# Work is split at least so often, by positions where there are not as many parts of the weight.
_TASKS = 16
# Products of vectors for a position, in one task, that outweigh the reading of the gradient.
_PRODUCTS = 192
# Bytes of the sums of a task, where its channels meet several columns of maps.
_SUMS = 131072
# As many channels of a plain image are read where they lie.
_PLAIN_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """A convolution over three axes, of which the first ones may be 1.

    Attributes:
        images: Of the batch.
        channels: Of the data.
        maps: Of the gradient.
        size: Of the data.
        count: Of the gradient: its positions.
        kernel: Of the weight.
        strides: Between positions.
        dilations: Between taps.
        before: The padding in front.
        groups: Into which channels and maps are split.
    """

    images: Dim
    channels: int
    maps: int
    size: tuple[Dim, ...]
    count: tuple[Dim, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    groups: int

    @property
    def taps(self) -> int:
        """Taps of the kernel."""
        return int(np.prod(self.kernel))

    @property
    def positions(self) -> Dim:
        """Positions of all images."""
        return self.images * product(self.count)


def sizes_of(low: Lowering, node: ir.Node) -> Sizes:
    """Return the sizes of a node.

    Raises:
        NotNative: It has more than three axes, or channels that only a run knows.
    """
    attributes = low.facts.attributes(node)
    x, g = low.facts.shape(node.inputs[0]), low.facts.shape(node.inputs[1])
    rank = len(x) - 2
    if rank > 3:
        raise NotNative(f"{rank} spatial axes")
    if not isinstance(x[1], int) or not isinstance(g[1], int):
        raise NotNative(AT_RUN_TIME)
    if 0 in (*x, *g):
        raise NotNative("an empty image")

    def three(values: object, default: int) -> tuple[int, ...]:
        given = list(values or (default,) * rank)  # type: ignore[call-overload]
        return (*(default,) * (3 - rank), *map(int, given))

    ones: tuple[Dim, ...] = (1,) * (3 - rank)
    return Sizes(
        x[0],
        int(x[1]),
        int(g[1]),
        (*ones, *x[2:]),
        (*ones, *g[2:]),
        three(attributes["kernel_shape"], 1),
        three(attributes.get("strides"), 1),
        three(attributes.get("dilations"), 1),
        three((attributes.get("pads") or (0,) * rank)[:rank], 0),
        int(attributes["group"]),
    )


@dataclass(frozen=True, slots=True)
class Image:
    """Where an image lies; steps in floats.

    Attributes:
        tensor: Its memory, whose offset is that of the first element.
        image: From one image to the next.
        block: From one block of channels to the next.
        channel: From a channel to the next, within a block.
        row: From a row to the next; slices of three axes are rows that follow one another.
        pixel: From a pixel to the next.
    """

    tensor: Tensor
    image: Dim
    block: Dim
    channel: Dim
    row: Dim
    pixel: Dim


def blocked_image(low: Lowering, value: ir.Value, sizes: tuple[Dim, ...]) -> Image:
    """Return an image in blocks of channels; slices of three axes lie in it as rows.

    Args:
        low: The state.
        value: ``(batch, channels, *spatial)``.
        sizes: Its three spatial sizes.
    """
    shape = low.facts.shape(value)
    if len(shape) < 5:
        return _of_blocks(low.forms.blocked(value))
    flat = (shape[0], shape[1], sizes[0] * sizes[1], sizes[2])
    found = low.forms.contiguous(value).reshaped(flat)
    lanes = low.facts.level.lanes
    floats = blocked_floats(flat, lanes, (0, 0, 0, 0))
    target = Blocked(Buffer(f"{value.name} blocks", floats * 4, Kind.ARENA), flat, lanes)
    emit_block(low.recorder, found, target)
    return _of_blocks(target)


def _of_blocks(found: Blocked) -> Image:
    return Image(
        found.view(),
        found.blocks * found.plane_stride,
        found.plane_stride,
        1,
        found.row_stride,
        found.lanes,
    )


def data_image(low: Lowering, value: ir.Value, sizes: Sizes) -> Image:
    """Return the data: in blocks, or as they lie if there are few channels."""
    found = low.forms.stored(value)
    if isinstance(found, Blocked) or sizes.channels > _PLAIN_CHANNELS:
        return blocked_image(low, value, sizes.size)
    plain = low.forms.contiguous(value)
    plane = product(sizes.size)
    return Image(plain, sizes.channels * plane, 0, plane, sizes.size[2], 1)


def lower_weight_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradient of a weight in float32."""
    sizes = sizes_of(low, node)
    if not low.facts.is_float(node.inputs[0]):
        raise NotNative(f"element type {low.facts.dtype(node.inputs[0])}")
    lanes = low.facts.level.lanes
    own = sizes.groups > 1 and sizes.groups == sizes.channels == sizes.maps
    parts = (sizes.channels // sizes.groups, sizes.maps // sizes.groups)
    if not own and sizes.groups > 1 and any(part % lanes for part in parts):
        raise NotNative("groups that are no whole blocks of channels")
    x, gradient = node.inputs
    assert x is not None
    assert gradient is not None
    g = blocked_image(low, gradient, sizes.count)
    if own:
        _Depthwise(low, node, sizes, blocked_image(low, x, sizes.size), g).emit()
    else:
        _Tiles(low, node, *_as_rows(sizes, data_image(low, x, sizes), g)).emit()


def _as_rows(sizes: Sizes, x: Image, g: Image) -> tuple[Sizes, Image, Image]:
    """Return a convolution that reads each pixel where it writes as one over rows: each is an image.

    So the positions of small images share a chunk, and no row ends after a few of them.
    """
    rows_follow = all(
        image.row == image.pixel * size[2] for image, size in ((x, sizes.size), (g, sizes.count))
    )
    moves = sizes.taps > 1 or set(sizes.strides) != {1} or set(sizes.before) != {0}
    if moves or sizes.size != sizes.count or not rows_follow:
        return sizes, x, g
    whole = (1, sizes.images, product(sizes.size))
    sizes = replace(sizes, images=1, size=whole, count=whole)
    return sizes, replace(x, row=x.image), replace(g, row=g.image)


@dataclass
class _Form:
    """A form of the kernel: positions are chunked, split, and the sums of the splits added."""

    low: Lowering
    node: ir.Node
    sizes: Sizes
    x: Image
    g: Image

    def splits(self, tasks: int) -> int:
        """Return into how many parts the positions are split."""
        return 1 if tasks >= _TASKS else -(-_TASKS // tasks)

    def open(self, body: Body, splits: int) -> None:
        """Write the chunks of one split: ``image``, ``deep``, ``y0``, ``y1``, ``c0`` and ``c1``."""
        s = self.sizes
        wide: Dim = minimum(s.count[2], _PIXELS)
        if isinstance(s.count[2], int):  # equal chunks
            wide = -(-s.count[2] // -(-s.count[2] // _PIXELS))
        high: Dim = minimum(s.count[1], maximum(1, ceildiv(_PIXELS, maximum(1, s.count[2]))))
        body.add(
            f"const int64_t wide = {body.size(wide)}, high = {body.size(high)};",
            f"const int64_t across = {body.size(ceildiv(s.count[2], wide))}, "
            f"down = {body.size(ceildiv(s.count[1], high))};",
            f"const int64_t units = {body.size(s.images * s.count[0])} * down * across;",
            f"for (int64_t u = units * part / {splits}; u < units * (part + 1) / {splits}; u++) {{",
            f"const int64_t c0 = u % across * wide, c1 = hg_min(c0 + wide, {body.size(s.count[2])});",
            f"const int64_t y0 = u / across % down * high, y1 = hg_min(y0 + high, {body.size(s.count[1])});",
            f"const int64_t deep = u / across / down % {body.size(s.count[0])}, "
            f"image = u / across / down / {body.size(s.count[0])};",
        )

    def inside(self, body: Body, axis: int, tap: str, first: str, last: str, names: str) -> None:
        """Write the range of positions of an axis at which a tap lies inside of the data."""
        low, high = names.split()
        stride, size = self.sizes.strides[axis], body.size(self.sizes.size[axis])
        shift = f"{tap} * {self.sizes.dilations[axis]} - {self.sizes.before[axis]}"
        body.add(
            f"const int64_t shift{axis} = {shift};",
            f"const int64_t {low} = hg_max({first}, -shift{axis} <= 0 ? 0 : "
            f"(-shift{axis} + {stride - 1}) / {stride});",
            f"const int64_t {high} = hg_min({last}, {size} <= shift{axis} ? 0 : "
            f"({size} - shift{axis} + {stride - 1}) / {stride});",
        )

    def target(self, splits: int) -> tuple[Tensor, Tensor]:
        """Return the result, and memory for the sums of all splits."""
        found = self.low.forms.result(self.node.outputs[0])
        if splits == 1:
            return found, found
        shape = (splits, *found.shape)
        return found, self.low.recorder.new(f"{self.node.name} parts", found.dtype, shape)

    def emit_kernel(self, body: Body, tasks: int, splits: int, scratch: int, form: str) -> None:
        """Append the kernel, and the one that adds the splits' sums."""
        s = self.sizes
        flops = 2.0 * s.maps * (s.channels // s.groups) * s.taps
        rank = len(self.low.facts.shape(self.node.inputs[0])) - 2
        kernel = "x".join(map(str, s.kernel[3 - rank :]))
        self.low.recorder.emit(
            self.node,
            body,
            tasks * splits,
            work=work_of(s.positions, flops / 60),
            flops=work_of(s.positions, flops),
            scratch=scratch,
            name=f"{form}_{kernel}_{s.channels}x{s.maps}",
        )

    def add_up(self, found: Tensor, parts: Tensor, splits: int) -> None:
        """Add the sums of the splits, in order."""
        if splits > 1:
            emit_written(
                self.low.recorder,
                self.node,
                f"for (int64_t i = first; i < last; i++) {{ float sum = parts[i];\n"
                f"for (int64_t j = 1; j < {splits}; j++) sum += parts[j * count + i];\n"
                "to[i] = sum; }",
                reads={"parts": parts},
                writes={"to": found},
                sizes={"count": found.size},
                items=found.size,
                each=splits,
                name="add_parts",
            )
        self.low.forms[self.node.outputs[0]] = found


def _tile_function(
    name: str, channels: int, blocks: int, taps: int, channel: str, pixel: str
) -> str:
    """Return a C function that adds positions of one tap to a tile of sums.

    ``x`` is the first channel at the first position, ``g`` the first block of maps there. There are
    ``rows`` times ``count`` positions. Sums are ``[channels][taps][blocks * VL]``, of which one tap's
    are added to.
    """
    pairs = [(j, b) for j in range(channels) for b in range(blocks)]
    lines = [
        f"INLINE void {name}(const float *x, int64_t channel, int64_t step, int64_t x_row, "
        "const float *g, int64_t plane, int64_t g_row, int64_t rows, int64_t count, float *sums) {",
        "(void)channel; (void)plane; (void)step;",
        *(f"vf a{j}_{b} = v_load(sums + {(j * taps * blocks + b)} * VL);" for j, b in pairs),
        "for (int64_t r = 0; r < rows; r++) {",
        "const float *p = x + r * x_row, *w = g + r * g_row;",
        f"for (int64_t i = 0; i < count; i++, p += {pixel}, w += VL) {{",
        *(f"vf w{b} = v_load(w + {b} * plane);" for b in range(blocks)),
    ]
    for j in range(channels):
        terms = " ".join(f"a{j}_{b} = v_fma(v, w{b}, a{j}_{b});" for b in range(blocks))
        lines.append(f"{{ vf v = v_set1(p[{j} * {channel}]); {terms} }}")
    lines += [
        "} }",
        *(f"v_store(sums + {(j * taps * blocks + b)} * VL, a{j}_{b});" for j, b in pairs),
        "}\n",
    ]
    return "\n".join(lines)


class _Tiles(_Form):
    """Channels times blocks of maps."""

    def emit(self) -> None:
        """Append the kernels."""
        s, level = self.sizes, self.low.facts.level
        lanes = level.lanes
        channels, maps = s.channels // s.groups, s.maps // s.groups
        blocked = self.x.channel == 1
        tile = (8 if level.registers == 32 else 4) if blocked else channels
        most = 3 if level.registers == 32 else 2
        blocks = -(-maps // lanes)
        columns = -(-blocks // most)  # of tiles, which have near as many blocks
        widths = sorted(
            {blocks * (i + 1) // columns - blocks * i // columns for i in range(columns)}
        )
        # Channels of a task: more where few taps use a loaded gradient.
        each = tile * -(-_PRODUCTS // (tile * most * s.taps))
        each = min(max(each, lanes if blocked else 0), -(-channels // tile) * tile)
        if blocked:  # in whole blocks, or one
            each = min(-(-each // lanes) * lanes, -(-channels // lanes) * lanes)
        pieces = -(-channels // each)
        # Columns of a task: they read the same channels.
        room = each * s.taps * widths[-1] * lanes * 4
        shares = -(-columns // max(1, min(columns, _SUMS // room)))
        tasks = s.groups * shares * pieces
        splits = self.splits(tasks)
        found, parts = self.target(splits)
        body = Body()
        result = body.pointer(parts, written=True)
        step, channel = (f"{s.strides[2]} * VL", "1") if blocked else ("step", "channel")
        for width in widths:
            body.helper(_tile_function(f"KERNEL_{width}", tile, width, s.taps, channel, step))
        n = body.size
        x, g = self.x, self.g
        line = channels * s.taps
        whole = s.groups * maps * line
        body.shared(partial(turn_function, lanes=lanes), "KERNEL_turn")
        body.add(
            f"const int64_t share = q % {shares}, piece = q / {shares} % {pieces};",
            f"const int64_t group = q / {shares * pieces} % {s.groups}, part = q / {tasks};",
            f"const int64_t first = {columns} * share / {shares}, last = {columns} * (share + 1) / {shares};",
            f"const int64_t k0 = piece * {each}, k1 = hg_min(k0 + {each}, {channels});",
            f"const float *x0 = {body.pointer(x.tensor)}, *g0 = {body.pointer(g.tensor)};",
            f"g0 += group * {blocks} * {n(g.block)};",
            f"memset(thread->scratch, 0, (last - first) * {room});",
        )
        place = "k0"
        if blocked:
            body.add(f"x0 += (group * {channels} + k0) / VL * {n(x.block)};")
            place = f"k / VL * {n(x.block)} + k % VL"
        self.open(body, splits)
        column = (
            f"const int64_t b0 = {blocks} * column / {columns}, "
            f"width = {blocks} * (column + 1) / {columns} - b0;",
            f"float *sums = (float *)thread->scratch + (column - first) * {room // 4};",
        )
        (kd, kh, kw), (sd, sh, sw) = s.kernel, s.strides
        body.add(
            "for (int64_t column = first; column < last; column++) {",
            *column,
            f"for (int64_t k = 0; k < k1 - k0; k += {tile})",
            f"for (int64_t t0 = 0; t0 < {kd}; t0++) {{",
            f"const int64_t slice = deep * {sd} + t0 * {s.dilations[0]} - {s.before[0]};",
            f"if (slice < 0 || slice >= {n(s.size[0])}) continue;",
            f"for (int64_t t1 = 0; t1 < {kh}; t1++) {{",
        )
        self.inside(body, 1, "t1", "y0", "y1", "top bottom")
        body.add("if (top >= bottom) continue;", f"for (int64_t t2 = 0; t2 < {kw}; t2++) {{")
        self.inside(body, 2, "t2", "c0", "c1", "from to")
        body.add(
            "if (from >= to) continue;",
            f"const float *p = x0 + image * {n(x.image)} + {place if blocked else '0'}"
            f" + (slice * {n(s.size[1])} + top * {sh} + shift1) * {n(x.row)}"
            f" + (from * {sw} + shift2) * {n(x.pixel)};",
            f"const float *w = g0 + image * {n(g.image)} + b0 * {n(g.block)}"
            f" + (deep * {n(s.count[1])} + top) * {n(g.row)} + from * VL;",
            f"float *at = sums + (k * {s.taps} + (t0 * {kh} + t1) * {kw} + t2) * width * VL;",
        )
        for width in widths:
            name = f"KERNEL_{width}"
            call = (
                f"{name}(p, {n(x.channel)}, {sw}, {n(sh * x.row)}, w, {n(g.block)}, "
                f"{n(g.row)}, bottom - top, to - from, at);"
            )
            body.add(f"if (width == {width}) {call}")
        body.add(
            "} } } } }",
            "for (int64_t column = first; column < last; column++) {",
            *column,
            f"float *out = {result} + part * {whole} + (group * {maps} + b0 * VL) * {line} + k0 * {s.taps};",
            f"const int64_t lines = (k1 - k0) * {s.taps};",
            f"for (int64_t m = 0; m < hg_min(width * VL, {maps} - b0 * VL); m += VL)",
            "for (int64_t i = 0; i < lines; i += VL) {",
            f"const float *from = sums + i * width * VL + m; float *to = out + m * {line} + i;",
            f"const int64_t rows = hg_min(VL, lines - i), count = hg_min(VL, {maps} - b0 * VL - m);",
            f"if (rows == VL) KERNEL_turn(from, width * VL, VL, count, to, {line});",
            f"else for (int64_t j = 0; j < count; j++) for (int64_t r = 0; r < rows; r++) "
            f"to[j * {line} + r] = from[r * width * VL + j];",
            "} }",
        )
        scratch = room * -(-columns // shares)
        self.emit_kernel(body, tasks, splits, scratch, "weight_gradient")
        self.add_up(found, parts, splits)


class _Depthwise(_Form):
    """Each channel with itself: lanes are channels, and the taps of a row are summed together."""

    def emit(self) -> None:
        """Append the kernels."""
        s, lanes = self.sizes, self.low.facts.level.lanes
        blocks = -(-s.channels // lanes)
        splits = self.splits(blocks)
        found, parts = self.target(splits)
        body = Body()
        result = body.pointer(parts, written=True)
        n = body.size
        x, g = self.x, self.g
        (kd, kh, kw), (sd, sh, sw) = s.kernel, s.strides
        dw, left = s.dilations[2], s.before[2]
        body.add(
            f"const int64_t block = q % {blocks}, part = q / {blocks};",
            f"const float *x0 = {body.pointer(x.tensor)} + block * {n(x.block)};",
            f"const float *g0 = {body.pointer(g.tensor)} + block * {n(g.block)};",
            "float *sums = (float *)thread->scratch;",
            f"memset(sums, 0, {s.taps} * VL * 4);",
        )
        self.open(body, splits)
        body.add(
            f"for (int64_t t0 = 0; t0 < {kd}; t0++) {{",
            f"const int64_t slice = deep * {sd} + t0 * {s.dilations[0]} - {s.before[0]};",
            f"if (slice < 0 || slice >= {n(s.size[0])}) continue;",
            f"for (int64_t t1 = 0; t1 < {kh}; t1++) {{",
        )
        self.inside(body, 1, "t1", "y0", "y1", "top bottom")
        body.add("for (int64_t y = top; y < bottom; y++) {")
        body.add(
            f"const float *p = x0 + image * {n(x.image)}"
            f" + (slice * {n(s.size[1])} + y * {sh} + shift1) * {n(x.row)};",
            f"const float *w = g0 + image * {n(g.image)} + (deep * {n(s.count[1])} + y) * {n(g.row)};",
            f"for (int64_t t2 = 0; t2 < {kw}; t2++) {{",
        )
        self.inside(body, 2, "t2", "c0", "c1", "from to")
        at = f"sums + ((t0 * {kh} + t1) * {kw} + t2) * VL"
        step = f"{sw} * VL"
        body.add(
            f"const float *r = p + (t2 * {dw} - {left}) * VL;",
            f"vf a0 = v_load({at}), a1 = {{0}}, a2 = {{0}}, a3 = {{0}};",
            "int64_t c = from;",
            "for (; c + 4 <= to; c += 4) {",
            *(
                f"a{i} = v_fma(v_load(r + (c + {i}) * {step}), v_load(w + (c + {i}) * VL), a{i});"
                for i in range(4)
            ),
            "}",
            f"for (; c < to; c++) a0 = v_fma(v_load(r + c * {step}), v_load(w + c * VL), a0);",
            f"v_store({at}, (a0 + a1) + (a2 + a3));",
            "} } } } }",
            f"float *out = {result} + part * {s.channels * s.taps};",
            f"for (int64_t k = 0; k < hg_min(VL, {s.channels} - block * VL); k++)",
            f"for (int64_t tap = 0; tap < {s.taps}; tap++)",
            f"out[(block * VL + k) * {s.taps} + tap] = sums[tap * VL + k];",
        )
        self.emit_kernel(body, blocks, splits, s.taps * lanes * 4, "depthwise_weight_gradient")
        self.add_up(found, parts, splits)
