"""Items of NumPy arrays by their place, and norms that NumPy refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.item((0, 1)),
        lambda x: x.item(1, 0),
        lambda x: x.item(x.argmax()),
        lambda x: x.item(-1),
        lambda x: x.item((int(x.argmax()) // 2, 0)),
    ],
)
def test_items_are_found_by_any_form_of_place(program: Callable[[Any], Any]) -> None:
    session = hagane.InferenceSession(hagane.capture(program, "float32[n, m]"))
    x = np.array([[1, 2], [3, 0.5]], np.float32)
    assert session.run(None, {"x": x})[0] == program(x)


@pytest.mark.parametrize(
    ("program", "type_", "told"),
    [
        (lambda x: x.item((0,)), "float32[n, m]", "expected 2 places or one, got 1"),
        (lambda x: np.linalg.norm(x, 3), "float32[n, m]", "norm of matrices, got 3"),
        (lambda x: np.linalg.norm(x, 2), "float32[b, n, m]", "vectors or matrices"),
    ],
)
def test_places_and_orders_that_numpy_refuses_are_told(
    program: Callable[[Any], Any], type_: str, told: str
) -> None:
    with pytest.raises(CaptureError, match=told):
        hagane.capture(program, type_)
