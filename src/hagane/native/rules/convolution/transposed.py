"""Transposed convolution: a convolution of the image with zeros between its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.tensor import Blocked, Buffer, Kind, Tensor, blocked_floats, keep_border
from hagane.native.lowering.epilogue import Epilogue, follow
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.convolution.direct import Source, emit_direct
from hagane.native.rules.convolution.phases import all_reached, lower_phases
from hagane.native.rules.convolution.window import Window, needed_pads
from hagane.native.rules.varying import lower_varying
from hagane.ops.definition import Array
from hagane.symbolic import Dim, maximum

_LISTS = ("strides", "dilations", "pads", "output_padding")


def lower_conv_transpose(low: Lowering, node: ir.Node) -> None:
    """Lower a transposed convolution: a convolution of the image with zeros between its pixels.

    Where the filter is as large as the stride, no two taps meet: a 1 × 1 convolution gives all of
    a pixel's taps as channels, which are then put in their places.
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
    pads = needed_pads(window)
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


RULES: dict[str, Rule] = {"ConvTranspose": lower_conv_transpose}
