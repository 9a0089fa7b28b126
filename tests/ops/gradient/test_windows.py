"""Gradients of convolutions and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.gradient.differences import check_operator

RNG = np.random.default_rng(17)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-2, 2, shape))


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), (4, 3, 3), {}),
    ((2, 3, 6, 5), (4, 3, 3, 2), {"pads": [1, 0, 1, 2]}),
    ((1, 2, 8, 7), (3, 2, 3, 3), {"strides": [2, 3], "pads": [1, 1, 0, 1]}),
    ((1, 2, 9, 8), (3, 2, 2, 3), {"strides": [3, 2], "dilations": [2, 1]}),
    ((2, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    ((2, 3, 6, 6), (3, 1, 3, 3), {"group": 3, "strides": [2, 2]}),
    ((2, 3, 4, 4), (5, 3, 1, 1), {}),
    ((2, 3, 5, 4), (5, 3, 1, 1), {"strides": [2, 2]}),
    ((1, 2, 3, 4, 5), (2, 2, 2, 2, 2), {"strides": [1, 2, 2], "dilations": [2, 1, 1]}),
    ((2, 2, 7, 6), (3, 2, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ((2, 2, 7, 6), (3, 2, 2, 4), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ((2, 2, 5, 6), (3, 2, 3, 3), {"auto_pad": "VALID", "kernel_shape": [3, 3]}),
    ((0, 2, 5, 6), (3, 2, 3, 3), {}),
    ((2, 2, 2, 2), (3, 2, 3, 3), {}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), CONVOLUTIONS, ids=str)
def test_convolutions(x: Any, w: Any, attributes: dict[str, Any]) -> None:
    check_operator("Conv", draw(*x), draw(*w), draw(w[0]), attributes=attributes)


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 4), (3, 2, 3), {}),
    ((1, 2, 3, 4), (2, 3, 3, 2), {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
    ((1, 2, 3, 4), (2, 3, 3, 2), {"strides": [2, 3], "output_padding": [1, 2]}),
    ((1, 4, 3, 3), (4, 2, 2, 3), {"group": 2, "dilations": [2, 1], "strides": [1, 2]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "output_shape": [8, 8]}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 3, 3), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((1, 3, 3, 3), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1], "output_padding": [0, 0]}),
    ((1, 2, 3, 3), (2, 2, 2, 2), {"dilations": [3, 3], "output_padding": [2, 1]}),
]


@pytest.mark.parametrize(("x", "w", "attributes"), TRANSPOSED, ids=str)
def test_transposed_convolutions(x: Any, w: Any, attributes: dict[str, Any]) -> None:
    maps = w[1] * attributes.get("group", 1)
    check_operator("ConvTranspose", draw(*x), draw(*w), draw(maps), attributes=attributes)


def test_images_of_columns() -> None:
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 1, 1]}
    sizes = np.array([5, 6]), np.array([3, 2])
    check_operator("Col2Im", draw(2, 12, 15), *sizes, attributes=attributes)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), {"kernel_shape": [3]}),
    ((1, 2, 6, 7), {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1]}),
    ((1, 2, 7, 7), {"kernel_shape": [3, 2], "strides": [3, 3], "ceil_mode": 1}),
    (
        (1, 2, 7, 6),
        {"kernel_shape": [3, 3], "strides": [3, 2], "ceil_mode": 1, "pads": [1, 1, 1, 1]},
    ),
    ((1, 2, 7, 6), {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    ((1, 2, 7, 6), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 2, 7, 6), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ((0, 2, 4, 4), {"kernel_shape": [2, 2]}),
]


@pytest.mark.parametrize(("shape", "attributes"), POOLS, ids=str)
def test_pools(shape: Any, attributes: dict[str, Any]) -> None:
    x = draw(*shape)
    check_operator("AveragePool", x, attributes=attributes)
    check_operator("AveragePool", x, attributes={**attributes, "count_include_pad": 1})
    for p in (1, 2, 3):
        check_operator("LpPool", x, attributes={**attributes, "p": p}, second=p == 2)
    check_operator("MaxPool", x, attributes=attributes)
    check_operator("MaxPool", x, outputs=2, attributes=attributes)
    check_operator("MaxPool", x, outputs=2, attributes={**attributes, "storage_order": 1})


def test_global_pools() -> None:
    for shape in ((2, 3, 4, 5), (2, 3, 4), (2, 3)):
        check_operator("GlobalAveragePool", draw(*shape))
        check_operator("GlobalMaxPool", draw(*shape))
        check_operator("GlobalLpPool", draw(*shape), attributes={"p": 3})


def test_unpooling() -> None:
    indices = np.array([[[[1, 3], [8, 14]]]], np.int64)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    check_operator("MaxUnpool", draw(1, 1, 2, 2), indices, attributes=attributes)
    larger = np.array([1, 1, 5, 6])
    check_operator("MaxUnpool", draw(1, 1, 2, 2), indices, larger, attributes=attributes)
    indices = indices * 2 + 1
    check_operator("MaxUnpool", draw(1, 1, 2, 2), indices, larger, attributes=attributes)
