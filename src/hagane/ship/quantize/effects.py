"""The error of the model's outputs that each layer makes as the only one of bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from hagane.ops.builder import file_node
from hagane.ops.definition import Array
from hagane.runtime import InferenceSession
from hagane.ship.quantize.calibrate import Feed
from hagane.ship.quantize.graph import Source
from hagane.ship.quantize.insert import Inserter, Scheme, with_nodes


def effects(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    feeds: Sequence[Feed],
) -> dict[str, float]:
    """Return the signal to noise of all outputs in decibels by layer, infinite without an error.

    One model has every layer in both forms, and an input for each that chooses; it runs once a
    layer and feed.

    Args:
        source: The model.
        ranges: The range of each activation.
        scheme: How numbers become bytes.
        feeds: Of the model.
    """
    session = InferenceSession(_switched(source, ranges, scheme))
    off = {f"bytes_{i}": np.array(False) for i in range(len(source.layers))}
    noise = dict.fromkeys((layer.name for layer in source.layers), 0.0)
    signal = 0.0
    for feed in feeds:
        plain = _floats(session.run(None, {**feed, **off}))
        signal += sum(float(np.sum(value.astype(np.float64) ** 2)) for value in plain)
        for i, layer in enumerate(source.layers):
            found = _floats(session.run(None, {**feed, **off, f"bytes_{i}": np.array(True)}))
            noise[layer.name] += sum(
                float(np.sum((a.astype(np.float64) - b) ** 2))
                for a, b in zip(plain, found, strict=True)
                if a.shape == b.shape
            )
    return {
        name: 10 * math.log10(signal / error) if error > 0 and signal > 0 else math.inf
        for name, error in noise.items()
    }


def _floats(values: Sequence[Array]) -> list[Array]:
    return [value for value in values if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def _switched(
    source: Source, ranges: Mapping[str, tuple[float, float]], scheme: Scheme
) -> onnx.ModelProto:
    inserter = Inserter(source, ranges, scheme)
    nodes: list[onnx.NodeProto] = []
    layers = {id(layer.node): (i, layer) for i, layer in enumerate(source.layers)}
    switches = []
    for node in source.model.graph.node:
        if id(node) not in layers:
            nodes.append(node)
            continue
        i, layer = layers[id(node)]
        plain, rounded = onnx.NodeProto(), inserter.layer(layer, nodes, f"_{i}")
        plain.CopyFrom(node)
        nodes += [plain, rounded]
        rounded.name = f"{layer.name}_by_bytes"
        for k, name in enumerate(node.output):
            if not name:
                continue
            plain.output[k], rounded.output[k] = f"{name}_plain", f"{name}_by_bytes"
            choice = [f"bytes_{i}", rounded.output[k], plain.output[k]]
            nodes.append(file_node("Where", choice, [name]))
        switches.append(helper.make_tensor_value_info(f"bytes_{i}", onnx.TensorProto.BOOL, []))
    made = with_nodes(source.model, nodes, inserter.constants)
    made.graph.input.extend(switches)
    return made
