"""Arithmetic of sliding windows: paddings, output sizes, views of all windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, floordiv, minimum


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over the spatial axes, with every default filled in.

    Attributes:
        kernel: Size along each axis; open ones give the sizes of results alone.
        strides: Step along each axis.
        dilations: Distance between neighbouring taps along each axis.
        pads: Amounts at the beginnings, then at the ends, unless ``auto_pad`` decides.
        auto_pad: NOTSET, VALID, SAME_UPPER or SAME_LOWER.
        ceil_mode: Whether a last, partial window counts.
    """

    kernel: tuple[Any, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str
    ceil_mode: bool

    @classmethod
    def of(
        cls,
        kernel: Sequence[int],
        strides: Sequence[int] | None,
        dilations: Sequence[int] | None,
        pads: Sequence[int] | None,
        auto_pad: str = "NOTSET",
        ceil_mode: bool = False,
    ) -> Window:
        """Return a window from attributes, of which any but the kernel may be absent."""
        rank = len(kernel)
        return cls(
            tuple(int(k) for k in kernel),
            tuple(strides or (1,) * rank),
            tuple(dilations or (1,) * rank),
            tuple(pads or (0,) * (2 * rank)) if auto_pad == "NOTSET" else (0,) * (2 * rank),
            auto_pad,
            ceil_mode,
        )

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel)

    def extent(self, axis: int) -> Any:
        """Return the size of the dilated kernel."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def output(self, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the output sizes for input ``sizes``."""
        return tuple(self._output(axis, size) for axis, size in enumerate(sizes))

    def _output(self, axis: int, size: Dim) -> Dim:
        stride = self.strides[axis]
        if self.auto_pad.startswith("SAME"):
            return ceildiv(size, stride)
        padded = size + self.pads[axis] + self.pads[axis + self.rank]
        room = padded - self.extent(axis)
        if not self.ceil_mode:
            return floordiv(room, stride) + 1
        # A window has to start inside the input or its left padding; one that is at least as long
        # as its stride and the padding behind it always does.
        if self.extent(axis) >= stride + self.pads[axis + self.rank]:
            return ceildiv(room, stride) + 1
        return minimum(ceildiv(room, stride) + 1, ceildiv(size + self.pads[axis], stride))

    def amounts(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """Return the padding before and after each axis; negative amounts never occur."""
        result = []
        for axis, size in enumerate(sizes):
            if not self.auto_pad.startswith("SAME"):
                result.append((self.pads[axis], self.pads[axis + self.rank]))
                continue
            stride = self.strides[axis]
            count = -(-size // stride)
            total = max(0, (count - 1) * stride + self.extent(axis) - size)
            small, large = total // 2, total - total // 2
            result.append((small, large) if self.auto_pad == "SAME_UPPER" else (large, small))
        return result

    def view(self, padded: Array, output: Sequence[int]) -> Array:
        """Return all windows of ``padded`` as a view: (…, *output, *kernel)."""
        if 0 in output:  # a window may be longer than the axis on which none fits
            lead_shape = padded.shape[: padded.ndim - self.rank]
            return np.zeros((*lead_shape, *output, *self.kernel), padded.dtype)
        extents = tuple(self.extent(axis) for axis in range(self.rank))
        axes = tuple(range(padded.ndim - self.rank, padded.ndim))
        windows = sliding_window_view(padded, extents, axis=axes)
        lead = (slice(None),) * (padded.ndim - self.rank)
        steps = tuple(slice(None, None, stride) for stride in self.strides)
        taps = tuple(slice(None, None, dilation) for dilation in self.dilations)
        windows = windows[(*lead, *steps, *taps)]
        return windows[(*lead, *(slice(0, n) for n in output))]


def check_kernel_shape(ctx: InferContext, given: Sequence[int], found: Sequence[Dim]) -> None:
    """Fail unless the attribute ``kernel_shape`` is the spatial shape of the weight."""
    if len(given) != len(found):
        ctx.fail(
            f"expected {len(found)} numbers in kernel_shape for {len(found)} spatial axes, "
            f"got {list(given)}"
        )
    for axis, (one, other) in enumerate(zip(given, found, strict=True)):
        ctx.unify(one, other, f"expected kernel_shape to be that of the weight (axis {axis})")


def check_window(ctx: InferContext, window: Window, sizes: Sequence[Dim]) -> None:
    """Fail unless the window's attributes fit the number of axes and the sizes."""
    rank = len(sizes)
    for name, values, expected in (
        ("kernel_shape", window.kernel, rank),
        ("strides", window.strides, rank),
        ("dilations", window.dilations, rank),
        ("pads", window.pads, 2 * rank),
    ):
        if len(values) != expected:
            ctx.fail(
                f"expected {expected} numbers in {name} for {rank} spatial axes, got {list(values)}"
            )
    if any(s < 1 for s in window.strides) or any(d < 1 for d in window.dilations):
        ctx.fail(
            f"expected positive strides and dilations, got {list(window.strides)} and "
            f"{list(window.dilations)}"
        )
    if any(k < 1 for k in window.kernel):
        ctx.fail(f"expected a positive kernel size, got {list(window.kernel)}")
    for axis, size in enumerate(window.output(sizes)):
        if isinstance(size, int) and size < 0:
            ctx.fail(
                f"the kernel (extent {window.extent(axis)}) does not fit into spatial axis {axis} "
                f"of {ctx.inputs_text()} with pads {list(window.pads)}"
            )


def pad_spatial(x: Array, amounts: Sequence[tuple[int, int]], value: Any = 0) -> Array:
    """Return ``x`` padded on its last axes; negative amounts cut."""
    if not any(before or after for before, after in amounts):
        return x
    lead = [(0, 0)] * (x.ndim - len(amounts))
    added = [(max(0, before), max(0, after)) for before, after in amounts]
    cut: tuple[Any, ...] = tuple(
        slice(max(0, -before), size - max(0, -after))
        for (before, after), size in zip(amounts, x.shape[-len(amounts) :], strict=True)
    )
    return np.pad(x[(..., *cut)], lead + added, constant_values=value)
