"""Methods of ufuncs and indexable objects of NumPy: types, element types, and values of graphs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane

from .test_random_programs import loaded

EXPRESSIONS = [
    "np.r_[x, y]", "np.c_[x, y]", "np.c_[x[0], y[0]]", "np.r_[x[0], 0, 1:3]", "np.r_[x[0], 2.5]",
    "np.c_[x[:, 0], x]", "np.add.reduce(x)", "np.add.reduce(x, axis=1, keepdims=True)",
    "np.multiply.reduce(n)", "np.maximum.reduce(x, 1)", "np.logical_or.reduce(x > 0)",
    "np.add.accumulate(x, axis=1)", "np.multiply.accumulate(n)", "np.add.outer(x[0], n[0])",
    "np.subtract.outer(x, y[0])", "np.greater.outer(n[0], n[1])", "np.trapezoid(x)",
    "np.trapezoid(x, axis=0)", "np.trapezoid(x, dx=0.5)", "np.trapezoid(y, n[0].cumsum())",
    "np.trapezoid(y, x, axis=0)", "x[np.s_[1:, 0]]", "x[np.index_exp[..., 1]]",
    "x[np.ix_([0, 2], [1, 0])]", "x[np.ix_(n[:, 0] > 2, n[0, :2] % 3)]", "np.polyval([1, 2, 3], x)",
    "np.polyval(x[0], n)", "np.piecewise(x, [x < 0, x > 1], [-1, 1])",
    "np.piecewise(n, [n > 2], [lambda v: v * 2.7, 0])",
    "np.piecewise(x, [x > 0], [lambda v, k: v * k, lambda v, k: v - k], 3)",
    "np.apply_along_axis(np.sum, 1, x)", "np.apply_along_axis(lambda r: r[:2] - r.mean(), 0, x)",
    "np.apply_along_axis(lambda r: np.outer(r, r), 1, x)", "np.block([[x, y], [y, x]])",
    "np.block([x[0], 1.0])", "np.block([[x[0]], [y[0]]])", "np.maximum.accumulate(x)",
    "np.subtract.accumulate(n, axis=1)", "np.add.reduceat(x[0], [0, 2, 1])",
    "np.maximum.reduceat(n, n[0, :2] % 3)", "np.logical_or.reduceat(x > 0, [0, 2], axis=1)",
    "np.delete(x, n[0, 0] % 3, 0)", "np.delete(x, n[0] > 2, 1)", "np.delete(x, n[0, 0] - 5, 1)",
    "np.delete(x, np.array([0, -1]), axis=1)", "np.median(x[0, :n[0, 0]])",
    "np.delete(x, [0, -3, 1], 0)",
    "np.vander(x[0])", "np.vander(n[0], 3, increasing=True)", "np.ediff1d(n, [9], -1)",
    "np.ediff1d(x)", "np.fft.fftshift(x)", "np.fft.ifftshift(x, axes=1)",
    "np.fft.fftfreq(len(x[0]), 0.5)", "np.fft.rfftfreq(7)", "x[np.triu_indices_from(x, 1)]",
    "x[np.tril_indices_from(x)]", "x[:3, :3][np.diag_indices_from(x[:3, :3])]",
    "np.gradient(x, axis=0, edge_order=2)", "np.gradient(x[0], n[0].cumsum())",
    "np.gradient(x[0], n[0].cumsum(), edge_order=2)", "np.gradient(n, 2.0, axis=1)",
    "np.ravel_multi_index((n[0] * 5 - 9, n[1] - 2), (3, 4), 'wrap')",
    "np.ravel_multi_index((n[0], n[1] - 2), (3, 4), mode=('clip', 'wrap'), order='F')",
    "np.add.reduce(x, 1, initial=2, where=x > 0)", "np.maximum.reduce(n, initial=3)",
    "np.maximum.accumulate(n, 0, np.float64)", "np.add.accumulate(n, dtype=np.float32)",
    "np.trim_zeros(n[:, 0] - 1)", "np.trim_zeros(n[0] - 2, 'b')",
    "np.bincount(n[0], minlength=len(x[0]) + 3)",
    "np.mgrid[:2, 1:4] * n[0, 0]", "np.mgrid[0:1:3j, :2].sum() + x", "np.ogrid[:3, 2:6][1] + n",
    "np.stack([v * i + j for (i, j), v in np.ndenumerate(x)])",
    "np.round(x / 3, 1, np.zeros(x.shape))",
    "np.stack([x[i] for i in np.ndindex(2, 2)])", "x * int('11', base=2)",
    "np.unique_all(np.where(x > 0, np.nan, x)).counts",
    "np.intersect1d(n[0], n[1], False, True)[1]",
    "np.unique(np.where(x > 0, np.nan, x), return_inverse=True, equal_nan=False)[1]",
    "np.setdiff1d(n[0], n[1], assume_unique=True)", "np.setxor1d(n[0], n[1], True)",
    "np.sort(x * 1j + x[::-1], axis=0).imag", "np.argsort(x + 1j * n)",
    "np.searchsorted(np.array([1, 2, np.nan]), np.where(x > 0, np.nan, 1.5))",
    "np.digitize(np.where(x > 0, np.nan, x), np.array([-1, 0, 1]))",
    "np.array_split(x, [2, 1])[2]", "np.split(n, [-1])[1]",
    "np.nan_to_num(np.where(x > 0, np.nan, -np.inf), nan=np.inf, posinf=3)",
    "np.isclose(x * 0 + 1, 0.9999999999999998, atol=0, rtol=0)",
    "np.mgrid[1:7:2] * n[0, 0]", "(x > 0) ** 2", "np.cov(x[:1])", "n ** 2", "x ** 2",
]  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_graphs_compute_what_numpy_does(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    source = f"import numpy as np\n\n\ndef program(x, y, n):\n    return {text}\n"
    function: Any = loaded(source, str(tmp_path))
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 3, 4)).astype(np.float32)
    n = draw.integers(1, 5, (3, 4)).astype(np.int32)
    expected = np.asarray(function(x, y, n))
    report = hagane.check(function, x, y, n)
    assert (report.errors, report.unknown) == ([], [])
    shown = r"numpy.ndarray\(dtype=(\w+), shape=\((.*?),?\)\)"
    told = re.fullmatch(shown, str(report.returned))
    assert told is not None
    assert told[1] == str(expected.dtype)
    sizes = told[2].split(", ") if told[2] else []
    for size, count in zip(sizes, expected.shape, strict=True):
        assert size in (str(count), "None")  # None: the data decide it
    session = hagane.InferenceSession(hagane.capture(function, x, y, n))
    found = session.run(None, {"x": x, "y": y, "n": n})
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, strict=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_covariances_of_too_few_numbers_are_infinite_or_none() -> None:
    def program(x: Any) -> Any:
        return np.cov(x, ddof=9), np.cov(x[:, :0])

    x = np.random.default_rng(1).normal(size=(3, 4))
    for found, expected in zip(hagane.compile(program)(x), program(x), strict=True):
        np.testing.assert_array_equal(found, expected)


CHANGES = [
    "np.putmask(y, y > 0, 5)", "np.putmask(y, y > 0, x * 2)", "np.putmask(y, y > 0, [1, 2, 3])",
    "np.place(y, y > 0, [1, 2, 3])", "np.place(y, n > 2, x[0])", "np.put(y, [0, 5], [1, 2])",
    "np.put(y, n[0] - [1, 0, 0, 0], x[1])", "np.put(y, [-1, 3, 4], 7)",
]  # fmt: skip


@pytest.mark.parametrize("sizes", ["given", "named"])
@pytest.mark.parametrize("text", CHANGES)
def test_arrays_are_changed_as_numpy_changes_them(
    text: str, sizes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    body = f"    y = x.copy()\n    whole = y[:]\n    {text}\n    return y, whole\n"
    function: Any = loaded(f"import numpy as np\n\n\ndef program(x, n):\n{body}", str(tmp_path))
    draw = np.random.default_rng(1)
    x = draw.normal(size=(3, 4)).astype(np.float32)
    n = np.array([[1, 3, 9, 2], [4, 1, 2, 5], [3, 0, 1, 4]], np.int32)
    types = (x, n) if sizes == "given" else ("float32[rows, 4]", "int32[rows, 4]")
    session = hagane.InferenceSession(hagane.capture(function, *types))
    for left, right in zip(session.run(None, {"x": x, "n": n}), function(x, n), strict=True):
        np.testing.assert_array_equal(left, right, strict=True)


def test_arrays_of_other_sizes_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(x: Any, y: Any) -> Any:
        return (
            np.array_equal(x, y), np.array_equal(x[x > 0], y[y > 0]), np.array_equal(x[None], y),
            np.array_equal(x, y[:2], equal_nan=True),
        )  # fmt: skip

    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    session = hagane.InferenceSession(hagane.capture(compared, "float64[n]", "float64[m]"))
    for x, y in (
        ([1, 2], [1, 2]), ([1, -2, 3], [1, 3]), ([1, 2, 3], [1, 2]), ([1, np.nan], [1, np.nan, 4]),
    ):  # fmt: skip
        feed = {"x": np.array(x, float), "y": np.array(y, float)}
        assert tuple(map(bool, session.run(None, feed))) == compared(*feed.values())


@pytest.mark.parametrize(
    "program",
    [
        lambda x: np.histogram(x, 5, (-1, 1)),
        lambda x: np.histogram(x, bins=[-2.0, -1, 0, 1.5], density=True),
        lambda x: np.histogram(x, 4, weights=x * 2),
        lambda x: np.histogram(x, 6, density=True),
        lambda x: np.histogram(x, x.argmax() + 2),
        lambda x: np.histogram(x, 3, range=(x.min(), x.max() + 1)),
    ],
)
def test_histograms_have_ranges_edges_weights_and_densities(program: Any) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float64[n]"))
    for size in (4, 9):
        x = np.random.default_rng(size).standard_normal(size) * 2
        for found, expected in zip(session.run(None, {"x": x}), program(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_at_equal_distances_are_those_of_numpy_to_the_bit(dtype: str) -> None:
    def program(x: Any) -> Any:
        return np.linspace(x.min(), x.max(), 7), np.linspace(0, x[0], x.shape[0], endpoint=False)

    session = hagane.InferenceSession(hagane.capture(program, f"{dtype}[n]"))
    for size in (2, 11):
        x = np.random.default_rng(size).standard_normal(size).astype(dtype)
        for found, expected in zip(session.run(None, {"x": x}), program(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("program", "dtype"),
    [
        (lambda a: np.arange(a, 10.5, 0.3), "float64"),
        (lambda a: np.arange(a, -5.5, -0.1), "float64"),
        (lambda a: np.arange(0, 1, a), "float64"),
        (lambda a: np.arange(a, 5.0), "float32"),
        (lambda a: np.arange(a, 25, dtype=np.float32), "int64"),
    ],
)
def test_ranges_of_floats_are_those_of_numpy(program: Any, dtype: str) -> None:
    session = hagane.InferenceSession(hagane.capture(program, dtype))
    for value in (1, 0.3, 2.7, 12):
        a = np.dtype(dtype).type(value)
        (found,) = session.run(None, {"a": np.asarray(a)})
        expected = program(a)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
