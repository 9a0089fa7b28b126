"""Models of the zoo once more, as modules of PyTorch whose parts have the same names."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

# Parameters of links by those of modules.
_NAMES = {"W": "weight", "b": "bias", "gamma": "weight", "beta": "bias"}


def copy_parameters(link: Any, module: nn.Module) -> None:
    """Give a module the parameters of a link; all of both have to be there."""
    if isinstance(module, LSTMLanguageModel):
        module.take(link)
        return
    wanted = dict(module.named_parameters())
    for path, parameter in link.namedparams():
        *parts, name = path.strip("/").split("/")
        found = wanted.pop(".".join([*parts, _NAMES.get(name, name)]))
        with torch.no_grad():
            found.copy_(torch.from_numpy(np.array(parameter.array)).reshape(found.shape))
    assert not wanted, sorted(wanted)


class MLP(nn.Module):
    """``zoo.MLP``."""

    def __init__(self, inputs: int, units: int, classes: int):
        super().__init__()
        self.l1, self.l2 = nn.Linear(inputs, units), nn.Linear(units, units)
        self.l3 = nn.Linear(units, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        return self.l3(torch.relu(self.l2(torch.relu(self.l1(x)))))


class LeNet(nn.Module):
    """``zoo.LeNet``."""

    def __init__(self, classes: int):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(400, 120), nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        h = functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        h = functional.max_pool2d(torch.relu(self.conv2(h)), 2).flatten(1)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(h)))))


class _Unit(nn.Module):
    def __init__(self, before: int, channels: int, size: int, stride: int = 1):
        super().__init__()
        self.conv = nn.Conv2d(before, channels, size, stride, size // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels, eps=2e-5)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class _Block(nn.Module):
    def __init__(self, before: int, channels: int, stride: int, narrow: bool):
        super().__init__()
        self.width = wide = 4 * channels if narrow else channels
        if narrow:
            self.first, self.second = (
                _Unit(before, channels, 1),
                _Unit(channels, channels, 3, stride),
            )
            self.third = _Unit(channels, wide, 1)
        else:
            self.first, self.second = _Unit(before, channels, 3, stride), _Unit(channels, wide, 3)
        self.narrow = narrow
        if stride != 1 or before != wide:
            self.shortcut = _Unit(before, wide, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        h = self.second(torch.relu(self.first(x)))
        if self.narrow:
            h = self.third(torch.relu(h))
        return torch.relu(h + (self.shortcut(x) if hasattr(self, "shortcut") else x))


class ResNet(nn.Module):
    """``zoo.ResNet18`` and its like, for small images."""

    def __init__(self, blocks: tuple[int, ...], narrow: bool, classes: int, width: int):
        super().__init__()
        self.stem = _Unit(3, width, 3)
        before, parts = width, []
        for stage, count in enumerate(blocks):
            for number in range(count):
                parts.append(
                    _Block(before, width << stage, 2 if stage and not number else 1, narrow)
                )
                before = parts[-1].width
        self.body, self.fc = nn.ModuleList(parts), nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        h = torch.relu(self.stem(x))
        for block in self.body:
            h = block(h)
        return self.fc(h.mean((2, 3)))


class _Pair(nn.Module):
    def __init__(self, before: int, channels: int):
        super().__init__()
        self.first = nn.Conv2d(before, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))))


class UNet(nn.Module):
    """``zoo.UNet``."""

    def __init__(self, channels: int, classes: int, width: int, depth: int):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        back = widths[:-1][::-1]
        self.down = nn.ModuleList(map(_Pair, [channels, *widths[:-1]], widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, stride=2) for c in back)
        self.join = nn.ModuleList(_Pair(2 * c, c) for c in back)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        sides = []
        for pair in self.down:
            x = pair(functional.max_pool2d(x, 2) if sides else x)
            sides.append(x)
        for up, join, side in zip(self.up, self.join, sides[-2::-1], strict=True):
            x = join(torch.cat([side, up(x)], 1))
        return self.out(x)


class _Dilated(nn.Module):
    def __init__(self, width: int, size: int, dilation: int):
        super().__init__()
        pad = dilation * (size - 1) // 2
        self.first = nn.Conv1d(width, width, size, padding=pad, dilation=dilation)
        self.second = nn.Conv1d(width, width, size, padding=pad, dilation=dilation)
        self.norm1, self.norm2 = (nn.BatchNorm1d(width, eps=2e-5) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        h = self.second(torch.relu(self.norm1(self.first(x))))
        return torch.relu(self.norm2(h) + x)


class DilatedResNet(nn.Module):
    """``zoo.DilatedResNet``."""

    def __init__(self, channels: int, classes: int, width: int, blocks: int):
        super().__init__()
        self.enter, self.out = nn.Conv1d(channels, width, 1), nn.Conv1d(width, classes, 1)
        self.body = nn.ModuleList(_Dilated(width, 3, 1 << n) for n in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        """Return scores."""
        h = self.enter(x)
        for block in self.body:
            h = block(h)
        return self.out(h)


class _Attention(nn.Module):
    def __init__(self, units: int, heads: int):
        super().__init__()
        self.heads = heads
        self.read, self.out = nn.Linear(units, 3 * units), nn.Linear(units, units)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, units = x.shape
        split = self.read(x).reshape(batch, time, 3, self.heads, units // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, time, units))


class _Layer(nn.Module):
    def __init__(self, units: int, heads: int):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(units, eps=1e-6) for _ in range(2))
        self.attention = _Attention(units, heads)
        self.widen, self.narrow = nn.Linear(units, 4 * units), nn.Linear(4 * units, units)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x))))


class GPT(nn.Module):
    """``zoo.GPT``; scores are ``(batch, words, time)``."""

    def __init__(self, words: int, length: int, units: int, layers: int, heads: int):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, units), nn.Embedding(length, units)
        self.body = nn.ModuleList(_Layer(units, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(units, eps=1e-6)
        self.out = nn.Linear(units, words, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of the next token."""
        h = self.embed(x) + self.place.weight[: x.shape[1]]
        for layer in self.body:
            h = layer(h)
        return self.out(self.norm(h)).transpose(1, 2)


class LSTMLanguageModel(nn.Module):
    """``zoo.LSTMLanguageModel`` of one layer; scores are ``(batch, words, time)``."""

    def __init__(self, words: int, units: int):
        super().__init__()
        self.embed, self.out = nn.Embedding(words, units), nn.Linear(units, words)
        self.lstm = nn.LSTM(units, units, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of the next token."""
        found, _ = self.lstm(self.embed(x))
        return self.out(found).transpose(1, 2)

    def take(self, link: Any) -> None:
        """Take the parameters of a link, whose gates lie apart in PyTorch's order."""
        layer = link.lstm[0]
        with torch.no_grad():
            self.embed.weight.copy_(torch.from_numpy(link.embed.W.array))
            self.out.weight.copy_(torch.from_numpy(link.out.W.array))
            self.out.bias.copy_(torch.from_numpy(link.out.b.array))
            # Chainer's gates: input, forget, cell, output; first of the data, then of the state.
            for name, first in (("ih", 0), ("hh", 4)):
                weights = [getattr(layer, f"w{first + n}").array for n in range(4)]
                biases = [getattr(layer, f"b{first + n}").array for n in range(4)]
                getattr(self.lstm, f"weight_{name}_l0").copy_(torch.from_numpy(np.vstack(weights)))
                getattr(self.lstm, f"bias_{name}_l0").copy_(torch.from_numpy(np.hstack(biases)))
