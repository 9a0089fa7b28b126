"""Products of float32 in matrix tiles: each number is cut into three of bfloat16.

Three bfloat16 hold the 24 bits of a float32. Of the nine products of the pieces of two numbers, the
three smallest are left out: they come to less than 2^-22 of the whole, to either side. The others
are summed in float32, as products of floats would be. So results are about as exact as those of float32,
and matrix tiles do six products of bfloat16 in less time than vectors do one of float32 (Henry, Tang
and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype for Higher-Precision
Computations", ARITH 2019).

Infinity has no pieces, and the largest float32 exceeds all of bfloat16: sums that are not finite are
taken again in float32. Pieces below 2^-126 are zero, so numbers below 2^-102 may lose their last bits.
"""

from __future__ import annotations

from functools import lru_cache

from hagane.native.tiles.contraction import Pixels
from hagane.native.tiles.matrix import cover

# Operations of one core's vectors in a nanosecond; and how long it takes to multiply 16 rows
# of 32 inputs with 32 channels of weights, to cut the weights of such a step, and to split a number.
_VECTORS = 172.0
_STEP, _CUT, _SPLIT = 82.0, 130.0, 0.27
_SPLIT_APART = 0.8
# Nanoseconds until the results of two tiles of rows are where they belong.
_FINISH = 75.0
# Bytes of weights that come from memory in a nanosecond, for all threads.
_WEIGHT_BYTES = 18.0
# Taps whose weights are cut at once, 6 KiB each on the stack.
MOST_TAPS = 49
# Tiles of rows that weights are cut for at once.
_ROWS_OF_PANEL = 32


def tiles_ns(tiles: int, k: int, n: int, threads: int) -> float:
    """Return how long matrix tiles are estimated to take.

    Args:
        tiles: Tiles of 16 rows.
        k: Inputs of a row.
        n: Outputs.
        threads: How many share the work.
    """
    cuts, groups = -(-tiles // _ROWS_OF_PANEL), -(-n // 32)
    taken = -(-k // 32) * groups * (tiles * _STEP + cuts * _CUT) + groups * tiles / 2 * _FINISH
    return max(taken / threads, 4.0 * k * n / _WEIGHT_BYTES)


def splits(
    threads: int,
    rows: int,
    inputs: int,
    product: tuple[int, int, int],
    read: int,
    *,
    near: bool = True,
) -> bool:
    """Whether a product is estimated to be faster in pieces.

    Args:
        threads: How many share the work.
        rows: Rows of the result.
        inputs: Inputs of a row.
        product: Tiles of 16 rows, inputs with the filling of their blocks, and outputs.
        read: How many numbers have to be split for a row: a convolution reads them again for each tap
            of the filter.
        near: Whether the producer of the numbers splits them, or the task that reads them; a kernel
            between the two brings them from one thread to another.
    """
    tiles, k, n = product
    vectors = 2.0 * rows * inputs * (-(-n // 16) * 16) / (_VECTORS * threads)
    vectors = max(vectors, 4.0 * inputs * n / _WEIGHT_BYTES)
    split = rows * read * (_SPLIT / threads if near or threads == 1 else _SPLIT_APART)
    return tiles_ns(tiles, k, n, threads) + split < 0.95 * vectors


@lru_cache(maxsize=1024)
def tiles_of_image(height: int, width: int, strides: tuple[int, int], columns: int) -> int:
    """Return the tiles that hold an image of ``height`` × ``width`` results.

    ``columns`` is how many pixels of the input a row of it has, its border included.
    """
    vertical, horizontal = strides
    row = 0 if strides == (1, 1) and columns == width else width
    pixels = Pixels(
        lambda i: (i // width * vertical * columns + i % width * horizontal) * 16,
        lambda i: i * 16,
        None,
        height * width,
        row,
    )
    return len(cover(pixels).tiles)
