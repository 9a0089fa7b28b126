"""Grouped ConvInteger whose zero point a run finds is a convolution of floats, and exact."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.models import model, refused, session
from tests.passes.harness import applied, node

RANDOM = np.random.default_rng(1)


def dynamic(
    maps: int, channels: int, group: int, *, sums: bool = False, kernel: int = 3
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a dynamically quantised convolution; ``sums`` are results too, or floats alone."""
    shape = (maps, channels // group, kernel, kernel)
    nodes = [
        node("DynamicQuantizeLinear", "x", "q s z"),
        node("ConvInteger", "q w z v", "c", group=group, pads=[1, 1, 1, 1]),
        node("Cast", "c", "f", to=1),
        node("Mul", "f s", "y"),
    ]
    nodes[0].output[:] = ["q", "s", "z"]
    weight = RANDOM.integers(-128, 127, shape).astype(np.int8)
    feed = {"x": RANDOM.standard_normal((2, channels, 9, 11)).astype(np.float32)}
    constants = {"w": weight, "v": np.array(3, np.int8)}
    return model(nodes, feed, ("y", "c") if sums else ("y",), constants), feed


@pytest.mark.parametrize(("maps", "channels", "group"), [(17, 17, 17), (10, 6, 2), (6, 3, 3)])
@pytest.mark.parametrize("sums", [False, True])
def test_groups_become_convolutions_of_floats(
    maps: int, channels: int, group: int, sums: bool
) -> None:
    proto, feed = dynamic(maps, channels, group, sums=sums)
    counts, left = applied(proto, feed, tolerance=0)
    assert counts["spread_quantized"] == 1
    assert "Conv" in left
    made = session(proto)
    for left_, right in zip(
        made.run(None, feed), session(proto, engine="reference").run(None, feed), strict=True
    ):
        np.testing.assert_array_equal(left_, right)
    assert refused(made) == {}


def test_sums_that_floats_may_not_hold_stay_whole_numbers() -> None:
    proto, feed = dynamic(2, 40, 2, kernel=8)
    counts, left = applied(proto, feed)
    assert "spread_quantized" not in counts
    assert "ConvInteger" in left


def test_a_convolution_of_one_group_stays() -> None:
    counts, left = applied(*dynamic(5, 4, 1))
    assert "spread_quantized" not in counts
    assert "ConvInteger" in left
