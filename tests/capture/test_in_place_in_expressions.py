"""Operations in place within expressions, of which nothing before may hold what they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import hagane
from hagane.errors import CaptureError

from .test_programs import compare


def two_chains(x: Any) -> Any:
    m, s = x + 1, x + 2
    return m.add_(1).mul_(s.add_(3)), m, s


def conditional(x: Any) -> Any:
    m = x + 1
    n = m
    return (m.abs_() if x.shape[0] > 2 else m.abs()).sum(0) + n.sum(0)


def by_name(x: Any) -> Any:
    m, s = x + 1, x + 3
    return torch.add(m.mul_(2), other=s.mul_(3)) + m + s


def index(x: Any) -> Any:
    m = x + 1
    kept = torch.where(m > 0, m.mul_(2), m)
    return x[m.add_(1).argmax()] + -m.neg_() + m + kept


@pytest.mark.parametrize("program", [two_chains, conditional, by_name, index])
def test_operations_in_place_on_other_tensors_than_those_before(
    program: Callable[..., Any],
) -> None:
    graph = hagane.capture(program, "float32[n]")
    compare(program, graph, [torch.randn(size) for size in (1, 2, 3, 5)])


def receiver(x: Any) -> Any:
    m = x + 1
    return m.add_(1).mul_(m.add_(3))


def indexed(x: Any) -> Any:
    m = x + 1
    return m[m.add_(1).argmax()]


@pytest.mark.parametrize("program", [receiver, indexed])
def test_operations_in_place_on_what_stands_before_are_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(CaptureError, match="an operation in place follows others in one express"):
        hagane.capture(program, "float32[n]")
