"""Images sampled at other places."""

from __future__ import annotations

from typing import Any

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import array_of, function, pop_options, require
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
    pop_options("spatial_transformer_grid", kwargs, use_cudnn=None)
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
    pop_options("spatial_transformer_sampler", kwargs, use_cudnn=None)
    require("spatial_transformer_sampler", "x", x, kind="f", ndim=4)
    require("spatial_transformer_sampler", "grid", grid, shape=(x.shape[0], 2, None, None))
    return images.sampled(x, grid)


@function("x")
def roi_average_align_2d(
    x: Any,
    rois: Any,
    roi_indices: Any,
    outsize: Any,
    spatial_scale: float,
    sampling_ratio: Any = None,
) -> Any:
    """Return the means of sampled parts of regions (He et al. 2017).

    Args:
        x: (batch, channels, height, width).
        rois: Regions (top, left, bottom, right), (regions, 4).
        roi_indices: The image of each region, int32 (regions,).
        outsize: Rows and columns of parts.
        spatial_scale: Pixels of ``x`` in a unit of ``rois``.
        sampling_ratio: How many samples a part has each way; as many as pixels if None.
    """
    where = "roi_average_align_2d"
    require(where, "x", x, kind="f", ndim=4)
    rows, columns = (outsize, outsize) if isinstance(outsize, int) else outsize
    both = sampling_ratio if isinstance(sampling_ratio, tuple | list) else (sampling_ratio,) * 2
    if both[0] != both[1]:
        raise NotImplementedError(f"{where}: expected one sampling_ratio for both axes, got {both}")
    regions = array_of(rois)
    if regions.ndim != 2 or regions.shape[1] != 4:
        raise type_check.refuse(where, "rois.shape == (…, 4)", f"rois.shape == {regions.shape}")
    places, scale = array_of(roi_indices), float(spatial_scale)
    return images.roi_average(x, regions, places, (rows, columns), scale, both[0] or 0)
