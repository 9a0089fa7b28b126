"""Steps have operators of hagane's own in the place of several of ONNX."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from hagane.training.step import TorchStep


def mean(module: Any, x: Any) -> Any:
    return (module(x) ** 2).mean()


def operators(make: Callable[[], nn.Module], *shape: int) -> Counter[str]:
    """Return the operators of a step, after two steps that were PyTorch's."""
    torch.manual_seed(0)
    module, x = make(), torch.randn(shape)
    other = copy.deepcopy(module)
    step = TorchStep(mean, torch.optim.SGD(module.parameters(), lr=0.1))
    theirs = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(2):
        theirs.zero_grad()
        loss = mean(other, x)
        loss.backward()
        theirs.step()
        torch.testing.assert_close(step(module, x), loss.detach(), rtol=1e-5, atol=1e-6)
    for name, one in module.state_dict().items():
        torch.testing.assert_close(one, other.state_dict()[name], rtol=1e-4, atol=1e-5)
    ((program,),) = step._programs.values()
    return Counter(node.op_type for node in program._made.model.graph)


class Norms(nn.Module):
    def __init__(self, kind: Any, *channels: int, affine: bool = True):
        super().__init__()
        self.first = nn.Conv2d(3, channels[0], 3)
        self.norm = kind(channels[0], affine=affine)

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(self.norm(self.first(x)))


@pytest.mark.parametrize("affine", [True, False])
def test_images_are_normalised_and_rectified_in_one_operator_each(affine: bool) -> None:
    found = operators(lambda: Norms(nn.BatchNorm2d, 5, affine=affine), 2, 3, 8, 7)
    assert found["BatchNormTraining"] == found["BatchNormTrainingGradient"] == 1
    assert found["SelectGreater"] == 1
    assert found["Where"] == 0
    assert found["ReduceMean"] == 1  # the loss


class Attention(nn.Module):
    def __init__(self, parts: str) -> None:
        super().__init__()
        self.norm, self.read, self.parts = nn.LayerNorm(6), nn.Linear(6, 18), parts

    def forward(self, x: Any) -> Any:
        split = self.read(self.norm(x)).reshape(*x.shape[:2], 3, 6)
        q, k, v = split.unbind(2)
        if self.parts != "all":
            q = k
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_parts_that_are_all_taken_are_one_division_and_rows_are_normalised_in_one() -> None:
    found = operators(lambda: Attention("all"), 2, 5, 6)
    assert found["Split"] == 1
    assert not found["ScatterND"]
    assert not found["ReduceMax"]  # no query sees nothing
    assert found["LayerNormTraining"] == found["LayerNormTrainingGradient"] == 1
    some = operators(lambda: Attention("some"), 2, 5, 6)
    assert not some["Split"]
    assert some["ScatterND"] == 2


class Sliced(nn.Module):
    def __init__(self, *ends: int) -> None:
        super().__init__()
        self.read, self.ends = nn.Linear(3, 7), ends

    def forward(self, x: Any) -> Any:
        y, start, found = self.read(x), 0, 0
        for end in self.ends:
            found = found + y[:, start:end].exp().sum(1)
            start = end
        return found


def test_slices_of_a_whole_axis_are_one_division() -> None:
    whole = operators(lambda: Sliced(2, 3, 7), 2, 3)
    assert whole["Split"] == 1
    assert not whole["Slice"]
    assert not whole["Pad"]
    assert operators(lambda: Sliced(2, 6), 2, 3)["Slice"] == 2
    lstm = operators(lambda: Outputs(nn.LSTM(3, 4)), 5, 2, 3)
    assert not lstm["Pad"]


class Outputs(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)[0]


def test_other_normalisations_stay_as_they_are() -> None:
    found = operators(lambda: Norms(nn.InstanceNorm2d, 5), 2, 3, 8, 7)
    assert not found["BatchNormTraining"]
    found = operators(lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), 6, 3)
    assert not found["BatchNormTraining"]
    doubles = operators(lambda: nn.Sequential(nn.Conv1d(3, 4, 1), nn.GroupNorm(2, 4)), 6, 3, 5)
    assert not doubles["BatchNormTraining"]
