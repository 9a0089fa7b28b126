"""Lists that generator expressions extend, each of whose items reads the list so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession

import hagane
from hagane.graph import to_proto


def each_from_the_last(x: Any) -> Any:
    y = [x]
    y.extend(k * y[-1] + 1 for k in (2.0, 3.0, 4.0))
    return np.concatenate(y)


def added_in_place(x: Any) -> Any:
    y = [x, x + 1]
    y += (y[-1] - 2 * y[-2] for k in range(5) if k != 2)
    return np.concatenate(y)


def nested(x: Any) -> Any:
    k, y = 7, [x, x + 1]
    y.extend(y[-k] * m for m in (2, 3) for k in (1, 2))
    return np.concatenate(y) + k


def over_rows(x: Any) -> Any:
    y = [x[0]]
    y.extend(0.5 * y[-1] + row for row in x)
    return np.stack(y)


class Held:
    def __init__(self) -> None:
        self.y: list[Any] = []

    def __call__(self, x: Any) -> Any:
        self.y = [x]
        self.y.extend(self.y[-1] * k for k in (2.0, 3.0))
        made = np.concatenate(self.y)
        self.y = []
        return made


@pytest.mark.parametrize("program", [each_from_the_last, added_in_place, nested, over_rows, Held()])
def test_each_item_reads_those_before(program: Any) -> None:
    assert hagane.check(program, "float32[n, 2]").ok
    model = hagane.capture(program, "float32[n, 2]")
    session = InferenceSession(to_proto(model).SerializeToString())
    x = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], program(x), rtol=1e-5)
