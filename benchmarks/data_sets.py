"""Datasets that every loader under ``data_loading.py`` reads; importable in all environments."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np


class Jpegs:
    """224×224 crops, flipped at random, of JPEG files."""

    def __init__(self, folder: str, length: int = 512):
        self.paths = sorted(str(path) for path in Path(folder).glob("*.jpg"))
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        from PIL import Image

        with Image.open(self.paths[int(index) % len(self.paths)]) as image:
            pixels = np.asarray(image.convert("RGB"))
        top = random.randint(0, pixels.shape[0] - 224)
        left = random.randint(0, pixels.shape[1] - 224)
        crop = pixels[top : top + 224, left : left + 224]
        if random.random() < 0.5:
            crop = crop[:, ::-1]
        scaled = crop.transpose(2, 0, 1).astype(np.float32)
        scaled *= 1 / 255
        return scaled, int(index) % 10


class Arrays:
    """64 KB float32 arrays, bare."""

    def __init__(self, length: int = 4096):
        self.length = length
        self.base = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> np.ndarray:
        return self.base + np.float32(index)


class Tiny:
    """20,000 pictures of 28×28 with a label."""

    def __init__(self, length: int = 20_000):
        generator = np.random.RandomState(0)
        self.images = generator.rand(length, 28, 28).astype(np.float32)
        self.labels = generator.randint(0, 10, length)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return self.images[index], int(self.labels[index])


class Ragged:
    """Dicts of arrays whose lengths differ from sample to sample."""

    def __init__(self, length: int = 8192):
        self.length = length
        self.base = np.arange(4096, dtype=np.float32)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        size = 512 + int(index) * 37 % 3000
        return {
            "signal": self.base[:size] * 2,
            "marks": np.arange(size // 100),
            "n": np.int64(size),
        }


# name -> (batch size, epochs)
WORKLOADS = {"jpeg": (32, 1), "arrays": (64, 2), "tiny": (256, 2), "ragged": (64, 4)}


def make(name: str, folder: str) -> object:
    """Return a workload's dataset."""
    if name == "jpeg":
        return Jpegs(folder)
    return {"arrays": Arrays, "tiny": Tiny, "ragged": Ragged}[name]()


def write_jpegs(folder: Path) -> None:
    """Write 256×256 and larger crops of scikit-image's pictures as JPEG files."""
    from PIL import Image
    from skimage import data

    for name in ("astronaut", "coffee", "chelsea", "rocket"):
        picture = Image.fromarray(getattr(data, name)()).convert("RGB")
        for number in range(8):
            left, top = number * 7, number * 5
            part = picture.crop((left, top, left + 320, top + 256))
            held = io.BytesIO()
            part.save(held, "JPEG", quality=90)
            (folder / f"{name}-{number}.jpg").write_bytes(held.getvalue())
