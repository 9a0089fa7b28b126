"""Steps whose products multiply bfloat16, beside PyTorch's autocast and steps in float32."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn, optim

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.errors import InvalidArgument


class Net(nn.Module):
    """A convolution, a normalisation and two products."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.wide = nn.Linear(8 * 9, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        x = nn.functional.relu(self.norm(self.conv(x)))
        return self.out(torch.tanh(self.wide(x.flatten(1))))


def error(module: Any, x: Any, t: Any) -> Any:
    return nn.functional.cross_entropy(module(x), t)


def batch(rows: int) -> tuple[Any, Any]:
    x = torch.randn(rows, 2, 6, 6)
    return x, (x[:, 0].mean((1, 2)) > 0).long()


def products(step: Any) -> set[ir.DataType]:
    """Return the types that convolutions and products of a step multiply, forward and back."""
    ((program,),) = step._programs.values()
    nodes = list(program._made.model.graph)
    names = ("Conv", "ConvWeightGradient", "MatMul", "Gemm", "ConvTranspose")
    found = [node for node in nodes if node.op_type in names]
    assert {node.op_type for node in found} >= {"Conv", "ConvWeightGradient"}
    return {value.dtype for node in found for value in node.inputs if value is not None}


def test_losses_follow_those_of_autocast() -> None:
    torch.manual_seed(0)
    theirs = Net()
    ours = copy.deepcopy(theirs)
    one = optim.SGD(theirs.parameters(), 0.1, momentum=0.9)
    step = hagane.compile(error, optim.SGD(ours.parameters(), 0.1, momentum=0.9), precision="bf16")
    for rows in (12, 12, 7, 12, 12, 12):
        given = batch(rows)
        one.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = error(theirs, *given)
        loss.backward()
        one.step()
        found = step(ours, *given)
        assert found.dtype == torch.float32
        assert abs(float(found) - float(loss.detach())) < 0.02
    assert products(step) == {ir.DataType.BFLOAT16}
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=0.05, atol=0.02)


def test_parameters_take_steps_that_bfloat16_would_lose() -> None:
    module = nn.Linear(4, 1, bias=False)
    nn.init.ones_(module.weight)

    def total(module: Any, x: Any) -> Any:
        return module(x).sum()

    step = hagane.compile(total, optim.SGD(module.parameters(), 1e-4), precision="bf16")
    for _ in range(10):
        step(module, torch.ones(1, 4))
    torch.testing.assert_close(module.weight.detach(), torch.full((1, 4), 1 - 1e-3))
    assert torch.tensor(1 - 1e-4).bfloat16() == 1.0


def test_links_take_a_precision_too() -> None:
    np.random.seed(0)
    losses: dict[str, list[float]] = {}
    x = np.random.standard_normal((9, 5)).astype("f")
    t = (x[:, 0] > 0).astype("i")
    for precision in ("fp32", "bf16"):
        np.random.seed(1)
        model = L.Classifier(hagane.Sequential(L.Linear(5, 8), F.tanh, L.Linear(8, 2)))
        optimizer = hagane.optimizers.Adam(0.05).setup(model)
        step = hagane.compile(model, optimizer, precision=precision)
        losses[precision] = [float(step(x, t).array) for _ in range(8)]
    assert losses["bf16"][-1] < 0.7 * losses["bf16"][0]
    np.testing.assert_allclose(losses["bf16"], losses["fp32"], atol=0.02)
    assert losses["bf16"] != losses["fp32"]


def test_mistakes_are_named() -> None:
    optimizer = optim.SGD(Net().parameters(), 0.1)
    with pytest.raises(InvalidArgument, match="one of fp32, bf16, fp16, got 'half'"):
        hagane.compile(error, optimizer, precision="half")
    with pytest.raises(InvalidArgument, match="precision is for a step of training; give optimi"):
        hagane.compile(error, precision="bf16")
