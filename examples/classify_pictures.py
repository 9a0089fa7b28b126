"""Classify real pictures with a real model, and time it beside ONNX Runtime.

Model: MobileNetV2 with torchvision's ImageNet weights (BSD-3-Clause), built by
``mobilenet_v2.py``. Pictures: scikit-image's (public domain and CC0; its chelsea.png is a cat).
Class names: WordNet lemmas in timm (Apache-2.0; WordNet licence).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
from fetch import fetch
from mobilenet_v2 import mobilenet_v2
from PIL import Image

import hagane
from hagane.runtime.bench import compare

PICTURES = {"chelsea.png": "Egyptian cat", "coffee.png": "espresso"}


def class_names() -> list[str]:
    """Return the names of ImageNet's thousand classes, in order."""
    folder = fetch("timm==1.0.31") / "timm" / "data" / "_info"
    lines = (folder / "imagenet_synset_to_lemma.txt").read_text(encoding="utf-8").splitlines()
    lemma = dict(line.split("\t", 1) for line in lines)
    synsets = (folder / "imagenet_synsets.txt").read_text(encoding="utf-8").split()
    return [lemma[synset] for synset in synsets]


def read_picture(path: Path) -> np.ndarray:
    """Return a picture as float32 (3, 224, 224), normalised as the model was trained.

    The shorter side becomes 256 pixels, then the middle 224 by 224 are taken.
    """
    picture = Image.open(path).convert("RGB")
    scale = 256 / min(picture.size)
    size = tuple(round(side * scale) for side in picture.size)
    picture = picture.resize(size, Image.Resampling.BILINEAR)
    left, top = ((side - 224) // 2 for side in size)
    pixels = np.asarray(picture.crop((left, top, left + 224, top + 224)), dtype=np.float32) / 255
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    return ((pixels - mean) / deviation).transpose(2, 0, 1)


def main() -> None:
    model = mobilenet_v2()
    names = class_names()
    folder = fetch("scikit-image==0.26.0") / "skimage" / "data"
    session = hagane.InferenceSession(model)
    batch = np.stack([read_picture(folder / name) for name in PICTURES])
    (logits,) = session.run(None, {"image": batch})
    exponential = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares = exponential / exponential.sum(axis=1, keepdims=True)
    for (picture, expected), share in zip(PICTURES.items(), shares, strict=True):
        best = np.argsort(-share)[:3]
        shown = ", ".join(f"{names[i].split(',')[0]} {share[i]:.0%}" for i in best)
        print(f"{picture}: {shown}")
        assert names[best[0]].split(",")[0] == expected, f"expected {expected}"
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "mobilenet_v2.onnx"
        onnx.save(model, path)
        report = compare(
            path,
            ["hagane", "onnxruntime"],
            {"image": (1, *batch.shape[1:])},
            threads=2,
            rounds=3,
            seconds=0.5,
        )
    for row in report["results"]:
        print(f"{row['engine']} {row['version']}: {row['median_ms']:.1f} ms a picture")
    for name, ratio in report["ratios"].items():
        print(f"{name}: {ratio:.2f} (above 1, hagane is ahead)")
    for name, reason in report["skipped"].items():
        print(f"{name} is left out: {reason}")


if __name__ == "__main__":
    main()
