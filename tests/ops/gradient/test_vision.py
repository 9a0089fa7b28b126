"""Gradients of operators that read pictures between their pixels, and of determinants."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from hagane.errors import NotDifferentiable
from hagane.ops.builder import op
from hagane.ops.convolution.deform import composed_deform_conv
from hagane.ops.gradient import pull_back
from hagane.ops.registry import operators
from tests.ops.gradient.differences import check, check_operator

RNG = np.random.default_rng(31)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-1, 1, shape))


def agree(name: str, *inputs: Any, attributes: dict[str, Any]) -> None:
    composed = operators()["", name].compose
    assert composed is not None
    want = op(name, *inputs, **attributes)
    np.testing.assert_allclose(composed(*inputs, **attributes), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "mode", ["nearest", "linear", pytest.param("cubic", marks=pytest.mark.long)]
)
def test_sampled_grids(mode: str) -> None:
    for padding, align in product(("zeros", "border", "reflection"), (0, 1)):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
        inputs = draw(2, 2, 3, 4), 1.4 * draw(2, 2, 3, 2)
        agree("GridSample", *inputs, attributes=attributes)
        check_operator("GridSample", *inputs, attributes=attributes, second=mode == "cubic")
    check_operator("GridSample", draw(1, 2, 5), draw(1, 3, 1), second=False)
    volume = draw(1, 1, 2, 3, 2), draw(1, 2, 1, 2, 3)
    check_operator("GridSample", *volume, second=False)


def test_affine_grids() -> None:
    for align in (0, 1):
        attributes = {"align_corners": align}
        check_operator("AffineGrid", draw(2, 2, 3), np.array([2, 1, 3, 4]), attributes=attributes)
        sizes = np.array([2, 1, 2, 3, 1])
        check_operator("AffineGrid", draw(2, 3, 4), sizes, attributes=attributes)


def test_deformed_convolutions() -> None:
    for attributes, x, w, offset in (
        ({"pads": [1, 0, 1, 0]}, (1, 2, 4, 3), (3, 2, 3, 2), (1, 12, 4, 2)),
        (
            {"group": 2, "offset_group": 2, "strides": [2, 1], "dilations": [1, 2]},
            (2, 4, 4, 5),
            (2, 2, 2, 2),
            (2, 16, 2, 3),
        ),
    ):
        mask = (offset[0], offset[1] // 2, *offset[2:])
        inputs = draw(*x), draw(*w), draw(*offset), draw(w[0]), draw(*mask)
        agree("DeformConv", *inputs, attributes=attributes)
        # (ONNX's kernel rounds coordinates too coarsely for differences.)
        composed = partial(composed_deform_conv, **attributes)
        check(lambda *xs, f=composed: [f(*xs)], *inputs, second=False)
        check(lambda *xs, f=composed: [f(*xs)], *inputs[:3], second=False)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_aligned_regions(mode: str) -> None:
    rois = np.array([[0.3, 0.2, 3.1, 4.4], [1.2, 0.1, 2.3, 5.2], [-3.0, 1.1, 2.2, 2.4]])
    batch = np.array([1, 0, 1])
    for ratio, transformation in product((0, 2), ("half_pixel", "output_half_pixel")):
        attributes = {
            "mode": mode,
            "output_height": 2,
            "output_width": 3,
            "sampling_ratio": ratio,
            "coordinate_transformation_mode": transformation,
            "spatial_scale": 0.9,
        }
        inputs = draw(2, 2, 5, 4), rois, batch
        agree("RoiAlign", *inputs, attributes=attributes)
        check_operator("RoiAlign", *inputs, attributes=attributes, second=False)


RESIZES: list[dict[str, Any]] = [
    {"mode": "nearest"},
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
]


@pytest.mark.parametrize("attributes", RESIZES, ids=str)
def test_resized_pictures(attributes: dict[str, Any]) -> None:
    for scales in ([1, 1, 2, 3], [1, 1, 0.7, 1.6]):
        given = np.array(scales, np.float32)
        check_operator("Resize", draw(2, 2, 4, 3), None, given, attributes=attributes, wanted=[0])
    sizes, axes = np.array([7, 2]), {**attributes, "axes": [2, -1]}
    check_operator("Resize", draw(2, 2, 4, 3), None, None, sizes, attributes=axes)
    kept = {**axes, "keep_aspect_ratio_policy": "not_larger"}
    check_operator("Resize", draw(1, 1, 4, 3), None, None, sizes, attributes=kept)


def test_resized_crops() -> None:
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    region = np.array([0.2, -0.3, 0.9, 0.8])
    attributes |= {"axes": [0, 1]}  # type: ignore[dict-item]
    sizes = np.array([5, 4])
    inputs = draw(4, 3), region, None, sizes
    check_operator("Resize", *inputs, attributes=attributes, wanted=[0])
    _, pull = pull_back(lambda *xs: [op("Resize", *xs, **attributes)], *inputs)
    with pytest.raises(NotDifferentiable, match="Resize has no gradient by its region"):
        pull([draw(5, 4)])


def test_determinants_and_inverses() -> None:
    check_operator("Det", draw(2, 3, 3) + 2 * np.eye(3))
    check_operator("Det", draw(2, 2) + 2 * np.eye(2))
