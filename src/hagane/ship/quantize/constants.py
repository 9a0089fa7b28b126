"""Nodes that compute with constants alone, as the weights of captured models are transposed."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import helper, numpy_helper

from hagane.ops.definition import Array
from hagane.runtime import InferenceSession
from hagane.ship.quantize.names import read_names

# Their results are larger than their inputs, or those of other schemes of eight bits.
_LEFT = frozenset(
    (
        "Bernoulli",
        "ConstantOfShape",
        "DequantizeLinear",
        "Dropout",
        "DynamicQuantizeLinear",
        "Expand",
        "EyeLike",
        "Multinomial",
        "OneHot",
        "Pad",
        "QuantizeLinear",
        "RandomNormalLike",
        "RandomUniformLike",
        "Range",
        "Resize",
        "Tile",
    )
)


def fold_constants(model: onnx.ModelProto, constants: dict[str, Array]) -> None:
    """Compute nodes of a graph whose inputs are all constants, in place.

    Args:
        model: Its results become initializers, and initializers that nothing reads any more leave.
        constants: The arrays of initializers and Constant nodes, to which the results are added.
    """
    graph = model.graph
    returned = {value.name for value in graph.output}
    known, nodes = set(constants), []
    for node in graph.node:
        if _is_foldable(node, known) and not returned & set(node.output):
            nodes.append(node)
            known.update(node.output)
    if not nodes:
        return
    made = {name for node in nodes for name in node.output if name}
    for node in nodes:
        graph.node.remove(node)
    wanted = sorted(made & read_names(graph))
    for name, array in zip(wanted, _computed(model, nodes, constants, wanted), strict=True):
        constants[name] = array
        graph.initializer.append(numpy_helper.from_array(array, name))
    read = read_names(graph) | {value.name for value in graph.input}
    for item in [item for item in graph.initializer if item.name not in read]:
        graph.initializer.remove(item)
    kept = [value for value in graph.value_info if value.name not in made]
    del graph.value_info[:]
    graph.value_info.extend(kept)


def _is_foldable(node: onnx.NodeProto, known: set[str]) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type in _LEFT:
        return False
    inputs = [name for name in node.input if name]
    has_bodies = any(item.HasField("g") or item.graphs for item in node.attribute)
    return bool(inputs) and known.issuperset(inputs) and not has_bodies


def _computed(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, Array],
    wanted: Sequence[str],
) -> list[Array]:
    """Return the values of some names, by a model of the nodes alone."""
    if not wanted:
        return []
    made = {name for node in nodes for name in node.output}
    read = {name for node in nodes for name in node.input if name} - made
    graph = helper.make_graph(
        nodes,
        "constants",
        [],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        [numpy_helper.from_array(constants[name], name) for name in sorted(read)],
    )
    alone = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    return list(InferenceSession(alone.SerializeToString()).run(list(wanted), {}))
