"""The sizes of a convolution or pooling node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from hagane.native.kernels.tensor import Pads
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.state import Lowering
from hagane.symbolic import Dim, lower_bound, maximum

# Operators computed with a convolution, and how many of them in a row at most.
_FUNCTIONS = ("Add", "Relu", "Clip", "LeakyRelu", "Gelu", "Sigmoid", "HardSwish", "Swish")
_CHAIN = 4


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution's sizes, in the two-dimensional form that a one-dimensional one takes too.

    ``follows`` is set where the image is the result of another convolution, perhaps with functions
    and sums of it, so that it may lie in the form that this one wants.
    """

    images: Dim
    channels: int
    height: Dim
    width: Dim
    out_channels: int
    out_height: Dim
    out_width: Dim
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: Pads
    groups: int
    follows: bool = False

    @property
    def is_open(self) -> bool:
        """Whether a size of an image is known only at run time; how many there are may be, too."""
        sizes = (self.height, self.width, self.out_height, self.out_width, *self.pads)
        return not all(isinstance(size, int) for size in sizes)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows and columns of an image and of a result, where all are numbers."""
        assert not self.is_open, self
        height, width = int(self.height), int(self.width)
        return height, width, int(self.out_height), int(self.out_width)

    @property
    def border(self) -> tuple[int, int, int, int]:
        """The padding, where all of it is numbers."""
        top, left, bottom, right = map(int, self.pads)
        return top, left, bottom, right

    @property
    def likely_images(self) -> int:
        """How many images choices between forms are made for."""
        return self.images if isinstance(self.images, int) else 1

    @property
    def elements(self) -> Dim:
        """Numbers of all results."""
        return self.images * self.out_channels * self.out_height * self.out_width

    def name(self, form: str = "conv") -> str:
        """Return the name of a kernel of these sizes: ``conv_3x3_stride1_56x56x64``."""
        kernel = "x".join(map(str, self.kernel))
        stride = (
            self.strides[0] if len(set(self.strides)) == 1 else "x".join(map(str, self.strides))
        )
        more = f"_dilated{max(self.dilations)}" if max(self.dilations) > 1 else ""
        more += f"_groups{self.groups}" if self.groups > 1 and not is_depthwise(self) else ""
        sizes = (self.out_height, self.out_width, self.out_channels)
        result = "x".join(str(size) if isinstance(size, int) else "n" for size in sizes)
        images = "" if self.images == 1 else f"{self.images}x"
        images = images if isinstance(self.images, int) else "nx"
        return f"{form}_{kernel}_stride{stride}{more}_{images}{result}"


def is_depthwise(window: Window) -> bool:
    """Whether each channel of an image is filtered by itself."""
    return 1 < window.groups == window.channels == window.out_channels


def window_of(low: Lowering, node: ir.Node, kernel: Sequence[int], out_channels: int) -> Window:
    """Return the sizes of a convolution or pooling node.

    Raises:
        NotNative: It has more than two spatial axes, or channels that only a run knows.
    """
    attributes = low.facts.attributes(node)
    shape, out = low.facts.shape(node.inputs[0]), low.facts.shape(node.outputs[0])
    if not isinstance(shape[1], int):
        raise NotNative(AT_RUN_TIME)
    rank = len(shape) - 2
    if rank not in (1, 2):
        raise NotNative(f"{rank} spatial axes")
    strides = list(attributes.get("strides") or [1] * rank)
    dilations = list(attributes.get("dilations") or [1] * rank)
    begin, end = pads_of(attributes, shape[2:], out[2:], kernel, strides, dilations)
    if rank == 1:
        kernel, strides, dilations = [1, *kernel], [1, *strides], [1, *dilations]
        begin, end = [0, *begin], [0, *end]
        shape, out = (*shape[:2], 1, shape[2]), (*out[:2], 1, out[2])
    if 0 in (*shape, *out):
        raise NotNative("an empty image")
    return Window(
        shape[0],
        int(shape[1]),
        shape[2],
        shape[3],
        out_channels,
        out[2],
        out[3],
        (int(kernel[0]), int(kernel[1])),
        (int(strides[0]), int(strides[1])),
        (int(dilations[0]), int(dilations[1])),
        (begin[0], begin[1], end[0], end[1]),
        int(attributes.get("group", 1)),
        _follows(node.inputs[0]),
    )


def _follows(value: ir.Value | None) -> bool:
    """Whether a value is the result of a convolution that is not depthwise, or a function of it."""
    for _ in range(_CHAIN):
        node = None if value is None else value.producer()
        if node is None or node.op_type not in (*_FUNCTIONS, "Conv"):
            return False
        if node.op_type == "Conv":
            return node.attributes.get_int("group", 1) == 1
        value = node.inputs[0]
    return False


def pads_of(
    attributes: Mapping[str, Any],
    size: Sequence[Dim],
    out: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> tuple[list[Dim], list[Dim]]:
    """Return the padding before and after each axis of ``size`` that gives ``out``."""
    rank = len(size)
    mode = attributes.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        given: list[Dim] = [0 for _ in range(2 * rank)]
        if mode == "NOTSET":
            given = list(attributes.get("pads") or given)
        return given[:rank], given[rank:]
    begin: list[Dim] = []
    end: list[Dim] = []
    for i in range(rank):
        reach = (out[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1
        total = maximum(0, reach - size[i])
        small, large = total // 2, total - total // 2
        begin.append(small if mode == "SAME_UPPER" else large)
        end.append(large if mode == "SAME_UPPER" else small)
    return begin, end


def needed_pads(window: Window) -> Pads:
    """Return the border that an image needs so that the filter never leaves its memory."""
    top, left, _, _ = window.pads
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    bottom = (window.out_height - 1) * sh + (kh - 1) * dh + 1 - top - window.height
    right = (window.out_width - 1) * sw + (kw - 1) * dw + 1 - left - window.width
    return (top, left, _at_most(bottom, window.pads[2]), _at_most(right, window.pads[3]))


def _at_most(needed: Dim, given: Dim) -> Dim:
    """Return a border that suffices: the needed one, or the given one where only a run knows."""
    found = maximum(0, needed)
    return found if isinstance(found, int) or not isinstance(given, int) else given


def covers(have: Pads, want: Pads) -> bool:
    """Whether a border is at least as wide as another, in any run."""
    least = [lower_bound(a - b) for a, b in zip(have, want, strict=True)]
    return all(bound is not None and bound >= 0 for bound in least)


def convolution_key(low: Lowering, window: Window) -> str:
    """Return all that a convolution's best form depends on, but for the processor."""
    sizes = [window.images, window.channels, window.height, window.width, window.out_channels]
    shapes = (window.kernel, window.strides, window.dilations, window.pads)
    text = " ".join("x".join(map(str, item)) for item in (sizes, *shapes))
    return f"conv {text} g{window.groups} {low.facts.circumstances}"
