"""Where a lowered value lies: a buffer, and how its elements are laid out there."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hagane.native.kernels.packing import Packing
from hagane.symbolic import Dim, Expr, ceildiv, lower_bound, minimum, product


class Kind(enum.Enum):
    """The owner of a buffer."""

    ARENA = "arena"  # planned over the run, shared with other values
    BORDERED = "bordered"  # the same, but its border must hold one byte whenever it is read
    WEIGHT = "weight"
    INPUT = "input"
    OUTPUT = "output"
    MOVING = "moving"  # lies elsewhere in each iteration of a loop, perhaps in an input


@dataclass(frozen=True, slots=True)
class Border:
    """The bytes around an image's pixels, which all hold one number; sizes in bytes.

    Attributes:
        start: From the buffer's start to the first plane.
        planes: How many planes there are.
        step: From one plane to the next.
        plane: Of one plane.
        first: From a plane's start to its first pixel.
        axes: Loops over the runs of pixels in a plane: count, and from one to the next.
        run: Of pixels that follow one another.
        fill: The number.
    """

    start: Dim
    planes: Dim
    step: Dim
    plane: Dim
    first: Dim
    axes: tuple[tuple[Dim, Dim], ...]
    run: Dim
    fill: int

    @property
    def runs(self) -> Dim:
        """How many runs of pixels all planes have."""
        return self.planes * product([count for count, _ in self.axes])

    @property
    def bytes(self) -> Dim:
        """How many bytes of all planes are no pixels."""
        return self.planes * self.plane - self.runs * self.run

    def dims(self) -> Iterator[Dim]:
        """Yield the sizes in it."""
        yield from (self.start, self.planes, self.step, self.plane, self.first, self.run)
        yield from itertools.chain.from_iterable(self.axes)

    def numbers(self, number: Callable[[Dim], int]) -> Border:
        """Return the same with numbers for all sizes."""
        axes = tuple((number(count), number(step)) for count, step in self.axes)
        return Border(
            number(self.start),
            number(self.planes),
            number(self.step),
            number(self.plane),
            number(self.first),
            axes,
            number(self.run),
            self.fill,
        )


@dataclass(eq=False)
class Buffer:
    """A piece of memory.

    Attributes:
        name: The value that it holds.
        bytes: Its size.
        kind: Its owner.
        packing: The recipe of a weight buffer's content.
        border: For bordered buffers, the bytes that no kernel writes. Values of equal borders may
            follow one another in a place without clearing it.
        owner: The object to whose memory the content points; it must live as long.
    """

    name: str
    bytes: Dim
    kind: Kind
    packing: Packing | None = None
    border: tuple[Border, ...] = ()
    owner: object = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """Elements in row-major order or strided; strides and offset count elements."""

    buffer: Buffer
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements follow one another without gaps."""
        expected: Dim = 1
        for dim, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if dim == 1:
                continue
            if stride != expected:
                return False
            expected = expected * dim
        return True

    def is_at(self, other: Tensor) -> bool:
        """Whether it lies where another one does, both without gaps."""
        there = self.buffer is other.buffer and self.offset == other.offset
        return there and self.contiguous and other.contiguous

    def reshaped(self, shape: Sequence[Dim]) -> Tensor:
        """Return the same contiguous elements under another shape."""
        assert self.contiguous
        return replace(self, shape=tuple(shape), strides=row_major(shape))

    def viewed(self, shape: Sequence[Dim]) -> Tensor | None:
        """Return the same elements under another shape where they lie, or None if they cannot.

        Axes that belong together, such as the two that one is split into, need a common distance.
        """
        if self.contiguous:
            return self.reshaped(shape)
        old = [pair for pair in zip(self.shape, self.strides, strict=True) if pair[0] != 1]
        new = [dim for dim in shape if dim != 1]
        steps: list[Dim] = []
        while new:
            made, have = [new.pop(0)], [old.pop(0)] if old else []
            while have and product(made) != product([dim for dim, _ in have]):
                left, right = product(made), product([dim for dim, _ in have])
                if not (isinstance(left, int) and isinstance(right, int)) or 0 in (left, right):
                    return None
                if left < right and new:
                    made.append(new.pop(0))
                elif left > right and old:
                    have.append(old.pop(0))
                else:
                    return None
            if not have or any(a[1] != b[0] * b[1] for a, b in itertools.pairwise(have)):
                return None
            steps += [have[-1][1] * stride for stride in row_major(made)]
        if old:
            return None
        strides = [0 if dim == 1 else steps.pop(0) for dim in shape]
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def broadcast(self, shape: Sequence[Dim], *, equal: bool = False) -> Tensor:
        """Return a view of ``shape`` in which axes of length one repeat.

        Whether an axis of a length that is not known has length one, the run tells.

        Args:
            shape: Of the view.
            equal: Take lengths that are not known for those of ``shape``.
        """
        lead = len(shape) - len(self.shape)
        strides: list[Dim] = [0] * lead
        for dim, stride, wanted in zip(self.shape, self.strides, shape[lead:], strict=True):
            if isinstance(dim, Expr) and dim != wanted and not equal:
                # (The least of the two is 1 where the axis repeats, and 0 where nothing is read.)
                strides.append(stride * (minimum(dim, 2) - 1))
            else:
                strides.append(0 if dim == 1 and wanted != 1 else stride)
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def unequal(self, shape: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
        """Return the lengths of axes that may be one, or those of ``shape`` beside them."""
        pairs = zip(self.shape, shape[len(shape) - len(self.shape) :], strict=True)
        return [(dim, wanted) for dim, wanted in pairs if isinstance(dim, Expr) and dim != wanted]

    def permuted(self, order: Sequence[int]) -> Tensor:
        """Return a view with its axes in another order."""
        return replace(
            self,
            shape=tuple(self.shape[i] for i in order),
            strides=tuple(self.strides[i] for i in order),
        )


def row_major(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the strides of contiguous elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(shape):
        strides.append(step)
        step = step * dim
    return tuple(reversed(strides))


def keep_border(
    pixels: Tensor, plane: Dim, *, start: Dim = 0, step: Dim = 0, fill: int = 0
) -> None:
    """Note that the memory around some pixels must hold one number whenever it is read.

    No kernel may write to it. A buffer whose planes are all pixels stays as it is.

    Args:
        pixels: Strides falling; changes its buffer.
        plane: Elements of one plane.
        start: Elements from the buffer's start to the first plane.
        step: Elements from one plane to the next, if other parts lie between.
        fill: The byte that the border is made of.
    """
    if plane == 0:
        return
    item = pixels.dtype.itemsize
    planes: Dim = 1
    run: Dim = 1
    axes: list[tuple[Dim, Dim]] = []
    for count, stride in reversed(list(zip(pixels.shape, pixels.strides, strict=True))):
        if count != 1 and (stride == planes * (step or plane) or _at_least(stride, plane)):
            assert planes == 0 or stride == planes * (step or plane), pixels
            planes = planes * count
        elif count != 1 and stride == run and not axes:
            run = run * count
        elif count != 1:
            axes.insert(0, (count, stride * item))
    border = Border(
        start=start * item,
        planes=planes,
        step=(step or plane) * item,
        plane=plane * item,
        first=(pixels.offset - start) * item,
        axes=tuple(axes),
        run=run * item,
        fill=fill,
    )
    if border.bytes:
        pixels.buffer.kind = Kind.BORDERED
        pixels.buffer.border += (border,)


def _at_least(left: Dim, right: Dim) -> bool:
    """Whether one size is at least another in every run."""
    lowest = lower_bound(left - right)
    return lowest is not None and lowest >= 0


Pads = tuple[Dim, Dim, Dim, Dim]  # top, left, bottom, right


@dataclass(frozen=True, slots=True)
class Blocked:
    """Images in blocks of channels, ``(N, C / lanes, rows, columns, lanes)``, in a zero border.

    Channels past the last one are zero. ``shape`` is ``(N, C, H, W)`` or ``(N, C, W)``, with a
    number for C.
    """

    buffer: Buffer
    shape: tuple[Dim, ...]
    lanes: int
    pads: Pads = (0, 0, 0, 0)

    dtype = np.dtype(np.float32)

    @property
    def channels(self) -> int:
        """Channels."""
        channels = self.shape[1]
        assert isinstance(channels, int), self
        return channels

    @property
    def blocks(self) -> int:
        """Blocks of channels."""
        return -(-self.channels // self.lanes)

    @property
    def rows(self) -> Dim:
        """Rows of one plane, the border left out."""
        return self.shape[2] if len(self.shape) == 4 else 1

    @property
    def columns(self) -> Dim:
        """Columns of one plane, the border left out."""
        return self.shape[-1]

    @property
    def row_stride(self) -> Dim:
        """Floats from one row to the next."""
        return (self.columns + self.pads[1] + self.pads[3]) * self.lanes

    @property
    def plane_stride(self) -> Dim:
        """Floats from one block of channels to the next."""
        return (self.rows + self.pads[0] + self.pads[2]) * self.row_stride

    @property
    def step(self) -> int:
        """Floats from one pixel to the next."""
        return self.lanes

    @property
    def origin(self) -> Dim:
        """Floats from the buffer's start to the first pixel inside the border."""
        return self.pads[0] * self.row_stride + self.pads[1] * self.lanes

    @property
    def floats(self) -> Dim:
        """Floats of the whole buffer, border included."""
        return self.shape[0] * self.blocks * self.plane_stride

    def view(self) -> Tensor:
        """Return the pixels as a strided tensor ``(N, blocks, rows, columns, lanes)``."""
        return Tensor(
            self.buffer,
            self.dtype,
            (self.shape[0], self.blocks, self.rows, self.columns, self.lanes),
            (self.blocks * self.plane_stride, self.plane_stride, self.row_stride, self.lanes, 1),
            self.origin,
        )

    def word_view(self) -> Tensor:
        """Return the memory from the first pixel inside the border."""
        return self.view()


def blocked_floats(shape: Sequence[Dim], lanes: int, pads: Pads) -> Dim:
    """Return the floats that an image of ``shape`` takes in blocks with a border."""
    rows = shape[2] if len(shape) == 4 else 1
    height, width = rows + pads[0] + pads[2], shape[-1] + pads[1] + pads[3]
    return shape[0] * ceildiv(shape[1], lanes) * height * width * lanes
