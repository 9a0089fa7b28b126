"""Sizes that no element carries: parts of a model that only shapes lead to, and counting."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.native.models import compare, draw, every_level, model, refused, session


@every_level
def test_a_part_takes_a_size_from_a_shape_that_it_does_not_otherwise_read(level: str) -> None:
    # As a decoder does: positions start at the length of the cache.
    feed = {"x": draw((1, 3)), "past": draw((2, 5), 1)}
    constants = {"one": np.array(1), "zero": np.array(0), "axis": np.array([0])}
    nodes = [
        helper.make_node("Shape", ["past"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Add", ["length", "one"], ["end"]),
        helper.make_node("Range", ["length", "end", "one"], ["position"], name="count"),
        helper.make_node("Cast", ["position"], ["wide"], to=1),
        helper.make_node("Add", ["x", "wide"], ["y"]),
    ]
    shapes = {"x": [1, 3], "past": [2, "past"]}
    proto = model(nodes, feed, constants=constants, shapes=shapes)
    compare(proto, feed, level)
    made = session(proto, instructions=level)
    for length in (0, 1, 9):
        (y,) = made.run(None, {"x": feed["x"], "past": np.zeros((2, length), np.float32)})
        np.testing.assert_array_equal(y, feed["x"] + length)
    (step,) = made._programs.general.steps  # one part, compiled
    assert step.part.segment.kernels


@every_level
def test_whole_numbers_are_counted_natively(level: str) -> None:
    feed = {"start": np.array(7), "x": draw((4, 6))}
    constants = {"limit": np.array(-5), "step": np.array(-3), "seven": np.array(7)}
    nodes = [helper.make_node("Range", ["seven", "limit", "step"], ["y"])]
    compare(model(nodes, feed, constants=constants), feed, level)


def test_a_count_that_data_decide_is_found_by_a_kernel() -> None:
    feed = {"start": np.array(2), "limit": np.array(11), "step": np.array(4)}
    proto = model([helper.make_node("Range", list(feed), ["y"])], feed)
    made = session(proto)
    assert made.run(None, feed)[0].tolist() == [2, 6, 10]
    assert refused(made) == {}
