"""Messages of captured programs about calls that NumPy refuses, or that have no formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

OBJECTS = np.array([1, "m", 2.5], dtype=object)


def _with_infinity(whole: Any, x: Any) -> Any:
    if x[0] > 0:
        whole[1] = float("inf")
    return whole


def test_refused_calls_say_why() -> None:
    calls: dict[str, Any] = {
        "'numpy.trapezoid' of several complex tensors; apply it to their parts": (
            lambda z, x: np.trapezoid(z, z)
        ),
        "np.vsplit: ValueError: vsplit only works on arrays of 2 or more axes": (
            lambda z, x: np.vsplit(x, 2)
        ),
        "np.rot90: ValueError: Axes must be different, got 1 twice": (
            lambda z, x: np.rot90(np.stack([x, x]), axes=(1, -1))
        ),
        "TypeError: 3 spacings for 1 axes": lambda z, x: np.gradient(x, 1.0, 2.0, 3.0),
        "TypeError: the places along one axis for 2 axes": (
            lambda z, x: np.gradient(np.stack([x, x]), x)
        ),
        "TypeError: only int indices permitted, got numpy.ndarray": (
            lambda z, x: np.unravel_index(x, (9, 9))
        ),
        "'numpy.linspace' of complex numbers that the data decide": (
            lambda z, x: np.linspace(z[0], 1j, 3)
        ),
        "float(inf) in numpy.ndarray(dtype=int64, shape=(3,)): cannot convert float infinity to "
        "integer; give the array an element type that holds it": (
            lambda z, x: _with_infinity(np.zeros(3, int), x)
        ),
        "an array of objects": lambda z, x: (x, OBJECTS[1]),
    }
    for told, call in calls.items():
        with pytest.raises(CaptureError) as raised:
            hagane.capture(call, "complex128[4]", "float64[4]")
        assert told in str(raised.value)
