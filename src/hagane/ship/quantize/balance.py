"""Channels of activations scaled so that one range fits all of them.

A byte has one scale for a whole activation, and channels of small numbers lose most levels of it.
Where layers scale channels before and take it back behind, each channel uses its share of the
range. Weights with a scale for each output channel lose nothing before; behind, columns that differ
more are rounded more coarsely, so the strength is the one with the least error of both. Sources:
Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV 2019),
section 4.1; Xiao et al., "SmoothQuant" (ICML 2023), equation 4, with strengths compared as in Lin
et al., "AWQ" (MLSys 2024), section 3.2.

A Clip stays as it is: a channel that never comes near its limit is scaled up to it, so that the
limit cuts off the same numbers as the byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.centre import centre_channels
from hagane.ship.quantize.channels import (
    Group,
    along_columns,
    find_groups,
    of_channels,
    scale_group,
)
from hagane.ship.quantize.graph import Layer, Source

# From channels as they are to channels of one range.
_STRENGTHS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Channels are scaled by no more; feeds that come later may have larger numbers in them.
_MOST = 64.0
_MARGIN = 1.1


@dataclass(slots=True)
class _Seen:
    """The channels of a value over all feeds: largest magnitudes and sums of squares."""

    reach: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    squares: Array = field(default_factory=lambda: np.zeros(1))
    count: int = 0

    def note(self, array: Array) -> None:
        axes = tuple(i for i in range(array.ndim) if i != 1)
        self.reach = np.maximum(self.reach, np.abs(array).max(axis=axes, initial=0.0))
        self.squares = self.squares + np.square(array, dtype=np.float64).sum(axis=axes)
        self.count += array.size // max(1, array.shape[1])


def fit_channels(source: Source, feeds: Sequence[Feed]) -> int:
    """Centre and scale channels between layers in place; return how many groups were scaled.

    Outputs of the model stay as they are for feeds like these, up to rounding.

    Args:
        source: The model.
        feeds: Of the model.
    """
    centre_channels(source, feeds)
    groups = find_groups(source)
    names = [layer.input for group in groups for layer in group.readers]
    names += [name for group in groups for name, _ in group.clipped]
    seen = {name: _Seen() for name in dict.fromkeys(names)}
    for values in values_of(source, list(seen), feeds):
        for name, array in values.items():
            seen[name].note(array)
    scaled = 0
    for group in groups:
        factor = _factor(source, group, seen)
        if factor is not None:
            scale_group(source, group, factor)
            scaled += 1
    source.find_layers()
    return scaled


def _factor(source: Source, group: Group, seen: Mapping[str, _Seen]) -> Array | None:
    """Return the best factors of a group's channels; None if these shall stay as they are."""
    reach = np.zeros(group.channels)
    for layer in group.readers:
        found = of_channels(seen[layer.input].reach, group.channels)
        reach = np.maximum(reach, found / max(float(found.max()), 1e-30))
    most = np.full(group.channels, _MOST)
    for name, limit in group.clipped:
        found = seen[name].reach * _MARGIN
        most = np.minimum(most, np.maximum(1.0, limit / np.maximum(found, limit / _MOST)))
    full = np.where(reach > 0, 1 / np.maximum(reach, 1 / _MOST), 1.0)
    tried = [np.minimum(full**strength, most) for strength in _STRENGTHS]
    errors = [sum(_error(source, x, seen[x.input], each) for x in group.readers) for each in tried]
    best = int(np.argmin(errors))
    return tried[best] if best else None


def _error(source: Source, layer: Layer, seen: _Seen, factor: Array) -> float:
    """Return the share of a layer's result that is lost by rounding its input and weights."""
    weight = source.constants[layer.weight].astype(np.float64)
    rows = tuple(i for i in range(weight.ndim) if i != layer.axis)
    columns = along_columns(source, layer, factor)
    repeated = np.repeat(factor, len(seen.reach) // len(factor))
    squares = along_columns(source, layer, seen.squares / max(1, seen.count))
    scaled = weight / columns
    of_input = (seen.reach * repeated).max() / 255
    of_weights = np.abs(scaled).max(axis=rows, keepdims=True) / 127
    lost = np.sum(scaled**2, axis=rows) * of_input**2
    lost = lost + np.sum(of_weights**2 * squares * columns**2 + 0 * weight, axis=rows)
    signal = np.sum(weight**2 * squares, axis=rows)
    return float(np.sum(lost / 12) / max(float(np.sum(signal)), 1e-30))
