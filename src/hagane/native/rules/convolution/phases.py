"""Strided transposed convolution: one small convolution for each place within a stride.

Output pixels whose coordinates have the same rest by the stride read the same taps of the filter, and
neighbours among them read neighbours of the image: no zeros are put between its pixels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.lowering.epilogue import follow
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.direct import Source, emit_direct
from hagane.native.rules.convolution.images import with_border
from hagane.native.rules.convolution.window import Window, covers
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, maximum


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
