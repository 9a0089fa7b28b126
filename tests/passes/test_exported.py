"""Models as PyTorch's exporter without further dependencies writes them."""

from __future__ import annotations

import io
import math
import warnings
from collections import Counter

import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.passes.harness import applied


def exported(module: nn.Module, *arguments: torch.Tensor) -> Counter[str]:
    """Return how often each operator is left of an exported module after all passes."""
    names = [f"x{i}" for i in range(len(arguments))]
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), arguments, buffer, dynamo=False, input_names=names, opset_version=17,
            dynamic_axes={name: {0: "batch"} for name in names},
        )  # fmt: skip
    proto = onnx.load_model_from_string(buffer.getvalue())
    feed = {name: array.numpy() for name, array in zip(names, arguments, strict=True)}
    return Counter(applied(proto, feed, tolerance=2e-5)[1])


class RootMeanSquare(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Block(nn.Module):
    """A decoder block: rotary positions, heads that share keys, a gated feed-forward layer."""

    def __init__(self, size: int = 16, heads: int = 4, shared: int = 2):
        super().__init__()
        self.heads, self.shared, self.head = heads, shared, size // heads
        self.query, self.out = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(size, shared * self.head, bias=False) for _ in range(2))
        self.before, self.after = RootMeanSquare(size), RootMeanSquare(size)
        self.gate, self.up = (nn.Linear(size, 24, bias=False) for _ in range(2))
        self.down = nn.Linear(24, size, bias=False)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, size = x.shape
        angles = torch.arange(length)[:, None] / 100 ** (torch.arange(0, self.head, 2) / self.head)
        table = torch.cat((angles, angles), -1)
        query, key, value = (
            layer(x).view(batch, length, -1, self.head).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = (rotated(one, table.cos(), table.sin()) for one in (query, key))
        times = self.heads // self.shared
        key, value = (
            one[:, :, None].expand(batch, self.shared, times, length, self.head)
            .reshape(batch, self.heads, length, self.head) for one in (key, value)
        )  # fmt: skip
        mask = torch.full((length, length), -math.inf).triu(1)
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.head) + mask
        return (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.out(self.attend(self.before(x)))
        y = self.after(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


@pytest.mark.long
def test_a_decoder_block_is_what_its_author_would_have_drawn() -> None:
    assert exported(Block(), torch.randn(2, 5, 16)) == {
        "RMSNormalization": 2, "MatMul": 7, "Reshape": 4, "Transpose": 4, "RotaryEmbedding": 2,
        "Attention": 1, "Swish": 1, "Mul": 1, "Add": 2, "Expand": 2, "Shape": 1, "Concat": 1,
    }  # fmt: skip


class Attend(nn.Module):
    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


@pytest.mark.parametrize("causal", [True, False])
def test_scaled_dot_product_attention_is_one_node(causal: bool) -> None:
    found = exported(Attend(causal), *(torch.randn(2, 3, 5, 8) for _ in range(3)))
    assert found == {"Attention": 1}


class OfItself(nn.Module):
    def __init__(self, weights: bool):
        super().__init__()
        self.inner, self.weights = nn.MultiheadAttention(16, 4, batch_first=True), weights

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=self.weights)[0]


@pytest.mark.parametrize("weights", [True, False])
def test_the_attention_layer_holds_attention(weights: bool) -> None:
    found = exported(OfItself(weights), torch.randn(2, 5, 16))
    assert found["Attention"] == 1
    assert found["Softmax"] == found["Shape"] == 0


def test_activations_are_one_node_each() -> None:
    module = nn.Sequential(
        nn.GELU(), nn.Conv2d(2, 3, 1), nn.GELU(approximate="tanh"), nn.Conv2d(3, 2, 1),
        nn.BatchNorm2d(2), nn.SiLU(), nn.Mish(), nn.Hardswish(),
    )  # fmt: skip
    assert exported(module, torch.randn(2, 2, 4, 4)) == {
        "Gelu": 2, "Conv": 2, "Swish": 1, "Mish": 1, "HardSwish": 1,
    }  # fmt: skip
