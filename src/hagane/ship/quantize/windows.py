"""The factors of a layer's weights: windows of images, rows of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hagane.ops.definition import Array
from hagane.ship.quantize.graph import Layer, Source, attributes_of


@dataclass(frozen=True, slots=True)
class Windows:
    """How a layer reads its input.

    Attributes:
        groups: Of a convolution; otherwise 1.
        inputs: Numbers that one result is a sum of.
        kernel: Sizes of a window; empty for products.
        strides: Of windows.
        dilations: Of windows.
        pads: Before and behind each axis, or ``auto_pad``.
        by_row: Whether weights have outputs first.
    """

    groups: int
    inputs: int
    kernel: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    pads: tuple[int, ...] | str = ()
    by_row: bool = True

    @classmethod
    def of_layer(cls, source: Source, layer: Layer) -> Windows:
        """Return the windows of a convolution, or of a product with constant weights."""
        weight = source.constants[layer.weight]
        if layer.operator != "Conv":
            return cls(1, weight.shape[1 - layer.axis], by_row=layer.axis == 0)
        found = attributes_of(layer.node)
        kernel = tuple(weight.shape[2:])
        auto = found.get("auto_pad", b"NOTSET")
        named = auto.decode() if isinstance(auto, bytes) else str(auto)
        ones = (1,) * len(kernel)
        return cls(
            int(str(found.get("group", 1))),
            int(np.prod(weight.shape[1:])),
            kernel,
            _numbers(found, "strides", ones),
            _numbers(found, "dilations", ones),
            _numbers(found, "pads", (0,) * (2 * len(kernel))) if named == "NOTSET" else named,
        )

    def rows(self, weight: Array) -> Array:
        """Return weights as ``(groups, outputs, inputs)``."""
        plain = weight if self.by_row else weight.T
        return plain.reshape(self.groups, -1, self.inputs)

    def weight(self, rows: Array, shape: Sequence[int]) -> Array:
        """Return rows in the shape of the weights."""
        if self.by_row:
            return rows.reshape(shape)
        return np.ascontiguousarray(rows.reshape(shape[1], shape[0]).T)

    def of(self, array: Array, most: int, random: np.random.Generator) -> Array:
        """Return windows of an input, drawn if there are more than ``most``.

        Returns:
            ``(groups, windows, inputs)``.
        """
        if not self.kernel:
            rows = array.reshape(1, -1, self.inputs)
            return rows[:, _some(rows.shape[1], most, random)]
        reaches = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        pads = self._pads(array.shape[2:], reaches)
        padded = np.pad(array, [(0, 0), (0, 0), *pads])
        counts = [
            (size - reach) // stride + 1
            for size, reach, stride in zip(padded.shape[2:], reaches, self.strides, strict=True)
        ]
        chosen = _some(array.shape[0] * int(np.prod(counts)), most, random)
        image, *places = np.unravel_index(chosen, (array.shape[0], *counts))
        rank = len(self.kernel)
        index: list[Array] = [image.reshape(-1, *(1,) * rank)]
        for axis, place in enumerate(places):
            offsets = np.arange(self.kernel[axis]) * self.dilations[axis]
            along = offsets.reshape([-1 if i == axis else 1 for i in range(rank)])
            index.append(place.reshape(-1, *(1,) * rank) * self.strides[axis] + along)
        found = np.moveaxis(padded, 1, -1)[tuple(index)]  # (windows, *kernel, channels)
        found = np.moveaxis(found, -1, 1)
        channels = array.shape[1] // self.groups
        split = found.reshape(len(chosen), self.groups, channels, *self.kernel)
        return np.ascontiguousarray(np.moveaxis(split, 1, 0)).reshape(
            self.groups, len(chosen), self.inputs
        )

    def _pads(self, sizes: Sequence[int], reaches: Sequence[int]) -> list[tuple[int, int]]:
        rank = len(self.kernel)
        if not isinstance(self.pads, str):
            return list(zip(self.pads[:rank], self.pads[rank:], strict=True))
        found = []
        for size, reach, stride in zip(sizes, reaches, self.strides, strict=True):
            total = max(0, (-(-size // stride) - 1) * stride + reach - size)
            total = 0 if self.pads == "VALID" else total
            more, less = total - total // 2, total // 2
            found.append((less, more) if self.pads == "SAME_UPPER" else (more, less))
        return found


def _numbers(found: Mapping[str, object], name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    given = found.get(name)
    return tuple(map(int, given)) if isinstance(given, list) else default


def _some(count: int, most: int, random: np.random.Generator) -> Array:
    """Return places of some of so many things."""
    if count <= most:
        return np.arange(count)
    return np.sort(random.choice(count, most, replace=False))
