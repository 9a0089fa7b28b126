"""Tuples whose length the data decide stay tuples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import hagane


def chunks(x: Any) -> Any:
    return x.chunk(2)


def parts(x: Any) -> Any:
    found = x.split(2)
    return found, found[1:], found[-1], found + (x,), found + found  # noqa: RUF005


def rows(x: Any) -> Any:
    return x.unbind(), list(x.unbind()), (*x.unbind(),), [*x.unbind()]


def made(x: Any) -> Any:
    return tuple(row * 2 for row in x), tuple(x.split(2)), [row * 2 for row in x]


def asked(x: Any) -> Any:
    found = x.split(2)
    return x * isinstance(found, tuple) + isinstance(found, list), type(found) is tuple


def refused(x: Any) -> Any:
    try:
        x.unbind().append(x)
    except AttributeError:
        return x * 2
    return x


def alike(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, torch.Tensor):
        return torch.equal(ours, theirs)
    if isinstance(theirs, list | tuple):
        pairs = zip(ours, theirs, strict=True)
        return type(ours) is type(theirs) and all(alike(a, b) for a, b in pairs)
    return bool(ours == theirs)


@pytest.mark.parametrize("function", [chunks, parts, rows, made, asked, refused])
def test_results_are_the_tuples_of_the_program(function: Callable[[Any], Any]) -> None:
    compiled = hagane.compile(function, dynamic=True, fullgraph=True)
    for count in (4, 5, 7):
        x = torch.arange(3.0 * count).reshape(count, 3)
        assert alike(compiled(x), function(x))
