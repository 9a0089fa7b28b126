"""Questions of a program about gradients, kinds of values, and functions compiled by PyTorch."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils._pytree import (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
)

import hagane
from hagane.errors import CaptureError


class Asking(torch.nn.Module):
    """A module that asks which tensors require gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if x.requires_grad or y.requires_grad:
            return y + 1
        return y + 2 if self.weight.requires_grad else y + 3


def test_inputs_require_no_gradients_and_parameters_say_it_themselves() -> None:
    module = Asking()
    x = torch.randn(3, 2)
    for frozen in (False, True):
        module.weight.requires_grad_(not frozen)
        session = hagane.InferenceSession(hagane.capture(module, "float32[b, 2]"))
        (y,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(y), x * 2 + (3 if frozen else 2))


def test_compiled_calls_answer_as_the_original_does() -> None:
    module = Asking()
    compiled = hagane.compile(module)
    x = torch.randn(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hagane.CompileNotice)
        for wanted, frozen in ((False, False), (True, False), (False, True), (False, False)) * 2:
            module.weight.requires_grad_(not frozen)
            given = x.clone().requires_grad_(wanted)
            with torch.no_grad():
                torch.testing.assert_close(compiled(given), module(given))
            torch.testing.assert_close(compiled(given), module(given))


def test_a_result_of_parameters_is_asked_without_gradients_alone() -> None:
    layer = torch.nn.Linear(2, 2)

    def ask(x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        return y + 1 if y.requires_grad else y

    with pytest.raises(CaptureError, match=r"while no gradients are recorded"):
        hagane.capture(ask, "float32[b, 2]")
    with torch.no_grad():
        assert len(hagane.capture(ask, "float32[b, 2]").graph.outputs) == 1


def plain_swish(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    swish = torch.jit.script(plain_swish)


class Block(NamedTuple):
    stride: list[int]
    kernel: int


class Scripted(torch.nn.Module):
    """Settings of another kind than the numbers they are compared with; a scripted function."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block([1], 3)
        self.scales = torch.nn.Parameter(torch.tensor([[2.0, 3.0]]))

    def forward(self, x: Any) -> torch.Tensor:
        if self.block.stride == 1 or (1, 2) == [1, 2] or torch.jit.isinstance(x, list[int]):
            return x
        scales = self.scales[(*(None,) * x.ndim, Ellipsis)][0, 0]
        return swish(x) * scales


def test_values_of_different_kinds_are_not_equal_and_scripted_functions_have_source() -> None:
    module = Scripted()
    x = torch.randn(3, 2)
    session = hagane.InferenceSession(hagane.capture(module, "float32[b, 2]"))
    (y,) = session.run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), module(x).detach())


def test_the_type_of_a_container_is_that_of_python() -> None:
    values = {"list": [1], "tuple": (1, 2), "dict": {"k": 1}, "ordered": OrderedDict(k=1)}
    kinds = (list, tuple, dict, OrderedDict, int, float, str, torch.Tensor, Block)

    def answers(x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        sizes = {list: 1, tuple: 2, int: 3}
        for value in (*values.values(), (x, x), [x], {"k": x}, 3, 2.5, "s", x):
            for kind in kinds:
                found += [type(value) is kind, type(value) is not kind]
                found.append(operator.eq(type(value), kind))
                found += [type(value) in (kind, OrderedDict), isinstance(value, kind)]
            found.append(sizes.get(type(value), 9) == 2)
        return [x + (11 if answer else 12) for answer in found]

    x = torch.zeros(1)
    model = hagane.capture(answers, x)
    found = [int(y[0]) for y in hagane.InferenceSession(model).run(None, {"x": x.numpy()})]
    assert found == [int(y) for y in answers(x)]


def test_trees_are_flattened_and_made_anew() -> None:
    def function(x: torch.Tensor) -> Any:
        tree = (x, [x * 2, {"k": x + 1, "none": None}], Block([1], 3))
        (first, *rest), spec = tree_flatten(tree)
        made = tree_unflatten((first + 5, *rest), spec)
        both = tree_map(lambda a, b: a + b, [x, x * 3], [x, x])
        return (
            made[0],
            made[1][1],
            both,
            x + len(rest),
            tree_map_only(torch.Tensor, torch.neg, made[1]),
        )

    x = torch.randn(3)
    got, expected = hagane.compile(function, fullgraph=True)(x), function(x)
    leaves = tree_leaves(got)
    assert tree_structure(got) == tree_structure(expected)
    for one, other in zip(leaves, tree_leaves(expected), strict=True):
        assert one is None if other is None else torch.equal(one, other)


TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64)  # fmt: skip


def test_types_of_pairs_are_pytorchs() -> None:
    def answers(x: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for one in TYPES:
            for other in TYPES:
                found.append(x + (11 if torch.can_cast(one, other) else 12))
                number = x.to(one)
                found += [x.to(torch.promote_types(one, other))]
                found += [x.to(torch.result_type(number, x[0].to(other)))]
            found += [x.to(torch.result_type(number, 1.5)), x.to(torch.result_type(number, 2))]
        found.append(x.to(torch.get_autocast_dtype("cpu")))
        return [*found, x + (11 if torch.is_autocast_enabled("cpu") else 12)]

    x = torch.zeros(1)
    model = hagane.capture(answers, x)
    names = [hagane.graph.types.dtype_name(value.dtype) for value in model.graph.outputs]
    expected = answers(x)
    assert names == [str(y.dtype).removeprefix("torch.") for y in expected]
    plain = [i for i, y in enumerate(expected) if y.dtype == torch.float32]
    outputs = [model.graph.outputs[i].name for i in plain]
    found = hagane.InferenceSession(model).run(outputs, {"x": x.numpy()})
    assert [float(y[0]) for y in found] == [float(expected[i]) for i in plain]
