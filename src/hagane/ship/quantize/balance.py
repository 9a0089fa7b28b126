"""Channels of activations scaled so that one range fits all of them.

A byte has one scale for a whole activation, and channels of small numbers lose most levels of it.
Where layers scale channels before and take it back behind, each channel uses its share of the
range. Weights with a scale for each output channel lose nothing before; behind, columns that differ
more are rounded more coarsely. Sources: Nagel et al., "Data-Free Quantization Through Weight
Equalization and Bias Correction" (ICCV 2019), section 4.1; Xiao et al., "SmoothQuant" (ICML 2023),
equation 4, with strengths compared as in Lin et al., "AWQ" (MLSys 2024), section 3.2.

A channel that is small for all feeds may be large for a later one, such as the trace of a thing
that none of their pictures shows: scaled to the whole range, it would be cut off. The strength is
therefore the one with the least error on feeds that the factors were not made from. (Scaling as far
as the feeds allow cost EfficientNet-Lite0 10 dB of its activations.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.channels import (
    Group,
    along_columns,
    by_column,
    find_groups,
    of_channels,
    scale_group,
)
from hagane.ship.quantize.graph import Layer, Source

# How far the smallest channels are scaled, and which power of the rest; the first changes nothing.
_STRENGTHS = ((1.0, 1.0), (1.5, 1.0), (2.0, 1.0), (4.0, 1.0), (16.0, 1.0), (64.0, 0.3), (64.0, 0.6))
# Channels are taken to be so much larger than seen.
_MARGIN = 1.1
# Feeds are divided into so many parts; the error of each is that of factors from the others.
_FOLDS = 4

_TINY = 1e-30


@dataclass(slots=True)
class _Seen:
    """The channels of a value over all feeds.

    Attributes:
        extremes: The largest magnitudes of each feed, ``(channels,)``.
        squares: Mean squares, ``(channels,)``, of all feeds so far.
        lost: Sums of squares that ranges cut off, for each strength ``(channels,)``.
        count: Positions.
    """

    extremes: list[Array] = field(default_factory=list)
    squares: Array = field(default_factory=lambda: np.zeros(1))
    lost: Array = field(default_factory=lambda: np.zeros((len(_STRENGTHS), 1)))
    count: int = 0

    def note(self, array: Array) -> None:
        """Add the array of a feed."""
        rows = np.moveaxis(array, 1, 0).reshape(array.shape[1], -1)
        self.extremes.append(np.abs(rows).max(axis=1, initial=0.0))
        self.squares = self.squares + np.square(rows, dtype=np.float64).sum(axis=1)
        self.count += rows.shape[1]

    def note_lost(self, array: Array, limits: Sequence[Array]) -> None:
        """Add the parts of an array beyond limits, ``(channels,)`` for each strength."""
        rows = np.abs(np.moveaxis(array, 1, 0).reshape(array.shape[1], -1))
        beyond = [np.maximum(rows - limit[:, None], 0) for limit in limits]
        self.lost = self.lost + np.array([np.square(each).sum(axis=1) for each in beyond])

    def reach(self, parts: Sequence[int]) -> Array:
        """Return the largest magnitude of each channel in some feeds."""
        found: Array = np.max([self.extremes[i] for i in parts], axis=0)
        return found


def fit_channels(source: Source, feeds: Sequence[Feed]) -> int:
    """Scale channels between layers in place; return how many groups of values were scaled.

    Outputs of the model stay as they are, up to rounding and to numbers beyond those of the feeds.
    A Clip stays too: channels far from its limit are scaled towards it.

    Args:
        source: The model.
        feeds: Of the model; of fewer than two, nothing can be said about others.
    """
    groups = find_groups(source) if len(feeds) >= _FOLDS else ()
    names = [layer.input for group in groups for layer in group.readers]
    names += [name for group in groups for name, _ in group.clipped]
    seen = {name: _Seen() for name in dict.fromkeys(names)}
    for values in values_of(source, list(seen), feeds):
        for name, array in values.items():
            seen[name].note(array)
    everything = range(len(feeds))
    folds = [[i for i in everything if i * _FOLDS // len(feeds) != part] for part in range(_FOLDS)]
    limits = [dict(_limits(groups, seen, fold)) for fold in folds]
    for number, values in enumerate(values_of(source, list(seen), feeds)):
        for name, limit in limits[number * _FOLDS // len(feeds)].items():
            seen[name].note_lost(values[name], limit)
    scaled = 0
    for group in groups:
        tried = _factors(group, seen, everything)
        errors = [
            sum(_error(source, layer, seen[layer.input], i, factor) for layer in group.readers)
            for i, factor in enumerate(tried)
        ]
        best = int(np.argmin(errors))
        if best:
            scale_group(source, group, tried[best])
            scaled += 1
    source.find_layers()
    return scaled


def _limits(
    groups: Sequence[Group], seen: Mapping[str, _Seen], parts: Sequence[int]
) -> Iterator[tuple[str, list[Array]]]:
    """Yield the ends of ranges that some feeds give, for each channel of a value and strength."""
    for group in groups:
        factors = _factors(group, seen, parts)
        for name in {layer.input: None for layer in group.readers}:
            reach = seen[name].reach(parts)
            repeated = [np.repeat(factor, len(reach) // len(factor)) for factor in factors]
            yield name, [(reach * each).max() / each for each in repeated]


def _factors(group: Group, seen: Mapping[str, _Seen], parts: Sequence[int]) -> list[Array]:
    """Return the factors of a group's channels for each strength, 1 at least."""
    share = np.zeros(group.channels)
    for layer in group.readers:
        reach = of_channels(seen[layer.input].reach(parts), group.channels)
        share = np.maximum(share, reach / max(float(reach.max()), _TINY))
    most = np.full(group.channels, np.inf)
    for name, limit in group.clipped:
        reach = np.maximum(seen[name].reach(parts) * _MARGIN, _TINY)
        most = np.minimum(most, np.maximum(1.0, limit / reach))
    alike = 1 / np.clip(share * _MARGIN, _TINY, 1.0)
    return [np.minimum(np.minimum(alike, far) ** power, most) for far, power in _STRENGTHS]


def _error(source: Source, layer: Layer, seen: _Seen, strength: int, factor: Array) -> float:
    """Return the share of a layer's result that is lost by its input and weights as bytes."""
    weight = source.constants[layer.weight].astype(np.float64)
    axes = tuple(i for i in range(weight.ndim) if i != layer.axis)
    repeated = np.repeat(factor, len(seen.squares) // len(factor))
    power = np.square(by_column(layer, weight)).sum(axis=1)
    step = (seen.reach(range(len(seen.extremes))) * repeated).max() / 255
    of_input = np.square(step / repeated) / 12 + seen.lost[strength] / max(1, seen.count)
    squares = seen.squares / max(1, seen.count)
    columns = along_columns(source, layer, factor)
    steps = np.abs(weight / columns).max(axis=axes) / 127
    inputs = along_columns(source, layer, squares) * columns**2 + 0 * weight
    of_weights = np.sum(np.square(steps) / 12 * inputs.sum(axis=axes))
    signal = max(float(np.sum(power * squares)), _TINY)
    return float(np.sum(power * of_input) + of_weights) / signal
