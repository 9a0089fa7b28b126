"""Sliding windows over any number of axes as arrays, and arrays of windows put back."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hagane.nn.functions.images.windows import as_tuple, get_conv_outsize, get_deconv_outsize

__all__ = [
    "as_tuple",
    "col2im_nd",
    "col2im_nd_cpu",
    "get_conv_outsize",
    "get_deconv_outsize",
    "im2col_nd",
    "im2col_nd_cpu",
]


def _taps(
    kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[Any, Any]]:
    """Yield the index of each tap in windows, and that of its elements in padded images."""
    for tap in np.ndindex(*kernel):
        starts = [i * d for i, d in zip(tap, dilations, strict=True)]
        places = tuple(
            slice(start, start + s * n, s)
            for start, s, n in zip(starts, strides, counts, strict=True)
        )
        yield (slice(None), slice(None), *tap), (slice(None), slice(None), *places)


def im2col_nd_cpu(
    img: Any, ksize: Sequence[int], stride: Sequence[int], pad: Sequence[int], pval: Any = 0,
    cover_all: bool = False, dilate: Any = 1, counts: Sequence[int | None] | None = None,
) -> Any:  # fmt: skip
    """Return the windows of images: (batch, channels, *ksize, *counts).

    Args:
        img: (batch, channels, *sizes).
        ksize: Sizes of a window.
        stride: Distance between neighbouring windows.
        pad: Widths of the margins.
        pval: Their content.
        cover_all: Whether every element lies in a window, the last reaching over the end.
        dilate: Distance between neighbouring elements of a window.
        counts: How many windows there are; as many as fit where it is None.

    Raises:
        WrongLength: Not each axis has its number.
    """
    rank = img.ndim - 2
    ksize, stride, pad = (as_tuple(each, rank) for each in (ksize, stride, pad))
    dilations = as_tuple(dilate, rank)
    found = [
        get_conv_outsize(size, k, s, p, cover_all, d)
        for size, k, s, p, d in zip(img.shape[2:], ksize, stride, pad, dilations, strict=True)
    ]
    for axis, count in enumerate(counts or ()):
        found[axis] = found[axis] if count is None else count
    margins = [(0, 0), (0, 0), *((p, p + s - 1) for p, s in zip(pad, stride, strict=True))]
    image = np.pad(img, margins, mode="constant", constant_values=pval)
    col = np.empty((*img.shape[:2], *ksize, *found), img.dtype)
    for tap, places in _taps(ksize, stride, dilations, found):
        col[tap] = image[places]
    return col


def col2im_nd_cpu(
    col: Any, stride: Sequence[int], pad: Sequence[int], size: Sequence[int], dilate: Any = 1
) -> Any:
    """Return images, (batch, channels, *size), of windows, which add up where they meet.

    Args:
        col: (batch, channels, *ksize, *counts).
        stride: Distance between neighbouring windows.
        pad: Widths of the margins, which are cut off.
        size: Sizes of the images.
        dilate: Distance between neighbouring elements of a window.
    """
    rank = col.ndim // 2 - 1
    stride, pad, size = (as_tuple(each, rank) for each in (stride, pad, size))
    kernel, counts = col.shape[2 : 2 + rank], col.shape[2 + rank :]
    dilations = as_tuple(dilate, rank)
    reach = [
        max(n + 2 * p, (m - 1) * s + (k - 1) * d + 1)
        for n, p, m, s, k, d in zip(size, pad, counts, stride, kernel, dilations, strict=True)
    ]
    image = np.zeros((*col.shape[:2], *reach), col.dtype)
    for tap, places in _taps(kernel, stride, dilations, counts):
        image[places] += col[tap]
    inner = tuple(slice(p, p + n) for p, n in zip(pad, size, strict=True))
    return image[(slice(None), slice(None), *inner)]


im2col_nd, col2im_nd = im2col_nd_cpu, col2im_nd_cpu
