"""Which results of a compiled function carry gradients, and what the call leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import hagane

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


def test_results_made_without_gradients_carry_none() -> None:
    def f(x: Any) -> Any:
        with torch.no_grad():
            y = x * 3
        return y, y + x, x.detach(), x + 1, y * 2, torch.zeros(1)

    compiled = hagane.compile(f)
    x = torch.ones(1, requires_grad=True)
    assert [y.requires_grad for y in compiled(x)] == [y.requires_grad for y in f(x)]
    with torch.no_grad():
        compiled(x)
    compiled(x)[1].backward()
    assert x.grad == 1


def test_tensors_that_a_program_lets_have_gradients() -> None:
    def leaf(x: Any) -> Any:
        return torch.ones(1, requires_grad=True) * x

    def argument(x: Any) -> Any:
        x.requires_grad_()
        return torch.autograd.grad((x**2).sum(), x)[0]

    assert hagane.compile(leaf)(torch.ones(1)).requires_grad
    x = torch.ones(1)
    compiled = hagane.compile(argument, fullgraph=True)
    assert compiled(x).item() == 2
    assert x.requires_grad
    with pytest.warns(hagane.CompileNotice, match="sets requires_grad"):
        hagane.compile(leaf)(torch.ones(1))


def test_a_call_that_turns_gradients_off_leaves_them_off() -> None:
    def f(x: Any) -> Any:
        torch.set_grad_enabled(False)
        return x + 1

    compiled = hagane.compile(f)
    try:
        for _ in range(2):
            torch.set_grad_enabled(True)
            compiled(torch.ones(1))
            assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_gradients_of_functions_with_any_number_of_arguments() -> None:
    def alone(*args: Any, **named: Any) -> Any:
        return args[0] * args[1] + named["shift"]

    def behind(a: Any, *args: Any, factor: float = 3) -> Any:
        return a * args[1] + factor * args[0]["x"]

    x, y = torch.ones(3, requires_grad=True), torch.arange(3.0)
    hagane.compile(alone, fullgraph=True)(x, y, shift=2).sum().backward()
    assert x.grad.equal(y)
    hagane.compile(behind, fullgraph=True)(x, {"x": x}, y, factor=2).sum().backward()
    assert x.grad.equal(y * 2 + 2)
    x.grad = None
    hagane.compile(torch.mul)(x, y).sum().backward()
    assert x.grad.equal(y)
