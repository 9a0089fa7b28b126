"""Powers and shifts of integers of Python that the data decide."""

from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import HaganeError


def shifted(x: Any) -> Any:
    """Return a power and both shifts."""
    a, b = int(x[0]), int(x[1])
    return a**b % 1000, a << b, a >> b


def far(x: Any) -> Any:
    """Shift all bits out."""
    a, b = int(x[0]), int(x[1])
    return a >> b


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_graph_fails_for_negative_exponents_of_integers(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", engine)
    session = hagane.InferenceSession(hagane.capture(shifted, "int64[2]"))
    for given in ((5, 3), (-7, 2), (3, 0)):
        x = np.array(given, np.int64)
        assert tuple(session.run(None, {"x": x})) == shifted(x)
    with pytest.raises(HaganeError, match="exponent or shift: expected 0 or more"):
        session.run(None, {"x": np.array((2, -1), np.int64)})


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_shift_to_the_right_may_be_wider_than_an_integer(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", engine)
    session = hagane.InferenceSession(hagane.capture(far, "int64[2]"))
    for given in ((5, 1), (2**62 + 1, 61), (-(2**63), 63), (9, 63), (2**63 - 1, 64), (-3, 200)):
        x = np.array(given, np.int64)
        assert session.run(None, {"x": x})[0] == far(x)
