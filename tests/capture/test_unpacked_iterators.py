"""Iterators that a statement makes and unpacks at once: what they gave may be changed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import hagane
from hagane.errors import CaptureError

from .test_programs import compare


def mapped(x: Any) -> Any:
    q, k, v = map(torch.square, (x, x + 1, x + 2))
    q *= 3
    k += q
    return q + k * v


def generated(x: Any) -> Any:
    y = x + 1
    q, *rest = (y * t for t in (1, 2, 3))
    y += 1
    q -= y
    return q + rest[0] * rest[1]


def handed_on(x: Any) -> Any:
    def scaled(a: Any, b: Any) -> Any:
        a += 1
        return a * b

    return scaled(*map(torch.exp, (x, x)))


def gathered(x: Any) -> Any:
    y = x + 1
    items = [*(y * t for t in (1, 2)), y]
    items[0] *= 2
    return items[0] + items[1] + items[2]


@pytest.mark.parametrize("program", [mapped, generated, handed_on, gathered])
def test_values_of_an_iterator_that_is_unpacked_at_once(program: Callable[..., Any]) -> None:
    graph = hagane.capture(program, "float32[n, 4]")
    compare(program, graph, [torch.randn(rows, 4) for rows in (1, 3, 5)])


def kept(x: Any) -> Any:
    y = x + 1
    later = (y * t for t in (1, 2))
    y += 1
    q, k = later
    return q + k


def test_an_iterator_that_is_unpacked_later_reads_later() -> None:
    with pytest.raises(CaptureError, match="changes a tensor that a generator reads or hands out"):
        hagane.capture(kept, "float32[n, 4]")
