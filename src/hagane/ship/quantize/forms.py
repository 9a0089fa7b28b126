"""Layers that need no ranges: inputs rounded when the model runs, and weights of four bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from hagane.ops.builder import file_node
from hagane.ops.definition import Array
from hagane.ship.quantize.graph import Layer, Source, attributes_of

CONTRIB = "com.microsoft"
Keep = Callable[[str, Array], str]


def dynamic_layer(
    source: Source, layer: Layer, scale: Array, weight: Array, keep: Keep, suffix: str
) -> list[onnx.NodeProto]:
    """Return a layer of bytes whose input is rounded to its own range in each run.

    Args:
        source: The model.
        layer: A convolution or product.
        scale: Of the weights: ``(channels,)``, or one.
        weight: As signed bytes.
        keep: Keeps a constant, and returns its name.
        suffix: Of names.
    """
    stem = f"{layer.name}{suffix}"
    x, x_scale, x_zero = (f"{stem}_input_{part}" for part in ("bytes", "scale", "zero"))
    attributes = dict(attributes_of(layer.node))
    if layer.operator == "Gemm":
        weight = weight.T if attributes.get("transB", 0) else weight
    channels = (-1, *(1,) * (weight.ndim - 2)) if layer.operator == "Conv" else (-1,)
    scales = scale.reshape(channels if scale.ndim else ())
    operator = "ConvInteger" if layer.operator == "Conv" else "MatMulInteger"
    given = attributes if layer.operator == "Conv" else {}
    zero = keep(f"{layer.weight}_{layer.axis}_plain_zero", np.array(0, np.int8))
    inputs = [x, keep(f"{layer.weight}_{layer.axis}_plain", weight), x_zero, zero]
    result = layer.node.output[0]
    bias = layer.bias and source.constants.get(layer.bias)
    nodes = [
        file_node("DynamicQuantizeLinear", [layer.node.input[0]], [x, x_scale, x_zero]),
        file_node(operator, inputs, [f"{stem}_integers"], **given),
        file_node("Cast", [f"{stem}_integers"], [f"{stem}_floats"], to=1),
        file_node("Mul", [x_scale, keep(f"{stem}_scales", scales)], [f"{stem}_unit"]),
        file_node("Mul", [f"{stem}_floats", f"{stem}_unit"], [f"{stem}_product"]),
    ]
    name = f"{stem}_product"
    if layer.bias and isinstance(bias, np.ndarray):
        shaped = keep(f"{stem}_bias", bias.reshape(channels if bias.ndim == 1 else bias.shape))
        nodes.append(file_node("Add", [name, shaped], [result]))
    elif layer.bias:
        nodes.append(file_node("Add", [name, layer.bias], [result]))
    else:
        nodes[-1].output[0] = result
    return nodes


def dynamic_lstm(
    layer: Layer, matrices: Sequence[tuple[str, Array, Array]], keep: Keep
) -> list[onnx.NodeProto] | None:
    """Return an LSTM of bytes that rounds its inputs and states as they come; None of others.

    Args:
        layer: A layer.
        matrices: Of inputs and of states: a name, scales of their rows or one scale, and the rows
            as signed bytes, ``(directions, 4 * hidden, inputs)``.
        keep: Keeps a constant, and returns its name.
    """
    attributes = dict(attributes_of(layer.node))
    if layer.operator != "LSTM" or attributes.pop("layout", 0):
        return None
    names: list[str] = []
    scales: list[str] = []
    for stem, scale, weight in matrices:
        directions = weight.shape[0]
        spread = np.broadcast_to(scale, (directions, *scale.shape)).astype(np.float32)
        names.append(keep(f"{stem}_columns", np.ascontiguousarray(weight.transpose(0, 2, 1))))
        scales += [
            keep(f"{stem}_spread_scale", spread),
            keep(f"{stem}_spread_zero", np.zeros(spread.shape, np.int8)),
        ]
    others = [*layer.node.input[3:], *[""] * (8 - len(layer.node.input))]
    made = file_node(
        "DynamicQuantizeLSTM",
        [layer.node.input[0], *names, *others, *scales],
        list(layer.node.output),
        domain=CONTRIB,
        **attributes,
    )
    made.name = layer.name
    return [made]


def few_bits_layer(
    source: Source, layer: Layer, block: int, keep: Keep
) -> list[onnx.NodeProto] | None:
    """Return a product whose weights have four bits and a scale for each block; None of others.

    Args:
        source: The model.
        layer: A layer.
        block: Weights of one scale, along the axis that is summed.
        keep: Keeps a constant, and returns its name.
    """
    if layer.operator not in ("MatMul", "Gemm"):
        return None
    weight = source.constants[layer.weight]
    rows = weight.T if layer.axis == 1 else weight
    packed, scales = pack_four_bits(rows, block)
    stem = f"{layer.weight}_{layer.axis}"
    names = [keep(f"{stem}_four_bits", packed), keep(f"{stem}_four_scales", scales)]
    columns, inner = rows.shape
    made = file_node(
        "MatMulNBits", [layer.node.input[0], *names], [layer.node.output[0]],
        domain=CONTRIB, K=inner, N=columns, bits=4, block_size=block,
    )  # fmt: skip
    made.name = layer.name
    if not layer.bias:
        return [made]
    made.output[0] = f"{layer.name}_product"
    return [made, file_node("Add", [made.output[0], layer.bias], [layer.node.output[0]])]


def pack_four_bits(rows: Array, block: int) -> tuple[Array, Array]:
    """Return weights as MatMulNBits reads them.

    Args:
        rows: Of float32, ``(columns, inner)``.
        block: Weights of one scale; a power of two, 16 at least.

    Returns:
        ``uint8 (columns, blocks, block / 2)``, the first of two in the lower bits, 8 standing for
        zero; scales, ``float32 (columns, blocks)``.
    """
    columns, inner = rows.shape
    blocks = -(-inner // block)
    padded = np.zeros((columns, blocks * block), np.float32)
    padded[:, :inner] = rows
    padded = padded.reshape(columns, blocks, block)
    # The number of the largest magnitude becomes -8, which has no counterpart above.
    most = np.take_along_axis(padded, np.abs(padded).argmax(2, keepdims=True), 2)
    scales = most / -8
    steps = np.divide(padded, scales, out=np.zeros_like(padded), where=scales != 0)
    numbers = np.clip(np.round(steps) + 8, 0, 15).astype(np.uint8)
    return numbers[..., ::2] | numbers[..., 1::2] << 4, scales[..., 0].astype(np.float32)
