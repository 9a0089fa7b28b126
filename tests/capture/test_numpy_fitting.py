"""Polynomials and least squares of NumPy in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane

PLACES = np.linspace(0, 3, 9)


def fitted(x: Any, y: Any) -> Any:
    rows = np.stack([x, 2 * x], axis=1)
    whole = np.stack([x, x**2, x * 0 + 1], axis=1)
    return (
        np.polyfit(x, y, 3), np.polyfit(x, np.stack([y, y * 2], 1), 2),
        np.polyfit(x, y, 1, w=x + 1), np.poly(x[:3]),
        np.histogram_bin_edges(x, 3, (0.0, 6.0)), np.sort_complex(-x),
        *np.linalg.lstsq(whole, y), *np.linalg.lstsq(rows, y, rcond=None)[:3],
        np.isposinf(y / x), np.isneginf(-y / x), np.polyval(np.polyfit(x, y, 2), x),
    )  # fmt: skip


def conditions(x: Any) -> Any:
    square = np.stack([x[:3], x[1:4] ** 2, np.conj(np.sin(x[:3]))])
    both = np.stack([square, square * x[1]])
    names = (None, 2, -2, 1, -1, np.inf, -np.inf, "fro")
    return tuple(np.linalg.cond(both, p) for p in names)


@pytest.mark.long
def test_condition_numbers_are_those_of_numpy() -> None:
    found = hagane.compile(conditions, fullgraph=True)(PLACES)
    for one, other in zip(found, conditions(PLACES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)


def test_fits_are_those_of_numpy() -> None:
    values = np.sin(PLACES) + 0.1
    found = hagane.compile(fitted, fullgraph=True)(PLACES, values)
    with np.errstate(divide="ignore"):
        expected = fitted(PLACES, values)
    for place, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert np.asarray(one).dtype == np.asarray(other).dtype, place
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-10, err_msg=str(place))
