"""Gradients of exported models against those of PyTorch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional

import hagane
from hagane.graph import to_proto


def compare(
    model: Any, *inputs: Any, batches: Sequence[int] = (2, 3), tolerance: float = 1e-4
) -> None:
    """Compare the gradients by all parameters and floating-point inputs, for several batches.

    The model returns one number. The gradient model runs in ONNX Runtime.
    """
    torch.manual_seed(0)
    names = [f"input_{i}" for i in range(len(inputs))]
    made = [make(max(batches)) for make in inputs]
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            tuple(made),
            file,
            input_names=names,
            output_names=["loss"],
            dynamic_axes={name: {0: "batch"} for name in names},
            opset_version=17,
            dynamo=False,
            do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE,
            keep_initializers_as_inputs=False,
        )
    exported = onnx.load_from_string(file.getvalue())
    held = {tensor.name for tensor in exported.graph.initializer}
    parameters = {name: p for name, p in model.named_parameters() if name in held}
    assert len(parameters) == len(dict(model.named_parameters()))
    floats = [name for name, x in zip(names, made, strict=True) if x.is_floating_point()]
    result = hagane.gradient(exported, "loss", [*floats, *parameters])
    proto = to_proto(result)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for batch in batches:
        feeds = [make(batch) for make in inputs]
        leaves = [x.requires_grad_() if x.is_floating_point() else x for x in feeds]
        model.zero_grad()
        model(*leaves).backward()
        wanted = [x.grad for x in leaves if x.is_floating_point()]
        wanted += [p.grad for p in parameters.values()]
        outputs = [f"{name}.gradient" for name in (*floats, *parameters)]
        found = session.run(
            outputs, {n: x.detach().numpy() for n, x in zip(names, feeds, strict=True)}
        )
        for name, got, want in zip(outputs, found, wanted, strict=True):
            scale = float(want.abs().max()) + 1e-6
            error = float(np.abs(got - want.numpy()).max()) / scale
            assert error < tolerance, f"{name}: {error}"


class Block(nn.Module):
    """A residual block, with a projection where the shape changes."""

    def __init__(self, channels: int, maps: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(channels, maps, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(maps)
        self.second = nn.Conv2d(maps, maps, 3, 1, 1)
        self.skip = nn.Conv2d(channels, maps, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Any) -> Any:
        y = self.second(torch.relu(self.norm(self.first(x))))
        return torch.relu(y + self.skip(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 7, 2, 3)
        self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any, target: Any) -> Any:
        y = functional.max_pool2d(torch.relu(self.stem(x)), 3, 2, 1)
        y = functional.adaptive_avg_pool2d(self.blocks(y), 1).flatten(1)
        return functional.cross_entropy(self.head(y), target)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.norm, self.last = nn.LayerNorm(8), nn.LayerNorm(8)
        self.queries, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        batch, length, size = x.shape
        q, k, v = (
            part.reshape(batch, length, 2, size // 2).transpose(1, 2)
            for part in self.queries(self.norm(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-1, -2) / 2.0
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, size)
        x = x + self.out(y)
        x = x + self.narrow(functional.gelu(self.wide(self.last(x))))
        logits = x @ self.words.weight.T
        targets = ids[:, 1:].reshape(-1)
        return functional.cross_entropy(logits[:, :-1].reshape(-1, 11), targets)


class Recurrent(nn.Module):
    """A bidirectional LSTM, then a cell in a loop that the exporter keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.weight = nn.Parameter(torch.randn(6, 6) / 3)

    def forward(self, x: Any) -> Any:
        y, _ = self.layer(x)
        return walked(y, self.weight)


def _walked(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    h = torch.zeros_like(y[:, 0])
    for t in range(y.size(1)):
        h = torch.tanh(h @ weight + y[:, t])
    return (h * h).sum()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # (the way to a loop in a model without further packages)
    walked = torch.jit.script(_walked)


def images(batch: int) -> Any:
    return torch.randn(batch, 3, 19, 17)


def test_a_residual_network() -> None:
    compare(ResNet(), images, lambda batch: torch.randint(0, 5, (batch,)))


@pytest.mark.long
def test_a_residual_network_at_inference() -> None:
    model = ResNet().eval()
    # The exporter makes one of equal tensors.
    for value in (*model.parameters(), *model.buffers()):
        if value.is_floating_point():
            nn.init.uniform_(value, 0.1, 0.6)
    compare(model, images, lambda batch: torch.randint(0, 5, (batch,)))


def test_a_transformer() -> None:
    compare(Transformer(), lambda batch: torch.randint(0, 11, (batch, 6)))


def test_recurrence_with_a_loop() -> None:
    compare(Recurrent(), lambda batch: torch.randn(batch, 5, 4))
