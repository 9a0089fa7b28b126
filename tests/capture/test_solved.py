"""Systems of equations: which operands PyTorch takes for vectors, and X on the left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane
from hagane.errors import CaptureError, HaganeError


def solved(A: Any, B: Any) -> Any:
    return torch.linalg.solve(A, B)


def turned(A: Any, B: Any) -> Any:
    return torch.linalg.solve(A, B, left=False)


def below(A: Any, B: Any) -> Any:
    return torch.linalg.solve_triangular(A, B, upper=False, left=False)


CASES = [
    (solved, ("b, 3, 3", "3, 3"), [(2, 3, 3), (3, 3)]),
    (solved, ("b, n, n", "b, n"), [(3, 3, 3), (3, 3)]),
    (solved, ("b, n, n", "n, m"), [(2, 3, 3), (3, 2)]),
    (solved, ("b, n, n", "m, n"), [(2, 3, 3), (2, 3)]),
    (turned, ("b, 3, 3", "2, 3"), [(4, 3, 3), (2, 3)]),
    (turned, ("b, n, n", "m, n"), [(2, 3, 3), (5, 3)]),
    (below, ("b, n, n", "m, n"), [(2, 3, 3), (5, 3)]),
]


@pytest.mark.parametrize(("program", "types", "shapes"), CASES)
def test_vectors_and_matrices_are_told_apart_as_pytorch_does(
    program: Any, types: Any, shapes: Any
) -> None:
    session = hagane.InferenceSession(
        hagane.capture(program, A=f"float32[{types[0]}]", B=f"float32[{types[1]}]")
    )
    draw = np.random.default_rng(5)
    A, B = (draw.normal(size=shape).astype("f") for shape in shapes)
    A += 4 * np.eye(3, dtype="f")
    expected = program(torch.tensor(A), torch.tensor(B)).numpy()
    np.testing.assert_allclose(session.run(None, {"A": A, "B": B})[0], expected, 1e-4, 1e-6)


def test_sizes_that_make_vectors_of_matrices_fail() -> None:
    session = hagane.InferenceSession(
        hagane.capture(solved, A="float32[b, 3, 3]", B="float32[3, 3]")
    )
    A = np.eye(3, dtype="f") + np.zeros((3, 1, 1), "f")
    with pytest.raises(HaganeError, match=r"expected b != 3 .B holds matrices"):
        session.run(None, {"A": A, "B": A[0]})


def test_vectors_behind_x_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"expected matrices in B where left=False.*unsqueeze"):
        hagane.capture(turned, A="float32[3, 3]", B="float32[3]")
