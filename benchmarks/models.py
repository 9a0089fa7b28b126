"""The models that engines are timed on, as ONNX files made once.

Networks of the literature are written in PyTorch with random weights, since engines take the same
time with any; packages of the Python index bring the others. ``make(name, folder)`` returns the
path of a file and the shapes of its inputs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

Shapes = dict[str, tuple[int, ...]]


def unit(
    i: int, o: int, k: int = 1, s: int = 1, g: int = 1, act: nn.Module | None = None
) -> nn.Module:
    """Return a convolution, batch normalisation and an activation."""
    conv = nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(o), *([act] if act is not None else []))


class Bottleneck(nn.Module):
    """He et al., "Deep Residual Learning" (2016), with the stride in the 3 × 3 convolution."""

    def __init__(self, i: int, m: int, s: int):
        super().__init__()
        relu = nn.ReLU()
        self.body = nn.Sequential(unit(i, m, act=relu), unit(m, m, 3, s, act=relu), unit(m, 4 * m))
        self.skip = unit(i, 4 * m, 1, s) if s != 1 or i != 4 * m else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.skip(x))


def resnet50() -> nn.Module:
    layers: list[nn.Module] = [unit(3, 64, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for m, n, s in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n):
            layers.append(Bottleneck(i, m, s if k == 0 else 1))
            i = 4 * m
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 1000))


def vgg16() -> nn.Module:
    layers: list[nn.Module] = []
    i = 3
    for v in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        layers += [nn.Conv2d(i, v, 3, padding=1), nn.ReLU()] if v else [nn.MaxPool2d(2)]
        i = v or i
    tail = [nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
    return nn.Sequential(*layers, *tail, nn.Linear(4096, 1000))


class Inception(nn.Module):
    """Szegedy et al., "Going Deeper with Convolutions" (2015)."""

    def __init__(self, i: int, a: int, b: tuple[int, int], c: tuple[int, int], d: int):
        super().__init__()
        relu = nn.ReLU()
        self.ways = nn.ModuleList(
            [
                unit(i, a, act=relu),
                nn.Sequential(unit(i, b[0], act=relu), unit(b[0], b[1], 3, act=relu)),
                nn.Sequential(unit(i, c[0], act=relu), unit(c[0], c[1], 3, act=relu)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(i, d, act=relu)),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([way(x) for way in self.ways], 1)


def googlenet() -> nn.Module:
    relu = nn.ReLU()
    return nn.Sequential(
        unit(3, 64, 7, 2, act=relu), nn.MaxPool2d(3, 2, ceil_mode=True),
        unit(64, 64, act=relu), unit(64, 192, 3, act=relu), nn.MaxPool2d(3, 2, ceil_mode=True),
        Inception(192, 64, (96, 128), (16, 32), 32), Inception(256, 128, (128, 192), (32, 96), 64),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Inception(480, 192, (96, 208), (16, 48), 64), Inception(512, 160, (112, 224), (24, 64), 64),
        Inception(512, 128, (128, 256), (24, 64), 64),
        Inception(512, 112, (144, 288), (32, 64), 64),
        Inception(528, 256, (160, 320), (32, 128), 128), nn.MaxPool2d(2, 2, ceil_mode=True),
        Inception(832, 256, (160, 320), (32, 128), 128),
        Inception(832, 384, (192, 384), (48, 128), 128),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000),
    )  # fmt: skip


class Inverted(nn.Module):
    """Sandler et al., "MobileNetV2" (2018)."""

    def __init__(self, i: int, o: int, s: int, t: int, k: int = 3):
        super().__init__()
        h, act = i * t, nn.ReLU6()
        first = [unit(i, h, act=act)] if t != 1 else []
        self.body = nn.Sequential(*first, unit(h, h, k, s, h, act=act), unit(h, o))
        self.adds = s == 1 and i == o

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def inverted(head: int, rows: tuple[tuple[int, ...], ...], last: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, head, 3, 2, act=nn.ReLU6())]
    i = head
    for t, o, n, s, k in rows:
        for j in range(n):
            layers.append(Inverted(i, o, s if j == 0 else 1, t, k))
            i = o
    tail = [unit(i, last, act=nn.ReLU6()), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *tail, nn.Linear(last, 1000))


def mobilenetv2() -> nn.Module:
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3))
    return inverted(32, (*rows, (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)), 1280)


def efficientnet_lite0() -> nn.Module:
    """Tan and Le, "EfficientNet" (2019), in the form without squeeze and excitation."""
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    return inverted(32, (*rows, (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)), 1280)


class Yolo(nn.Module):
    """Redmon and Farhadi, "YOLOv3" (2018), in its tiny form: two scales of 255 channels."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.LeakyReLU(0.1)
        self.low = nn.Sequential(
            unit(3, 16, 3, act=act), nn.MaxPool2d(2), unit(16, 32, 3, act=act), nn.MaxPool2d(2),
            unit(32, 64, 3, act=act), nn.MaxPool2d(2), unit(64, 128, 3, act=act), nn.MaxPool2d(2),
            unit(128, 256, 3, act=act),
        )  # fmt: skip
        self.high = nn.Sequential(
            nn.MaxPool2d(2), unit(256, 512, 3, act=act), nn.ZeroPad2d((0, 1, 0, 1)),
            nn.MaxPool2d(2, 1), unit(512, 1024, 3, act=act), unit(1024, 256, act=act),
        )  # fmt: skip
        self.coarse = nn.Sequential(unit(256, 512, 3, act=act), nn.Conv2d(512, 255, 1))
        self.up = nn.Sequential(unit(256, 128, act=act), nn.Upsample(scale_factor=2))
        self.fine = nn.Sequential(unit(384, 256, 3, act=act), nn.Conv2d(256, 255, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        low = self.low(x)
        high = self.high(low)
        return self.coarse(high), self.fine(torch.cat([self.up(high), low], 1))


class Yolo2(nn.Module):
    """Redmon and Farhadi, "YOLO9000" (2017): Darknet-19, and finer features passed to its end."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.LeakyReLU(0.1)

        def layers(i: int, *kinds: int) -> nn.Module:
            made: list[nn.Module] = []
            for o in kinds:  # a pooling is 0; every other one of more channels has a 3 x 3 filter
                made.append(unit(i, o, 3 if o > i else 1, act=act) if o else nn.MaxPool2d(2))
                i = o or i
            return nn.Sequential(*made)

        self.fine = layers(
            3, 32, 0, 64, 0, 128, 64, 128, 0, 256, 128, 256, 0, 512, 256, 512, 256, 512
        )
        self.coarse = nn.Sequential(
            layers(512, 0, 1024, 512, 1024, 512, 1024),
            unit(1024, 1024, 3, act=act),
            unit(1024, 1024, 3, act=act),
        )
        self.passed = unit(512, 64, act=act)
        self.last = nn.Sequential(unit(1280, 1024, 3, act=act), nn.Conv2d(1024, 425, 1))

    def forward(self, x: Tensor) -> Tensor:
        fine = self.fine(x)
        passed = F.pixel_unshuffle(self.passed(fine), 2)
        return self.last(torch.cat([passed, self.coarse(fine)], 1))


class UNet(nn.Module):
    """Ronneberger et al., "U-Net" (2015), with half its channels and padded convolutions."""

    def __init__(self) -> None:
        super().__init__()
        wide = (32, 64, 128, 256, 512)
        act = nn.ReLU()

        def twice(i: int, o: int) -> nn.Module:
            return nn.Sequential(unit(i, o, 3, act=act), unit(o, o, 3, act=act))

        steps = list(zip((3, *wide), wide, strict=False))
        self.down = nn.ModuleList([twice(i, o) for i, o in steps])
        self.up = nn.ModuleList([nn.ConvTranspose2d(o, i, 2, 2) for i, o in steps[:0:-1]])
        self.join = nn.ModuleList([twice(o, i) for i, o in steps[:0:-1]])
        self.last = nn.Conv2d(wide[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for number, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if number else x)
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1], strict=True):
            x = join(torch.cat([skip, up(x)], 1))
        return self.last(x)


class Block(nn.Module):
    """A transformer's layer, normalised after (BERT) or before (GPT-2, with a cache)."""

    def __init__(self, d: int, heads: int, before: bool):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.heads, self.before = heads, before

    def attend(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, steps, d = x.shape
        q, k, v = (
            t.reshape(batch, steps, self.heads, d // self.heads).transpose(1, 2)
            for t in self.qkv(x).split(d, -1)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(d // self.heads))
        if self.before and past is None:
            scores = scores + torch.full((steps, steps), -1e9).triu(1)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, steps, d)
        return self.out(mixed), k, v

    def forward(
        self, x: Tensor, past: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if self.before:
            y, k, v = self.attend(self.n1(x), past)
            x = x + y
            return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh")), k, v
        y, k, v = self.attend(x, past)
        x = self.n1(x + y)
        return self.n2(x + self.down(F.gelu(self.up(x)))), k, v


class Transformer(nn.Module):
    """BERT-base or GPT-2 small; with ``cached`` one step of the latter."""

    def __init__(self, words: int, before: bool, cached: bool = False):
        super().__init__()
        self.word, self.place = nn.Embedding(words, 768), nn.Embedding(512, 768)
        self.first, self.last = nn.LayerNorm(768), nn.LayerNorm(768)
        self.blocks = nn.ModuleList([Block(768, 12, before) for _ in range(12)])
        self.head = nn.Linear(768, words, bias=False) if before else nn.Identity()
        self.before, self.cached = before, cached

    def forward(self, ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        start = past[0].shape[2] if past else 0
        places = torch.arange(start, start + ids.shape[1])
        x = self.word(ids) + self.place(places)
        if not self.before:
            x = self.first(x)
        kept: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, (past[2 * i], past[2 * i + 1]) if past else None)
            kept += [k, v]
        return (self.head(self.last(x) if self.before else x), *(kept if self.cached else ()))


def mnist() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3),
        nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


class Add(nn.Module):
    """One addition."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1.0


def picture(size: int = 224) -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


def words(count: int, steps: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, count, (1, steps)),)


def step() -> tuple[Tensor, ...]:
    return (*words(50257, 1), *[torch.randn(1, 12, 127, 64) for _ in range(24)])


WRITTEN: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "ResNet-50": (resnet50, picture),
    "VGG-16": (vgg16, picture),
    "GoogLeNet": (googlenet, picture),
    "MobileNetV2": (mobilenetv2, picture),
    "EfficientNet-Lite0": (efficientnet_lite0, picture),
    "YOLOv3-tiny": (Yolo, lambda: picture(416)),
    "YOLOv2": (Yolo2, lambda: picture(416)),
    "U-Net": (UNet, lambda: picture(128)),
    "BERT-base": (lambda: Transformer(30522, False), lambda: words(30522, 128)),
    "GPT-2 prefill": (lambda: Transformer(50257, True), lambda: words(50257, 128)),
    "GPT-2 step": (lambda: Transformer(50257, True, True), step),
    "MNIST CNN": (mnist, lambda: (torch.randn(1, 1, 28, 28),)),
    "Add": (Add, lambda: (torch.randn(1, 16),)),
}


def _package(requirement: str, *path: str) -> Path:
    from fetch import fetch

    return fetch(requirement).joinpath(*path)


_OCR = ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime", "models")
FETCHED: Mapping[str, tuple[Callable[[], Path], Shapes]] = {
    "PP-OCR det": (
        lambda: _package(*_OCR, "ch_PP-OCRv4_det_infer.onnx"),
        {"x": (1, 3, 320, 480)},
    ),
    "PP-OCR rec": (lambda: _package(*_OCR, "ch_PP-OCRv4_rec_infer.onnx"), {"x": (1, 3, 48, 320)}),
    "Magika": (
        lambda: _package("magika==1.0.3", "magika", "models", "standard_v3_3", "model.onnx"),
        {"bytes": (1, 2048)},
    ),
    "Basic Pitch": (
        lambda: _package(
            "basic-pitch==0.4.0", "basic_pitch", "saved_models", "icassp_2022", "nmp.onnx"
        ),
        {"serving_default_input_2:0": (1, 43844, 1)},
    ),
}
NAMES = (*WRITTEN, "MiniLM", "Silero VAD", *FETCHED)


def _silero(path: Path) -> None:
    """Write the voice detector with its sampling rate fixed, which random inputs would not hit."""
    import numpy as np
    import onnx

    model = onnx.load(_package("silero-vad==6.2.3", "silero_vad", "data", "silero_vad.onnx"))
    (rate,) = [value for value in model.graph.input if value.name == "sr"]
    model.graph.input.remove(rate)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(16000), "sr"))
    onnx.save(model, path)


def make(name: str, folder: Path) -> tuple[Path, Shapes]:
    """Return the file of a model, made if it is not there, and the shapes to run it with."""
    if name in FETCHED:
        found, shapes = FETCHED[name]
        return found(), shapes
    path = folder / f"{name.replace(' ', '_')}.onnx"
    if name == "MiniLM":
        import onnx
        from minilm import minilm

        if not path.exists():
            onnx.save(minilm(), path)
        inputs = onnx.load(path).graph.input
        return path, {value.name: (1, 128) for value in inputs}
    if name == "Silero VAD":
        if not path.exists():
            _silero(path)
        return path, {"input": (1, 576), "state": (2, 1, 128)}
    module, example = WRITTEN[name]
    if not path.exists():
        torch.manual_seed(0)
        model = module().eval()
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        arguments = example()
        names = ["x", *(f"past{i}" for i in range(len(arguments) - 1))]
        axes = {n: {2: "past"} for n in names[1:]}
        folder.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            torch.onnx.export(
                model, arguments, str(path), dynamo=False, opset_version=17,
                input_names=names, dynamic_axes=axes,
            )  # fmt: skip
    return path, {f"past{i}": (1, 12, 127, 64) for i in range(24)} if name == "GPT-2 step" else {}
