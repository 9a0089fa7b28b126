"""Models, losses and batches for ``training.py``, as modules of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def class_loss(module: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy of scores ``(batch, classes, …)``."""
    return functional.cross_entropy(module(x), target)


def token_loss(module: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy of scores ``(batch, time, words)``."""
    return functional.cross_entropy(module(x).transpose(1, 2), target)


def mlp() -> nn.Module:
    """Return two hidden layers of 1000 units, for 784 inputs."""
    return nn.Sequential(
        nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10)
    )


def lenet() -> nn.Module:
    """Return LeNet-5 with rectifiers and maxima."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


class Unit(nn.Module):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, before: int, channels: int, size: int, stride: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(before, channels, size, stride, size // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised convolution."""
        return self.norm(self.conv(x))


class Block(nn.Module):
    """A residual block of two convolutions, or of three of which the middle one is narrow."""

    def __init__(self, before: int, channels: int, stride: int, narrow: bool):
        super().__init__()
        self.width = wide = 4 * channels if narrow else channels
        units = [Unit(before, channels, 3, stride), nn.ReLU(), Unit(channels, wide, 3)]
        if narrow:
            units = [
                Unit(before, channels, 1), nn.ReLU(), Unit(channels, channels, 3, stride),
                nn.ReLU(), Unit(channels, wide, 1),
            ]  # fmt: skip
        self.body = nn.Sequential(*units)
        same = stride == 1 and before == wide
        self.shortcut = nn.Identity() if same else Unit(before, wide, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum of body and shortcut."""
        return functional.relu(self.body(x) + self.shortcut(x))


def resnet(blocks: tuple[int, ...], narrow: bool, classes: int, small: bool) -> nn.Module:
    """Return a residual network; small ones have a first convolution of size 3 and no pooling."""
    parts: list[nn.Module] = [Unit(3, 64, 3) if small else Unit(3, 64, 7, 2), nn.ReLU()]
    if not small:
        parts.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for stage, count in enumerate(blocks):
        for number in range(count):
            block = Block(before, 64 << stage, 2 if stage and not number else 1, narrow)
            before = block.width
            parts.append(block)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, classes))


class Level(nn.Module):
    """A level of U-Net and those below it."""

    def __init__(self, before: int, width: int, depth: int):
        super().__init__()
        self.down = self._pair(before, width)
        self.inner = Level(width, 2 * width, depth - 1) if depth else None
        if depth:
            self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
            self.join = self._pair(2 * width, width)

    @staticmethod
    def _pair(before: int, width: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(before, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of this level."""
        x = self.down(x)
        if self.inner is None:
            return x
        below = self.up(self.inner(functional.max_pool2d(x, 2)))
        return self.join(torch.cat([x, below], 1))


def unet() -> nn.Module:
    """Return U-Net of width 32 and depth 3."""
    return nn.Sequential(Level(3, 32, 3), nn.Conv2d(32, 2, 1))


class Dilated(nn.Module):
    """Two dilated convolutions of one dimension beside a shortcut."""

    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation), nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation), nn.BatchNorm1d(width),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the rectified sum of body and shortcut."""
        return functional.relu(self.body(x) + x)


def dilated() -> nn.Module:
    """Return a residual network of one dimension whose dilation doubles from block to block."""
    blocks = [Dilated(64, 1 << n) for n in range(6)]
    return nn.Sequential(nn.Conv1d(4, 64, 1), *blocks, nn.Conv1d(64, 5, 1))


class Lstm(nn.Module):
    """A language model of two layers of LSTM."""

    def __init__(self, words: int = 2000, units: int = 256):
        super().__init__()
        self.embed = nn.Embedding(words, units)
        self.lstm = nn.LSTM(units, units, 2, batch_first=True)
        self.out = nn.Linear(units, words)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of the next token."""
        found, _ = self.lstm(self.embed(x))
        return self.out(found)


class Layer(nn.Module):
    """A layer of a transformer."""

    def __init__(self, units: int, heads: int, *, causal: bool, first: bool):
        super().__init__()
        self.heads, self.causal, self.first = heads, causal, first
        self.norm1, self.norm2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.read, self.out = nn.Linear(units, 3 * units), nn.Linear(units, units)
        self.wide, self.narrow = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

    def attend(self, x: Tensor) -> Tensor:
        """Return the attention of all heads."""
        batch, time, units = x.shape
        split = self.read(x).reshape(batch, time, 3, self.heads, units // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(found.transpose(1, 2).reshape(batch, time, units))

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer of tokens, normalised before its parts or behind them."""
        if self.first:
            x = x + self.attend(self.norm1(x))
            return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.narrow(functional.gelu(self.wide(x))))


class Transformer(nn.Module):
    """Layers over embeddings of tokens and places."""

    def __init__(
        self, words: int, length: int, units: int, layers: int, heads: int, results: int = 0
    ):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, units), nn.Embedding(length, units)
        causal = not results
        self.layers = nn.ModuleList(
            Layer(units, heads, causal=causal, first=causal) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(units)
        self.out = nn.Linear(units, results or words)
        self.results = results

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of the next token, or of the whole text."""
        h = self.embed(x) + self.place.weight[: x.shape[1]]
        if self.results:
            h = self.norm(h)
        for layer in self.layers:
            h = layer(h)
        return self.out(h[:, 0] if self.results else self.norm(h))


@dataclass(frozen=True, slots=True)
class Case:
    """A model to train.

    Attributes:
        make: Its module.
        loss: Of the module and a batch.
        batch: A random batch.
        optimizer: Of the parameters.
    """

    make: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    batch: Callable[[], tuple[Tensor, ...]]
    optimizer: Callable[[Any], torch.optim.Optimizer]


def _sgd(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def _adam(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4)


def _images(size: tuple[int, ...], classes: int, per_pixel: bool = False) -> Any:
    places = (size[0], *size[2:]) if per_pixel else size[:1]
    return lambda: (torch.randn(size), torch.randint(0, classes, places))


def _text(batch: int, time: int, words: int, classes: int = 0) -> Any:
    wanted = (batch,) if classes else (batch, time)
    return lambda: (
        torch.randint(0, words, (batch, time)),
        torch.randint(0, classes or words, wanted),
    )


CASES: Mapping[str, Case] = {
    "MLP": Case(mlp, class_loss, _images((128, 784), 10), _sgd),
    "LeNet": Case(lenet, class_loss, _images((64, 1, 28, 28), 10), _sgd),
    "ResNet-18": Case(
        lambda: resnet((2, 2, 2, 2), False, 10, True), class_loss,
        _images((32, 3, 32, 32), 10), _sgd,
    ),
    "ResNet-50": Case(
        lambda: resnet((3, 4, 6, 3), True, 1000, False), class_loss,
        _images((4, 3, 224, 224), 1000), _sgd,
    ),
    "U-Net": Case(unet, class_loss, _images((2, 3, 128, 128), 2, True), _adam),
    "dilated ResNet": Case(dilated, class_loss, _images((8, 4, 2048), 5, True), _adam),
    "LSTM": Case(Lstm, token_loss, _text(16, 32, 2000), _sgd),
    "transformer": Case(
        lambda: Transformer(2000, 128, 256, 4, 8), token_loss, _text(8, 128, 2000), _adam
    ),
    "BERT-base": Case(
        lambda: Transformer(30522, 512, 768, 12, 12, 2), class_loss, _text(4, 128, 30522, 2), _adam
    ),
}  # fmt: skip
