"""Convolutions and pools of every rank, padding and size, empty ones included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import agree
from tests.native.models import draw, every_level

FEW = few(3)
MANY = many(400)


@st.composite
def windows(data: st.DrawFn, most: int = 3) -> tuple[dict[str, Any], list[int]]:
    """Draw the attributes of a sliding window and a spatial shape that holds it."""
    rank = data(st.integers(1, most))
    sides = st.integers(1, 5 if rank < 3 else 3)
    kernel = [data(sides) for _ in range(rank)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [data(st.integers(1, 4)) for _ in range(rank)],
        "dilations": [data(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)],
    }
    mode = data(
        st.sampled_from(["NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
    )
    if mode == "NOTSET":
        attributes["pads"] = [data(st.integers(0, k - 1)) for k in kernel * 2]
    else:
        attributes["auto_pad"] = mode
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    more = st.integers(0, 19 if rank == 1 else 9 if rank == 2 else 4)
    return attributes, [side + data(more) for side in reach]


@st.composite
def channels(data: st.DrawFn) -> tuple[int, int, int]:
    """Draw groups, input channels and output channels."""
    groups = data(st.sampled_from([1, 1, 1, 2, 3, 5, 16]))
    inside = data(st.integers(1, 3 if groups > 1 else 35))
    outside = data(st.integers(1, 3 if groups > 1 else 50))
    return groups, groups * inside, groups * outside


def check_convolution(level: str, window: Any, drawn: tuple[int, int, int], images: int) -> None:
    attributes, size = window
    groups, inside, outside = drawn
    x = draw((images, inside, *size))
    w = draw((outside, inside // groups, *attributes["kernel_shape"]), 1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["plain"], group=groups, **attributes),
        helper.make_node("Conv", ["x", "w", "b"], ["biased"], group=groups, **attributes),
        helper.make_node("Tanh", ["biased"], ["y"]),
        helper.make_node("Conv", ["x", "u"], ["given"], group=groups, **attributes),
    ]
    constants = {"w": w, "b": draw((outside,), 2)}
    # A filter that comes at run time takes another way through the engine.
    agree(nodes, {"x": x, "u": w}, level, constants=constants, length=w[0].size * 16)


@every_level
@FEW
@given(windows(), channels(), st.integers(1, 3))
def test_windows_of_any_rank_and_padding_convolve(
    level: str, window: Any, drawn: tuple[int, int, int], images: int
) -> None:
    check_convolution(level, window, drawn, images)


@pytest.mark.long
@every_level
@MANY
@given(windows(), channels(), st.integers(1, 3))
def test_many_windows_of_any_rank_and_padding_convolve(
    level: str, window: Any, drawn: tuple[int, int, int], images: int
) -> None:
    check_convolution(level, window, drawn, images)


def check_transposed(level: str, window: Any, drawn: tuple[int, int, int], extra: int) -> None:
    attributes, size = window
    groups, inside, outside = drawn
    size = [side % 6 + 1 for side in size]
    attributes = {**attributes, "group": groups}
    steps, kernel = attributes["strides"], attributes["kernel_shape"]
    taps = zip(size, steps, kernel, attributes["dilations"], strict=True)
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in taps]
    rank, pads = len(size), attributes.get("pads")
    if pads and extra == 2:
        # Longer than the filter reaches in some cases, shorter in others.
        most = [
            r + max(s, d) - 1 for r, s, d in zip(reach, steps, attributes["dilations"], strict=True)
        ]
        attributes["output_shape"] = [
            min(m, max(1, r + p - 2)) for m, r, p in zip(most, reach, pads, strict=False)
        ]
        del attributes["pads"]
    elif pads:
        # The output must keep an element: leave out pads that would take it away.
        if any(r <= a + b for r, a, b in zip(reach, pads[:rank], pads[rank:], strict=True)):
            attributes["pads"] = [0] * 2 * rank
        attributes["output_padding"] = [min(extra, s - 1) for s in steps]
    x = draw((2, inside, *size))
    w = draw((inside, outside // groups, *attributes["kernel_shape"]), 1)
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": w, "b": draw((outside,), 2)}
    agree(nodes, {"x": x}, level, constants=constants, length=w.size // w.shape[1] * 16)


@every_level
@FEW
@given(windows(), channels(), st.integers(0, 2))
def test_transposed_convolutions_of_any_rank(
    level: str, window: Any, drawn: tuple[int, int, int], extra: int
) -> None:
    check_transposed(level, window, drawn, extra)


@pytest.mark.long
@every_level
@MANY
@given(windows(), channels(), st.integers(0, 2))
def test_many_transposed_convolutions_of_any_rank(
    level: str, window: Any, drawn: tuple[int, int, int], extra: int
) -> None:
    check_transposed(level, window, drawn, extra)


def check_pools(level: str, window: Any, wide: int, ceil: bool, count: bool) -> None:
    attributes, size = window
    x = draw((2, wide, *size))
    both = {**attributes, "ceil_mode": int(ceil)} if "auto_pad" not in attributes else attributes
    nodes = [
        helper.make_node("MaxPool", ["x"], ["most"], **both),
        helper.make_node("MaxPool", ["x"], ["largest", "places"], **both),
        helper.make_node("AveragePool", ["x"], ["mean"], count_include_pad=int(count), **both),
        helper.make_node("LpPool", ["x"], ["norm"], p=2, **both),
        helper.make_node("GlobalMaxPool", ["x"], ["top"]),
        helper.make_node("GlobalAveragePool", ["x"], ["middle"]),
        helper.make_node("GlobalLpPool", ["x"], ["whole"], p=3),
    ]
    agree(nodes, {"x": x}, level, length=16 * int(np.prod(size)))


@every_level
@FEW
@given(windows(), st.integers(1, 37), st.booleans(), st.booleans())
def test_windows_of_any_rank_and_padding_pool(
    level: str, window: Any, wide: int, ceil: bool, count: bool
) -> None:
    check_pools(level, window, wide, ceil, count)


@pytest.mark.long
@every_level
@MANY
@given(windows(), st.integers(1, 37), st.booleans(), st.booleans())
def test_many_windows_of_any_rank_and_padding_pool(
    level: str, window: Any, wide: int, ceil: bool, count: bool
) -> None:
    check_pools(level, window, wide, ceil, count)


@every_level
@pytest.mark.parametrize("shape", [(0, 5, 9, 8), (2, 5, 0, 8), (0, 5, 0, 0)])
def test_images_without_pixels_or_batch_convolve(level: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    nodes = [
        # The border alone is wide enough for the filter.
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[2, 2, 2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("AveragePool", ["c"], ["a"], kernel_shape=[1, 1]),
        helper.make_node("Conv", ["r", "v"], ["d"]),
    ]
    constants = {"w": draw((4, 5, 3, 3)), "b": draw((4,), 1), "v": draw((6, 4, 1, 1), 2)}
    agree(nodes, {"x": x}, level, constants=constants, length=50)


@every_level
def test_images_without_channels_convolve_to_their_bias(level: str) -> None:
    x = np.zeros((2, 0, 5, 4), np.float32)
    constants = {"w": np.zeros((3, 0, 2, 2), np.float32), "b": draw((3,), 1)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y"])]
    (y,) = agree(nodes, {"x": x}, level, constants=constants)
    np.testing.assert_array_equal(y, np.broadcast_to(constants["b"][:, None, None], (2, 3, 4, 3)))


@every_level
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_images_of_other_floats_convolve(level: str, dtype: str) -> None:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = draw((2, 3, 11, 9)).astype(kind)
    constants = {"w": draw((5, 3, 3, 3), 1).astype(kind), "b": draw((5,), 2).astype(kind)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 2, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    agree(nodes, {"x": x}, level, constants=constants, length=27, opset=22)
