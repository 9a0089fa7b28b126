"""NumPy 2: numbers of Python beside arrays, the types that ufuncs choose, and scalars (NEP 50)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.capturing.compiled import CompileNotice
from hagane.errors import CaptureError

Program = Callable[..., Any]
A = np.array([200, 100], np.uint8)
F = np.array([1.5, -2.0])
S = np.array(2.5)
M = np.array([[2.0, 1.0], [1.0, 2.0]])


def _alike(program: Program, *arrays: Any) -> None:
    """Compare values, types and classes of a compiled program with Python's."""
    expected = program(*(np.copy(x) for x in arrays))
    found = hagane.compile(program, fullgraph=True)(*(np.copy(x) for x in arrays))
    for place, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert type(ours) is type(theirs), place
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype, place
        np.testing.assert_allclose(ours, theirs, 1e-12, err_msg=str(place))
        assert np.array_equal(np.signbit(np.real(ours)), np.signbit(np.real(theirs))), place


def test_whole_numbers_outside_the_range_of_an_array_only_compare() -> None:
    _alike(lambda a: (
        a == 300, a != -1, a < 300, a < 300, a <= -1, a > -1, a < 2**70, np.equal(a, 256),
        np.clip(a, 0, 300), np.clip(a, -5, 150), a.clip(max=1000), np.clip(a, None, None),
        np.array([1, 2**63]), np.array([2**63]), np.array([3, 4], np.int8),
    ), A)  # fmt: skip


OUTSIDE: list[Program] = [
    lambda a: a + 300, lambda a: 300 - a, lambda a: a * -1, lambda a: a // 300, lambda a: a | -1,
    lambda a: np.maximum(a, -1), lambda a: np.uint8(3) + 300, lambda a: np.int8(200),
    lambda a: np.array([300], np.uint8), lambda a: np.full_like(a, 300),
    lambda a: np.clip(a, 300, None), lambda a: np.insert(a, 0, 300),
    lambda a: a.astype(np.int64) + 2**63,
]  # fmt: skip


def _set(how: str, a: Any) -> Any:
    a = a.copy()
    if how == "item":
        a[0] = 300
    elif how == "list":
        a[:] = [3, 300]
    elif how == "place":
        np.place(a, a > 3, [300])
    elif how == "putmask":
        np.putmask(a, a > 3, 300)
    elif how == "put":
        np.put(a, [0], 300)
    elif how == "copyto":
        np.copyto(a, 300)
    return a


WRITTEN = ["item", "list", "place", "putmask", "put", "copyto"]


@pytest.mark.parametrize("place", [*range(len(OUTSIDE)), *WRITTEN])
def test_whole_numbers_outside_the_range_fail_as_in_numpy(place: int | str) -> None:
    function: Program = (lambda a: _set(place, a)) if isinstance(place, str) else OUTSIDE[place]
    with pytest.raises(OverflowError):
        function(A)
    with pytest.raises(CaptureError, match="OverflowError: Python int"):
        hagane.capture(function, A)


def test_ufuncs_compute_in_the_type_asked_for() -> None:
    _alike(lambda a, f: (
        np.add(a, a, dtype=np.int64), np.multiply(a, a, dtype=np.float32),
        np.sqrt(a, dtype=np.float32), np.divide(a, 3, dtype=np.float32),
        np.arange(0, 5, 0.5, dtype=int), np.arange(5, 0, -0.5, dtype=int),
        np.arange(0.1, 0.9, 0.1, dtype=np.float32), np.angle(a), np.angle(f),
        np.round(f / 3, 1, np.zeros(f.shape)),
    ), A, F)  # fmt: skip
    for function in (
        lambda f: np.add(f, f, dtype=np.int64),
        lambda f: f.astype(np.float32, casting="safe"),
        lambda f: np.copyto(np.zeros(2, int), f),
    ):
        with pytest.raises(CaptureError, match="Cannot cast"):
            hagane.capture(function, F)


def test_angles_and_logarithms_tell_zeros_of_different_signs_apart() -> None:
    zeros = np.array([0j, complex(-0.0, 0), complex(0, -0.0), complex(-0.0, -0.0), -2j])
    _alike(lambda c: (np.angle(c), np.angle(c, deg=True), np.log(c + 1j * (c == 0)).imag), zeros)
    nan = np.array([complex(np.nan, 1), 2])
    _alike(lambda c: (np.array_equal(c, c, equal_nan=True), np.array_equal(c, c)), nan)


def test_scalars_and_arrays_without_axes_are_those_of_numpy() -> None:
    def summed(f: Any) -> Any:
        out = np.zeros(())
        found = np.sum(f, out=out)
        out += 1
        return found, out, found is out

    _alike(summed, F)
    _alike(lambda f, s, m: (
        np.cov(f), np.i0(f[0]), np.isin(s, f), np.imag(s), np.imag(f[0]), np.imag(2.0), np.imag(2),
        np.imag(1 + 2j), np.real(3), np.broadcast_arrays(s, f[0])[1], np.roll(s, 1),
        np.choose(0, [f[0], f[1]]), np.linalg.cond(m), np.isreal(1.0),
    ), F, S, M)  # fmt: skip


def test_names_and_classes_of_numpy_are_those_of_the_running_python() -> None:
    from fractions import Fraction

    _alike(lambda f: (
        np.abs is np.absolute, np.conj is np.conjugate, np.abs == np.absolute,
        issubclass(np.recarray, np.ndarray), issubclass(np.float32, np.floating),
        issubclass(np.float64, float), issubclass(np.int64, np.floating),
        np.can_cast("i4", "S4"), np.can_cast("i4", "i8"), np.issubdtype("S1", np.bytes_),
        np.isscalar(Fraction(1, 2)), np.isscalar(b"a"), np.isscalar([1]), np.asarray(f) is f,
        np.asarray(f, np.float32) is f, np.array(f) is f,
    ), F)  # fmt: skip


def test_singular_matrices_that_are_known_fail() -> None:
    singular = [[1.0, 1.0], [1.0, 1.0]]
    for function, told in (
        (lambda f: np.linalg.inv(singular) @ f, "Singular matrix"),
        (lambda f: np.linalg.solve(singular, f), "Singular matrix"),
        (
            lambda f: np.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]) @ f,
            "Matrix is not positive definite",
        ),
    ):
        with pytest.raises(CaptureError, match=f"LinAlgError: {told}"):
            hagane.capture(function, F)


def test_places_of_partitions_are_whole_and_there() -> None:
    _alike(lambda f: (np.partition(f, 1), np.partition(f, [0, -1]), np.argpartition(f, 0)), F)
    for places, told in ((5, r"kth\(=5\) out of bounds \(2\)"), (0.5, "must be integer")):
        with pytest.raises(CaptureError, match=told):
            hagane.capture(lambda f, places=places: np.partition(f, places), F)


def test_ranges_by_steps_of_an_open_sign_have_the_length_of_python() -> None:
    def program(x: Any, start: int, stop: int, step: int) -> Any:
        return x, np.arange(start, stop, step), len(range(start, stop, step))

    compiled = hagane.compile(program, fullgraph=True, dynamic=True)
    for numbers in ((0, 10, 2), (0, -10, -2), (-8, -10, -1), (0, 10, -2), (5, -7, -5)):
        expected = program(F, *numbers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CompileNotice)
            found = compiled(F, *numbers)
        np.testing.assert_array_equal(found[1], expected[1])
        assert found[2] == expected[2]
