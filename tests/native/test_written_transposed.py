"""Transposed convolutions in groups, of any rank, type and sizes, in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.models import draw
from tests.native.written import check, node

# Groups, channels, maps of a group, pixels, filter, and attributes.
FORMS: list[tuple[int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    (8, 8, 1, (5, 7), (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (4, 8, 3, (5, 6), (3, 3), {"strides": [2, 2], "output_padding": [1, 1]}),
    (2, 6, 2, (4, 5), (2, 3), {"dilations": [2, 3], "pads": [0, 2, 1, 3]}),
    (2, 4, 5, (9,), (7,), {"strides": [3], "pads": [2, 1]}),
    (3, 3, 1, (300,), (4,), {"strides": [2], "auto_pad": "SAME_UPPER"}),
    (3, 3, 2, (131,), (5,), {"strides": [3], "auto_pad": "SAME_LOWER"}),
    (1, 4, 3, (3, 4, 5), (2, 3, 2), {"strides": [2, 2, 2], "pads": [0, 1, 1, 1, 0, 0]}),
    (2, 4, 2, (3, 4, 5), (3, 3, 3), {"auto_pad": "VALID"}),
    (2, 4, 3, (6, 6), (3, 3), {"strides": [2, 2], "output_shape": [12, 12]}),
    (1, 2, 2, (4, 4), (1, 2), {"pads": [1, 1, 1, 1], "strides": [3, 1]}),
]


def _feed(
    images: int,
    channels: int,
    maps: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    groups: int,
) -> dict[str, np.ndarray]:
    return {
        "x": draw((images, channels, *size), 1),
        "w": draw((channels, maps, *kernel), 2),
        "b": draw((maps * groups,), 3),
    }


@pytest.mark.parametrize("form", FORMS)
def test_transposed_convolutions_have_groups_and_any_sizes(form: Any) -> None:
    groups, channels, maps, size, kernel, attributes = form
    feeds = [
        _feed(images, channels, maps, tuple(n + more for n in size), kernel, groups)
        for images, more in ((1, 0), (3, 1), (2, 17))
        if "output_shape" not in attributes or not more
    ]
    made = node("ConvTranspose", ["x", "w", "b"], group=groups, **attributes)
    check(made, feeds, fixed=["w", "b"], length=200)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_transposed_convolutions_are_of_any_float(dtype: str) -> None:
    feeds = [_feed(2, 6, 2, (5, n), (3, 2), 3) for n in (4, 9)]
    feeds = [{name: array.astype(dtype) for name, array in feed.items()} for feed in feeds]
    made = node("ConvTranspose", ["x", "w"], group=3, strides=[2, 1])
    for feed in feeds:
        del feed["b"]
    check(made, feeds, fixed=["x:1"], length=64)


def test_filters_of_transposed_convolutions_come_from_a_run() -> None:
    feeds = [_feed(1, 4, 3, (6, 5), kernel, 2) for kernel in ((2, 3), (4, 1))]
    made = node("ConvTranspose", ["x", "w", "b"], group=2, strides=[2, 2])
    check(made, feeds, fixed=["x:1", "w:0", "w:1", "b"], length=64)
