"""Named tuples inside a program: their methods, and what they share with tuples."""

# ruff: noqa: RUF005

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import hagane

Gauss = namedtuple("Gauss", "mean width turns", defaults=(3,))
Fields = namedtuple("Fields", "count index")


class Step(NamedTuple):
    """A state with a method."""

    x: Any
    rest: Any = None
    turns: int = 2

    def total(self) -> Any:
        return self.x * self.turns


class Point(NamedTuple):
    """A vector with operators of its own."""

    x: Any
    y: Any

    def __add__(self, other: Any) -> Any:
        return Point(self.x + other.x, self.y + other.y)

    def __eq__(self, other: object) -> bool:
        return False


def replaced(x: Any) -> Any:
    found = Gauss(x, x * 2)._replace(width=x + 1)
    return found.width + found.mean, len(found), found.turns


def replaced_in_a_loop(x: Any) -> Any:
    step = Step(x, x + 1)
    while step.x.sum() < 4:
        step = step._replace(x=step.x + 1, turns=step.turns + 1)
    return step.total(), step.turns


def made_and_listed(x: Any) -> Any:
    found = Gauss._make([x, x * 3, 1])._asdict()
    found["turns"] = 5
    return found, Step._fields.index("rest"), len(Step(x)._fields)


def in_the_order_of_fields(x: Any) -> Any:
    return list(Step(rest=x, x=x * 2)._asdict().values())[0]  # noqa: RUF015


def joined_and_compared(x: Any) -> Any:
    pair = Fields(1, 2)
    longer = pair + (x,)
    return longer[2], pair == (1, 2), pair < (1, 3), pair == (0, 2), (pair * 2)[3]


def methods_of_the_class_come_first(x: Any) -> Any:
    point = Point(x, x + 1) + Point(x, x)
    return point.x, point.y, Point(1, 2) == (1, 2), Fields(4, 6).count, Fields(4, 6).index


@pytest.mark.parametrize(
    "function",
    [
        replaced, replaced_in_a_loop, made_and_listed, in_the_order_of_fields, joined_and_compared,
        methods_of_the_class_come_first,
    ],
)  # fmt: skip
def test_named_tuples_do_what_python_says(function: Callable[[Any], Any]) -> None:
    compiled = hagane.compile(function, fullgraph=True)
    for x in (np.array([0.5, -1.0, 0.0]), np.array([9.0, 2.0, 1.0])):
        got, expected = compiled(x), function(x)
        assert type(got) is type(expected)
        for left, right in zip(_leaves(got), _leaves(expected), strict=True):
            np.testing.assert_allclose(left, right)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


class Scales(NamedTuple):
    scale: float
    shift: torch.Tensor
    times: int = 2

    def both(self) -> float:
        return self.scale * self.times


class Holder(torch.nn.Module):
    """A module whose attributes are named tuples, one among the items of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.own = Scales(0.5, torch.tensor([1.0, 2.0]))
        self.several = [Scales(2.0, torch.zeros(2)), Scales(3.0, torch.ones(2), 5)]

    def forward(self, x: torch.Tensor) -> Any:
        scale, shift, times = self.own
        for one in self.several:
            x = x * one.both() + one.shift
        return x * scale + shift * times + len(self.own), self.own._replace(times=7)


def test_named_tuples_that_an_object_holds_keep_their_class() -> None:
    module = Holder()
    x = torch.randn(3, 2)
    compiled = hagane.compile(module, fullgraph=True)
    for scale in (0.5, 0.25):
        module.own = module.own._replace(scale=scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hagane.CompileNotice)
            (y, own), (expected, wanted) = compiled(x), module(x)
        torch.testing.assert_close(y, expected)
        assert type(own) is Scales
        assert tuple(own)[::2] == tuple(wanted)[::2]
    assert len(compiled.captures) == 2


def test_results_of_libraries_keep_their_class() -> None:
    def of_pytorch(x: Any) -> Any:
        return x.max(0), torch.topk(x, 2), torch.linalg.qr(x), torch.slogdet(x), torch.aminmax(x)

    def of_numpy(x: Any) -> Any:
        return np.linalg.qr(x), np.linalg.svd(x), np.unique_counts(x)

    for function, x in ((of_pytorch, torch.eye(3)), (of_numpy, np.eye(3, dtype=np.float32))):
        made = hagane.compile(function, fullgraph=True)(x)
        assert [type(part) for part in made] == [type(part) for part in function(x)]


def test_classes_of_results_are_those_of_the_library() -> None:
    def program(x: Any) -> Any:
        found = x.max(0)
        return type(found) is torch.return_types.max, isinstance(found, torch.return_types.max)

    def mapped(x: Any) -> Any:
        return torch.utils._pytree.tree_map(lambda t: t + 1, OrderedDict(a=x, b=[x]))

    x = torch.eye(2)
    assert hagane.compile(program, fullgraph=True)(x) == (True, True)
    assert str(hagane.compile(mapped, fullgraph=True)(x)) == str(mapped(x))


METHODS = [torch.Tensor.abs, torch.Tensor.split, torch.Tensor.__add__, torch.Tensor.norm]


def test_methods_of_tensors_that_a_list_holds() -> None:
    def program(x: Any) -> Any:
        return METHODS[0](x), METHODS[1](x, 1), METHODS[2](x, 1), METHODS[3](x)

    x = torch.eye(2) - 2
    assert str(hagane.compile(program, fullgraph=True)(x)) == str(program(x))
