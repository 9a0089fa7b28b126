"""Outliers of activations moved into the weights that multiply them.

Source: Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large
Language Models" (ICML 2023), equation 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from hagane.ops.builder import file_node
from hagane.ops.definition import Array
from hagane.ship.quantize.calibrate import Feed, values_of
from hagane.ship.quantize.graph import Layer, Source

_LEAST = 1e-5


def smooth(source: Source, feeds: Sequence[Feed], strength: float) -> int:
    """Divide inputs of products by a factor for each feature in place, which weights take.

    Factors go into the scale and bias of a LayerNormalization where products alone read it; else a
    multiplication is put before the products. Outputs stay as they are, up to rounding.

    Args:
        source: The model.
        feeds: Of the model.
        strength: From 0 (weights keep their range) to 1 (activations have range 1).

    Returns:
        How many values were smoothed.
    """
    products: dict[str, list[Layer]] = defaultdict(list)
    for layer in source.layers:
        if layer.operator in ("MatMul", "Gemm"):
            products[layer.input].append(layer)
    reach: dict[str, Array] = {}
    for found in values_of(source, list(products), feeds):
        for name, array in found.items():
            most = np.abs(array).reshape(-1, array.shape[-1]).max(axis=0, initial=0.0)
            reach[name] = np.maximum(reach.get(name, 0.0), most)
    smoothed = [
        name for name, layers in products.items() if _smooth(source, reach[name], layers, strength)
    ]
    source.find_layers()
    return len(smoothed)


def _smooth(source: Source, reach: Array, layers: list[Layer], strength: float) -> bool:
    weights = [source.constants[layer.weight] for layer in layers]
    inner = [1 - layer.axis for layer in layers]  # the axis of features
    sizes = {weight.shape[axis] for weight, axis in zip(weights, inner, strict=True)}
    if sizes != {len(reach)} or any(source.readers[layer.weight] > 1 for layer in layers):
        return False
    of_weights = np.max(
        [np.abs(w).max(axis=1 - axis) for w, axis in zip(weights, inner, strict=True)], axis=0
    )
    known = (reach > _LEAST) & (of_weights > _LEAST)
    power = np.maximum(reach, _LEAST) ** strength / np.maximum(of_weights, _LEAST) ** (1 - strength)
    factor = np.where(known, power, 1.0).astype(np.float32)
    for layer, weight, axis in zip(layers, weights, inner, strict=True):
        shape = (-1, 1) if axis == 0 else (1, -1)
        source.set_constant(layer.weight, weight * factor.reshape(shape))
    name = layers[0].input
    if not _into_normalization(source, name, layers, factor):
        made = f"{name}_smoothed"
        source.add_constant(f"{name}_smoothing", 1 / factor)
        node = file_node("Mul", [name, f"{name}_smoothing"], [made])
        source.insert_before(layers, node)
        for layer in layers:
            layer.node.input[0] = made
    return True


def _into_normalization(source: Source, name: str, layers: list[Layer], factor: Array) -> bool:
    writer = source.writer(name)
    if writer is None or writer.op_type != "LayerNormalization":
        return False
    constants = [part for part in writer.input[1:] if part]
    own = all(part in source.constants and source.readers[part] == 1 for part in constants)
    if not own or source.readers[name] != len(layers):
        return False
    if any(source.constants[part].shape != factor.shape for part in constants):
        return False
    for part in constants:
        source.set_constant(part, source.constants[part] / factor)
    return True
