"""Logarithms and roots of powers, and hypotenuses of large numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hagane


def digits(x: Any) -> Any:
    return (
        np.log10(x), np.log2(x), np.cbrt(x), math.log10(x[3]), int(math.log10(x[15])),
        math.log2(x[-1]), math.hypot(x[0] * 1e300, 1e300), math.cbrt(x[3]), math.ldexp(x[2], 3),
    )  # fmt: skip


def test_logarithms_of_powers_are_whole() -> None:
    given = np.array([*(10.0**k for k in range(22)), *(2.0**k for k in range(40))])
    found, expected = hagane.compile(digits, fullgraph=True)(given), digits(given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=5e-16, atol=1e-17)
    assert found[0][:22].tolist() == list(range(22))
    assert found[1][22:].tolist() == list(range(40))
    assert found[4:6] == (15, 39.0)
