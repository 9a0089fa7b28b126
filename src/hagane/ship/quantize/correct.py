"""Biases that make up for the mean error of rounded weights and inputs.

Source: Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction" (ICCV
2019), section 4.2, with the mean error measured on the calibration data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from hagane.ops.definition import Array
from hagane.runtime import InferenceSession
from hagane.ship.quantize.calibrate import Feed
from hagane.ship.quantize.graph import Layer, Source
from hagane.ship.quantize.insert import Scheme, error_model


def correct_biases(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    feeds: Sequence[Feed],
    kept: Collection[str] = (),
) -> int:
    """Add the mean error of each layer by itself to its bias in place; return how many were.

    ``source.plain_biases`` has them as they were, for layers that stay as they are in the end.

    Args:
        source: The model.
        ranges: The range of each activation.
        scheme: How numbers become bytes.
        feeds: Of the model.
        kept: Names of layers that stay as they are.
    """
    layers = [x for x in source.layers if x.name not in kept and _has_bias(source, x)]
    if not layers:
        return 0
    session = InferenceSession(error_model(source, ranges, scheme, differences=True))
    names = [f"difference_{source.layers.index(layer)}" for layer in layers]
    means: dict[str, list[Array]] = {layer.name: [] for layer in layers}
    for feed in feeds:
        for layer, found in zip(layers, session.run(names, feed), strict=True):
            axis = 1 if layer.operator == "Conv" else found.ndim - 1
            if found.size:  # feeds may have no rows
                others = tuple(i for i in range(found.ndim) if i != axis)
                means[layer.name].append(found.mean(axis=others))
    for layer in layers:
        if means[layer.name]:
            change = np.mean(means[layer.name], axis=0).astype(np.float32)
            source.plain_biases[layer.name] = _add(source, layer, change)
    source.find_layers()
    return len(layers)


def correctable(source: Source) -> frozenset[str]:
    """Return the names of layers that have a bias of their own, or can be given one."""
    return frozenset(layer.name for layer in source.layers if _has_bias(source, layer))


def _has_bias(source: Source, layer: Layer) -> bool:
    """Whether a layer has a bias of its own, or can be given one."""
    if layer.operator in ("Conv", "Gemm"):
        return not layer.bias or (
            source.readers[layer.bias] == 1 and source.constants[layer.bias].ndim == 1
            if layer.bias in source.constants
            else False
        )
    return _added(source, layer) is not None


def _added(source: Source, layer: Layer) -> str | None:
    """Return the constant vector that a product's only reader adds to it."""
    reader = source.only_reader(layer.node.output[0])
    if layer.operator != "MatMul" or reader is None or reader.op_type != "Add":
        return None
    (other,) = [name for name in reader.input if name != layer.node.output[0]] or [""]
    known = source.constants.get(other)
    size = source.constants[layer.weight].shape[1]
    return other if known is not None and known.shape == (size,) else None


def _add(source: Source, layer: Layer, change: Array) -> tuple[str, Array]:
    """Add to a bias; return its name, and the numbers before."""
    name = _added(source, layer) if layer.operator == "MatMul" else layer.bias
    if name and source.readers[name] > 1:  # others keep theirs
        made, before = f"{layer.name}_corrected", source.constants[name]
        source.add_constant(made, before + change)
        reader = source.only_reader(layer.node.output[0])
        assert reader is not None
        reader.input[list(reader.input).index(name)] = made
        return made, before
    if name:
        before = source.constants[name]
        source.set_constant(name, before + change)
        return name, before
    made = f"{layer.name}_corrected"
    source.add_constant(made, change)
    layer.node.input.append(made)
    return made, np.zeros_like(change)
