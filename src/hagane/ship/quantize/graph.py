"""Models as they are quantised: layers with constant weights, and values beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from hagane.errors import InvalidModel, NoSuchFile
from hagane.ops.definition import Array
from hagane.ship.quantize.constants import fold_constants

# DequantizeLinear has an axis from here on.
_LEAST_OPSET = 13
# A function of one number that follows a layer is computed with it.
_FOLLOWERS = frozenset({"Relu", "Clip"})
# Of these the weights alone become bytes.
RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


@dataclass(frozen=True, slots=True)
class Layer:
    """A node that is worth eight bits.

    Attributes:
        name: Of the node; of its first output where it has none.
        operator: ``Conv``, ``Gemm``, ``MatMul``, or one of ``RECURRENT``.
        node: The node.
        input: The name of its input.
        weight: The name of its weights.
        axis: That of output channels in these.
        bias: The name of its bias; empty if there is none.
        output: Its result, a following activation included.
        second: The name of the weights of the state, of recurrent layers.
    """

    name: str
    operator: str
    node: onnx.NodeProto
    input: str
    weight: str
    axis: int
    bias: str
    output: str
    second: str = ""

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of all its weights."""
        return (self.weight, self.second) if self.second else (self.weight,)


class Source:
    """A model in the form that is quantised.

    Args:
        path: An ONNX file.

    Raises:
        NoSuchFile: There is no such file.
        InvalidModel: It is not a readable model.
    """

    def __init__(self, path: Path):
        if not path.is_file():
            raise NoSuchFile(f"there is no file '{path}'")
        try:
            model = onnx.load(path)
        except Exception as error:
            raise InvalidModel(f"'{path}' is no readable ONNX model: {error}") from None
        if not model.HasField("graph"):
            raise InvalidModel(f"'{path}' is no ONNX model: it holds no graph")
        opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
        if opset < _LEAST_OPSET:
            try:
                model = version_converter.convert_version(model, _LEAST_OPSET)
            except Exception as error:
                raise InvalidModel(
                    f"'{path}' has opset {opset}, which cannot be brought to {_LEAST_OPSET}: "
                    f"{error}; export the model with opset {_LEAST_OPSET} or later"
                ) from None
        self.model: onnx.ModelProto = model
        # Scales and bytes of weights that were rounded with care, by name and axis of outputs.
        self.rounded: dict[tuple[str, int], tuple[Array, Array]] = {}
        # Of layers whose biases make up for errors: the names of these, and the numbers before.
        self.plain_biases: dict[str, tuple[str, Array]] = {}
        self.constants: dict[str, Array] = {
            item.name: numpy_helper.to_array(item) for item in model.graph.initializer
        }
        for node in model.graph.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        fold_constants(model, self.constants)
        _fold_normalizations(model, self.constants)
        self.find_layers()

    def find_layers(self) -> None:
        """Find the layers anew, after the graph was changed."""
        graph = self.model.graph
        self.readers = Counter(name for node in graph.node for name in node.input if name)
        self.readers.update(value.name for value in graph.output)
        self.layers = self._layers()

    def only_reader(self, name: str) -> onnx.NodeProto | None:
        """Return the node that alone reads a value, which is no output of the model."""
        if self.readers[name] != 1:
            return None
        found = [node for node in self.model.graph.node if name in node.input]
        return found[0] if found else None

    def writer(self, name: str) -> onnx.NodeProto | None:
        """Return the node that writes a value."""
        found = [node for node in self.model.graph.node if name in node.output]
        return found[0] if found else None

    def add_constant(self, name: str, array: Array) -> None:
        """Add an initializer."""
        self.constants[name] = array
        self.model.graph.initializer.append(numpy_helper.from_array(array, name))

    def set_constant(self, name: str, array: Array) -> None:
        """Give a constant other numbers."""
        self.constants[name] = array
        set_constant(self.model, name, array)

    def insert_before(self, layers: Sequence[Layer], node: onnx.NodeProto) -> None:
        """Put a node before the first of some layers."""
        nodes = self.model.graph.node
        chosen = {id(layer.node) for layer in layers}
        nodes.insert(min(i for i, each in enumerate(nodes) if id(each) in chosen), node)

    def _layers(self) -> tuple[Layer, ...]:
        found = []
        by_input = {name: node for node in self.model.graph.node for name in node.input}
        for node in self.model.graph.node:
            weight = self.constants.get(node.input[1]) if len(node.input) > 1 else None
            if node.domain not in ("", "ai.onnx") or weight is None or weight.dtype != np.float32:
                continue
            if node.input[0] in self.constants:
                continue
            axis = _output_axis(node, weight)
            if node.op_type in RECURRENT and node.input[2] not in self.constants:
                continue
            if axis is None:
                continue
            output = node.output[0]
            follower = by_input.get(output)
            if (
                self.readers[output] == 1
                and follower is not None
                and follower.op_type in _FOLLOWERS
            ):
                output = follower.output[0]
            bias = node.input[2] if len(node.input) > 2 else ""
            name = node.name or node.output[0]
            second = ""
            if node.op_type in RECURRENT:
                output, bias, second = node.output[0] or node.output[1], "", node.input[2]
            layer = Layer(
                name, node.op_type, node, node.input[0], node.input[1], axis, bias, output, second
            )
            found.append(layer)
        return tuple(found)


def set_constant(model: onnx.ModelProto, name: str, array: Array) -> None:
    """Give a constant of a model other numbers."""
    made = numpy_helper.from_array(array, name)
    for item in model.graph.initializer:
        if item.name == name:
            item.CopyFrom(made)
    for node in model.graph.node:
        if node.op_type == "Constant" and name in node.output:
            node.attribute[0].t.CopyFrom(made)


def _output_axis(node: onnx.NodeProto, weight: Array) -> int | None:
    """Return the axis of output channels in a layer's weights; None for other nodes."""
    attributes = attributes_of(node)
    if node.op_type in RECURRENT:
        return 1
    if node.op_type == "Conv":
        return 0
    if node.op_type == "MatMul" and weight.ndim == 2:
        return 1
    plain = attributes.get("alpha", 1.0) == 1.0 and not attributes.get("transA", 0)
    if node.op_type == "Gemm" and plain and attributes.get("beta", 1.0) == 1.0:
        return 0 if attributes.get("transB", 0) else 1
    return None


def attributes_of(node: onnx.NodeProto) -> Mapping[str, object]:
    """Return the attributes of a node by name."""
    return {item.name: helper.get_attribute_value(item) for item in node.attribute}


def _fold_normalizations(model: onnx.ModelProto, constants: dict[str, Array]) -> None:
    """Put batch normalisations into the convolutions before them, in place."""
    graph = model.graph
    readers = Counter(name for node in graph.node for name in node.input)
    readers.update(value.name for value in graph.output)
    writers = {node.output[0]: node for node in graph.node if node.output}
    for node in list(graph.node):
        conv = writers.get(node.input[0]) if node.op_type == "BatchNormalization" else None
        if conv is None or conv.op_type != "Conv" or readers[node.input[0]] != 1:
            continue
        names = [*conv.input[1:], *node.input[1:5]]
        if len(node.output) > 1 or any(name not in constants for name in names if name):
            continue
        scale, shift, mean, variance = (constants[name] for name in node.input[1:5])
        weight = constants[conv.input[1]]
        epsilon = float(attributes_of(node).get("epsilon", 1e-5))  # type: ignore[arg-type]
        factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
        bias = constants[conv.input[2]] if len(conv.input) > 2 and conv.input[2] else 0.0
        made = {
            "weight": (weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))),
            "bias": (bias - mean) * factor + shift,
        }
        del conv.input[1:]
        for part, array in made.items():
            name = f"{conv.output[0]}_folded_{part}"
            constants[name] = array.astype(np.float32)
            graph.initializer.append(numpy_helper.from_array(constants[name], name))
            conv.input.append(name)
        conv.output[0] = node.output[0]
        graph.node.remove(node)
