"""Images sampled at other places."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.functions.applying import function, pop_options, require, shape_of
from hagane.nn.functions.images.windows import as_tuple
from hagane.ops.builder import op
from hagane.ops.functions.chainer import images


@function("x")
def resize_images(
    x: Any, output_shape: Any, *, mode: str = "bilinear", align_corners: bool = True
) -> Any:
    """Return images of another size.

    Args:
        x: (batch, channels, height, width).
        output_shape: Height and width of the result.
        mode: ``bilinear`` or ``nearest``.
        align_corners: Whether the corner pixels stay at the corners.
    """
    require("resize_images", "x", x, kind="f", ndim=4)
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"mode must be 'bilinear' or 'nearest', got {mode!r}")
    height, width = output_shape
    return images.resized(x, (height, width), mode, align_corners)


@function("theta")
def spatial_transformer_grid(theta: Any, output_shape: Any, **kwargs: Any) -> Any:
    """Return where an affine map takes the pixels of an image (Jaderberg et al. 2015).

    Args:
        theta: Maps, (batch, 2, 3).
        output_shape: Height and width.
        **kwargs: None are known.

    Returns:
        Places between -1 and 1, first along the width: (batch, 2, height, width).
    """
    pop_options("spatial_transformer_grid", kwargs, removed=("use_cudnn",))
    require("spatial_transformer_grid", "theta", theta, kind="f", shape=(None, 2, 3))
    height, width = output_shape
    return images.affine_grid(theta, height, width)


@function("x", "grid")
def spatial_transformer_sampler(x: Any, grid: Any, **kwargs: Any) -> Any:
    """Return images interpolated at places; outside of them are zeros.

    Args:
        x: (batch, channels, height, width).
        grid: Places between -1 and 1, first along the width: (batch, 2, rows, columns).
        **kwargs: None are known.
    """
    pop_options("spatial_transformer_sampler", kwargs, removed=("use_cudnn",))
    require("spatial_transformer_sampler", "x", x, kind="f", ndim=4)
    require("spatial_transformer_sampler", "grid", grid, shape=(x.shape[0], 2, None, None))
    return images.sampled(x, grid)


@function("x", "offset", "W", "b")
def deformable_convolution_2d_sampler(
    x: Any, offset: Any, W: Any, b: Any = None, stride: Any = 1, pad: Any = 0
) -> Any:
    """Return a convolution whose taps are moved by offsets (Dai et al. 2017).

    Args:
        x: (batch, channels, height, width).
        offset: How far each tap is moved, first along the width:
            (batch, 2 * kernel height * kernel width, rows, columns).
        W: (maps, channels, kernel height, kernel width).
        b: (maps,).
        stride: Of the window.
        pad: Zeros around the image.
    """
    where = "deformable_convolution_2d_sampler"
    require(where, "x", x, kind="f", ndim=4)
    require(where, "offset", offset, dtype_as=("x", x), ndim=4)
    (sy, sx), (ph, pw) = as_tuple(stride, 2), as_tuple(pad, 2)
    n, c, h, w = shape_of(x)
    require(where, "W", W, dtype_as=("x", x), shape=(None, c, None, None))
    maps, _, kh, kw = shape_of(W)
    _, moves, rows, columns = shape_of(offset)
    taps = kh * kw
    if moves != 2 * taps:
        raise ValueError(
            f"The shape of the offset does not match the kernel size: expected {2 * taps} "
            f"channels, got {moves}"
        )
    tap_y, tap_x = np.divmod(np.arange(taps), kw)
    places = np.empty((1, 2, taps, rows, columns), x.dtype)
    places[0, 0] = tap_x[:, None, None] + np.arange(columns) * sx
    places[0, 1] = tap_y[:, None, None] + (np.arange(rows) * sy)[:, None]
    moved = op("Add", op("Reshape", offset, [n, 2, taps, rows, columns]), places)
    # Places between -1 and 1 of the padded image.
    extent = np.array([w + 2 * pw - 1, h + 2 * ph - 1], x.dtype).reshape(1, 2, 1, 1, 1)
    grid = op("Sub", op("Mul", moved, 2 / extent), np.ones((), x.dtype))
    padded = op("Pad", x, [0, 0, ph, pw, 0, 0, ph, pw])
    found = images.sampled(padded, op("Reshape", grid, [n, 2, taps, rows * columns]))
    filters = op("Reshape", W, [maps, c, taps])
    y = op("Einsum", found, filters, equation="nctp,oct->nop")
    y = op("Reshape", y, [n, maps, rows, columns])
    return y if b is None else op("Add", y, op("Unsqueeze", b, [1, 2]))
