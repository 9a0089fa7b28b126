"""Nodes of quantisation put into a model: QuantizeLinear and DequantizeLinear around layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hagane.ops.builder import file_node
from hagane.ops.definition import Array
from hagane.ship.quantize.forms import CONTRIB, dynamic_layer, dynamic_lstm, few_bits_layer
from hagane.ship.quantize.graph import RECURRENT, Layer, Source, set_constant
from hagane.ship.quantize.names import read_names

# Operators that compute on bytes as on floats.
_MOVING = frozenset(
    {
        *(
            "Concat",
            "DepthToSpace",
            "Expand",
            "Flatten",
            "Gather",
            "Identity",
            "MaxPool",
            "Reshape",
        ),
        *("Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze", "Relu", "Clip"),
    }
)


@dataclass(frozen=True, slots=True)
class Scheme:
    """How numbers become bytes.

    Attributes:
        per_channel: Whether each output channel of weights has a scale of its own.
        symmetric: Whether activations are signed bytes around zero; else unsigned, anywhere.
        weights_only: Whether activations stay as they are.
        dynamic: Whether each run finds the range of activations by itself.
        bits: Of weights; 4 of products alone, with ``weights_only``.
        block: Weights of four bits that share a scale.
        float_sums: Whether rectified values that layers read are added to others as floats.
    """

    per_channel: bool = True
    symmetric: bool = False
    weights_only: bool = False
    dynamic: bool = False
    bits: int = 8
    block: int = 32
    float_sums: bool = False

    @property
    def rounds_activations(self) -> bool:
        """Whether activations are rounded to ranges that calibration finds."""
        return not (self.weights_only or self.dynamic)


def activation_parameters(low: float, high: float, scheme: Scheme) -> tuple[Array, Array]:
    """Return scale and zero point of an activation whose range, with zero in it, is given."""
    low, high = min(low, 0.0), max(high, 0.0)
    if scheme.symmetric:
        scale = max(-low, high) / 127 or 1.0
        return np.float32(scale), np.int8(0)  # type: ignore[return-value]
    scale = (high - low) / 255 or 1.0
    zero = int(np.clip(np.round(-low / scale), 0, 255))
    return np.float32(scale), np.uint8(zero)  # type: ignore[return-value]


def rounded_activation(array: Array, limits: tuple[float, float], scheme: Scheme) -> Array:
    """Return an activation rounded to bytes of a range, and back."""
    scale, zero = activation_parameters(*limits, scheme)
    bounds = np.iinfo(zero.dtype)
    levels = np.clip(np.round(array / scale) + np.float32(zero), bounds.min, bounds.max)
    found: Array = ((levels - np.float32(zero)) * scale).astype(np.float32)
    return found


def weight_parameters(weight: Array, axis: int, scheme: Scheme) -> tuple[Array, Array]:
    """Return scales of weights, ``(channels,)`` or one, and the weights as signed bytes."""
    axes = tuple(i for i in range(weight.ndim) if i != axis)
    reach = np.abs(weight).max(axis=axes if scheme.per_channel else None)
    scale = np.where(reach > 0, reach / 127, 1.0).astype(np.float32)
    shape = [1] * weight.ndim
    if scheme.per_channel:
        shape[axis] = -1
    rounded = np.round(weight / scale.reshape(shape))
    return scale, np.clip(rounded, -127, 127).astype(np.int8)


class Inserter:
    """Puts nodes and constants into a copy of a model.

    Args:
        source: The model.
        ranges: The range of each activation.
        scheme: How numbers become bytes.
    """

    def __init__(self, source: Source, ranges: Mapping[str, tuple[float, float]], scheme: Scheme):
        self._source, self._ranges, self._scheme = source, ranges, scheme
        self.constants: dict[str, Array] = {}
        self._rounded: dict[str, str] = {}
        self._weights: dict[tuple[str, float], str] = {}

    def constant(self, name: str, array: Array) -> str:
        """Keep a constant; return its name."""
        self.constants[name] = array
        return name

    def activation(self, name: str, nodes: list[onnx.NodeProto]) -> str:
        """Return the name of an activation rounded to bytes and back, appended if it is new."""
        if not self._scheme.rounds_activations:
            return name
        if name not in self._rounded:
            scale, zero = activation_parameters(*self._ranges[name], self._scheme)
            parameters = [
                self.constant(f"{name}_scale", np.asarray(scale)),
                self.constant(f"{name}_zero", np.asarray(zero)),
            ]
            made = f"{name}_rounded"
            nodes += [
                file_node("QuantizeLinear", [name, *parameters], [f"{name}_bytes"]),
                file_node("DequantizeLinear", [f"{name}_bytes", *parameters], [made]),
            ]
            self._rounded[name] = made
        return self._rounded[name]

    def layer(self, layer: Layer, nodes: list[onnx.NodeProto], suffix: str) -> onnx.NodeProto:
        """Return a layer's last node, which reads bytes; the nodes before it are appended."""
        scheme = self._scheme
        scale, weight = self._parameters(layer.weight, layer.axis)
        found = None
        if scheme.bits == 4:
            found = few_bits_layer(self._source, layer, scheme.block, self.constant)
        elif scheme.dynamic and layer.operator not in RECURRENT:
            arguments = (self._source, layer, scale, weight, self.constant, suffix)
            found = dynamic_layer(*arguments)
        elif scheme.dynamic:
            pairs = [(name, *self._parameters(name, layer.axis)) for name in layer.matrices]
            found = dynamic_lstm(layer, pairs, self.constant)
        if found is not None:
            nodes += found[:-1]
            return found[-1]
        made = onnx.NodeProto()
        made.CopyFrom(layer.node)
        if layer.operator in RECURRENT:
            made.input[2] = self._weight(layer.second, layer.axis, nodes, suffix)
        else:
            made.input[0] = self.activation(layer.input, nodes)
        made.input[1] = self._weight(layer.weight, layer.axis, nodes, suffix)
        if layer.bias in self._source.constants and scheme.rounds_activations:
            made.input[2] = self._bias(layer, scale, nodes, suffix)
        return made

    def _weight(self, name: str, axis: int, nodes: list[onnx.NodeProto], suffix: str) -> str:
        """Return the name of weights rounded to bytes and back."""
        scale, weight = self._parameters(name, axis)
        # (Layers may share weights, and read them along other axes.)
        stem = f"{name}_{axis}"
        parameters = [
            self.constant(f"{stem}_bytes", weight),
            self.constant(f"{stem}_scale", scale),
            self.constant(f"{stem}_zero", np.zeros(scale.shape, np.int8)),
        ]
        made = f"{stem}_rounded{suffix}"
        along = {"axis": axis} if scale.ndim else {}
        nodes.append(file_node("DequantizeLinear", parameters, [made], **along))
        return made

    def _parameters(self, name: str, axis: int) -> tuple[Array, Array]:
        """Return scales and bytes of weights."""
        found = self._source.rounded.get((name, axis))
        return found or weight_parameters(self._source.constants[name], axis, self._scheme)

    def _bias(self, layer: Layer, scale: Array, nodes: list[onnx.NodeProto], suffix: str) -> str:
        """Return the name of a bias as 32-bit integers of the products' scale."""
        bias = self._source.constants[layer.bias]
        of_input, _ = activation_parameters(*self._ranges[layer.input], self._scheme)
        of_products = (scale * of_input).astype(np.float32)
        if bias.ndim != 1 or (of_products.ndim and len(of_products) != len(bias)):
            return layer.bias
        rounded = np.round(bias.astype(np.float64) / of_products)
        if np.abs(rounded).max(initial=0) >= 2**31:
            return layer.bias
        stem = f"{layer.name}_bias"
        parameters = [
            self.constant(f"{stem}_integers", rounded.astype(np.int32)),
            self.constant(f"{stem}_scale", of_products),
        ]
        made = f"{stem}_rounded{suffix}"
        axis = {"axis": 0} if of_products.ndim else {}
        nodes.append(file_node("DequantizeLinear", parameters, [made], **axis))
        return made


def quantized_model(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    kept: Collection[str] = (),
) -> onnx.ModelProto:
    """Return a model whose layers compute with bytes.

    Args:
        source: The model.
        ranges: The range of each activation that layers read or write.
        scheme: How numbers become bytes.
        kept: Names of layers that stay as they are.
    """
    inserter = Inserter(source, ranges, scheme)
    layers = [layer for layer in source.layers if layer.name not in kept]
    chosen = {id(layer.node): (i, layer) for i, layer in enumerate(layers)}
    results = _early(source, layers, scheme)
    outputs = {value.name for value in source.model.graph.output}
    nodes: list[onnx.NodeProto] = []
    renamed: dict[str, str] = {}
    for node in source.model.graph.node:
        found = chosen.get(id(node))
        made = onnx.NodeProto()
        made.CopyFrom(node)
        if found is not None:
            made = inserter.layer(found[1], nodes, f"_{found[0]}")
        by_bytes = found is not None and found[1].operator not in RECURRENT
        first = len(made.input) if by_bytes and scheme.rounds_activations else 0
        for i in range(first, len(made.input)):
            made.input[i] = renamed.get(made.input[i], made.input[i])
        nodes.append(made)
        for name in node.output:
            # A layer's result is rounded at once, so that all its readers may read bytes.
            if name in results and name not in outputs and scheme.rounds_activations:
                renamed[name] = inserter.activation(name, nodes)
    result = with_nodes(source.model, nodes, inserter.constants)
    for name, (bias, before) in source.plain_biases.items():
        if name in kept:
            set_constant(result, bias, before)
    return result


def _early(source: Source, layers: Sequence[Layer], scheme: Scheme) -> set[str]:
    """Return values that are rounded where they are written, for all readers.

    Results whose readers all are layers, or move bytes as they move floats: rounding in front of
    a sum, or of any other operator of floats, would be an error without a gain. Rectified values
    that layers read are the exception: residual networks add them to later results, and a sum of
    floats would have to be kept beside its bytes, four times as large as these.
    """
    plain = [layer for layer in layers if layer.operator not in RECURRENT]
    rectified: set[str] = set()
    if not scheme.float_sums:
        rectified = _rectified(source) & {layer.input for layer in plain}
    found = {layer.output for layer in plain} | rectified
    reading = {id(layer.node) for layer in plain}
    for node in source.model.graph.node:
        if id(node) in reading or node.op_type in _MOVING:
            continue
        found -= set(node.input) - (rectified if node.op_type == "Add" else set())
    return found


def _rectified(source: Source) -> set[str]:
    """Return values that are nought or more, as their operators say."""
    found: set[str] = set()
    for node in source.model.graph.node:
        least = source.constants.get(node.input[1]) if len(node.input) > 1 else None
        clipped = node.op_type == "Clip" and least is not None and bool((least >= 0).all())
        pooled = node.op_type == "MaxPool" and node.input[0] in found
        if node.op_type == "Relu" or clipped or pooled:
            found.add(node.output[0])
    return found


def with_nodes(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], constants: Mapping[str, Array]
) -> onnx.ModelProto:
    """Return a copy of a model with other nodes, more constants, and none that nobody reads."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    read = read_names(made.graph)
    held = [item for item in model.graph.initializer if item.name in read]
    held += [numpy_helper.from_array(array, name) for name, array in constants.items()]
    del made.graph.initializer[:]
    made.graph.initializer.extend(held)
    constant = {item.name for item in model.graph.initializer}
    imported = {each.domain for each in made.opset_import}
    if CONTRIB not in imported and any(node.domain == CONTRIB for node in nodes):
        made.opset_import.append(helper.make_opsetid(CONTRIB, 1))
    inputs = [v for v in model.graph.input if v.name not in constant or v.name in read]
    del made.graph.input[:]
    made.graph.input.extend(inputs)
    return made


def error_model(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    *,
    differences: bool = False,
) -> onnx.ModelProto:
    """Return a model that computes, for each layer by itself, signal and error of bytes.

    Its outputs are ``signal_0, error_0, signal_1 ...``: sums of squares of the layer's result, and
    of the difference that rounding its input and weights makes; or ``difference_0 ...``.
    """
    inserter = Inserter(source, ranges, scheme)
    model = source.model
    nodes: list[onnx.NodeProto] = []
    outputs = []
    layers = {id(layer.node): (i, layer) for i, layer in enumerate(source.layers)}
    for node in model.graph.node:
        nodes.append(node)
        if id(node) not in layers:
            continue
        i, layer = layers[id(node)]
        made = inserter.layer(layer, nodes, f"_{i}")
        at = next(k for k, name in enumerate(node.output) if name)
        for k, name in enumerate(made.output):
            made.output[k] = f"{name}_by_bytes" if name else ""
        made.name = f"{layer.name}_by_bytes"
        result = node.output[at]
        nodes += [
            made,
            file_node("Sub", [result, made.output[at]], [f"difference_{i}"]),
            file_node("ReduceSumSquare", [result], [f"signal_{i}"], keepdims=0),
            file_node("ReduceSumSquare", [f"difference_{i}"], [f"error_{i}"], keepdims=0),
        ]
        for kind in ("difference",) if differences else ("signal", "error"):
            shape: list[int] | None = None if differences else []
            made_output = (f"{kind}_{i}", onnx.TensorProto.FLOAT, shape)
            outputs.append(helper.make_tensor_value_info(*made_output))
    found = with_nodes(model, nodes, inserter.constants)
    held = {item.name for item in found.graph.initializer}
    missing = [item for item in model.graph.initializer if item.name not in held]
    found.graph.initializer.extend(missing)
    del found.graph.output[:]
    found.graph.output.extend(outputs)
    return found
