"""Convolutions of volumes by flat windows are those of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.models import compare, draw, model, refused, session
from tests.passes.harness import applied, node

X = draw((2, 6, 5, 7, 9))
MANY = draw((2, 256, 2, 3, 4))
CASES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "of one place": ((8, 256, 1, 1, 1), {}),
    "of one place, groups": ((8, 128, 1, 1, 1), {"group": 2}),
    "along depth": (
        (4, 6, 3, 1, 1), {"pads": [1, 0, 0, 2, 0, 0], "strides": [2, 1, 1], "dilations": [2, 1, 1]},
    ),
    "of planes": (
        (4, 6, 1, 3, 2), {"pads": [0, 1, 0, 0, 2, 1], "strides": [1, 2, 1], "dilations": [1, 1, 2]},
    ),
    "of planes, each channel": ((6, 1, 1, 3, 3), {"pads": [0, 1, 1, 0, 1, 1], "group": 6}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bias", [False, True])
def test_flat_windows_are_those_of_images(case: str, bias: bool) -> None:
    shape, attributes = CASES[case]
    given = MANY if "place" in case else X
    constants = {"w": draw(shape, 1), "zero": np.float32(0), "six": np.float32(6)}
    if bias:
        constants["b"] = draw(shape[:1], 2)
    nodes = [
        node("Conv", "x w b" if bias else "x w", "c", **attributes),
        node("Clip", "c zero six", "r"),
        node("Tanh", "r", "t"),
        node("Add", "t t", "y"),
    ]
    counts, left = applied(model(nodes, {"x": given}, constants=constants), {"x": given})
    assert counts["flatten_volumes"] == 1
    at = left.index("Conv")
    assert left[at + 1 : at + 3] == ["Clip", "Tanh"]
    shapes = {"x": ["n", given.shape[1], "d", "h", "w"]}
    opened = model(nodes, {"x": given}, constants=constants, shapes=shapes)
    for x in (given, given[:1, :, :4, :5, :6], given[:0]):
        compare(opened, {"x": x}, "avx2", rtol=1e-4, atol=1e-4)
    made = session(opened)
    assert refused(made) == {}


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((4, 6, 3, 3, 3), {}),
        ((4, 6, 1, 1, 1), {}),
        ((4, 6, 2, 1, 1), {"strides": [1, 2, 1]}),
        ((4, 6, 1, 3, 3), {"pads": [1, 0, 0, 0, 0, 0]}),
        ((4, 6, 1, 1, 1), {"pads": [0, 0, 0, 0, 0, 1], "strides": [2, 1, 1]}),
    ],
)
def test_windows_of_depth_and_planes_stay(
    shape: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    proto = model(
        [node("Conv", "x w", "y", **attributes)], {"x": X}, constants={"w": draw(shape, 1)}
    )
    counts, left = applied(proto, {"x": X})
    assert "flatten_volumes" not in counts
    assert left == ["Conv"]
