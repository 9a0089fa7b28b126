"""The sizes of a convolution that Winograd's algorithm may compute, and of its tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hagane.native.rules.convolution.filtering import Axis, axis, sizes_of
from hagane.native.tiles.contraction import Pool
from hagane.symbolic import Dim, ceildiv, number_of, symbols_of

# Work of a machine of this class in a nanosecond, for choosing: operations of one thread, bytes
# of weights from memory for all threads, bytes of a transform for one.
_FLOPS, _WEIGHT_BYTES, _TRANSFORM_BYTES = 105.0, 18.0, 15.0
# The same operations and bytes of one with matrix tiles.
_WITH_TILES = 180.0, 12.0


# So many points are as many as are transformed at once.
_MOST_POINTS = 36
# Rows and columns that an image of open sizes is taken to have at first.
_LIKELY_SIDE = 224
# Images that share the weights which a run transforms, where only the run knows their number.
_LIKELY_IMAGES = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a convolution of stride one, without dilation, and of its tiles.

    Attributes:
        images: How many images.
        channels: Of an image.
        out_channels: Of a result.
        out_height: Rows of a result.
        out_width: Columns of a result.
        kernel: Rows and columns of the filter.
    """

    images: Dim
    channels: int
    out_channels: int
    out_height: Dim
    out_width: Dim
    kernel: tuple[int, int]

    def name(self, step: str) -> str:
        """Return the name of a kernel: ``winograd_input_3x3_56x56x64``."""
        kernel = "x".join(map(str, self.kernel))
        sizes = (self.out_height, self.out_width, self.out_channels)
        result = "x".join(str(size) if isinstance(size, int) else "n" for size in sizes)
        return f"winograd_{step}_{kernel}_{result}"

    @property
    def is_open(self) -> bool:
        """Whether only a run knows rows or columns."""
        return not (isinstance(self.out_height, int) and isinstance(self.out_width, int))

    @property
    def likely(self) -> Shape:
        """The sizes that choices are made for: one image, of a model that takes usual ones."""
        images = self.images if isinstance(self.images, int) else 1
        height, width = (_likely(size) for size in (self.out_height, self.out_width))
        return replace(self, images=images, out_height=height, out_width=width)

    def axes(self, size: int) -> tuple[Axis, Axis]:
        """Return the transforms of rows and of columns, for ``size`` pixels where there are taps."""
        rows, columns = (axis(size if taps > 1 else 1, taps) for taps in self.kernel)
        return rows, columns

    def tiles(self, size: int) -> tuple[Dim, Dim]:
        """Return rows and columns of tiles."""
        rows, columns = self.axes(size)
        return ceildiv(self.out_height, rows.size), ceildiv(self.out_width, columns.size)

    def points(self, size: int) -> int:
        """Return how many points a tile has."""
        rows, columns = self.axes(size)
        return rows.side * columns.side

    def pools(self, size: int, pool: Pool) -> bool:
        """Whether tiles are made of whole windows."""
        rows, columns = self.axes(size)
        whole = rows.size % pool.rows == 0 and columns.size % pool.columns == 0
        return whole and not self.is_open and self.out_width != 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that tiles may have."""
        taps = {taps for taps in self.kernel if taps > 1}
        if len(taps) != 1:
            return ()
        return tuple(n for n in sizes_of(*taps) if self.points(n) <= _MOST_POINTS)


def tile_size(
    shape: Shape,
    threads: int,
    direct_speed: float = 1.0,
    in_tiles: float | None = None,
    *,
    packs: bool = False,
) -> int:
    """Return 4 or 2 where that many pixels at once are estimated to be fastest, else 0.

    Open sizes are taken for likely ones. The direct form does ``direct_speed`` times the arithmetic in the same time. In matrix tiles it
    takes ``in_tiles`` nanoseconds of a processor that has them. With ``packs``, each run transforms
    the weights, which several images share.
    """
    pairs = shape.channels * shape.out_channels
    sharing = 1 if isinstance(shape.images, int) else _LIKELY_IMAGES
    shape = shape.likely
    images, out_height, out_width = map(int, (shape.images, shape.out_height, shape.out_width))
    speed, memory = (_FLOPS, _WEIGHT_BYTES) if in_tiles is None else _WITH_TILES
    if not shape.sizes or shape.channels < 16 or shape.out_channels < 16:
        return 0

    taps = shape.kernel[0] * shape.kernel[1]

    def estimate(size: int) -> float:
        rows, columns = map(int, shape.tiles(size))
        pixels = images * rows * columns
        points = shape.points(size)
        multiply = 2.0 * points * pairs * pixels / (speed * threads)
        moved = 4.0 * points * pixels * (shape.channels + shape.out_channels)
        load = 4.0 * points * pairs / memory
        moved += 4.0 * (points + taps) * pairs / sharing if packs else 0.0
        return max(multiply, load) + moved / (_TRANSFORM_BYTES * threads) + 4000.0

    pixels = images * out_height * out_width
    direct = max(
        2.0 * taps * pairs * pixels / (_FLOPS * threads), 4.0 * taps * pairs / _WEIGHT_BYTES
    )
    direct /= direct_speed
    if in_tiles is not None:
        direct = in_tiles
    best = min(shape.sizes, key=estimate)
    return 0 if estimate(best) > 0.9 * direct else best


def _likely(size: Dim) -> int:
    """Return the number that a size may well have."""
    names = dict.fromkeys(symbols_of(size), _LIKELY_SIDE)
    return max(1, number_of(size, names))
