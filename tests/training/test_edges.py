"""Gradients where PyTorch has a rule of its own: ties, bounds, zeros, infinities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import hagane

_INF = float("inf")
_ONES = torch.ones(5)


class _Vector(nn.Module):
    def __init__(self, values: list[float]):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(values, dtype=torch.float32))


def _pair(p: Any, other: float) -> Any:
    return torch.stack([p, torch.full((5,), other)], 1)


# A function of five numbers, and the numbers.
CASES: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "clamp": (lambda p: p.clamp(-1, 1), [-2, -1, 0, 1, 2]),
    "clamp from below": (lambda p: p.clamp(min=0), [-1, 0, -0.0, 1, 2]),
    "clamp by tensors": (lambda p: p.clamp(-_ONES, _ONES), [-2, -1, 0, 1, 2]),
    "clamp_max": (lambda p: p.clamp_max(1.0), [-2, -1, 0, 1, 2]),
    "relu6": (lambda p: nn.functional.relu6(p), [-1, 0, 3, 6, 7]),
    "hardtanh": (lambda p: nn.functional.hardtanh(p), [-2, -1, 0, 1, 2]),
    "hardtanh of other bounds": (lambda p: nn.functional.hardtanh(p, 0.0, 2.0), [-2, 0, 1, 2, 3]),
    "fmax": (lambda p: torch.fmax(p, torch.zeros(5)), [-1, 0, -0.0, 1, 2]),
    "fmin": (lambda p: torch.fmin(p, torch.zeros(5)), [-1, 0, -0.0, 1, 2]),
    "max along an axis": (lambda p: _pair(p, 0.0).max(1).values, [-1, 0, -0.0, 1, 2]),
    "min along an axis": (lambda p: _pair(p, 1.0).min(1, True).values[:, 0], [-1, 0, 1, 1, 2]),
    "margin ranking": (
        lambda p: nn.functional.margin_ranking_loss(p, _ONES, _ONES, reduction="none"),
        [-1, 0, 1, 1, 2],
    ),
    "hinge": (
        lambda p: nn.functional.hinge_embedding_loss(p, -_ONES, reduction="none"), [-1, 0, 1, 1, 2],
    ),
    "multi margin": (
        lambda p: nn.functional.multi_margin_loss(
            _pair(p, 0.0), torch.zeros(5, dtype=torch.int64), reduction="none"
        ), [-1, 0, 1, 1, 2],
    ),
    "deviation of equal ones": (lambda p: p.std() * torch.arange(5.0), [0.5] * 5),
    "deviation": (lambda p: p.std() * torch.arange(5.0), [0.5, 1, 2, 3, 5]),
    "norm of zeros": (lambda p: p.norm(p=3) * torch.arange(5.0), [0.0] * 5),
    "expm1": (lambda p: torch.expm1(p), [-_INF, -1e20, -1000, 1e-8, 1]),
    "log1p": (lambda p: torch.log1p(p), [-1, 1e-8, 1e20, 3e38, _INF]),
    "logaddexp": (lambda p: torch.logaddexp(p, p + 1), [-1, 0, 1, 2, 3]),
    "smooth l1": (
        lambda p: nn.functional.smooth_l1_loss(p, _ONES, reduction="none"), [-_INF, 0, 1, 2, _INF],
    ),
    "huber": (
        lambda p: nn.functional.huber_loss(p, _ONES, reduction="none"), [-_INF, 0, 1, 2, _INF],
    ),
    "hypot": (lambda p: torch.hypot(p, p * 2), [-1e20, -1, 1e-30, 1, 1e30]),
    "angle, right": (lambda p: torch.atan2(p, _ONES * 2), [-1, -0.0, 0, 1, 5]),
    "angle, left": (lambda p: torch.atan2(p, _ONES * -2), [-1, -0.0, 0, 1, 5]),
    "angle, above": (lambda p: torch.atan2(_ONES * 2, p), [-1, -0.0, 0, 1, 5]),
    "xlogy": (lambda p: torch.xlogy(p, torch.tensor(2.0)), [-1, -0.0, 0, 1, 5]),
    "erfinv": (lambda p: torch.erfinv(p), [-0.5, -1e-8, 0, 1e-30, 0.9]),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.long] if n % 3 else []) for n, c in enumerate(CASES)],
)
def test_values_and_gradients_at_edges_are_pytorchs(case: str) -> None:
    function, values = CASES[case]
    weights = torch.linspace(0.5, 1.5, 5)
    expected = _Vector(values)
    result = function(expected.p)
    (result * weights).sum().backward()
    module, found = _Vector(values), torch.zeros(5)
    optimizer = _Kept(module.parameters())
    hagane.compile(_loss, optimizer)(module, weights, found, function)
    torch.testing.assert_close(found, result.detach(), rtol=1e-4, atol=1e-6, equal_nan=True)
    torch.testing.assert_close(
        optimizer.gradient, expected.p.grad, rtol=1e-4, atol=1e-6, equal_nan=True
    )


class _Kept(torch.optim.Optimizer):
    """Keeps the gradient and changes nothing."""

    def __init__(self, parameters: Any):
        super().__init__(parameters, {})

    def step(self, closure: Any = None) -> None:
        del closure
        (group,) = self.param_groups
        self.gradient = group["params"][0].grad.clone()


def _loss(module: nn.Module, weights: Any, found: Any, function: Callable[[Any], Any]) -> Any:
    result = function(module.p)
    found.copy_(result.detach())
    return (result * weights).sum()


def _doubled(p: Any) -> Any:
    return torch.logaddexp(p, p)


def test_equal_infinities_have_a_logarithm_of_a_sum() -> None:
    values = [-_INF, -_INF, 0, 1, _INF]
    module, found = _Vector(values), torch.zeros(5)
    hagane.compile(_loss, _Kept(module.parameters()))(module, _ONES, found, _doubled)
    torch.testing.assert_close(found, _doubled(torch.tensor(values)))
