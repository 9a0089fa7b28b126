"""A policy in ONNX, rewritten to answer for an observation and all its blends at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from hagane.graph import ModelSource, load
from hagane.graph.names import separate_names
from hagane.graph.walk import has_bodies
from hagane.ops.builder import Nodes, interpreting, op
from hagane.ops.inference import GraphTypes, infer_types
from hagane.passes.legalise import legalise
from hagane.passes.removing.remove_dead import remove_dead
from hagane.tools.rl.blends.pixels import Pixels, blurred, convolved
from hagane.tools.rl.blends.windows import Windows


def blended(
    source: ModelSource,
    masks: npt.NDArray[np.float32],
    blurs: Sequence[npt.NDArray[np.float64]],
    observed: tuple[int, ...],
    axes: tuple[int, int],
) -> ir.Model | None:
    """Return a model of one observation whose outputs have a batch: itself, then its blends.

    Args:
        source: a policy. Its first input takes observations in a batch, the others a state.
        masks: the share of the blur at each pixel, ``(n, height, width)``.
        blurs: the matrices that blur along height, width and, if given, channels, each square.
        observed: the shape of an observation as the model takes it, with a batch of 1.
        axes: of height and width in it.

    Returns:
        None where the graph does not begin with a convolution of the observation, or where the
        arrays would be too large; a batch of blends is to be made then.

    Raises:
        UnsupportedModel: the model needs operators that hagane lacks.
        TypeInferenceError: the observation does not fit it.
    """
    model = load(source)
    graph = model.graph
    if not _usable(graph):
        return None
    legalise(model)
    observation, *states = graph.inputs
    shapes = {str(state.name): _with_batch(state, 1) for state in states}
    shapes[str(observation.name)] = [*observed]
    types = infer_types(model, shapes=shapes)
    count = 1 + len(masks)
    nodes = list(graph)
    with interpreting(Nodes(graph, types, before=nodes[0], name="blends")):
        _repeat(states, count)
        known: dict[ir.Value, Pixels | Windows] = {
            observation: blurred(observation, observed, axes, blurs)
        }
    replaced = _rewritten(graph, types, nodes, known, masks)
    if replaced is None:
        return None
    for node in reversed(replaced):
        graph.remove(node, safe=True)
    remove_dead(graph, types)
    for value in graph.inputs:
        value.shape = ir.Shape(shapes[str(value.name)])
    for node in graph:
        for value in node.outputs:
            value.shape = None  # with a batch of 1 until now
    separate_names(graph)
    return model


def _usable(graph: ir.Graph) -> bool:
    observation = graph.inputs[0]
    # Branches and loops may read the observation without taking it as an input.
    nested = any(has_bodies(node) for node in graph)
    sizes = [*(observation.shape or ())]
    free = bool(sizes) and not isinstance(sizes[0], int)
    return observation.dtype == ir.DataType.FLOAT and free and not nested and len(graph) > 0


def _with_batch(value: ir.Value, count: int) -> list[int | str]:
    """Return a shape whose first dimension, where it is free, is a number."""
    sizes = [size if isinstance(size, int) else str(size) for size in value.shape or ()]
    return [count, *sizes[1:]] if sizes and isinstance(sizes[0], str) else sizes


def _repeat(states: Sequence[ir.Value], count: int) -> None:
    """Let readers of recurrent states read each as often as there are blends."""
    for state in states:
        readers = list(state.uses())
        repeated = op("Tile", state, [count, *[1] * (len(state.shape or ()) - 1)])
        for reader, index in readers:
            reader.replace_input_with(index, repeated)


def _rewritten(
    graph: ir.Graph,
    types: GraphTypes,
    nodes: Sequence[ir.Node],
    known: dict[ir.Value, Pixels | Windows],
    masks: npt.NDArray[np.float32],
) -> list[ir.Node] | None:
    """Put nodes for all blends beside those for one observation; return the ones they replace."""
    replaced = []
    whole: dict[ir.Value, ir.Value] = {}
    for node in nodes:
        builder = Nodes(graph, types, before=node, name="blends")
        touched = {value for value in node.inputs if value in known}
        with interpreting(builder):
            after = _through(node, known, masks, builder) if len(touched) == 1 else None
            if after is not None:
                known[node.outputs[0]] = after
                replaced.append(node)
                continue
            for index, value in enumerate(node.inputs):
                if value is None or value not in known:
                    continue
                if not _materialised(value, known, whole):
                    return None
                node.replace_input_with(index, whole[value])
    with interpreting(Nodes(graph, types, name="blends")):
        for index, value in enumerate(graph.outputs):
            if value in known:
                if not _materialised(value, known, whole):
                    return None
                graph.outputs[index] = whole[value]
                whole[value].name, value.name = value.name, None
    return replaced


def _materialised(
    value: ir.Value, known: dict[ir.Value, Pixels | Windows], whole: dict[ir.Value, ir.Value]
) -> bool:
    """Make a value for the observation and all blends; False where it comes before any layer."""
    found = known[value]
    if isinstance(found, Pixels):
        return False
    if value not in whole:
        whole[value] = found.whole()
    return True


def _through(
    node: ir.Node,
    known: dict[ir.Value, Pixels | Windows],
    masks: npt.NDArray[np.float32],
    builder: Nodes,
) -> Pixels | Windows | None:
    """Return the output of a node that reads one known value, None if it needs all of it."""
    places = [index for index, value in enumerate(node.inputs) if value in known]
    if len(places) != 1:
        return None
    value = known[node.inputs[places[0]]]  # type: ignore[index]
    if isinstance(value, Windows):
        return value.through(node, builder) if places == [0] else None
    after: Pixels | Windows | None = value.through(node, builder)
    if after is None and node.op_type == "Conv" and places == [0]:
        after = convolved(node, value, masks, builder)
    return after
