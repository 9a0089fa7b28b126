"""Transposed convolution.

Of a stride, it is one small convolution for each place within the stride: output pixels whose coordinates
have the same rest by the stride read the same taps of the filter, and neighbours among them read
neighbours of the image. Otherwise it is a convolution of the image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.tensor import Blocked, Buffer, Kind, Tensor, blocked_floats, keep_border
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.convolution.choose import conv_pads, shape_of_winograd, winograd_size
from hagane.native.rules.convolution.direct import Source, emit_direct
from hagane.native.rules.convolution.images import bias_buffer, with_border
from hagane.native.rules.convolution.window import Window, covers, needed_pads
from hagane.native.rules.convolution.winograd import lower_winograd
from hagane.native.rules.varying import lower_varying
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, maximum

_LISTS = ("strides", "dilations", "pads", "output_padding")


def lower_conv_transpose(low: Lowering, node: ir.Node) -> None:
    """Lower a transposed convolution as one convolution, or one for each phase of its strides.

    Where the filter is as large as the stride, no two taps meet: a 1 × 1 convolution gives all of
    a pixel's taps as channels, which are then put in their places. Strides with open padding, or beyond the
    filter, put zeros between the pixels of the image.
    """
    x, weight = node.inputs[0], low.facts.constant(node.inputs[1])
    bias_value = node.inputs[2] if len(node.inputs) > 2 else None
    bias = low.facts.constant(bias_value) if bias_value is not None else None
    attributes = low.facts.attributes(node)
    if not all(isinstance(dim, int) for dim in low.facts.shape(node.inputs[1])):
        raise NotNative("a filter of open sizes")  # which loops compute
    if x is None or weight is None or (bias_value is not None and bias is None):
        given = [value for value in node.inputs[1:3] if value is not None]
        lower_varying(low, node, lower_conv_transpose, dict.fromkeys(given))
        return
    if not low.facts.is_float(x) or weight.ndim not in (3, 4) or attributes.get("group", 1) != 1:
        raise NotNative("a transposed convolution in groups, or of three axes")
    shape, out = _four(low.facts.shape(x)), _four(low.facts.shape(node.outputs[0]))
    if 0 in (*shape, *out):
        raise NotNative("an empty image")
    if not isinstance(shape[1], int) or not isinstance(out[1], int):
        raise NotNative("an open number of channels")
    rank = weight.ndim - 2
    weight = weight.reshape(*weight.shape[:2], *(1,) * (2 - rank), *weight.shape[2:])
    kernel = weight.shape[2:]
    lists = {name: list(attributes.get(name) or ()) for name in _LISTS}
    if rank == 1:
        lists["pads"] = [0, *lists["pads"][:1], 0, *lists["pads"][1:]] if lists["pads"] else []
        for name, other in (("strides", 1), ("dilations", 1), ("output_padding", 0)):
            lists[name] = [other, *lists[name]] if lists[name] else []
    attributes = {**attributes, **lists}
    strides = lists["strides"] or [1, 1]
    dilations = lists["dilations"] or [1, 1]
    begin = [
        _transposed_pad(
            attributes, shape[2 + i], out[2 + i], kernel[i], strides[i], dilations[i], i
        )
        for i in range(2)
    ]
    flipped = np.ascontiguousarray(weight[:, :, ::-1, ::-1].transpose(1, 0, 2, 3))
    whole = list(kernel) == strides and begin == [0, 0] and dilations == [1, 1]
    if whole and [a * b for a, b in zip(shape[2:], strides, strict=True)] == list(out[2:]):
        _lower_shuffled(low, node, x, weight, bias, strides)
        return
    if strides != [1, 1] and all(isinstance(pad, int) for pad in begin):
        window = Window(
            shape[0], len(weight), shape[2], shape[3], weight.shape[1], out[2], out[3],
            (kernel[0], kernel[1]), (strides[0], strides[1]), (dilations[0], dilations[1]),
            (0, 0, 0, 0), 1,
        )  # fmt: skip
        cut = [int(str(pad)) for pad in begin]
        if all_reached(window, cut):
            lower_phases(low, node, window, weight, bias, cut)
            return
    inner = [(shape[2 + i] - 1) * strides[i] + 1 for i in range(2)]
    before = [(kernel[i] - 1) * dilations[i] - begin[i] for i in range(2)]
    # (Where the padding is open it is no more than half of the filter's reach.)
    if any(isinstance(pad, int) and pad < 0 for pad in before):
        raise NotNative("more padding than the filter reaches")
    after = [
        maximum(0, out[2 + i] + (kernel[i] - 1) * dilations[i] - before[i] - inner[i])
        for i in range(2)
    ]
    window = Window(
        shape[0],
        len(weight),
        inner[0],
        inner[1],
        weight.shape[1],
        out[2],
        out[3],
        (kernel[0], kernel[1]),
        (1, 1),
        (dilations[0], dilations[1]),
        (before[0], before[1], after[0], after[1]),
        1,
    )
    lanes = low.facts.level.lanes
    stuffed_shape = (shape[0], shape[1], inner[0], inner[1])
    size = winograd_size(low, window)
    pads = conv_pads(low, window) if size else needed_pads(window)
    floats = blocked_floats(stuffed_shape, lanes, pads)
    buffer = Buffer(f"{x.name} spread", floats * 4, Kind.ARENA)
    stuffed = Blocked(buffer, stuffed_shape, lanes, pads)
    view, image = stuffed.view(), low.forms.blocked(x).view()
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
    keep_border(spread, stuffed.plane_stride)
    emit_copy(low.recorder, image, spread)
    epilogue = follow(low, node.outputs[0], residuals=False)
    target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
    start = -before[0] * stuffed.row_stride - before[1] * lanes
    if size:
        lower_winograd(
            low, node, shape_of_winograd(window), size, stuffed, start, flipped,
            bias_buffer(low, node, window, bias), epilogue, None, target,
        )  # fmt: skip
        return
    source = Source(
        view,
        start,
        lanes,
        stuffed.plane_stride,
        lanes,
        stuffed.row_stride,
        stuffed.blocks * stuffed.plane_stride,
    )
    emit_direct(low, node, window, flipped, bias, source, epilogue, None, target)
    low.forms[epilogue.value] = target


def _four(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape of an image; one of one axis has one row."""
    return tuple(shape) if len(shape) != 3 else (*shape[:2], 1, shape[2])


def _transposed_pad(
    attributes: dict[str, Any], size: Dim, out: Dim, kernel: int, stride: int, dilation: int, i: int
) -> Dim:
    mode = attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET" and not attributes.get("output_shape"):
        pads = attributes.get("pads")
        return int(pads[i]) if pads else 0
    if mode == "VALID" and not attributes.get("output_shape"):
        return 0
    extra = int((attributes.get("output_padding") or [0, 0])[i])
    # Negative where the output is longer than the filter's reach.
    total: Dim = (size - 1) * stride + (kernel - 1) * dilation + 1 + extra - out
    return total // 2 if mode == "SAME_UPPER" else total - total // 2


def _lower_shuffled(
    low: Lowering,
    node: ir.Node,
    x: ir.Value,
    weight: Array,
    bias: Array | None,
    strides: list[int],
) -> None:
    """Lower a transposed convolution whose filter is as large as its stride."""
    lanes = low.facts.level.lanes
    sh, sw = strides
    shape, channels = _four(low.facts.shape(x)), weight.shape[1]
    blocks = -(-channels // lanes)
    spread = np.zeros((sh, sw, blocks * lanes, len(weight), 1, 1), np.float32)
    spread[:, :, :channels, :, 0, 0] = weight.transpose(2, 3, 1, 0)
    wide = sh * sw * blocks * lanes
    row = np.zeros((sh * sw, blocks * lanes), np.float32)
    row[:, :channels] = 0 if bias is None else bias
    window = Window(
        shape[0],
        len(weight),
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
    image = low.forms.blocked(x)
    epilogue = follow(low, node.outputs[0], residuals=False)
    target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
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
        spread.reshape(wide, len(weight), 1, 1),
        row.reshape(-1),
        source,
        Epilogue(epilogue.value, None, epilogue.activation, epilogue.nodes),
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
    emit_copy(low.recorder, from_taps, to)
    low.forms[epilogue.value] = target


@dataclass(frozen=True, slots=True)
class Taps:
    """The part of a filter that output pixels of one rest read along an axis.

    Attributes:
        rest: The first such pixel; the next one is a stride further.
        taps: Places in the filter, in the order in which they read the image.
        first: Where the first tap reads the image for the first pixel.
        step: Pixels of the image between neighbouring taps.
    """

    rest: int
    taps: tuple[int, ...]
    first: int
    step: int

    @property
    def last(self) -> int:
        """Where the last tap reads the image for the first pixel."""
        return self.first + self.step * (len(self.taps) - 1)


def phases(kernel: int, stride: int, dilation: int, begin: int) -> list[Taps]:
    """Return the taps along an axis for each rest by the stride.

    Tap ``k`` of image pixel ``i`` is added to output pixel ``i × stride + k × dilation - begin``.
    """
    found = []
    for rest in range(stride):
        taps = [k for k in range(kernel) if (rest + begin - k * dilation) % stride == 0][::-1]
        first = (rest + begin - taps[0] * dilation) // stride if taps else 0
        found.append(Taps(rest, tuple(taps), first, dilation // math.gcd(dilation, stride)))
    return found


def _rests(window: Window, begin: Sequence[int]) -> list[list[Taps]]:
    return [
        phases(window.kernel[i], window.strides[i], window.dilations[i], begin[i]) for i in range(2)
    ]


def all_reached(window: Window, begin: Sequence[int]) -> bool:
    """Whether some tap reaches each pixel of the result."""
    if any(taps < stride for taps, stride in zip(window.kernel, window.strides, strict=True)):
        return False  # each tap reaches pixels of one rest
    return all(each.taps for axis in _rests(window, begin) for each in axis)


@dataclass(frozen=True)
class Spaced(Blocked):
    """Pixels of an image in blocks that are strides apart, from one on.

    Attributes:
        whole: The image.
        spaces: Rows and columns from one pixel to the next.
        start: Row and column of the first pixel.
    """

    whole: Blocked | None = None
    spaces: tuple[int, int] = (1, 1)
    start: tuple[int, int] = (0, 0)

    @property
    def row_stride(self) -> Dim:
        """Floats from one row to the next."""
        return self._of.row_stride * self.spaces[0]

    @property
    def plane_stride(self) -> Dim:
        """Floats from one block of channels to the next."""
        return self._of.plane_stride

    @property
    def step(self) -> int:
        """Floats from one pixel to the next."""
        return self.lanes * self.spaces[1]

    @property
    def origin(self) -> Dim:
        """Floats from the buffer's start to the first pixel."""
        row, column = self.start
        return self._of.origin + row * self._of.row_stride + column * self.lanes

    @property
    def _of(self) -> Blocked:
        assert self.whole is not None
        return self.whole

    def view(self) -> Tensor:
        """Return the pixels as a strided tensor ``(N, blocks, rows, columns, lanes)``."""
        plain = super().view()
        *outer, _, one = plain.strides
        return replace(plain, strides=(*outer, self.step, one))


def lower_phases(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    bias: Array | None,
    begin: Sequence[int],
) -> None:
    """Lower a transposed convolution by phases, each of which has taps.

    Args:
        low: Takes the kernels.
        node: It.
        window: Its sizes; strides and dilations are those of the operator.
        weight: (in, out, rows, columns).
        bias: One number a channel, or None.
        begin: Rows and columns of the result that are cut off at the start.
    """
    x = node.inputs[0]
    assert x is not None
    lanes = low.facts.level.lanes
    rests = _rests(window, begin)
    parts = list(itertools.product(*rests))
    epilogue = follow(low, node.outputs[0], residuals=False)
    sizes, out = (window.height, window.width), (window.out_height, window.out_width)
    counts = [
        [ceildiv(maximum(0, out[i] - each.rest), window.strides[i]) for each in rests[i]]
        for i in range(2)
    ]
    before = [max(0, *(-each.first for each in rests[i] if each.taps)) for i in range(2)]
    after = [
        maximum(0, *(
            count - 1 + each.last - (sizes[i] - 1)
            for count, each in zip(counts[i], rests[i], strict=True) if each.taps
        ))
        for i in range(2)
    ]  # fmt: skip
    pads = (before[0], before[1], after[0], after[1])
    image = low.forms.blocked(x)
    if not covers(image.pads, pads):
        image = with_border(low, x, image, pads)
    target = low.forms.new_blocked(epilogue.value, low.facts.shape(epilogue.value))
    for number, (rows, columns) in enumerate(parts):
        height, width = counts[0][rows.rest], counts[1][columns.rest]
        if 0 in (height, width):
            continue
        spaced = Spaced(
            target.buffer, (window.images, window.out_channels, height, width), lanes,
            whole=target, spaces=window.strides, start=(rows.rest, columns.rest),
        )  # fmt: skip
        own = np.ascontiguousarray(
            weight[:, :, list(rows.taps)][:, :, :, list(columns.taps)].transpose(1, 0, 2, 3)
        )
        source = Source(
            image.view(),
            rows.first * image.row_stride + columns.first * lanes,
            lanes,
            image.plane_stride,
            lanes,
            image.row_stride,
            image.blocks * image.plane_stride,
        )
        part = replace(
            window,
            out_height=height,
            out_width=width,
            kernel=(len(rows.taps), len(columns.taps)),
            strides=(1, 1),
            dilations=(rows.step, columns.step),
            pads=pads,
        )
        emit_direct(
            low, node, part, own, bias, source, epilogue, None, spaced, number=number
        )  # fmt: skip
    low.forms[epilogue.value] = target


RULES: dict[str, Rule] = {"ConvTranspose": lower_conv_transpose}
