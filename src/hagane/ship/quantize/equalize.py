"""Weights of successive convolutions balanced, so that one scale fits all channels better.

Source: Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV
2019), section 4.1, equation 11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.graph import Layer, Source, attributes_of

# Layers in a row influence each other: a few sweeps bring all of them close to balance.
_SWEEPS = 10
# What may lie between: f(s x) = s f(x) for every s > 0.
_HOMOGENEOUS = frozenset({"Relu", "LeakyRelu", "PRelu"})


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two convolutions, of which the second alone reads the first."""

    first: Layer
    second: Layer
    by_channel: bool


def equalize(source: Source) -> int:
    """Scale channels between convolutions in place; return how many pairs there are.

    The outputs of the model stay as they are, up to rounding. Convolutions with an activation in
    between that is not homogeneous, such as Clip, are no pair.
    """
    pairs = _pairs(source)
    for _ in range(_SWEEPS if pairs else 0):
        for pair in pairs:
            _balance(source, pair)
    return len(pairs)


def _pairs(source: Source) -> list[_Pair]:
    convolutions = [layer for layer in source.layers if layer.operator == "Conv"]
    readers = {layer.input: layer for layer in convolutions}
    found = []
    for first in convolutions:
        name = first.node.output[0]
        follower = source.only_reader(name)
        if follower is not None and follower.op_type in _HOMOGENEOUS:
            name = follower.output[0]
        second = readers.get(name)
        if second is None or source.only_reader(name) is not second.node:
            continue
        channels = source.constants[first.weight].shape[0]
        group = int(str(attributes_of(second.node).get("group", 1)))
        fits = source.constants[second.weight].shape[0 if group > 1 else 1] == channels
        own = all(source.readers[x.weight] == 1 for x in (first, second))
        if fits and own and group in (1, channels) and (not first.bias or _holds(source, first)):
            found.append(_Pair(first, second, group > 1))
    return found


def _holds(source: Source, layer: Layer) -> bool:
    return layer.bias in source.constants and source.readers[layer.bias] == 1


def _balance(source: Source, pair: _Pair) -> None:
    left, right = source.constants[pair.first.weight], source.constants[pair.second.weight]
    axis = 0 if pair.by_channel else 1
    before, after = _reach(left, 0), _reach(right, axis)
    known = (before > 0) & (after > 0)
    scale = np.where(known, np.sqrt(before / np.where(known, after, 1)), 1.0).astype(np.float32)
    source.set_constant(pair.first.weight, left / _along(scale, 0, left.ndim))
    source.set_constant(pair.second.weight, right * _along(scale, axis, right.ndim))
    if pair.first.bias:
        source.set_constant(pair.first.bias, source.constants[pair.first.bias] / scale)


def _reach(weight: Array, axis: int) -> Array:
    found: Array = np.abs(weight).max(axis=tuple(i for i in range(weight.ndim) if i != axis))
    return found


def _along(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])
