"""Weights rounded so that the errors of one make up for those of others.

The numbers that a weight is multiplied with depend on each other, so where one weight was rounded
up, others can be moved so that the layer's result stays. Source: Frantar et al., "GPTQ: Accurate
Post-Training Quantization for Generative Pre-trained Transformers" (ICLR 2023), algorithm 1, after
Frantar and Alistarh, "Optimal Brain Compression" (NeurIPS 2022). Numbers are taken less their mean
where a bias takes up the rest of it (``correct_biases``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.graph import RECURRENT, Layer, Source
from hagane.ship.quantize.insert import Scheme, rounded_activation, weight_parameters
from hagane.ship.quantize.windows import Windows

# Of each feed, so many windows of a layer are looked at.
_WINDOWS = 512
# This share of the mean variance is added to all: windows that were never seen may come.
_DAMPING = 0.01
# Columns that are rounded one by one before the rest is moved at once.
_BLOCK = 128
# Products of inputs that are held at a time, in bytes; the rest waits for another pass.
_HELD = 512 << 20


@dataclass(slots=True)
class _Sums:
    """The inputs of a layer over all feeds, as sums.

    Attributes:
        layer: The layer.
        windows: How it reads its input.
        products: Sums of products of any two, ``(groups, inputs, inputs)``.
        sums: Of the numbers, ``(groups, inputs)``.
        count: How many windows.
    """

    layer: Layer
    windows: Windows
    products: Array
    sums: Array
    count: int = 0

    def note(self, array: Array, random: np.random.Generator) -> None:
        """Add the input of one feed."""
        found = self.windows.of(array, _WINDOWS, random)
        self.products += np.matmul(found.transpose(0, 2, 1), found)
        self.sums += found.sum(1)
        self.count += found.shape[1]

    def spread(self, *, centred: bool) -> Array:
        """Return the mean products, less those of the means if a bias takes these up."""
        count = max(1, self.count)
        found: Array = self.products / count
        if centred:
            mean = self.sums / count
            found = found - mean[:, :, None] * mean[:, None, :]
        return found


def fit_rounding(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    feeds: Sequence[Feed],
    centred: frozenset[str] = frozenset(),
) -> int:
    """Round the weights of convolutions and products; return of how many layers.

    Args:
        source: The model; its ``rounded`` is filled.
        ranges: The range of each activation, where these are rounded.
        scheme: How numbers become bytes.
        feeds: Of the model.
        centred: Names of layers whose mean error is made up for by a bias.
    """
    readers = [source.readers[layer.weight] for layer in source.layers]
    layers = [
        layer
        for layer, count in zip(source.layers, readers, strict=True)
        if layer.operator not in RECURRENT and count == 1
    ]
    for some in _passes(source, layers):
        random = np.random.default_rng(0)
        for values in values_of(source, list({x.layer.input: None for x in some}), feeds):
            for each in some:
                array = values[each.layer.input]
                if scheme.rounds_activations:
                    array = rounded_activation(array, ranges[each.layer.input], scheme)
                each.note(array, random)
        for each in some:
            _fit(source, each, scheme, centred=each.layer.name in centred)
    return len(layers)


def _passes(source: Source, layers: Sequence[Layer]) -> Iterator[list[_Sums]]:
    """Yield layers with empty sums, as many at a time as memory allows."""
    some: list[_Sums] = []
    held = 0
    for layer in layers:
        windows = Windows.of_layer(source, layer)
        size = 4 * windows.groups * windows.inputs**2
        if some and held + size > _HELD:
            yield some
            some, held = [], 0
        held += size
        shape = windows.groups, windows.inputs
        products = np.zeros((*shape, windows.inputs), np.float32)
        some.append(_Sums(layer, windows, products, np.zeros(shape, np.float32)))
    if some:
        yield some


def _fit(source: Source, sums: _Sums, scheme: Scheme, *, centred: bool) -> None:
    layer, windows = sums.layer, sums.windows
    weight = source.constants[layer.weight]
    scale, _ = weight_parameters(weight, layer.axis, scheme)
    rows = windows.rows(weight)
    scales = np.broadcast_to(scale.reshape(-1), (rows.shape[0] * rows.shape[1],))
    levels = round_together(
        rows, scales.reshape(rows.shape[:2]), sums.spread(centred=centred and sums.count > 1)
    )
    source.rounded[layer.weight, layer.axis] = scale, windows.weight(levels, weight.shape)


def round_together(weight: Array, scale: Array, products: Array) -> Array:
    """Return weights as signed bytes, so that their sums of inputs change least.

    Args:
        weight: ``(groups, outputs, inputs)``.
        scale: Of each output, ``(groups, outputs)``.
        products: Mean products of any two inputs, ``(groups, inputs, inputs)``.
    """
    inputs = weight.shape[2]
    spread = products.astype(np.float64)
    power = np.einsum("gii->gi", spread).copy()
    mean = power.mean(1, keepdims=True)
    # Inputs of the most power first: the others make up for their errors.
    order = np.argsort(-power, axis=1, kind="stable")
    diagonal = np.arange(inputs)
    spread[:, diagonal, diagonal] += np.where(mean > 0, _DAMPING * mean, 1.0)
    spread = np.take_along_axis(spread, order[:, :, None], 1)
    spread = np.take_along_axis(spread, order[:, None, :], 2)
    # The rows of this factor tell how the inputs behind one make up for an error of it.
    factor = np.linalg.cholesky(np.linalg.inv(spread)).transpose(0, 2, 1)
    left = np.take_along_axis(weight.astype(np.float64), order[:, None, :], 2)
    steps = scale.astype(np.float64)
    levels = np.zeros(weight.shape, np.int8)
    for first in range(0, inputs, _BLOCK):
        last = min(first + _BLOCK, inputs)
        errors = np.zeros((*weight.shape[:2], last - first))
        for i in range(first, last):
            found = np.clip(np.round(left[:, :, i] / steps), -127, 127)
            levels[:, :, i] = found
            error = (left[:, :, i] - found * steps) / factor[:, i, i, None]
            left[:, :, i:last] -= error[:, :, None] * factor[:, None, i, i:last]
            errors[:, :, i - first] = error
        left[:, :, last:] -= errors @ factor[:, first:last, last:]
    back = np.argsort(order, axis=1)
    return np.take_along_axis(levels, back[:, None, :], 2)
