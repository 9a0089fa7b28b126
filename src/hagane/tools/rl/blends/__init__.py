"""A policy in ONNX, rewritten to answer for an observation and all its blends at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

from hagane.tools.rl.blends.differences import Difference
from hagane.tools.rl.blends.drawing import Drawing, renamed
from hagane.tools.rl.blends.pixels import Pixels, blurred, convolved

_NESTED = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def blended(
    model: onnx.ModelProto,
    masks: npt.NDArray[np.float32],
    blurs: Sequence[npt.NDArray[np.float64]],
    observed: tuple[int, ...],
    axes: tuple[int, int],
) -> onnx.ModelProto | None:
    """Return a model of one observation whose outputs have a batch: itself, then its blends.

    Args:
        model: a policy. Its first input takes observations in a batch, the others a state.
        masks: the share of the blur at each pixel, ``(n, height, width)``.
        blurs: the matrices that blur along height, width and, if given, channels, each square.
        observed: the shape of an observation as the model takes it, with a batch of 1.
        axes: of height and width in it.

    Returns:
        None where the graph does not begin with a convolution of the observation, or where the
        arrays would be too large; a batch of blends is to be made then.
    """
    graph = model.graph
    held = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            held[node.output[0]] = node.attribute[0].t
    if not _usable(model):
        return None
    drawing = Drawing()
    state = _states(model, held, 1 + len(masks), drawing)
    name = graph.input[0].name
    known: dict[str, Pixels | Difference] = {name: blurred(name, observed, axes, blurs, drawing)}
    whole: set[str] = set()
    for node in graph.node:
        touched = {name for name in node.input if name in known}
        after: Pixels | Difference | None = None
        if len(touched) == 1:
            (name,) = touched
            value = known[name]
            only = list(node.input).count(name) == 1
            if isinstance(value, Pixels):
                after = value.through(node, drawing, held) if only else None
                if after is None and node.op_type == "Conv" and node.input[0] == name:
                    after = convolved(node, value, masks, drawing, held)
            elif only and node.input[0] == name:
                after = value.through(node, drawing, held)
        if after is not None:
            known[node.output[0]] = after
            continue
        for name in sorted(touched - whole):
            value = known[name]
            if isinstance(value, Pixels):
                return None
            value.whole(drawing, name)
            whole.add(name)
        drawing.nodes.append(renamed(node, state))
    for output in graph.output:
        shown = known.get(output.name)
        if isinstance(shown, Pixels):
            return None
        if shown is not None and output.name not in whole:
            shown.whole(drawing, output.name)
    return _assembled(model, held, observed, 1 + len(masks), drawing)


def _usable(model: onnx.ModelProto) -> bool:
    observation = model.graph.input[0].type.tensor_type
    if any(item.domain in ("", "ai.onnx") and item.version < 13 for item in model.opset_import):
        return False
    # Branches and loops may read the observation without taking it as an input.
    nested = any(a.type in _NESTED for node in model.graph.node for a in node.attribute)
    sizes = observation.shape.dim
    free = bool(sizes) and not sizes[0].HasField("dim_value")
    return observation.elem_type == TensorProto.FLOAT and free and not nested


def _states(
    model: onnx.ModelProto, held: dict[str, onnx.TensorProto], count: int, drawing: Drawing
) -> dict[str, str]:
    """Return the names of recurrent states that are repeated for all blends."""
    names = {}
    for item in model.graph.input[1:]:
        if item.name not in held:
            rest = len(item.type.tensor_type.shape.dim) - 1
            names[item.name] = drawing.node("Tile", item.name, drawing.integers(count, *[1] * rest))
    return names


def _assembled(
    model: onnx.ModelProto,
    held: dict[str, onnx.TensorProto],
    observed: tuple[int, ...],
    count: int,
    drawing: Drawing,
) -> onnx.ModelProto:
    first, *rest = model.graph.input
    inputs = [helper.make_tensor_value_info(first.name, TensorProto.FLOAT, observed)]
    for item in rest:
        if item.name not in held:
            inputs.append(_with_batch(item, 1))
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    outputs = [_with_batch(item, count) for item in model.graph.output]
    for place in (graph.node, graph.input, graph.output, graph.value_info):
        del place[:]
    graph.node.extend(drawing.nodes)
    graph.input.extend(inputs)
    graph.output.extend(outputs)
    graph.initializer.extend(drawing.constants)
    return made


def _with_batch(item: onnx.ValueInfoProto, count: int) -> onnx.ValueInfoProto:
    """Return a value whose first dimension, where it is free, is a number."""
    again = onnx.ValueInfoProto()
    again.CopyFrom(item)
    sizes = again.type.tensor_type.shape.dim
    if sizes and not sizes[0].HasField("dim_value"):
        sizes[0].dim_value = count
    return again
