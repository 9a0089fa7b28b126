"""How far fp32 results lie from those of the same model in fp64, beside ONNX Runtime's.

``python benchmarks/agreement.py [NAME …]`` prints a Markdown table. The fp64 results come from the
reference kernels, run on a copy of the model whose floats are all double; attributes stay as the
file has them. Trained models see pictures, sounds and texts, the others random numbers. For each
model the worst of its outputs counts:

- *max*: the largest difference over the largest absolute value of the output;
- *mean*: the mean over all elements of the difference over the element's absolute value plus a
  millionth of the output's largest (which keeps elements that should be zero from deciding all).

PyTorch is needed to write the models; other packages are fetched as the examples do.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from trained import TRAINED, made_input

import hagane
from hagane.runtime.values.feeds import random_value
from models import NAMES, make

Arrays = Mapping[str, np.ndarray]

# Inputs that have to stay fp32 whatever the element type of the others.
_SINGLE = {"Resize": (1, 2), "Upsample": (1,)}


def double(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a model in which every fp32 number that is computed with is fp64."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _double_graph(copy.graph)
    for function in copy.functions:
        _double_nodes(function.node)
    return copy


def _double_graph(graph: onnx.GraphProto) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        _double_type(value.type)
    for tensor in graph.initializer:
        _double_tensor(tensor)
    _double_nodes(graph.node)


def _double_type(type_: onnx.TypeProto) -> None:
    if type_.HasField("sequence_type"):
        _double_type(type_.sequence_type.elem_type)
    elif type_.HasField("optional_type"):
        _double_type(type_.optional_type.elem_type)
    elif type_.tensor_type.elem_type == TensorProto.FLOAT:
        type_.tensor_type.elem_type = TensorProto.DOUBLE


def _double_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        wide = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _double_nodes(nodes: Any) -> None:
    found = list(nodes)
    del nodes[:]
    for number, node in enumerate(found):
        for attribute in node.attribute:
            _double_attribute(node, attribute)
        for index in _SINGLE.get(node.op_type, ()):
            if index < len(node.input) and node.input[index]:
                name = f"{node.input[index]} single {number}"
                cast = helper.make_node("Cast", [node.input[index]], [name], to=TensorProto.FLOAT)
                nodes.append(cast)
                node.input[index] = name
        nodes.append(node)


def _double_attribute(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> None:
    kind = onnx.AttributeProto
    if attribute.type == kind.GRAPH:
        _double_graph(attribute.g)
    elif attribute.type == kind.TENSOR:
        _double_tensor(attribute.t)
    elif attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
        attribute.i = TensorProto.DOUBLE
    elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
        number = helper.get_attribute_value(attribute)
        tensor = numpy_helper.from_array(np.array(number, np.float64))
        attribute.CopyFrom(helper.make_attribute("value", tensor))


def feed_of(
    session: hagane.InferenceSession, shapes: Mapping[str, tuple[int, ...]], words: int
) -> dict[str, np.ndarray]:
    """Return random inputs: normal floats, whole numbers below ``words``, masks of ones."""
    generator = np.random.default_rng(0)
    feed = {}
    for item in session.get_inputs():
        value = random_value(item, shapes.get(item.name), generator)
        if value.dtype.kind in "iu":
            value = generator.integers(0, words, value.shape).astype(value.dtype)
        feed[item.name] = np.ones_like(value) if "mask" in item.name else value
    return feed


def errors(found: list[Any], exact: list[Any]) -> tuple[float, float]:
    """Return the *max* and the *mean* of the worst output."""
    largest, means = [0.0], [0.0]
    for left, right in zip(found, exact, strict=True):
        if right.dtype != np.float64:
            continue
        apart, size = np.abs(left.astype(np.float64) - right), np.abs(right)
        top = float(size.max(initial=0)) or 1.0
        largest.append(float(apart.max(initial=0)) / top)
        means.append(float((apart / (size + 1e-6 * top)).mean()))
    return max(largest), max(means)


def run_onnxruntime(path: Path, feed: Arrays) -> list[Any]:
    """Return ONNX Runtime's results with two threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feed)))


def run_hagane(path: Path, feed: Arrays) -> list[Any]:
    """Return the native engine's results with two threads."""
    options = hagane.SessionOptions()
    options.intra_op_num_threads = 2
    return list(hagane.InferenceSession(path, options).run(None, feed))


def run_double(path: Path, feed: Arrays) -> list[Any]:
    """Return the results of the reference kernels in fp64."""
    options = hagane.SessionOptions()
    options.add_session_config_entry("hagane.engine", "reference")
    session = hagane.InferenceSession(double(onnx.load(path)), options)
    single = np.dtype(np.float32)
    wide = {n: a.astype(np.float64) if a.dtype == single else a for n, a in feed.items()}
    return list(session.run(None, wide))


def cases(names: list[str], folder: Path) -> Iterator[tuple[str, Path, Arrays]]:
    """Yield each model's name, file and inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in TRAINED:
            model: Callable[[], onnx.ModelProto] = TRAINED[name]
            path = folder / f"{name.replace(' ', '_')}.onnx"
            if not path.exists():
                onnx.save(model(), path)
            shapes = {}
        else:
            path, shapes = make(name, folder)
        feed = made_input(name)
        if feed is None:
            words = 256 if name == "Magika" else 30000
            feed = feed_of(hagane.InferenceSession(path), shapes, words)
        yield name, path, feed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*NAMES, *TRAINED])
    parser.add_argument(
        "--folder", type=Path, default=Path.home() / ".cache" / "hagane" / "benchmarks"
    )
    arguments = parser.parse_args()
    print("| model | hagane max | mean | ONNX Runtime max | mean |\n|---|---|---|---|---|")
    for name, path, feed in cases(arguments.names, arguments.folder):
        exact = run_double(path, feed)
        cells = []
        for run in (run_hagane, run_onnxruntime):
            cells += [f"{error:.1e}" for error in errors(run(path, feed), exact)]
            gc.collect()
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
