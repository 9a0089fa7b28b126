"""The kinds of layers of ModelRetriever, by the names of Chainer's functions.

Shapes leave the batch out. Where chainer-trt and Chainer differ in the shape of a result, it is
that of Chainer, which the layers behind it were recorded with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.builder.apply import rank_of, shape_of
from hagane.ops.definition import Array

_INT64 = np.iinfo(np.int64)


def _numbers(items: Iterable[Any]) -> Array:
    return np.array([int(item) for item in items], np.int64)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a description.

    Attributes:
        name: Of the layer.
        given: Its entries in ``model.json``.
        weights: Its arrays.
    """

    name: str
    given: Mapping[str, Any]
    weights: Mapping[str, Array]

    def pair(self, vertical: str, horizontal: str, default: int | None = None) -> list[int]:
        """Return two entries, that of the vertical direction first."""
        if default is None:
            return [int(self.given[vertical]), int(self.given[horizontal])]
        return [int(self.given.get(name, default)) for name in (vertical, horizontal)]

    def window(self) -> tuple[list[int], list[int], list[int]]:
        """Return stride, padding and dilation."""
        return (
            self.pair("stride_y", "stride_x"),
            self.pair("pad_h", "pad_w"),
            self.pair("dilation_y", "dilation_x", 1),
        )


def _pads(layer: Layer, x: Any, kernel: list[int]) -> list[int]:
    """Return paddings; with ``cover_all`` wide enough that windows cover all of the input."""
    strides, pads, dilations = layer.window()
    ends = list(pads)
    if layer.given.get("cover_all"):
        for i, size in enumerate(shape_of(x)[2:]):
            if not isinstance(size, int):
                raise ValueError("cover_all needs sizes that are numbers")
            reach = dilations[i] * (kernel[i] - 1) + 1
            count = -(-(size + 2 * pads[i] - reach) // strides[i]) + 1
            ends[i] = max(pads[i], (count - 1) * strides[i] + reach - size - pads[i])
    return [*pads, *ends]


def _convolution(layer: Layer, x: Any) -> Any:
    strides, _, dilations = layer.window()
    kernel = layer.weights["kernel"]
    return op(
        "Conv", x, kernel, layer.weights["bias"],
        strides=strides, dilations=dilations, group=int(layer.given.get("groups", 1)),
        pads=_pads(layer, x, list(kernel.shape[2:])), kernel_shape=list(kernel.shape[2:]),
    )  # fmt: skip


def _deconvolution(layer: Layer, x: Any) -> Any:
    strides, pads, dilations = layer.window()
    kernel = layer.weights["kernel"]
    return op(
        "ConvTranspose", x, kernel, layer.weights["bias"],
        strides=strides, dilations=dilations, group=int(layer.given.get("groups", 1)),
        pads=[*pads, *pads], kernel_shape=list(kernel.shape[2:]),
    )  # fmt: skip


def _normalization(layer: Layer, x: Any) -> Any:
    names = ("gamma", "beta", "mean", "var")
    weights = [layer.weights[name].reshape(-1) for name in names]
    return op("BatchNormalization", x, *weights, epsilon=float(layer.given["eps"]))


def _local_normalization(layer: Layer, x: Any) -> Any:
    # Chainer's window has n // 2 neighbours on both sides, and alpha is not divided by its size.
    size = 2 * (int(layer.given["n"]) // 2) + 1
    alpha, beta, k = (float(layer.given[name]) for name in ("alpha", "beta", "k"))
    return op("LRN", x, size=size, alpha=alpha * size, beta=beta, bias=k)


def _max_pooling(layer: Layer, x: Any) -> Any:
    kernel = layer.pair("window_height", "window_width")
    pads = _pads(layer, x, kernel)
    if any(pads[i] >= kernel[i % 2] for i in range(4)):  # a window may lie in the padding alone
        lowest = np.float32(-np.inf)
        x = op("Pad", x, _numbers([0, 0, *pads[:2], 0, 0, *pads[2:]]), lowest)
        pads = [0] * 4
    return op("MaxPool", x, kernel_shape=kernel, strides=layer.window()[0], pads=pads)


def _average_pooling(layer: Layer, x: Any) -> Any:
    kernel = layer.pair("window_height", "window_width")
    pads = _pads(layer, x, kernel)
    return op(
        "AveragePool", x,
        kernel_shape=kernel, strides=layer.window()[0], pads=pads, count_include_pad=1,
    )  # fmt: skip


def _linear(layer: Layer, x: Any) -> Any:
    flat = op("Flatten", x, axis=1) if rank_of(x) != 2 else x
    return op("Gemm", flat, layer.weights["kernel"], layer.weights["bias"], transB=1)


def _with_constant(operator: str, *, first: bool) -> Callable[[Layer, Any], Any]:
    """Return a layer that applies an operator to a constant and its input, or to these reversed."""

    def apply(layer: Layer, x: Any) -> Any:
        constant = layer.weights["constant"]
        if constant.size == 1:
            constant = constant.reshape(())
        elif constant.ndim < rank_of(x):
            constant = constant[None]
        return op(operator, constant, x) if first else op(operator, x, constant)

    return apply


def _broadcast(layer: Layer, x: Any) -> Any:
    shape = [int(size) for size in layer.given["out_shape"]]
    if rank_of(x) != len(shape) + 1:
        raise ValueError(f"expected {len(shape)} axes besides the batch, got {rank_of(x) - 1}")
    return op("Expand", x, _numbers([1, *shape]))


def _reshape(layer: Layer, x: Any) -> Any:
    return op("Reshape", x, _numbers([0, *layer.given["shape"]]))


def _transpose(layer: Layer, x: Any) -> Any:
    return op("Transpose", x, perm=[0, *(int(axis) + 1 for axis in layer.given["axes"])])


def _concat(layer: Layer, *values: Any) -> Any:
    return op("Concat", *values, axis=int(layer.given.get("axis", 0)) + 1)


def _resize(layer: Layer, x: Any) -> Any:
    sizes = _numbers(layer.given["output_hw"])
    return op(
        "Resize", x, None, None, sizes,
        mode="linear", coordinate_transformation_mode="align_corners", axes=[2, 3],
    )  # fmt: skip


def _get_item(layer: Layer, x: Any) -> Any:
    starts, ends, steps, axes, dropped = [], [], [], [], []
    for axis, item in enumerate(layer.given["slices"], 1):
        if isinstance(item, list):
            start, end, step = item
            step = 1 if step is None else int(step)
            if [start, end, step] == [None, None, 1]:
                continue
            low, high = (0, _INT64.max) if step > 0 else (_INT64.max, _INT64.min)
            starts.append(low if start is None else int(start))
            ends.append(high if end is None else int(end))
        else:
            index, step = int(item), 1
            starts.append(index)
            ends.append(_INT64.max if index == -1 else index + 1)
            dropped.append(axis)
        steps.append(step)
        axes.append(axis)
    if axes:
        x = op("Slice", x, *(_numbers(given) for given in (starts, ends, axes, steps)))
    return op("Squeeze", x, _numbers(dropped)) if dropped else x


def _where(_: Layer, condition: Any, x: Any, y: Any) -> Any:
    return op("Where", op("Not", op("Equal", condition, np.float32(0))), x, y)


_UNARY = {"exp": "Exp", "log": "Log", "sqrt": "Sqrt", "recip": "Reciprocal", "abs": "Abs"}


def _unary(layer: Layer, x: Any) -> Any:
    return op((_UNARY | {"neg": "Neg"})[layer.given["operation"]], x)


def _arg_max(_: Layer, x: Any) -> Any:
    return op("Cast", op("ArgMax", x, axis=1, keepdims=0), to=1)


def _resize_arg_max(layer: Layer, x: Any) -> Any:
    return _arg_max(layer, _resize(layer, x))


def _sum(_: Layer, x: Any) -> Any:
    return op("ReduceSum", x, _numbers([1]), keepdims=0)


def _matmul(layer: Layer, x: Any, y: Any) -> Any:
    def turned(value: Any) -> Any:
        axes = list(range(rank_of(value)))
        return op("Transpose", value, perm=[*axes[:-2], axes[-1], axes[-2]])

    x = turned(x) if layer.given["transa"] else x
    return op("MatMul", x, turned(y) if layer.given["transb"] else y)


def _interpolate(_: Layer, p: Any, x: Any, y: Any) -> Any:
    return op("Add", op("Mul", p, x), op("Mul", op("Sub", np.float32(1), p), y))


def _shift(layer: Layer, x: Any) -> Any:
    """Move groups of channels, one for each place of a window; that of the centre is the last."""
    kh, kw = layer.pair("kh", "kw")
    dy, dx = layer.pair("dy", "dx")
    _, channels, height, width = shape_of(x)
    if not all(isinstance(size, int) for size in (channels, height, width)):
        raise ValueError("Shift needs sizes that are numbers")
    py, px = kh // 2 * abs(dy), kw // 2 * abs(dx)
    padded = op("Pad", x, _numbers([0, 0, py, px, 0, 0, py, px]))
    places = list(range(kh * kw))
    middle = (len(places) - 1) // 2
    places[middle], places[-1] = places[-1], places[middle]
    each = int(channels) // len(places)
    pieces = []
    for i, place in enumerate(places):
        top = py - (place // kw - kh // 2) * dy
        left = px - (place % kw - kw // 2) * dx
        last = int(channels) if i == len(places) - 1 else (i + 1) * each
        ends = [last, top + int(height), left + int(width)]
        starts = _numbers([i * each, top, left])
        pieces.append(op("Slice", padded, starts, _numbers(ends), _numbers([1, 2, 3])))
    return op("Concat", *pieces, axis=1)


# The axis along which the largest number so far is kept, and whether it is from the end on.
_DIRECTIONS = {"left": (3, True), "right": (3, False), "top": (2, True), "bottom": (2, False)}


def _directed_pooling(layer: Layer, x: Any) -> Any:
    axis, backwards = _DIRECTIONS[layer.given["dir"]]
    size = shape_of(x)[axis]
    if not isinstance(size, int):
        raise ValueError("the size along the direction has to be a number")
    reach = 1
    while reach < size:  # each step doubles how far a number has seen
        pads = np.zeros(8, np.int64)
        pads[axis + 4 * backwards] = reach
        low, high = (reach, _INT64.max) if backwards else (0, size)
        moved = op("Pad", x, pads, np.float32(-np.inf))
        moved = op("Slice", moved, _numbers([low]), _numbers([high]), _numbers([axis]))
        x = op("Max", x, moved)
        reach *= 2
    return x


def _plain(operator: str, **attributes: Any) -> Callable[..., Any]:
    return lambda layer, *values: op(operator, *values, **attributes)


KINDS: Mapping[str, Callable[..., Any]] = {
    "Convolution2DFunction": _convolution,
    "Deconvolution2DFunction": _deconvolution,
    "BatchNormalizationFunction": _normalization,
    "BatchNormalization": _normalization,
    "LocalResponseNormalization": _local_normalization,
    "ReLU": _plain("Relu"),
    "Sigmoid": _plain("Sigmoid"),
    "Tanh": _plain("Tanh"),
    "LeakyReLU": lambda layer, x: op("LeakyRelu", x, alpha=float(layer.given["slope"])),
    "Softmax": _plain("Softmax", axis=1),
    "Concat": _concat,
    "Copy": _plain("Identity"),
    "Dropout": _plain("Identity"),
    "Reshape": _reshape,
    "Transpose": _transpose,
    "BroadcastTo": _broadcast,
    "GetItem": _get_item,
    "MaxPooling2D": _max_pooling,
    "AveragePooling2D": _average_pooling,
    "LinearFunction": _linear,
    "MatMul": _matmul,
    "Add": _plain("Add"),
    "Sub": _plain("Sub"),
    "Mul": _plain("Mul"),
    "Div": _plain("Div"),
    "Maximum": _plain("Max"),
    "Minimum": _plain("Min"),
    "AddConstant": _with_constant("Add", first=False),
    "MulConstant": _with_constant("Mul", first=False),
    "SubFromConstant": _with_constant("Sub", first=True),
    "DivFromConstant": _with_constant("Div", first=True),
    "Unary": _unary,
    "Where": _where,
    "ArgMax": _arg_max,
    "Sum": _sum,
    "LinearInterpolate": _interpolate,
    "ResizeImages": _resize,
    "ResizeArgmax": _resize_arg_max,
    "Shift": _shift,
    "DirectedPooling": _directed_pooling,
    "CornerPooling": _directed_pooling,
}
