"""Rounding errors of sums, against double precision, where the order of additions matters."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.native.models import draw, every_level, model, session


def largest_error(
    nodes: list[object], feed: dict[str, np.ndarray], constants: dict[str, np.ndarray], level: str
) -> float:
    """Return the largest error over the largest number that double precision gives."""
    (found,) = session(model(nodes, feed, constants=constants), instructions=level).run(None, feed)
    wide = [{name: a.astype(np.float64) for name, a in d.items()} for d in (feed, constants)]
    exact_model = model(nodes, wide[0], constants=wide[1])
    (exact,) = session(exact_model, engine="reference").run(None, wide[0])
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@every_level
@pytest.mark.parametrize("operator", ["MatMul", "Conv"])
def test_what_is_added_to_a_sum_does_not_round_its_terms(level: str, operator: str) -> None:
    if operator == "MatMul":
        x, w, shape = draw((33, 2048)), draw((2048, 40), 1), (33, 40)
    else:
        x, w, shape = draw((1, 2048, 5, 5)), draw((40, 2048, 1, 1), 1), (1, 40, 5, 5)
    nodes = [
        helper.make_node(operator, ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "r"], ["y"]),
    ]
    feed = {"x": x, "r": draw(shape, 2) + np.float32(3000)}
    # Half a step of the result, and a little of the sum's own error.
    assert largest_error(nodes, feed, {"w": w / np.float32(64)}, level) < 8e-8
