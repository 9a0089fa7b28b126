"""Convolution and pooling against the reference kernels, at every level of instructions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few, many
from tests.native.models import compare, draw, every_level, model, session

FEW = few(6)
MANY = many(150)


@st.composite
def convolutions(data: st.DrawFn) -> tuple[dict[str, object], tuple[int, ...], tuple[int, ...]]:
    """Draw a convolution: attributes, input shape, weight shape."""
    rank = data(st.sampled_from([1, 2, 2, 2]))
    kernel = [data(st.integers(1, 4)) for _ in range(rank)]
    dilations = [data(st.sampled_from([1, 1, 2])) for _ in range(rank)]
    strides = [data(st.sampled_from([1, 1, 2, 3])) for _ in range(rank)]
    pads = [data(st.integers(0, 2)) for _ in range(2 * rank)]
    style = data(st.sampled_from(["plain", "plain", "depthwise", "groups", "blocks"]))
    n = data(st.sampled_from([1, 1, 2]))
    if style == "depthwise":
        channels = data(st.integers(2, 40))
        groups, weight = channels, (channels, 1)
    elif style == "groups":
        groups, each, outs = 2, data(st.integers(1, 5)), data(st.integers(1, 5))
        channels, weight = groups * each, (groups * outs, each)
    elif style == "blocks":
        groups, channels, weight = 2, 32, (32, 16)
    else:
        channels, groups = data(st.integers(1, 40)), 1
        weight = (data(st.integers(1, 70)), channels)
    size = [
        (k - 1) * d + 1 + data(st.integers(0, 14)) for k, d in zip(kernel, dilations, strict=True)
    ]
    attributes = {
        "kernel_shape": kernel,
        "dilations": dilations,
        "strides": strides,
        "pads": pads,
        "group": groups,
    }
    return attributes, (n, channels, *size), (*weight, *kernel)


def check_convolution(drawn: object, bias: bool, ending: str, level: str) -> None:
    attributes, shape, weight_shape = drawn  # type: ignore[misc]
    x, w = draw(shape), draw(weight_shape, 1) / np.float32(np.sqrt(np.prod(weight_shape[1:])))
    constants = {"w": w}
    if bias:
        constants["b"] = draw(weight_shape[:1], 2)
    nodes = [helper.make_node("Conv", ["x", *constants], ["c"], "conv", **attributes)]
    if ending == "relu":
        nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    elif ending == "add":
        nodes.append(helper.make_node("Sigmoid", ["c"], ["s"]))
        nodes.append(helper.make_node("Conv", ["x", *constants], ["e"], **attributes))
        nodes.append(helper.make_node("Add", ["e", "s"], ["a"]))
        nodes.append(helper.make_node("Relu", ["a"], ["y"]))
    else:
        nodes.append(helper.make_node("Clip", ["c", "low", "high"], ["y"]))
        constants |= {"low": np.float32(-0.5).reshape(()), "high": np.float32(0.75).reshape(())}
    compare(model(nodes, {"x": x}, constants=constants), {"x": x}, level)


@every_level
@FEW
@given(convolutions(), st.booleans(), st.sampled_from(["relu", "add", "clip"]))
def test_convolution_equals_its_reference(
    level: str, drawn: object, bias: bool, ending: str
) -> None:
    check_convolution(drawn, bias, ending, level)


@pytest.mark.long
@every_level
@MANY
@given(convolutions(), st.booleans(), st.sampled_from(["relu", "add", "clip"]))
def test_many_convolutions_equal_their_reference(
    level: str, drawn: object, bias: bool, ending: str
) -> None:
    check_convolution(drawn, bias, ending, level)


@st.composite
def pools(data: st.DrawFn) -> tuple[str, dict[str, object], tuple[int, ...]]:
    """Draw a pooling node: operator, attributes, input shape."""
    rank = data(st.sampled_from([1, 2, 2]))
    kernel = [data(st.integers(1, 4)) for _ in range(rank)]
    attributes: dict[str, object] = {
        "kernel_shape": kernel,
        "strides": [data(st.integers(1, 3)) for _ in range(rank)],
        "pads": [data(st.integers(0, k - 1)) for k in kernel + kernel],
        "ceil_mode": data(st.integers(0, 1)),
    }
    operator = data(st.sampled_from(["MaxPool", "AveragePool"]))
    if operator == "AveragePool":
        attributes["count_include_pad"] = data(st.integers(0, 1))
    shape = (data(st.integers(1, 2)), data(st.integers(1, 20)))
    return operator, attributes, (*shape, *(k + data(st.integers(0, 8)) for k in kernel))


@every_level
@FEW
@given(pools())
def test_pooling_equals_its_reference(level: str, drawn: object) -> None:
    operator, attributes, shape = drawn  # type: ignore[misc]
    x = draw(shape)
    nodes = [helper.make_node(operator, ["x"], ["y"], **attributes)]
    compare(model(nodes, {"x": x}), {"x": x}, level)


@every_level
@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 19, 5, 3), (1, 32, 7)])
def test_global_pooling_equals_its_reference(
    level: str, operator: str, shape: tuple[int, ...]
) -> None:
    x = draw(shape)
    compare(model([helper.make_node(operator, ["x"], ["y"])], {"x": x}), {"x": x}, level)


def test_sizes_that_are_known_only_at_run_time_have_one_program() -> None:
    x = draw((1, 3, 9, 8))
    proto = model(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        {"x": x},
        constants={"w": draw((5, 3, 3, 3), 1)},
        shapes={"x": ["n", 3, "h", "w"]},
    )
    native, reference = session(proto), session(proto, engine="reference")
    for shape in ((1, 3, 9, 8), (2, 3, 12, 5), (1, 3, 9, 8)):
        x = draw(shape)
        (got,), (want,) = native.run(None, {"x": x}), reference.run(None, {"x": x})
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    assert not native._programs.repeats.values()


@every_level
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_convolution_into_few_channels_equals_its_reference(
    level: str, stride: int, channels: int
) -> None:
    x, w = draw((2, 5, 6, 61)), draw((channels, 5, 3, 7), 1) / np.float32(10)
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], strides=[2, stride], dilations=[1, 2], pads=[1, 4, 0, 3]
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants={"w": w, "b": draw((channels,), 2)})
    compare(proto, {"x": x}, level)


@every_level
@pytest.mark.parametrize(
    "shape", [[2, 20, 9], [2, 20, 1, 9], [2, 20, 9, 1], [2, 20, 3, 3], [20, 18]]
)
def test_an_image_of_one_long_axis_keeps_its_blocks_under_another_shape(
    level: str, shape: list[int]
) -> None:
    x = draw((2, 5, 9, 1))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 0, 1, 0]),
        helper.make_node("Reshape", ["c", "s"], ["r"]),
        helper.make_node("Add", ["r", "b"], ["a"]),
        helper.make_node("Tanh", ["a"], ["y"]),
    ]
    constants = {
        "w": draw((20, 5, 3, 1), 1),
        "s": np.array(shape),
        "b": draw((20, 1) if len(shape) == 3 else (1,), 2),
    }
    compare(model(nodes, {"x": x}, ["y", "r"], constants), {"x": x}, level)
    compare(model(nodes, {"x": x}, ["y"], constants), {"x": x}, level)
