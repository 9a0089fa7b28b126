"""Models of sequences for ``dynamic.py``, written with open sizes: a tagger, a vocoder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class _Writer:
    """Nodes in order, and their weights, drawn so that values keep their size."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def weight(self, *shape: int) -> str:
        """Return the name of a weight whose last axes are summed over."""
        width = float(np.prod(shape[1:]) or 1)
        array = self._random.standard_normal(shape).astype(np.float32) / np.float32(width**0.5)
        return self.constant(array)

    def constant(self, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return str(self.weights[-1].name)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Return the name of an operator's first result."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def model(self, given: onnx.ValueInfoProto, result: str) -> onnx.ModelProto:
        outputs = [helper.make_empty_tensor_value_info(result)]
        graph = helper.make_graph(self.nodes, "g", [given], outputs, self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        outputs[0].CopyFrom(onnx.shape_inference.infer_shapes(made).graph.output[0])
        made.graph.output[0].CopyFrom(outputs[0])
        return made


def tagger(words: int = 20_000, width: int = 128, tags: int = 40) -> onnx.ModelProto:
    """Two layers of LSTM in both directions; Huang et al. (2015), without random fields."""
    w = _Writer()
    x = w.add("Transpose", w.add("Gather", w.weight(words, width), "x"), perm=[1, 0, 2])
    for layer in range(2):
        inside = width if layer == 0 else 2 * width
        gates = (
            w.weight(2, 4 * width, inside),
            w.weight(2, 4 * width, width),
            w.weight(2, 8 * width),
        )
        y = w.add("LSTM", x, *gates, hidden_size=width, direction="bidirectional")
        y = w.add("Transpose", y, perm=[0, 2, 1, 3])
        x = w.add("Reshape", y, w.constant(np.array([0, 0, -1])))
    scores = w.add("MatMul", w.add("Transpose", x, perm=[1, 0, 2]), w.weight(2 * width, tags))
    given = helper.make_tensor_value_info("x", TensorProto.INT64, ["n", "s"])
    return w.model(given, w.add("Softmax", scores, axis=-1))


def vocoder(bands: int = 80, width: int = 128) -> onnx.ModelProto:
    """Spectrogram to sound, as the small generator of Kong et al., "HiFi-GAN" (2020)."""
    w = _Writer()

    def conv(x: str, i: int, o: int, k: int, dilation: int = 1) -> str:
        pad = dilation * (k - 1) // 2
        return w.add(
            "Conv", x, w.weight(o, i, k), w.weight(o), pads=[pad, pad], dilations=[dilation]
        )

    x = conv("x", bands, width, 7)
    for stride, kernel in ((8, 16), (8, 16), (4, 8)):
        x = w.add("LeakyRelu", x, alpha=0.1)
        pad = (kernel - stride) // 2
        x = w.add(
            "ConvTranspose", x, w.weight(width, width // 2, kernel), w.weight(width // 2),
            strides=[stride], pads=[pad, pad],
        )  # fmt: skip
        width //= 2
        parts = []
        for taps in (3, 5):
            y = x
            for dilation in (1, 3):
                z = w.add("LeakyRelu", y, alpha=0.1)
                y = w.add("Add", y, conv(z, width, width, taps, dilation))
            parts.append(y)
        x = w.add("Mul", w.add("Add", *parts), w.constant(np.array(0.5, np.float32)))
    x = conv(w.add("LeakyRelu", x, alpha=0.01), width, 1, 7)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", bands, "t"])
    return w.model(given, w.add("Tanh", x))


WRITTEN: dict[str, Callable[[], onnx.ModelProto]] = {"tagger": tagger, "vocoder": vocoder}


def written(name: str, folder: Path) -> Path:
    """Return the file of a model, made if it is not there."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(WRITTEN[name](), path)
    return path
