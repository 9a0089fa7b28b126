"""Channels that can be scaled: values between layers, through operators that keep a scale.

A factor for each channel goes into the rows of the weights before a value, and its inverse into
the columns of the weights behind. Values that share channels, such as all sums of a residual
stream, are one group with one factor for each channel.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import onnx

from hagane.ops.definition import Array
from hagane.ship.quantize.graph import Layer, Source, attributes_of
from hagane.ship.quantize.names import read_names

# f(s x) = s f(x) for every s > 0, of each channel by itself.
_HOMOGENEOUS = frozenset(
    {
        *("Relu", "LeakyRelu", "PRelu", "MaxPool", "AveragePool", "GlobalAveragePool"),
        *("GlobalMaxPool", "Identity"),
    }
)
# The same of two values that have a channel each.
_JOINING = frozenset({"Add", "Sub", "Max", "Min", "Sum"})
# Layers whose channels are found on axis 1, before and behind.
_BY_CHANNEL = frozenset({"Conv", "Gemm"})


@dataclass(frozen=True, slots=True)
class Group:
    """Values that share their channels.

    Attributes:
        channels: Their number.
        writers: Layers whose rows make the channels.
        readers: Layers whose columns multiply them.
        clipped: Results of Clip from zero to a number, with that number.
    """

    channels: int
    writers: tuple[Layer, ...]
    readers: tuple[Layer, ...]
    clipped: tuple[tuple[str, float], ...]


def find_groups(source: Source) -> tuple[Group, ...]:
    """Return the groups of values whose channels may have any factors.

    Inputs and outputs of the model belong to none, nor does a value of any other operator.
    """
    found = _Values(source)
    for node in source.model.graph.node:
        found.note(node)
    return found.groups()


def scale_group(source: Source, group: Group, factor: Array) -> None:
    """Multiply the channels of a group in place, and divide in the layers that read them.

    Args:
        source: The model.
        group: Of it.
        factor: Of each channel, positive, ``(channels,)``.
    """
    for layer in group.writers:
        weight = source.constants[layer.weight]
        shape = [-1 if i == layer.axis else 1 for i in range(weight.ndim)]
        source.set_constant(layer.weight, _float(weight * factor.reshape(shape)))
        if layer.bias:
            source.set_constant(layer.bias, _float(source.constants[layer.bias] * factor))
    for layer in group.readers:
        weight = source.constants[layer.weight]
        source.set_constant(layer.weight, _float(weight / along_columns(source, layer, factor)))


def along_columns(source: Source, layer: Layer, factor: Array) -> Array:
    """Return numbers of the channels that a layer reads, in a shape that fits its weights."""
    weight = source.constants[layer.weight]
    if layer.operator == "Conv":
        rows = np.repeat(factor.reshape(_groups(layer), -1), weight.shape[0] // _groups(layer), 0)
        return rows.reshape(*weight.shape[:2], *(1,) * (weight.ndim - 2))
    inner = 1 - layer.axis  # the positions of a channel lie side by side
    repeated = np.repeat(factor, weight.shape[inner] // len(factor))
    return repeated.reshape([-1 if i == inner else 1 for i in range(2)])


def by_column(layer: Layer, weight: Array) -> Array:
    """Return weights by the number that they multiply, ``(numbers, weights)``."""
    if layer.operator != "Conv":
        return np.moveaxis(weight, 1 - layer.axis, 0)
    rows = weight.reshape(_groups(layer), -1, weight.shape[1], *weight.shape[2:])
    return np.moveaxis(rows, 2, 1).reshape(_groups(layer) * weight.shape[1], -1)


def of_channels(numbers: Array, channels: int) -> Array:
    """Return the largest number of each channel, whose positions may lie side by side."""
    found: Array = numbers.reshape(channels, -1).max(1)
    return found


def _float(array: Array) -> Array:
    return array.astype(np.float32)


def _groups(layer: Layer) -> int:
    return int(str(attributes_of(layer.node).get("group", 1)))


class _Values:
    """Names of values, joined where they share channels."""

    def __init__(self, source: Source):
        self._source = source
        self._parents: dict[str, str] = {}
        self._layers = {id(layer.node): layer for layer in source.layers}
        self._writers: list[Layer] = []
        self._readers: list[Layer] = []
        self._clipped: list[tuple[str, float]] = []
        graph = source.model.graph
        self._fixed = {value.name for value in [*graph.input, *graph.output]}
        self._shared = Counter(layer.weight for layer in source.layers)

    def note(self, node: onnx.NodeProto) -> None:
        """Take the meaning of a node for the channels of its values."""
        layer = self._layers.get(id(node))
        if layer is not None and self._scalable(layer):
            self._writers.append(layer)
            self._readers.append(layer)
        elif node.op_type in _JOINING and not self._constant(node.input):
            self._join([*node.input, *node.output])
        elif self._keeps_scale(node):
            self._join([node.input[0], node.output[0]])
            self._fixed.update(node.output[1:])
        else:
            self._fixed.update([*node.input, *node.output])
            for attribute in node.attribute:  # names that bodies read from outside
                for body in (attribute.g, *attribute.graphs):
                    self._fixed |= read_names(body)

    def groups(self) -> tuple[Group, ...]:
        """Return the groups without a fixed value."""
        fixed = {self._root(name) for name in self._fixed}
        writers: dict[str, list[Layer]] = defaultdict(list)
        readers: dict[str, list[Layer]] = defaultdict(list)
        for layer in self._writers:
            writers[self._root(layer.node.output[0])].append(layer)
        for layer in self._readers:
            readers[self._root(layer.input)].append(layer)
        found = []
        for root in writers.keys() & readers.keys() - fixed:
            sizes = {self._weight(layer).shape[layer.axis] for layer in writers[root]}
            (channels,) = sizes if len(sizes) == 1 else (0,)
            if channels and all(self._reads(layer, channels) for layer in readers[root]):
                clipped = [each for each in self._clipped if self._root(each[0]) == root]
                layers = tuple(writers[root]), tuple(readers[root])
                group = Group(channels, *layers, tuple(clipped))
                found.append((self._source.layers.index(group.writers[0]), group))
        return tuple(group for _, group in sorted(found, key=lambda pair: pair[0]))

    def _scalable(self, layer: Layer) -> bool:
        """Whether weights and bias are constants that belong to a layer alone."""
        source = self._source
        own = source.readers[layer.weight] == 1 and self._shared[layer.weight] == 1
        if layer.bias:
            own = own and layer.bias in source.constants and source.readers[layer.bias] == 1
            own = own and source.constants[layer.bias].size == self._weight(layer).shape[layer.axis]
        return own and layer.operator in _BY_CHANNEL

    def _keeps_scale(self, node: onnx.NodeProto) -> bool:
        source, found = self._source, attributes_of(node)
        if node.op_type in _HOMOGENEOUS:
            return not self._constant(node.input[:1])
        if node.op_type == "Flatten":
            return found.get("axis", 1) == 1
        if node.op_type == "Reshape":
            shape = source.constants.get(node.input[1])
            return shape is not None and shape.tolist() == [0, -1] and not found.get("allowzero", 0)
        if node.op_type == "ReduceMean":
            axes = source.constants.get(node.input[1]) if len(node.input) > 1 else None
            given = found.get("axes", ()) if axes is None else axes.tolist()
            return isinstance(given, list) and set(given) <= {-1, -2, 2, 3} and len(given) == 2
        if node.op_type != "Clip":
            return False
        low, high = ([*node.input, "", ""])[1:3]
        if not low or source.constants.get(low, np.ones(1)).ravel()[:1].tolist() != [0.0]:
            return False
        if high and high not in source.constants:
            return False
        if high:
            self._clipped.append((node.output[0], float(source.constants[high].ravel()[0])))
        return True

    def _reads(self, layer: Layer, channels: int) -> bool:
        weight = self._weight(layer)
        if layer.operator == "Conv":
            return bool(weight.shape[1] * _groups(layer) == channels)
        return bool(weight.shape[1 - layer.axis] % channels == 0)

    def _weight(self, layer: Layer) -> Array:
        return self._source.constants[layer.weight]

    def _constant(self, names: object) -> bool:
        return any(name in self._source.constants for name in names)  # type: ignore[attr-defined]

    def _join(self, names: list[str]) -> None:
        first = self._root(names[0])
        for name in names[1:]:
            self._parents[self._root(name)] = first

    def _root(self, name: str) -> str:
        while name in self._parents and self._parents[name] != name:
            name = self._parents[name]
        return name
