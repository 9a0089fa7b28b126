"""Methods that change the axes of a tensor in place reach all its names, and no view of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import hagane
from hagane.errors import CaptureError


def names(x: Any) -> Any:
    y = x * 1
    held, by_name = [y, y], {"a": y}
    y.unsqueeze_(0)
    return held, by_name


def views(x: Any) -> Any:
    y = x * 1
    row = y[0]
    y.t_()
    y += 1
    y.transpose_(0, 1)
    return y, row


def functions(x: Any) -> Any:
    def squeeze(tensor: Any) -> None:
        tensor.squeeze_(0).unsqueeze_(-1)

    y = x.clone()
    squeeze(y)
    return y


def turns(x: Any) -> Any:
    y = x * 1
    for _ in range(3):
        y.t_()
    return y


def branches(x: Any) -> Any:
    y = x * 1
    if x.sum() > 0:
        y.unsqueeze_(0)
    else:
        y = y.unsqueeze(0)
    return y


@pytest.mark.parametrize("program", [names, views, functions, turns, branches])
def test_all_names_of_a_tensor_are_turned(program: Callable[[Any], Any]) -> None:
    x = torch.arange(3.0).reshape(1, 3)
    for dynamic in (None, True):
        compiled = hagane.compile(program, fullgraph=True, dynamic=dynamic)
        torch.testing.assert_close(compiled(x), program(x))


def test_what_an_expression_has_read_before_is_not_turned() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        return y, y.t_()

    with pytest.raises(CaptureError, match="follows others in one expression"):
        hagane.capture(f, "float32[2, 3]")


def test_arguments_are_not_turned() -> None:
    with pytest.raises(CaptureError, match=r"'squeeze_' changes the axes of a tensor in place"):
        hagane.capture(lambda x: x.squeeze_(0), "float32[1, n]")
