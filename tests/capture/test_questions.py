"""Questions of a program about gradients, kinds of values, and functions compiled by PyTorch."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import pytest
import torch

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
