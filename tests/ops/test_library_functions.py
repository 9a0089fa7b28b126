"""Functions over the builder that libraries share compute what NumPy and PyTorch do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from hagane.ops.functions.layers import alignment
from hagane.ops.functions.numbers import integers, pairs, special
from hagane.ops.functions.sums import factors, linalg, products
from hagane.ops.functions.tensors import ordering

DRAWN = np.random.default_rng(0)
SQUARE = [DRAWN.standard_normal(shape) for shape in ((3, 3), (2, 4, 4), (1, 1))]
WIDE = [DRAWN.standard_normal(shape) for shape in ((3, 5), (5, 3), (2, 4, 3))]


@pytest.mark.parametrize("a", SQUARE, ids=lambda a: str(a.shape))
def test_linear_algebra_of_square_matrices(a: Any) -> None:
    whole = a @ np.swapaxes(a, -1, -2) + np.eye(a.shape[-1])
    np.testing.assert_allclose(linalg.inverse(a), np.linalg.inv(a), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(linalg.determinant(a), np.linalg.det(a), rtol=1e-9)
    np.testing.assert_allclose(factors.cholesky(whole), np.linalg.cholesky(whole), rtol=1e-9)
    values, vectors = factors.symmetric_values(whole)
    expected = np.linalg.eigh(whole)
    np.testing.assert_allclose(values, expected[0], rtol=1e-8)
    np.testing.assert_allclose(np.abs(vectors), np.abs(expected[1]), atol=1e-6)


@pytest.mark.parametrize("a", WIDE, ids=lambda a: str(a.shape))
def test_factors_of_matrices_that_are_not_square(a: Any) -> None:
    for ours, theirs in zip(
        factors.singular(a), np.linalg.svd(a, full_matrices=False), strict=True
    ):
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-8)
    np.testing.assert_allclose(linalg.pseudo_inverse(a, 1e-15), np.linalg.pinv(a), atol=1e-8)
    for complete, mode in ((False, "reduced"), (True, "complete")):
        found = factors.orthogonal_triangular(a, complete=complete)
        for ours, theirs in zip(found, np.linalg.qr(a, mode), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


LOW_RANK = [
    DRAWN.standard_normal((*lead, rows, 1)) @ DRAWN.standard_normal((*lead, 1, columns))
    for lead, rows, columns in (((), 4, 4), ((2,), 5, 3), ((), 3, 6))
]


@pytest.mark.parametrize("a", [*WIDE, *LOW_RANK, np.zeros((3, 2))], ids=lambda a: str(a.shape))
@pytest.mark.parametrize("full", [False, True], ids=["least", "full"])
def test_singular_vectors_are_orthonormal_whatever_the_rank(a: Any, *, full: bool) -> None:
    u, s, v = factors.singular(a, full=full)
    for ours, theirs in zip((u, s, v), np.linalg.svd(a, full_matrices=full), strict=True):
        assert ours.shape == theirs.shape
    for rows in (np.swapaxes(u, -1, -2), v):
        unit = np.broadcast_to(np.eye(rows.shape[-2]), (*rows.shape[:-1], rows.shape[-2]))
        np.testing.assert_allclose(rows @ np.swapaxes(rows, -1, -2), unit, atol=1e-12)
    count = s.shape[-1]
    np.testing.assert_allclose(u[..., :count] * s[..., None, :] @ v[..., :count, :], a, atol=1e-12)


@pytest.mark.parametrize(
    "equation", ["...ij,...jk->...ik", "ijk,lijk", "ijk,lijk->il", "ijk,mijk->mk"]
)
def test_einsum_reads_ellipses_and_sizes_of_one(equation: str) -> None:
    x, y = DRAWN.standard_normal((1, 3, 4)), DRAWN.standard_normal((5, 1, 4, 4))
    y = y if "..." in equation else DRAWN.standard_normal((5, 1, 3, 4))
    expected = np.einsum(equation, x, y)
    np.testing.assert_allclose(products.einsum(equation, x, y), expected, atol=1e-12)


def test_einsum_takes_diagonals_of_repeated_letters() -> None:
    x = DRAWN.standard_normal((2, 3, 3))
    for equation in ("bii->bi", "bii", "bii->b"):
        np.testing.assert_allclose(products.einsum(equation, x), np.einsum(equation, x))
    with pytest.raises(ValueError, match="expected 'ij' to name 3 axes, it names 2"):
        products.einsum("ij->i", x)


SPECIAL: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (special.log_gamma, torch.lgamma), (special.digamma, torch.digamma),
    (special.scaled_error_tail, torch.special.erfcx), (special.error_tail, torch.special.erfc),
    (special.log_normal_share, torch.special.log_ndtr), (special.bessel_i0, torch.special.i0),
    (special.bessel_i0e, torch.special.i0e), (special.bessel_i1, torch.special.i1),
    (special.bessel_i1e, torch.special.i1e), (special.entropy_part, torch.special.entr),
    (special.sinc, torch.sinc), (special.normal_share, torch.special.ndtr),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "theirs"), SPECIAL, ids=lambda f: f.__name__)
def test_special_functions_near_and_far(ours: Any, theirs: Any) -> None:
    x = np.concatenate([np.linspace(-6, 6, 41) + 0.013, [20.5, -20.25, 0.0]])
    np.testing.assert_allclose(ours(x), theirs(torch.tensor(x)).numpy(), rtol=1e-8, atol=1e-12)


def test_inverse_functions_at_their_ends() -> None:
    x = np.array([-1.0, -0.999999, -0.3, 0.0, 0.5, 1.0, 1.5])
    expected = torch.erfinv(torch.tensor(x)).numpy()
    np.testing.assert_allclose(special.inverse_error(x), expected, rtol=1e-9)


def test_angles_in_all_quarters_and_on_axes() -> None:
    y, x = np.meshgrid([-np.inf, -1.5, -0.0, 0.0, 2.0, np.inf], [-np.inf, -1, -0.0, 0.0, 3, np.inf])
    np.testing.assert_allclose(pairs.angle_of(y, x), np.arctan2(y, x))


def test_divisors_and_shifts_of_integers() -> None:
    x, y = DRAWN.integers(-30, 30, (3, 4)), DRAWN.integers(0, 40, (4,))
    assert np.array_equal(integers.greatest_divisor(x, y), np.gcd(x, y))
    assert np.array_equal(integers.least_multiple(x, y), np.lcm(x, y))
    small, count = x.astype(np.int16), y.astype(np.int16)
    assert np.array_equal(integers.shift_left(small, count), np.left_shift(small, count))
    assert np.array_equal(integers.shift_right(small, count), np.right_shift(small, count))


def test_quantiles_with_and_without_nan() -> None:
    x = DRAWN.standard_normal((3, 5))
    x[1, 2] = np.nan
    q = np.array([[0.2, 0.9]])
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        found = ordering.quantiles(x, q, [1], False, method, skip=False)
        np.testing.assert_allclose(found, np.quantile(x, q, axis=1, method=method))
    found = ordering.quantiles(x, q, [0, 1], True, skip=True)
    np.testing.assert_allclose(found, np.nanquantile(x, q, axis=(0, 1), keepdims=True))


@pytest.mark.parametrize(("steps", "batch", "labels"), [(12, 3, 4), (6, 2, 3), (3, 2, 3)])
@pytest.mark.parametrize("zero", [False, True])
def test_alignment_losses_of_padded_and_joined_labels(
    steps: int, batch: int, labels: int, zero: bool
) -> None:
    drawn = torch.Generator().manual_seed(steps)
    x = torch.randn(steps, batch, 5, generator=drawn, dtype=torch.float64).log_softmax(-1)
    y = torch.randint(1, 5, (batch, labels), generator=drawn)
    times = torch.randint(steps // 2 + 1, steps + 1, (batch,), generator=drawn)
    counts = torch.randint(0, labels + 1, (batch,), generator=drawn)
    expected = torch.nn.functional.ctc_loss(
        x, y, times, counts, reduction="none", zero_infinity=zero
    ).numpy()
    joined = torch.cat([row[:n] for row, n in zip(y, counts, strict=True)]).numpy()
    for rows in (y.numpy(), alignment.labels_by_row(joined, counts.numpy())):
        found = alignment.alignment_loss(
            x.numpy(), rows, times.numpy(), counts.numpy(), 0, zero_infinity=zero
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9)
