"""Gradients of factors of matrices, of guarded lengths and of guarded variances are PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.nn import functional

from tests.training.test_programs import compare


class Matrix(nn.Module):
    """A matrix that is trained."""

    def __init__(self, matrix: list[list[float]]):
        super().__init__()
        self.matrix = nn.Parameter(torch.tensor(matrix, dtype=torch.float64))


def vectors(module: Any, x: Any) -> Any:
    values, found = torch.linalg.eigh(module.matrix)
    return 0.01 * (found[:, 0] @ x.mean(0)).square() + 0.01 * (values * x.mean(0)).sum()


def directions(module: Any, x: Any) -> Any:
    left, values, right = torch.linalg.svd(module.matrix)
    lengths = (left[:, 0] @ x.mean(0)).square() + (right[1] @ x.mean(0)).square()
    return 0.01 * lengths + 0.01 * (values * x.mean(0)).sum()


def triangles(module: Any, x: Any) -> Any:
    return 0.01 * (torch.linalg.cholesky(module.matrix) @ x.mean(0)).square().sum()


def curvature(module: Any, x: Any) -> Any:
    values, found = torch.linalg.eigh(module.matrix)
    total = (found.square() * x.mean(0)).sum() + values.pow(3).sum()
    (slope,) = torch.autograd.grad(total, module.matrix, create_graph=True)
    return 1e-4 * slope.square().sum()


# Elements of 0 are where the rotations end of which eigenvectors are computed.
DIAGONAL = [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.5]]
WHOLE = [[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]]


@pytest.mark.parametrize(
    ("loss", "matrix"),
    [
        (vectors, DIAGONAL),
        (vectors, WHOLE),
        (directions, DIAGONAL),
        (directions, WHOLE),
        (triangles, WHOLE),
        (curvature, WHOLE),
    ],
)
def test_gradients_of_factors_are_pytorchs(loss: Any, matrix: Any) -> None:
    torch.manual_seed(0)
    compare(Matrix(matrix), loss, [(torch.randn(4, 3).double(),) for _ in range(3)])


def short(module: Any, x: Any) -> Any:
    return functional.cosine_similarity(module(x), x, eps=2.0).mean()


def narrow(module: Any, x: Any) -> Any:
    return functional.gaussian_nll_loss(module(x), x, module(x).square(), eps=0.5)


@pytest.mark.parametrize("loss", [short, narrow])
def test_gradients_go_through_lengths_and_variances_below_the_least(loss: Any) -> None:
    torch.manual_seed(1)
    compare(nn.Linear(3, 3).double(), loss, [(torch.randn(4, 3).double(),) for _ in range(2)])
