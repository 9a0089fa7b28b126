"""Strided transposed convolutions, which are one convolution for each place within a stride."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import helper

from hagane.native.rules.convolution.phases import phases
from tests.native.models import draw, every_level, model, refused, session

# Image, kernel, strides, dilations, pads, output_padding.
FORMS: list[tuple[tuple[int, ...], list[int], list[int], list[int], list[int], list[int]]] = [
    ((5, 4), [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], [1, 1]),
    ((5, 6), [1, 1], [2, 2], [1, 1], [0, 0, 0, 0], [1, 0]),
    ((4, 7), [7, 5], [2, 3], [1, 1], [3, 2, 3, 2], [1, 0]),
    ((4, 5), [3, 2], [2, 2], [3, 2], [2, 0, 1, 1], [0, 1]),
    ((3, 6), [2, 3], [4, 1], [1, 1], [0, 1, 0, 1], [3, 0]),
    ((4, 3), [4, 4], [2, 2], [1, 1], [0, 0, 0, 0], [0, 0]),
    ((9,), [5], [3], [1], [1, 2], [1]),
    ((1, 1), [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], [1, 1]),
]


def theirs(x: Any, w: Any, form: Any) -> np.ndarray:
    _, kernel, strides, dilations, pads, added = form
    rank = len(kernel)
    whole = torch.nn.functional.conv_transpose2d if rank == 2 else (
        torch.nn.functional.conv_transpose1d
    )  # fmt: skip
    spread = whole(torch.tensor(x).double(), torch.tensor(w).double(), None, strides,
                   dilation=dilations).numpy()  # fmt: skip
    spread = np.pad(spread, [(0, 0), (0, 0), *((0, more) for more in added)])
    ends = [spread.shape[2 + i] - pads[rank + i] for i in range(rank)]
    cuts = [slice(pads[i], end) for i, end in enumerate(ends)]
    return np.asarray(spread[(slice(None), slice(None), *cuts)])


@every_level
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("varying", [False, True])
def test_phases_are_pytorchs(form: Any, varying: bool, level: str) -> None:
    size, kernel, strides, dilations, pads, added = form
    x, w = draw((2, 5, *size)), draw((5, 19, *kernel), 1)
    made = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], strides=strides, dilations=dilations, pads=pads,
        output_padding=added, name="transposed",
    )  # fmt: skip
    feed, constants = ({"x": x, "w": w}, {}) if varying else ({"x": x}, {"w": w})
    found = session(model([made], feed, constants=constants), instructions=level)
    assert refused(found) == {}
    (y,) = found.run(None, feed)
    np.testing.assert_allclose(y, theirs(x, w, form), rtol=1e-5, atol=1e-5)


def test_every_tap_is_in_one_phase_and_reaches_its_pixel() -> None:
    for kernel, stride, dilation, begin in ((3, 2, 1, 1), (5, 3, 2, 4), (2, 4, 2, 0), (4, 4, 6, 3)):
        found = phases(kernel, stride, dilation, begin)
        assert sorted(tap for each in found for tap in each.taps) == [*range(kernel)]
        for each in found:
            for n, tap in enumerate(each.taps):
                pixel = each.first + n * each.step
                assert pixel * stride + tap * dilation - begin == each.rest


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid"])
def test_pixels_that_no_tap_reaches_have_the_bias(activation: str) -> None:
    x, w, b = draw((2, 5, 4, 3)), draw((5, 6, 2, 1), 1), draw((6,), 2)
    nodes = [
        helper.make_node(
            "ConvTranspose", ["x", "w", "b"], ["c"], strides=[3, 2], name="transposed"
        ),
        helper.make_node(activation, ["c"], ["y"]),
    ]
    found = session(model(nodes, {"x": x}, constants={"w": w, "b": b}))
    (y,) = found.run(None, {"x": x})
    form = ((4, 3), [2, 1], [3, 2], [1, 1], [0, 0, 0, 0], [0, 0])
    linear = torch.tensor(theirs(x, w, form)).add(torch.tensor(b)[:, None, None])
    expected = torch.relu(linear) if activation == "Relu" else torch.sigmoid(linear)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-5)
