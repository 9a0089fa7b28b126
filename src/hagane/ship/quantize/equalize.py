"""Weights of successive layers balanced, so that one scale fits all channels better.

Source: Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV
2019), section 4.1, equation 11; where several layers share channels, their largest weights count.
"""

from __future__ import annotations

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.channels import (
    Group,
    by_column,
    find_groups,
    of_channels,
    scale_group,
)
from hagane.ship.quantize.graph import Source

# Layers in a row influence each other: a few sweeps bring all of them close to balance.
_SWEEPS = 10


def equalize(source: Source) -> int:
    """Scale channels between layers in place; return how many groups of values there are.

    The outputs of the model stay as they are, up to rounding. Values that a Clip limits are none.
    """
    groups = [group for group in find_groups(source) if not group.clipped]
    for _ in range(_SWEEPS if groups else 0):
        for group in groups:
            before, after = _reach(source, group)
            known = (before > 0) & (after > 0)
            factor = np.sqrt(np.where(known, after, 1.0) / np.where(known, before, 1.0))
            scale_group(source, group, factor)
    return len(groups)


def _reach(source: Source, group: Group) -> tuple[Array, Array]:
    """Return the largest weights of each channel, in the layers before it and behind."""
    before, after = np.zeros(group.channels), np.zeros(group.channels)
    for layer in group.writers:
        weight = np.abs(source.constants[layer.weight])
        before = np.maximum(
            before, np.moveaxis(weight, layer.axis, 0).reshape(len(before), -1).max(1)
        )
    for layer in group.readers:
        columns = by_column(layer, np.abs(source.constants[layer.weight]))
        after = np.maximum(after, of_channels(columns.max(1), group.channels))
    return before, after
