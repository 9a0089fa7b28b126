"""Regions of images, pooled to a fixed number of parts.

Where the samples of a part lie is known before anything is computed: a row and a column of each
sample along both axes, with weights of their lower and upper neighbours. The pixels are gathered
then, so that one formula serves pooling of whole pixels and of interpolated ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import mul, transpose


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples along one axis of images: arrays (regions, parts, samples).

    Attributes:
        low: The pixel before each sample.
        high: The pixel behind it.
        weight: That of ``high``; ``low`` has the rest.
        counted: Whether the sample belongs to its part.
        inside: Whether it lies in the image; the outside counts as zero.
    """

    low: Any
    high: Any
    weight: Any
    counted: Any
    inside: Any


def of_points(starts: Any, sizes: Any, parts: int, ratio: int | None, limit: int) -> Samples:
    """Return evenly distributed points of regions (He et al., 2017).

    Args:
        starts: Where the regions begin, in pixels: (regions,).
        sizes: How long they are.
        parts: Into how many parts they are cut.
        ratio: How many points a part has; as many as pixels if None.
        limit: The number of pixels of the axis.
    """
    step = sizes / parts
    counts = np.full(len(starts), ratio) if ratio else np.maximum(np.ceil(step), 1).astype(np.int64)
    numbers = np.arange(int(counts.max(initial=1)))
    counted = np.broadcast_to(
        (numbers < counts[:, None])[:, None, :], (len(starts), parts, len(numbers))
    )
    within = (numbers + 0.5) * (step / counts)[:, None]
    first = starts[:, None] + np.arange(parts) * step[:, None]
    places = first[:, :, None] + within[:, None, :]
    inside = (places >= -1) & (places <= limit)
    clipped = np.clip(places, 0, limit - 1)
    low = np.floor(clipped).astype(np.int64)
    return Samples(low, np.minimum(low + 1, limit - 1), clipped - low, counted, inside & counted)


def of_pixels(starts: Any, sizes: Any, parts: int, limit: int) -> Samples:
    """Return the whole pixels of regions, of which neighbouring parts may share some.

    Args:
        starts: The first pixel of each region, integers (regions,).
        sizes: How many pixels they have, one or more.
        parts: Into how many parts they are cut.
        limit: The number of pixels of the axis.
    """
    numbers, step = np.arange(parts), (sizes / parts)[:, None]
    first = np.floor(numbers * step).astype(np.int64) + starts[:, None]
    last = np.ceil((numbers + 1) * step).astype(np.int64) + starts[:, None]
    first, last = np.clip(first, 0, limit), np.clip(last, 0, limit)
    places = first[:, :, None] + np.arange(max(int((last - first).max(initial=1)), 1))
    counted = places < last[:, :, None]
    low = np.clip(places, 0, limit - 1)
    return Samples(low, low, np.zeros(low.shape), counted, counted)


def pooled(x: Any, images: Any, rows: Samples, columns: Samples, mode: str, empty: float) -> Any:
    """Return the mean or the maximum of the samples of each part.

    Args:
        x: (batch, channels, height, width).
        images: The image of each region, integers (regions,).
        rows: Samples along the height.
        columns: Samples along the width.
        mode: ``mean`` or ``max``.
        empty: The value of a part without samples.

    Returns:
        (regions, channels, parts, parts).
    """
    dtype = dtype_of(x).numpy()
    _batch, channels, height, width = (int(size) for size in shape_of(x))
    pixels = op("Reshape", transpose(x, [0, 2, 3, 1]), [-1, channels])
    first = np.asarray(images, np.int64).reshape(-1, 1, 1, 1, 1) * (height * width)
    samples: Any = None
    for row, row_weight in ((rows.low, 1 - rows.weight), (rows.high, rows.weight)):
        for column, column_weight in (
            (columns.low, 1 - columns.weight),
            (columns.high, columns.weight),
        ):
            weights = _crossed(row_weight * rows.inside, column_weight * columns.inside)
            if samples is not None and not weights.any():
                continue
            places = first + row[:, :, None, :, None] * width + column[:, None, :, None, :]
            found = op("Gather", pixels, places, axis=0)
            found = mul(found, weights[..., None].astype(dtype))
            samples = found if samples is None else op("Add", samples, found)
    counted = _crossed(rows.counted, columns.counted)
    counts = counted.sum(axis=(3, 4))[..., None]
    if mode == "mean":
        y = mul(
            op("ReduceSum", samples, [3, 4], keepdims=0), (1 / np.maximum(counts, 1)).astype(dtype)
        )
    else:
        hidden = np.where(counted, 0, -np.inf)[..., None].astype(dtype)
        flat = op("Reshape", op("Add", samples, hidden), [*counts.shape[:3], -1, channels])
        # The first of several largest samples gets the gradient.
        place = op("ArgMax", flat, axis=3, keepdims=1)
        y = op("Squeeze", op("GatherElements", flat, place, axis=3), [3])
    if (counts == 0).any():
        y = op("Where", counts > 0, y, np.array(empty, dtype))
    return transpose(y, [0, 3, 1, 2])


def _crossed(rows: Any, columns: Any) -> Any:
    """Return products of all rows and columns: (regions, parts, parts, samples, samples)."""
    return rows[:, :, None, :, None] * columns[:, None, :, None, :]
