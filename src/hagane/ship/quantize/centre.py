"""Channels of linear activations moved so that their ranges are centred.

One zero point serves all channels of an activation. A channel that lies to one side of it leaves
half of its levels unused, so each is moved by the bias before it, and back by the biases behind.
Source: Wei et al., "Outlier Suppression+" (EMNLP 2023), section 4.1, whose shift lies in
normalisations; here it lies in convolutions, through the sums of residual blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.channels import Group, along_columns, find_groups
from hagane.ship.quantize.correct import add_to_bias
from hagane.ship.quantize.graph import Layer, Source, attributes_of


def centre_channels(source: Source, feeds: Sequence[Feed]) -> int:
    """Move channels between layers in place; return how many values were moved.

    Outputs of the model stay as they are, up to rounding. Values that functions other than sums
    read, or convolutions with padding, stay where they are.

    Args:
        source: The model.
        feeds: Of the model.
    """
    groups = [
        group
        for group in find_groups(source)
        if group.linear and all(_reads_all(source, layer) for layer in group.readers)
    ]
    names = list(dict.fromkeys(layer.input for group in groups for layer in group.readers))
    centres = _centres(source, names, feeds)
    layers = {layer.name: layer for layer in source.layers}
    changes: dict[str, Array] = {}
    for group in groups:
        moved = dict(_moves(source, group, centres))
        for layer in group.writers:
            change = moved.get(layer.node.output[0], np.zeros(1))
            changes[layer.name] = changes.get(layer.name, 0.0) + change
        for layer in group.readers:
            shift = along_columns(source, layer, moved[layer.input])
            weight = source.constants[layer.weight].astype(np.float64)
            axes = tuple(i for i in range(weight.ndim) if i != layer.axis)
            back = np.sum(weight * shift, axis=axes)
            changes[layer.name] = changes.get(layer.name, 0.0) - back
    for name, change in changes.items():
        rows = source.constants[layers[name].weight].shape[layers[name].axis]
        add_to_bias(source, layers[name], np.broadcast_to(change, rows).astype(np.float32))
    source.find_layers()
    return len(names)


def _reads_all(source: Source, layer: Layer) -> bool:
    """Whether a layer reads no padding, which would stay zero."""
    found = attributes_of(layer.node)
    pads = found.get("pads")
    if isinstance(pads, list) and any(pads):
        return False
    single = all(size == 1 for size in source.constants[layer.weight].shape[2:])
    return single or found.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")


def _centres(source: Source, names: Sequence[str], feeds: Sequence[Feed]) -> dict[str, Array]:
    """Return the middle of each channel's range, by the value's name."""
    low: dict[str, Array] = {}
    high: dict[str, Array] = {}
    for values in values_of(source, names, feeds):
        for name, array in values.items():
            axes = tuple(i for i in range(array.ndim) if i != 1)
            low[name] = np.minimum(low.get(name, np.inf), array.min(axis=axes))
            high[name] = np.maximum(high.get(name, -np.inf), array.max(axis=axes))
    return {name: (low[name].astype(np.float64) + high[name]) / 2 for name in names}


def _moves(
    source: Source, group: Group, centres: Mapping[str, Array]
) -> Iterator[tuple[str, Array]]:
    """Yield the values of a group with the shift of each.

    A layer that a sum alone reads is moved so that the sum is centred; others so that they are.
    """
    shifts = {
        layer.node.output[0]: -centres.get(layer.node.output[0], np.zeros(group.channels))
        for layer in group.writers
    }
    free = {name for name in shifts if name not in centres and source.readers[name] == 1}
    for node in group.sums:
        first, second = node.input
        result = node.output[0]
        if first in free and second not in free:
            first, second = second, first
        if second in free and result in centres and first != second:
            shifts[second] = -centres[result] - shifts[first]
        shifts[result] = shifts[first] + shifts[second]
    yield from shifts.items()
