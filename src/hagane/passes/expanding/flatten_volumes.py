"""Write convolutions of volumes whose windows are flat as convolutions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    attributes_of,
    building,
    constant,
    given,
    has_dtype,
    is_read_once,
    name_of,
    put_in_place,
    scalar,
    shape_of,
)

_DTYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_TO_IMAGES = (0, 2, 1, 3, 4)  # and back
# Windows of one place over fewer channels stay: what a kernel of volumes reads of these again for
# each few maps is in the nearest cache, and no layout changes before it and behind it.
_FEW_CHANNELS = 128


def flatten_volumes(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace Conv over three axes by one over two, between changes of shape; return where.

    Windows of one step along both axes of a plane see its pixels as one axis. Where windows have
    one step in depth, the planes of all volumes are images, between transpositions. What is
    computed of the results alone, number by number, comes before they are volumes again, so that
    kernels compute both at once.

    Weights are constants. Nothing changes where windows extend in depth and in planes, or have one
    place in few channels.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.op_type != "Conv" or node.domain != "":
            continue
        weight, attributes = constant(node.inputs[1], types), attributes_of(node)
        shapes = shape_of(node.inputs[0], types), shape_of(node.outputs[0], types)
        if weight is None or weight.ndim != 5 or None in shapes:
            continue
        if attributes.get("auto_pad", "NOTSET") != "NOTSET" or not has_dtype(
            node.outputs[0], types, *_DTYPES
        ):
            continue
        strides, dilations = (_of_axes(attributes.get(name)) for name in ("strides", "dilations"))
        pads = _of_axes(attributes.get("pads"), 0, 6)
        flat = (
            weight.shape[3:] == (1, 1) and strides[1:] == [1, 1] and not any(pads[1:3] + pads[4:])
        )
        deep = weight.shape[2] != 1 or strides[0] != 1 or pads[0] or pads[3]
        if not flat and deep:
            continue
        if flat and not deep and weight.shape[1] < _FEW_CHANNELS:
            continue
        changed.append(name_of(node))
        window = {
            name: value for name, value in given(node).items() if name in ("group", "auto_pad")
        }
        _replace(graph, types, node, weight, window, (strides, dilations, pads), flat=flat)
    return changed


def _of_axes(value: Any, usual: int = 1, count: int = 3) -> list[int]:
    return [int(item) for item in value] if value else [usual] * count


def _replace(
    graph: ir.Graph,
    types: GraphTypes,
    node: ir.Node,
    weight: Array,
    window: dict[str, Any],
    steps: tuple[Sequence[int], Sequence[int], Sequence[int]],
    *,
    flat: bool,
) -> None:
    """Put the convolution over two axes in the place of one and of functions of its result."""
    strides, dilations, pads = steps
    x, bias = node.inputs[0], node.inputs[2] if len(node.inputs) > 2 else None
    functions = _functions(node, types)
    last = functions[-1] if functions else node
    with building(graph, types, last, name_of(node)):
        if flat:
            line = op("Mul", _sizes(x, 3), _sizes(x, 4))
            shape = op("Concat", _sizes(x, 0, 3), line, axis=0)
            image, filters = op("Reshape", x, shape, allowzero=1), weight[:, :, :, :, 0]
            kept = [0]
        else:
            turned = op("Transpose", x, perm=list(_TO_IMAGES))
            planes = op("Mul", _sizes(x, 0), _sizes(x, 2))
            shape = op("Concat", planes, _sizes(turned, 2, 5), axis=0)
            image, filters = op("Reshape", turned, shape, allowzero=1), weight[:, :, 0]
            kept = [1, 2]
        made = op(
            "Conv", image, np.ascontiguousarray(filters), bias, **window,
            kernel_shape=list(filters.shape[2:]),
            strides=_two(strides, kept), dilations=_two(dilations, kept),
            pads=_two(pads[:3], kept, 0) + _two(pads[3:], kept, 0),
        )  # fmt: skip
        for function in functions:
            made = op(function.op_type, made, *function.inputs[1:], **given(function))
        if flat:
            back = op("Concat", _sizes(made, 0, 3), _sizes(x, 3, 5), axis=0)
            result = op("Reshape", made, back, allowzero=1)
        else:
            back = op("Concat", _sizes(x, 0), _sizes(x, 2), _sizes(made, 1, 4), axis=0)
            result = op("Transpose", op("Reshape", made, back, allowzero=1), perm=list(_TO_IMAGES))
    put_in_place(graph, types, last, result)


def _two(values: Sequence[int], kept: Sequence[int], usual: int = 1) -> list[int]:
    """Return what applies to the two axes of an image."""
    return [*(values[axis] for axis in kept), usual][:2]


def _sizes(value: Any, first: int, end: int | None = None) -> Any:
    return op("Shape", value, start=first, end=first + 1 if end is None else end)


def _functions(node: ir.Node, types: GraphTypes) -> list[ir.Node]:
    """Return nodes in a row that compute each number of the result by itself."""
    found: list[ir.Node] = []
    value = node.outputs[0]
    while is_read_once(value):
        (use,) = value.uses()
        reader = use.node
        if use.idx != 0 or reader.graph is not node.graph or reader.domain != "":
            break
        if not has_trait(reader, Trait.ELEMENTWISE) or len(reader.outputs) != 1:
            break
        others = reader.inputs[1:]
        if not all(each is None or _is_number(each, types) for each in others):
            break
        found.append(reader)
        value = reader.outputs[0]
    return found


def _is_number(value: ir.Value, types: GraphTypes) -> bool:
    return scalar(value, types) is not None and len(shape_of(value, types) or ()) <= 1
