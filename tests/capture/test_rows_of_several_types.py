"""Lists that the data make long, whose items are rows of numbers of several types, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane
from tests.capture.control.program import floats


def local_maxima(x: Any) -> Any:
    out = []
    for i in range(x.shape[0]):
        if x[i] == x[max(i - 1, 0) : i + 2].max():
            out.append((i, x[i], 2.5))
    return np.array(out)


def places_and_signs(x: Any) -> Any:
    return np.array([(i, v > 0) for i, v in enumerate(x) if v > -9])


def named_columns(x: Any) -> Any:
    found = [{"value": v, "place": i} for i, v in enumerate(x) if v > -9]
    return np.asarray([[row["place"], row["value"]] for row in found])


def typed_tensors(x: Any) -> Any:
    rows = [[i, 2 * i] for i in range(len(x)) if x[i] > -9]
    numbers = [x[i].item() for i in range(len(x)) if x[i] > -9]
    return (
        torch.LongTensor(rows),
        torch.FloatTensor(rows),
        torch.IntTensor(rows),
        torch.Tensor(numbers),
        torch.DoubleTensor(numbers),
        x.new_tensor(rows),
        torch.tensor([(i, 0.5) for i in range(len(x)) if x[i] > -9]),
    )


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (local_maxima, np.asarray),
        (places_and_signs, np.asarray),
        (named_columns, np.asarray),
        (typed_tensors, torch.from_numpy),
    ],
)
def test_rows_become_the_array_that_the_library_makes(
    function: Callable[..., Any], given: Callable[..., Any]
) -> None:
    model = hagane.capture(function, "float32[n]")
    session = hagane.InferenceSession(model)
    for size in (1, 2, 5, 8):
        x = floats(size, seed=size)
        wanted = function(given(x))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for found, one in zip(session.run(None, {"x": x}), wanted, strict=True):
            expected = np.asarray(one)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)
