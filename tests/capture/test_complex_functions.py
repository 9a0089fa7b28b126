"""Functions of complex arrays and numbers, at infinite and very large ones too."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

PLAIN = np.array([0.3 + 0.2j, -1.5 - 0.7j, 2.1 - 3j, 0.4j, -0.2 + 0j, 0.0])
WILD = np.array([3e200 - 1e200j, -1j, 0, np.inf, 1e-300 + 1e-300j, 1 - 2j])
REALS = np.array([0.0, 1.0, np.inf, -2.0, 3.0, 0.5])
WHOLE = np.array([0, 1, 2, -3, 4, 5])


def elementary(z: Any) -> Any:
    return (
        np.tan(z), np.tanh(z), np.arcsin(z), np.arccos(z), np.arctan(z), np.arcsinh(z),
        np.arccosh(z), np.arctanh(z * 0.9), np.log1p(z), np.expm1(z), np.sign(z),
        z ** (1 + 1j), z**z, np.power(2.5, z), np.abs(z) ** 1j,
    )  # fmt: skip


def joined(z: Any, x: Any, n: Any) -> Any:
    return (
        np.where(x, n, z), np.where(n > 1, z, x), np.concatenate([z, n]), np.stack([x, z]),
        x + 1j, x - 1j, 1j - x, z / (z + 1), x / (z + 2j), 1 / z, z / (2 + 3j),
        np.abs(z * 1e100), np.sign(z),
    )  # fmt: skip


def composed(z: Any, x: Any) -> Any:
    square = np.stack([z[:3], z[1:4], z[3:]])
    return (
        np.prod(z), np.cumprod(z), np.prod(square, axis=0), np.var(square, axis=1), np.std(z),
        np.vdot(z, x), np.linalg.inv(square), np.linalg.solve(square, z[:3]),
        np.linalg.solve(np.stack([square, square * 2j]), z[1:4]), np.permute_dims(square, (1, 0)),
        np.isclose(z, z + 1e-9), np.allclose(z, z * 2), np.nonzero(z)[0], np.count_nonzero(z),
        z.any(), z.all(), np.isreal(z), np.iscomplexobj(z) * x, np.isrealobj(x) * x,
    )  # fmt: skip


def arranged(z: Any, x: Any, n: Any) -> Any:
    return (
        np.select([n > 1, n < 0], [n, z], 1j), np.choose(n % 2, [z, x]), np.insert(z, 1, 3),
        np.append(z, n), np.block([[z, x]]), np.pad(z, 1, constant_values=4),
        np.diff(z, prepend=3), np.diff(z, append=x[:1]), np.sum(z, initial=5),
        np.average(z, weights=n + 4), np.interp(x, n[:3] * 1.0, z[:3], left=7),
        np.convolve(z, n), np.correlate(n * 1.0, z, "full"), np.cross(z[:3], n[:3]),
        np.sort(z), np.argsort(z), np.real(x), np.delete(z, 1), z == n, 1j - x,
    )  # fmt: skip


def counted(n: Any, x: Any) -> Any:
    first = n[1]
    return (
        np.arange(n[4], step=2), np.arange(x[4], step=0.5), np.arange(first, stop=5),
        np.arange(0, stop=n[5]), np.arange(7, step=3) + n[0],
        np.asfortranarray(x[1]), np.fix(x[3:] * 1.7), np.unwrap(x[3:] * 9), np.unwrap(n, period=4),
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "given"),
    [
        (elementary, (PLAIN,)),
        (joined, (WILD, REALS, WHOLE)),
        (composed, (PLAIN, WHOLE)),
        (arranged, (PLAIN, PLAIN.real, WHOLE)),
        (counted, (WHOLE, REALS)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_results_are_those_of_numpy(function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    results = hagane.compile(function, fullgraph=True)(*given)
    for place, (found, expected) in enumerate(zip(results, function(*given), strict=True)):
        assert np.asarray(found).dtype == np.asarray(expected).dtype, place
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13, err_msg=str(place))


def of_one_number(x: float, c: complex) -> Any:
    z = complex(x, 1.0)
    return (
        cmath.exp(z), cmath.phase(z), cmath.polar(z), cmath.rect(x, 2.0), cmath.isfinite(z),
        cmath.log(z, 10), cmath.atanh(z * 0.5), cmath.isclose(z, z + 1e-3, rel_tol=0.1),
        np.geomspace(c, 2j, 3)[1], np.linspace(c, 1, 3)[1], cmath.sqrt(c), z * c.conjugate(),
        math.isclose(2.0, 2.1, rel_tol=0.1), c == 2,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*captured anew")
def test_functions_of_one_complex_number_are_those_of_python() -> None:
    compiled = hagane.compile(of_one_number, fullgraph=True)
    for given in ((0.5, 1 + 2j), (-0.7, 1 + 2j), (2.0, -3j)):
        found, expected = compiled(*given), of_one_number(*given)
        assert [type(x) for x in found] == [type(x) for x in expected]
        for one, other in zip(found, expected, strict=True):
            assert one == pytest.approx(other, rel=1e-12)


def test_a_product_along_an_open_axis_is_refused() -> None:
    def product(z: Any) -> Any:
        return np.prod(z)

    with pytest.raises(CaptureError, match=r"'numpy\.prod' of complex tensors along an axis of"):
        hagane.capture(product, "complex128[n]")
