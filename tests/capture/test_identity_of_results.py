"""Results of compiled calls that are tensors which were there before, or are there twice."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane

HELD = torch.ones(3)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buffer", torch.ones(3))
        self.weight = nn.Parameter(torch.ones(3))
        self.last: Any = None


class Returns(Model):
    def forward(self, x: Any) -> Any:
        return x, self.buffer, self.weight, HELD


class Writes(Model):
    def forward(self, x: Any) -> Any:
        x += 1
        self.buffer.mul_(2)
        return x, self.buffer


class Keeps(Model):
    def forward(self, x: Any) -> Any:
        self.last = x * 2
        return self.last, {"more": self.last}


@torch.no_grad()
def test_arguments_weights_and_globals_come_back_as_they_are() -> None:
    model = Returns()
    compiled = hagane.compile(model, fullgraph=True)
    for _ in range(3):
        x = torch.arange(3.0)
        found = compiled(x)
        assert all(
            a is b for a, b in zip(found, (x, model.buffer, model.weight, HELD), strict=True)
        )


@torch.no_grad()
def test_what_a_call_writes_in_place_comes_back_as_it_is() -> None:
    model = Writes()
    compiled = hagane.compile(model, fullgraph=True)
    for i in range(3):
        x = torch.arange(3.0)
        found = compiled(x)
        assert found[0] is x
        assert found[1] is model.buffer
        assert x.tolist() == [1, 2, 3]
        assert model.buffer.tolist() == [2.0 ** (i + 1)] * 3


@torch.no_grad()
def test_a_new_attribute_is_the_result() -> None:
    model = Keeps()
    compiled = hagane.compile(model)
    for i in range(3):
        first, other = compiled(torch.full((3,), float(i)))
        assert first is model.last is other["more"]
        assert first.tolist() == [2.0 * i] * 3


def twice(x: Any, found: list[Any]) -> Any:
    y = x * 2
    found.append(y)
    return y, (y, {"y": y}), y * 1


def test_a_tensor_that_is_there_twice_is_one() -> None:
    compiled = hagane.compile(twice, fullgraph=True)
    for _ in range(3):
        given: list[Any] = []
        y, (same, named), other = compiled(torch.ones(3), given)
        assert y is same is named["y"] is given[0]
        assert other is not y


def copies(x: Any) -> Any:
    y = x.clone()
    z = y.clone()
    z.copy_(y)
    return x.clone(), y, z


def copies_of_arrays(x: Any) -> Any:
    y = np.array(x)
    z = np.empty_like(y)
    z[:] = y
    return x.copy(), y, z


@pytest.mark.parametrize(
    ("function", "x"), [(copies, torch.ones(3)), (copies_of_arrays, np.ones(3, np.float32))]
)
def test_copies_stay_apart(function: Any, x: Any) -> None:
    found = hagane.compile(function, fullgraph=True)(x)
    for tensor in found:
        tensor += 1
    assert x.tolist() == [1, 1, 1]
    assert [tensor.tolist() for tensor in found] == [[2, 2, 2]] * 3


def arrays(x: Any) -> Any:
    x[0] = 5
    return x, {"x": x}


def test_arrays_come_back_as_they_are() -> None:
    x = np.zeros(3, np.float32)
    found, named = hagane.compile(arrays, fullgraph=True)(x)
    assert found is x is named["x"]
    assert x.tolist() == [5, 0, 0]


def dictionaries(x: Any) -> Any:
    groups = defaultdict(list)
    groups["a"].append(x * 2)
    return groups, OrderedDict(b=x * 3), Counter("aab")


def test_dictionaries_keep_their_class_and_default() -> None:
    expected = dictionaries(torch.ones(2))
    found = hagane.compile(dictionaries, fullgraph=True)(torch.ones(2))
    assert [type(each) for each in found] == [type(each) for each in expected]
    assert found[0]["other"] == []
    assert found[0]["a"][0].tolist() == [2, 2]
    assert found[2] == expected[2]
