"""Nodes that return what they are given go, and only those."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 3, 4))
WHOLE = draw((3, 4)).astype(np.int64)
CONSTANTS = {
    "one": np.array(1, np.float32), "ones": np.ones((1, 4), np.float32),
    "wide": np.ones((5, 1, 1, 1), np.float32), "zero": np.array(0, np.float32),
    "minus": np.array(-0.0, np.float32), "shape": np.array([2, 3, 4]), "open": np.array([0, -1, 4]),
    "starts": np.array([0, 0]), "ends": np.array([9, 3]), "axes": np.array([0, 1]),
    "nothing": np.zeros(6, np.int64), "some": np.array([0, 0, 0, 0, 0, 1]),
    "repeats": np.array([1, 1, 1]), "back": np.array([-1]), "first": np.array([-1]),
    "before": np.array([-9]), "none": np.array([0]),
}  # fmt: skip

GONE = {
    "cast": node("Cast", "x", "t", to=TensorProto.FLOAT),
    "reshape": node("Reshape", "x shape", "t"),
    "open reshape": node("Reshape", "x open", "t"),
    "expand": node("Expand", "x shape", "t"),
    "tile": node("Tile", "x repeats", "t"),
    "slice": node("Slice", "x starts ends axes", "t"),
    "transpose": node("Transpose", "x", "t", perm=[0, 1, 2]),
    "concat": node("Concat", "x", "t", axis=1),
    "sum": node("Sum", "x", "t"),
    "maximum": node("Max", "x", "t"),
    "pad": node("Pad", "x nothing", "t"),
    "clip": node("Clip", "x", "t"),
    "product": node("Mul", "one x", "t"),
    "row of ones": node("Mul", "x ones", "t"),
    "quotient": node("Div", "x ones", "t"),
    "difference": node("Sub", "x zero", "t"),
    "sum with -0": node("Add", "minus x", "t"),
}


@pytest.mark.parametrize("form", GONE)
def test_what_returns_its_input_goes(form: str) -> None:
    used = {name: CONSTANTS[name] for name in GONE[form].input if name in CONSTANTS}
    proto = model([GONE[form], node("Exp", "t", "y")], {"x": X}, constants=used)
    counts, left = applied(proto, {"x": X})
    assert counts["remove_identity"] == 1
    assert left == ["Exp"]


STAYS = {
    "cast": node("Cast", "x", "t", to=TensorProto.FLOAT16),
    "wide product": node("Mul", "x wide", "t"),
    "inverse": node("Div", "one x", "t"),
    "negative": node("Sub", "zero x", "t"),
    "sum with 0": node("Add", "x zero", "t"),
    "difference with -0": node("Sub", "x minus", "t"),
    "backwards": node("Slice", "x first before none back", "t"),
    "pad": node("Pad", "x some", "t"),
    "concat": node("Concat", "x x", "t", axis=1),
    "clip": node("Clip", "x zero", "t"),
    "transpose": node("Transpose", "x", "t", perm=[0, 2, 1]),
}


@pytest.mark.parametrize("form", STAYS)
def test_what_changes_its_input_stays(form: str) -> None:
    used = {name: CONSTANTS[name] for name in STAYS[form].input if name in CONSTANTS}
    proto = model(
        [STAYS[form], node("Cast", "t", "y", to=TensorProto.DOUBLE)], {"x": X}, constants=used
    )
    assert "remove_identity" not in applied(proto, {"x": X})[0]


def test_the_sign_of_zero_is_kept() -> None:
    x = np.float32([-0.0, 0.0])
    for operator in ("Add", "Sub"):
        proto = model([node(operator, "x zero", "t"), node("Reciprocal", "t", "y")], {"x": x},
                      constants={"zero": CONSTANTS["zero"]})  # fmt: skip
        applied(proto, {"x": x})


def test_zero_added_to_integers_goes() -> None:
    constants = {"zero": np.array([0])}
    proto = model(
        [node("Add", "x zero", "t"), node("Neg", "t", "y")], {"x": WHOLE}, constants=constants
    )
    assert applied(proto, {"x": WHOLE})[1] == ["Neg"]


def test_a_shape_that_may_widen_stays() -> None:
    nodes = [node("Expand", "x shape", "t"), node("Exp", "t", "y")]
    proto = model(nodes, {"x": X}, constants=CONSTANTS, shapes={"x": [2, "n", 4]})
    assert applied(proto, {"x": X})[1] == ["Expand", "Exp"]
