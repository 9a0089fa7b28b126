"""Gradients of products of matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.gradient.differences import check_operator

RNG = np.random.default_rng(13)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-2, 2, shape))


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 2)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
        ((0, 2, 3), (3, 2)),
    ],
    ids=str,
)
def test_matrix_products(shapes: Any) -> None:
    check_operator("MatMul", *(draw(*shape) for shape in shapes))


@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_general_matrix_products(flags: tuple[int, int]) -> None:
    a, b = draw(2, 3), draw(3, 4)
    a, b = (x.T.copy() if flag else x for x, flag in zip((a, b), flags, strict=True))
    attributes = {"transA": flags[0], "transB": flags[1], "alpha": 0.7, "beta": 1.3}
    for c in (None, draw(), draw(4), draw(2, 1), draw(2, 4)):
        check_operator("Gemm", a, b, *([] if c is None else [c]), attributes=attributes)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bjk", [(2, 3, 4), (2, 4, 2)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ij->j", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iji,j->ij", [(2, 3, 2), (3,)]),
        ("...ij,...jk->...ik", [(5, 2, 3), (3, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (5, 3, 4)]),
        ("i...,...->...", [(3, 2), (2,)]),
        ("ij,kl->i", [(2, 3), (2, 2)]),
        ("a,b,c->abc", [(2,), (3,), (2,)]),
        ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("ij,ij->i", [(2, 3), (1, 3)]),
        (" i j , j -> i ", [(2, 3), (3,)]),
    ],
    ids=str,
)
def test_einstein_sums(equation: str, shapes: Any) -> None:
    check_operator("Einsum", *(draw(*s) for s in shapes), attributes={"equation": equation})
