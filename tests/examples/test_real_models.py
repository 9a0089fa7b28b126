"""Real models: agreement with ONNX Runtime on several shapes, and shapes resolved by symbols."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hagane.cli.inspect import describe_model
from hagane.graph import load
from hagane.ops import infer_types
from hagane.passes.legalise import legalise
from hagane.symbolic import Dim
from tests.oracle import assert_agrees

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

pytestmark = pytest.mark.fetches


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def _ocr(name: str) -> onnx.ModelProto:
    from fetch import fetch

    folder = fetch("rapidocr-onnxruntime==1.4.4") / "rapidocr_onnxruntime" / "models"
    return onnx.load(folder / name)


def _silero() -> onnx.ModelProto:
    from fetch import fetch

    return onnx.load(fetch("silero-vad==6.2.3") / "silero_vad" / "data" / "silero_vad.onnx")


def _magika() -> onnx.ModelProto:
    from fetch import fetch

    return onnx.load(fetch("magika==1.0.3") / "magika" / "models" / "standard_v3_3" / "model.onnx")


def _pitch() -> onnx.ModelProto:
    from fetch import fetch

    folder = fetch("basic-pitch==0.4.0") / "basic_pitch" / "saved_models" / "icassp_2022"
    return onnx.load(folder / "nmp.onnx")


def _minilm() -> onnx.ModelProto:
    from minilm import minilm

    return minilm()


def _mobilenet() -> onnx.ModelProto:
    from mobilenet_v2 import mobilenet_v2

    return mobilenet_v2()


def _sentence(batch: int, length: int) -> dict[str, np.ndarray]:
    ids = np.random.default_rng(0).integers(0, 30000, (batch, length))
    mask = np.ones_like(ids)
    mask[0, length // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def _speech(batch: int) -> dict[str, np.ndarray]:
    return {
        "input": normal(batch, 576) * 0.1,
        "state": np.zeros((2, batch, 128), np.float32),
        "sr": np.array(16000),
    }


def _bytes(batch: int) -> dict[str, np.ndarray]:
    return {"bytes": np.random.default_rng(0).integers(0, 257, (batch, 2048)).astype(np.int32)}


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], list[dict[str, np.ndarray]]]] = {
    "MobileNetV2": (_mobilenet, [{"image": normal(n, 3, 224, 224)} for n in (1, 2)]),
    "MiniLM": (_minilm, [_sentence(1, 4), _sentence(3, 17), _sentence(2, 64)]),
    "OCR detection": (
        lambda: _ocr("ch_PP-OCRv4_det_infer.onnx"),
        # Drawn text rather than noise: the answer to noise is zero up to rounding.
        [{"x": np.tile(normal(1, 1, 1, w) > 0, (b, 3, h, 1)).astype(np.float32)}
         for b, h, w in ((1, 96, 160), (2, 64, 64))],
    ),
    "OCR direction": (
        lambda: _ocr("ch_ppocr_mobile_v2.0_cls_infer.onnx"),
        [{"x": normal(n, 3, 48, 192)} for n in (1, 3)],
    ),
    "OCR recognition": (
        lambda: _ocr("ch_PP-OCRv4_rec_infer.onnx"),
        [{"x": normal(1, 3, 48, 160)}, {"x": normal(2, 3, 48, 320)}],
    ),
    "Silero VAD": (_silero, [_speech(1), _speech(3)]),
    "Magika": (_magika, [_bytes(1), _bytes(3)]),
    "Basic Pitch": (
        _pitch, [{"serving_default_input_2:0": normal(n, 43844, 1) * 0.1} for n in (1, 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_agrees_with_onnxruntime(name: str) -> None:
    make, feeds = MODELS[name]
    model = make()
    for feed in feeds:
        assert_agrees(model, feed, rtol=1e-3, atol=1e-4)


SYMBOLIC: dict[str, dict[str, list[Dim | str]]] = {
    "MobileNetV2": {"image": ["batch", 3, 224, 224]},
    "MiniLM": {
        "input_ids": ["batch", "sequence"],
        "attention_mask": ["batch", "sequence"],
    },
    "OCR detection": {"x": ["batch", 3, "height", "width"]},
    "OCR direction": {"x": ["batch", 3, 48, 192]},
    "OCR recognition": {"x": ["batch", 3, 48, "width"]},
}
OUTPUTS: dict[str, list[Any]] = {
    "MobileNetV2": ["batch", 1000],
    "MiniLM": ["batch", 384],
    "OCR detection": ["batch", 1, "32*((height + 31)//32)", "32*((width + 31)//32)"],
    "OCR direction": ["batch", 2],
    "OCR recognition": ["batch", "(width + 3)//8", 6625],
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_every_shape_of_a_real_model_follows_from_its_inputs(name: str) -> None:
    model = load(MODELS[name][0]())
    legalise(model)
    types = infer_types(model, shapes=SYMBOLIC[name])
    report = describe_model(model, types, {})
    assert report["unresolved"] == []
    assert report["outputs"][0]["shape"] == OUTPUTS[name]
