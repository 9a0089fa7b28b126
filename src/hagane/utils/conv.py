"""Sizes of sliding windows, and windows of images as arrays."""

from typing import Any

from hagane.nn.functions.images.windows import get_conv_outsize, get_deconv_outsize
from hagane.utils.conv_nd import col2im_nd_cpu, im2col_nd_cpu

__all__ = [
    "col2im",
    "col2im_cpu",
    "get_conv_outsize",
    "get_deconv_outsize",
    "im2col",
    "im2col_cpu",
]


def im2col_cpu(
    img: Any, kh: int, kw: int, sy: int, sx: int, ph: int, pw: int, pval: Any = 0,
    cover_all: bool = False, dy: int = 1, dx: int = 1, out_h: int | None = None,
    out_w: int | None = None,
) -> Any:  # fmt: skip
    """Return the windows of images: (batch, channels, kh, kw, rows, columns).

    Args:
        img: (batch, channels, height, width).
        kh: Height of a window.
        kw: Width of a window.
        sy: Vertical stride.
        sx: Horizontal stride.
        ph: Margin above and below.
        pw: Margin at both sides.
        pval: The content of the margins.
        cover_all: Whether every element lies in a window, the last reaching over the end.
        dy: Vertical dilation.
        dx: Horizontal dilation.
        out_h: How many rows of windows; all that fit if None.
        out_w: How many columns of windows.
    """
    counts = (out_h, out_w)
    return im2col_nd_cpu(img, (kh, kw), (sy, sx), (ph, pw), pval, cover_all, (dy, dx), counts)


def col2im_cpu(
    col: Any, sy: int, sx: int, ph: int, pw: int, h: int, w: int, dy: int = 1, dx: int = 1
) -> Any:
    """Return images, (batch, channels, h, w), of windows, which add up where they meet."""
    return col2im_nd_cpu(col, (sy, sx), (ph, pw), (h, w), (dy, dx))


im2col, col2im = im2col_cpu, col2im_cpu
