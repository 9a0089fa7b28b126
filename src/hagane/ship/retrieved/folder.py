"""The layers of ``model.json`` as nodes of a graph."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from hagane.errors import InvalidModel, NoSuchFile, TypeInferenceError, UnsupportedModel
from hagane.graph.opsets import CURRENT_OPSETS
from hagane.graph.types import TensorType
from hagane.ops import GraphTypes
from hagane.ops.builder import op
from hagane.ops.builder.interpreter import interpreting
from hagane.ops.builder.nodes import Nodes, new_input
from hagane.ship.retrieved.layers import KINDS, Layer
from hagane.ship.retrieved.tensors import read_tensor
from hagane.symbolic import symbol

DESCRIPTION = "model.json"


def model_source(path: Path) -> Path | ir.Model:
    """Return the model that a session opens for a path, a ModelRetriever's folder included.

    Raises:
        ModelError: As ``read_retrieved``.
    """
    return read_retrieved(path) if (path / DESCRIPTION).is_file() else path


def read_retrieved(folder: Path) -> ir.Model:
    """Return the model of a folder that chainer-trt's ModelRetriever wrote.

    The batch, which the folder leaves out of all shapes, is the named size ``batch``.

    Args:
        folder: Holds ``model.json`` and the files of weights that it names.

    Raises:
        NoSuchFile: A file is missing.
        InvalidModel: The description or a file is damaged, or a layer does not fit its inputs.
        UnsupportedModel: Layers are of unknown kinds; all are named.
    """
    layers, outputs = _described(folder)
    unknown = [
        f"layer '{layer['name']}' is of the kind {layer['type']}; known are {', '.join(KINDS)}"
        for layer in layers
        if layer["type"] not in KINDS and layer["type"] not in ("input", "ConstantInput")
    ]
    if unknown:
        raise UnsupportedModel(unknown)
    types = GraphTypes()
    inputs: dict[str, ir.Value] = {}
    for layer in layers:
        if layer["type"] == "input":
            shape = (symbol("batch"), *layer["shape"])
            made = new_input(layer["name"], TensorType(ir.DataType.FLOAT, shape), types)
            inputs[layer["name"]] = made
    graph = ir.Graph(
        list(inputs.values()), [], nodes=[], name=folder.name, opset_imports=dict(CURRENT_OPSETS)
    )
    nodes = Nodes(graph, types)
    values: dict[str, ir.Value] = dict(inputs)
    with interpreting(nodes):
        waiting = [layer for layer in layers if layer["type"] != "input"]
        while waiting:
            ready = [layer for layer in waiting if all(n in values for n in _sources(layer))]
            if not ready:
                raise InvalidModel(_missing(waiting[0], values))
            for layer in ready:
                _append(folder, layer, nodes, values)
            waiting = [layer for layer in waiting if layer not in ready]
        graph.outputs.extend(_output(values, source, name) for source, name in outputs)
    return ir.Model(graph, ir_version=10, producer_name="chainer-trt")


def _described(folder: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the layers, and the source and name of each output."""
    path = folder / DESCRIPTION
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        layers = [dict(layer) for layer in found["layers"]]
        for layer in layers:
            str(layer["type"]), str(layer["name"]), [str(name) for name in layer["output_names"]]
            [int(size) for size in layer.get("shape", ())]
        pairs = [(x, x) if isinstance(x, str) else (str(x[0]), str(x[1])) for x in found["outputs"]]
    except OSError:
        raise NoSuchFile(f"there is no file '{path}'") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InvalidModel(
            f"'{path}' is no description by ModelRetriever, or is damaged: {error!r}"
        ) from None
    return layers, pairs


def _sources(layer: Mapping[str, Any]) -> list[str]:
    return list(layer.get("sources", [layer["source"]] if "source" in layer else []))


def _missing(layer: Mapping[str, Any], values: Mapping[str, ir.Value]) -> str:
    (first, *_) = [name for name in _sources(layer) if name not in values]
    return f"layer '{layer['name']}' reads '{first}', which no layer before it writes"


def _append(
    folder: Path, layer: Mapping[str, Any], nodes: Nodes, values: dict[str, ir.Value]
) -> None:
    """Put a layer into the graph."""
    try:
        if layer["type"] == "ConstantInput":
            shape = tuple(layer["shape"])
            array = read_tensor(folder / str(layer["input_tensor"])).reshape(-1, *shape)
            made = nodes.initializer(array, layer["name"])
        else:
            nodes.name = layer["name"]
            given = [values[name] for name in _sources(layer)]
            weights = {
                key.removesuffix("_weights_file"): read_tensor(folder / str(name))
                for key, name in layer.items()
                if key.endswith("_weights_file")
            }
            made = KINDS[layer["type"]](Layer(layer["name"], layer, weights), *given)
    except (ValueError, KeyError, TypeError, TypeInferenceError) as error:
        raise InvalidModel(f"layer '{layer['name']}' ({layer['type']}): {error}") from None
    values[layer["output_names"][0]] = made


def _output(values: Mapping[str, ir.Value], source: str, name: str) -> ir.Value:
    if source not in values:
        raise InvalidModel(f"output '{name}' is '{source}', which no layer writes")
    (found,) = _as_sequence(op("Identity", values[source]))
    found.name = name
    return found


def _as_sequence(value: Any) -> Sequence[ir.Value]:
    return [value]
