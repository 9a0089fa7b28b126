"""Programs and models for ``benchmarks/capture.py --speed``, as their users write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from library_models import import_torchvision
from torch import nn

Array = Any
WIDTH, WORDS, END = 64, 50, 0


class Recurrent:
    """An LSTM written by hand over NumPy arrays."""

    def __init__(self, seed: int = 0):
        random = np.random.default_rng(seed)
        self.wx = random.standard_normal((32, 4 * WIDTH)).astype(np.float32) * 0.2
        self.wh = random.standard_normal((WIDTH, 4 * WIDTH)).astype(np.float32) * 0.2
        self.b = np.zeros(4 * WIDTH, np.float32)

    def __call__(self, xs: Array) -> Array:
        """Return the states of all steps (steps, batch, width) for inputs (steps, batch, 32)."""
        h = np.zeros((xs.shape[1], WIDTH), np.float32)
        c = np.zeros((xs.shape[1], WIDTH), np.float32)
        states = []
        for x in xs:
            gates = x @ self.wx + h @ self.wh + self.b
            i, f, g, o = np.split(gates, 4, axis=1)
            i, f, o = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            states.append(h)
        return np.stack(states)


class Decoder:
    """Greedy decoding until an end token, over NumPy arrays."""

    def __init__(self, seed: int = 0):
        random = np.random.default_rng(seed)
        self.table = random.standard_normal((WORDS, WIDTH)).astype(np.float32)
        self.w = random.standard_normal((2 * WIDTH, WIDTH)).astype(np.float32) * 0.15
        self.out = random.standard_normal((WIDTH, WORDS)).astype(np.float32)
        self.out[:, END] = 0  # seldom the largest: long sentences

    def __call__(self, state: Array, limit: int = 60) -> Array:
        """Return the tokens (length,) that follow from a state (width,)."""
        tokens: list[Any] = []
        token = 1
        while len(tokens) < limit:
            state = np.tanh(np.concatenate([self.table[token], state]) @ self.w)
            token = int(np.argmax(state @ self.out))
            if token == END:
                break
            tokens.append(token)
        return np.array(tokens)


class TorchRecurrent(nn.Module):
    """The same LSTM in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.h = nn.Linear(32, 4 * WIDTH), nn.Linear(WIDTH, 4 * WIDTH, bias=False)

    def forward(self, xs: Any) -> Any:
        """Return the states of all steps (steps, batch, width) for inputs (steps, batch, 32)."""
        h = xs.new_zeros(xs.shape[1], WIDTH)
        c = xs.new_zeros(xs.shape[1], WIDTH)
        states = []
        for x in xs:
            i, f, g, o = (self.x(x) + self.h(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states)


class TorchDecoder(nn.Module):
    """The same decoding in PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.cell = nn.Embedding(WORDS, WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WORDS)
        with torch.no_grad():
            self.out.bias[END] = -9.0

    def forward(self, state: Any, limit: int = 60) -> Any:
        """Return the tokens (length,) that follow from a state (width,)."""
        tokens = []
        token = torch.tensor(1)
        for _ in range(limit):
            state = torch.tanh(self.cell(torch.cat([self.table(token), state])))
            token = self.out(state).argmax()
            if token == END:
                break
            tokens.append(token)
        return torch.stack(tokens)


def import_libraries() -> None:
    """Import torchvision, which transformers imports too, and with it much of ``torch.compile``."""
    if find_spec("torchvision") is not None:
        import_torchvision()


class Step(nn.Module):
    """A step of GPT-2 with a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        import_libraries()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa"))

    def forward(self, token: Any, keys: Any, values: Any) -> Any:
        """Return logits and the longer cache for tokens (batch, 1)."""
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(12):
            cache.update(keys[layer], values[layer], layer)
        found = self.model(token, past_key_values=cache, use_cache=True)
        past = found.past_key_values
        keys = torch.stack([past.layers[i].keys for i in range(12)])
        values = torch.stack([past.layers[i].values for i in range(12)])
        return found.logits, keys, values


class Bert(nn.Module):
    """BERT-base."""

    def __init__(self) -> None:
        super().__init__()
        import_libraries()
        from transformers import BertConfig, BertModel

        self.model = BertModel(BertConfig())

    def forward(self, tokens: Any) -> Any:
        """Return the last hidden states for tokens (batch, length)."""
        return self.model(tokens).last_hidden_state


def picture(name: str) -> Callable[[], Any]:
    """Return the maker of a classifier of torchvision."""

    def make() -> Any:
        import_libraries()
        import torchvision

        return torchvision.models.get_model(name, weights=None)

    return make


@dataclass(frozen=True)
class Program:
    """A program, its inputs, and the peer that it is timed beside.

    Attributes:
        make: Makes the function or module.
        inputs: Draws its arguments.
        peer: ``python`` or ``torch.compile``.
        goal: The ratio that issue and page name.
    """

    make: Callable[[], Any]
    inputs: Callable[[], tuple[Any, ...]]
    peer: str
    goal: float


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def _tensors(*shape: int) -> Any:
    return torch.from_numpy(_numbers(*shape))


def _tokens(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 30000, shape))


PROGRAMS = {
    "LSTM, NumPy": Program(Recurrent, lambda: (_numbers(50, 4, 32),), "python", 10),
    "greedy decoding, NumPy": Program(Decoder, lambda: (_numbers(WIDTH),), "python", 10),
    "LSTM, PyTorch": Program(TorchRecurrent, lambda: (_tensors(50, 4, 32),), "torch.compile", 1),
    "greedy decoding, PyTorch": Program(
        TorchDecoder, lambda: (_tensors(WIDTH),), "torch.compile", 1
    ),
    "ResNet-18": Program(
        picture("resnet18"), lambda: (_tensors(1, 3, 224, 224),), "torch.compile", 1.2
    ),
    "BERT-base": Program(Bert, lambda: (_tokens(1, 128),), "torch.compile", 1.2),
    "GPT-2 step": Program(
        Step,
        lambda: (_tokens(1, 1), _tensors(12, 1, 12, 64, 64), _tensors(12, 1, 12, 64, 64)),
        "torch.compile",
        1.2,
    ),
    "ViT-B/16": Program(
        picture("vit_b_16"), lambda: (_tensors(1, 3, 224, 224),), "torch.compile", 1.2
    ),
}
