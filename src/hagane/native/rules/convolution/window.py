"""The sizes of a convolution or pooling node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from hagane.native.kernels.tensor import Pads
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering

# What is computed with a convolution, and how many of them in a row at most.
_FUNCTIONS = ("Add", "Relu", "Clip", "LeakyRelu", "Gelu", "Sigmoid", "HardSwish", "Swish")
_CHAIN = 4


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution's sizes, in the two-dimensional form that a one-dimensional one takes too.

    ``follows`` is set where the image is what another convolution gives, perhaps with functions
    and sums of it, so that it may lie in whatever form this one wants.
    """

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
    follows: bool = False

    def name(self, form: str = "conv") -> str:
        """Return the name of a kernel of these sizes: ``conv_3x3_stride1_56x56x64``."""
        kernel = "x".join(map(str, self.kernel))
        stride = (
            self.strides[0] if len(set(self.strides)) == 1 else "x".join(map(str, self.strides))
        )
        more = f"_dilated{max(self.dilations)}" if max(self.dilations) > 1 else ""
        more += f"_groups{self.groups}" if self.groups > 1 and not is_depthwise(self) else ""
        result = f"{self.out_height}x{self.out_width}x{self.out_channels}"
        images = f"{self.images}x" if self.images > 1 else ""
        return f"{form}_{kernel}_stride{stride}{more}_{images}{result}"


def is_depthwise(window: Window) -> bool:
    """Whether each channel of an image is filtered by itself."""
    return 1 < window.groups == window.channels == window.out_channels


def window_of(low: Lowering, node: ir.Node, kernel: Sequence[int], out_channels: int) -> Window:
    """Return the sizes of a convolution or pooling node with numbers for all of them.

    Raises:
        NotNative: It has more than two spatial axes, or sizes known only at run time.
    """
    attributes = low.facts.attributes(node)
    shape, out = low.facts.fixed_shape(node.inputs[0]), low.facts.fixed_shape(node.outputs[0])
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
        _follows(node.inputs[0]),
    )


def _follows(value: ir.Value | None) -> bool:
    """Whether a value is what a convolution gives, which is not depthwise, or a function of it."""
    for _ in range(_CHAIN):
        node = None if value is None else value.producer()
        if node is None or node.op_type not in (*_FUNCTIONS, "Conv"):
            return False
        if node.op_type == "Conv":
            return node.attributes.get_int("group", 1) == 1
        value = node.inputs[0]
    return False


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


def convolution_key(low: Lowering, window: Window) -> str:
    """Return what the best form of a convolution depends on, but for the processor."""
    sizes = [window.images, window.channels, window.height, window.width, window.out_channels]
    shapes = (window.kernel, window.strides, window.dilations, window.pads)
    text = " ".join("x".join(map(str, item)) for item in (sizes, *shapes))
    return f"conv {text} g{window.groups} {low.facts.circumstances}"
