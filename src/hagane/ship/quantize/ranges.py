"""Ranges of activations with which the layers that read them err least.

A number that is cut off or rounded matters as much as the weights that it is multiplied with: the
range is the one with the least squared error of the layers' results, tried on windows of their
inputs. Source: Nagel et al., "A White Paper on Neural Network Quantization" (2021), section 3.1,
where the error of the tensor itself is one of the choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.graph import RECURRENT, Source
from hagane.ship.quantize.insert import Scheme, rounded_activation
from hagane.ship.quantize.windows import Windows

# Shares of the largest number that are tried as the end of a range.
_SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
# Windows of a layer that are tried in all, and from one feed at least.
_WINDOWS, _LEAST = 2048, 16
# Windows that are held at a time, in bytes; the rest waits for another pass.
_HELD = 512 << 20


@dataclass(slots=True)
class _Reader:
    """A layer that reads an activation, with some of its windows."""

    windows: Windows
    weight: Array
    found: list[Array] = field(default_factory=list)


def fit_ranges(
    source: Source,
    extremes: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    feeds: Sequence[Feed],
) -> dict[str, tuple[float, float]]:
    """Return a range for each activation that layers read.

    Args:
        source: The model.
        extremes: The smallest and the largest number of each activation.
        scheme: How numbers become bytes.
        feeds: Of the model.
    """
    most = max(_LEAST, _WINDOWS // len(feeds))
    ranges: dict[str, tuple[float, float]] = {}
    for readers in _passes(source, most * len(feeds)):
        random = np.random.default_rng(0)
        for values in values_of(source, list(readers), feeds):
            for name, array in values.items():
                for each in readers[name]:
                    each.found.append(each.windows.of(array, most, random))
        for name, some in readers.items():
            ranges[name] = _best_range(some, extremes[name], scheme)
    return ranges


def _passes(source: Source, windows: int) -> Iterator[dict[str, list[_Reader]]]:
    """Yield activations with the layers that read them, as many as memory allows at a time."""
    readers: dict[str, list[_Reader]] = {}
    for layer in source.layers:
        if layer.operator not in RECURRENT:
            found = Windows.of_layer(source, layer)
            weight = found.rows(source.constants[layer.weight])
            readers.setdefault(layer.input, []).append(_Reader(found, weight))
    some: dict[str, list[_Reader]] = {}
    held = 0
    for name, each in readers.items():
        size = sum(4 * windows * reader.windows.groups * reader.windows.inputs for reader in each)
        if some and held + size > _HELD:
            yield some
            some, held = {}, 0
        some[name] = each
        held += size
    if some:
        yield some


def _best_range(
    readers: Sequence[_Reader], extremes: tuple[float, float], scheme: Scheme
) -> tuple[float, float]:
    """Return the range with the least error, one end after the other."""
    pairs = [(np.concatenate(each.found, 1), each.weight) for each in readers]
    for each in readers:
        each.found.clear()

    def error(limits: tuple[float, float]) -> float:
        total = 0.0
        for x, weight in pairs:
            lost = x - rounded_activation(x, limits, scheme)
            total += float(np.sum(np.matmul(lost, weight.transpose(0, 2, 1)) ** 2))
        return total

    low, high = min(extremes[0], 0.0), max(extremes[1], 0.0)
    if scheme.symmetric:
        reach = max(-low, high)
        tried = [(-reach * share, reach * share) for share in _SHARES]
        return min(tried, key=error)
    best = min(((low, high * share) for share in _SHARES), key=error) if high else (low, high)
    if low:
        best = min(((low * share, best[1]) for share in _SHARES), key=error)
    if low and high:  # the first end was found beside the whole of the other
        best = min(((best[0], high * share) for share in _SHARES), key=error)
    return best
