"""Tensors are found changed however they were changed, in C and by PyTorch's own methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.frontends.capture.interface.unchanged import PlainlyKept, kept_tensors

MAKERS = [kept_tensors, PlainlyKept]


def transpose(tensor: Any) -> None:
    tensor.data = tensor.data.t()


def widen(tensor: Any) -> None:
    tensor.data = tensor.data.double()


CHANGES: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
    (lambda: torch.ones(3, 3), lambda t: t.data.add_(1)),
    (lambda: torch.arange(9.0).reshape(3, 3), transpose),
    (lambda: torch.arange(10000.0).reshape(100, 100), transpose),
    (lambda: torch.randn(100, 100), lambda t: t[5, 7].add_(1)),
    (lambda: torch.randn(100, 100), lambda t: t.data.mul_(2)),
    (lambda: torch.randn(100, 100).t(), lambda t: t.data.mul_(2)),
    (lambda: torch.randn(60, 60, 6)[::2, 1:, ::3], lambda t: t.data.mul_(2)),
    (lambda: torch.tensor(2.0), lambda t: t.data.mul_(2)),
    (lambda: torch.zeros(0, 3), lambda t: t.t_()),
    (lambda: torch.randn(70, 70).bfloat16(), lambda t: t.data.mul_(2)),
    (lambda: torch.ones(5, dtype=torch.bool), lambda t: t.data.logical_not_()),
    (lambda: torch.randn(3, 4, dtype=torch.complex64), lambda t: t.data.mul_(2)),
    (lambda: torch.nn.Parameter(torch.randn(64, 64)), widen),
    (lambda: torch.ones(4), lambda t: t.copy_(t.clone())),  # the same content: a version more
]


@pytest.mark.parametrize("make", MAKERS)
def test_each_kind_of_change_is_found_once(make: Any) -> None:
    torch.manual_seed(0)
    tensors = [new() for new, _ in CHANGES]
    kept = make(tensors, content=True)
    for place, (_, change) in enumerate(CHANGES):
        assert kept.other(0) == -1, place
        with torch.no_grad():
            change(tensors[place])
        assert kept.other(0) == place
        assert kept.other(place + 1) == -1
        kept.keep(place)


@pytest.mark.parametrize("make", MAKERS)
def test_types_are_compared_without_content(make: Any) -> None:
    tensors = [torch.ones(3, 3), torch.ones(3, 3)]
    kept = make(tensors, content=False)
    tensors[0].add_(1)
    assert kept.other(0) == -1
    widen(tensors[1])
    assert kept.other(0) == 1


def test_tensors_that_dlpack_does_not_know_are_compared_too() -> None:
    strange = torch.ones(2, 2).to_sparse()
    kept = kept_tensors([torch.ones(2), strange], content=False)
    assert isinstance(kept, PlainlyKept)
    assert kept.other(0) == -1


@pytest.mark.parametrize("width", [4, 100])
def test_a_weight_that_is_transposed_in_its_place_is_found(width: int) -> None:
    torch.manual_seed(0)
    net = torch.nn.Linear(width, width).eval()
    compiled = hagane.compile(net)
    x = torch.randn(3, width)
    with torch.no_grad():
        compiled(x)
        compiled(x)
        transpose(net.weight)  # the same memory, shape and version
        np.testing.assert_allclose(compiled(x), net(x), rtol=1e-4, atol=1e-5)
