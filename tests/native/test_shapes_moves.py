"""Operators that move elements: any sizes, steps from either end, nothing at all."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import agree
from tests.native.models import draw, every_level, model, refused, session

FEW = few(3)
MANY = many(300)
TYPES = ["float32", "int64", "uint8", "bool", "float64", "float16", "int16", "bfloat16"]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return small whole numbers of an element type."""
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return np.random.default_rng(0).integers(0, 100, shape).astype(kind)


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=9)


def check_slices(level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    rank = len(shape)
    axes = data.draw(st.lists(st.integers(0, rank - 1), min_size=1, unique=True))
    places = st.integers(-12, 12)
    starts, ends = ([data.draw(places) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([1, 1, 2, 3, -1, -2, -3])) for _ in axes]
    ends = [data.draw(st.sampled_from([e, 2**62, -(2**62)])) for e in ends]
    given_axes = [a - rank if data.draw(st.booleans()) else a for a in axes]
    values = {"starts": starts, "ends": ends, "axes": given_axes, "steps": steps}
    constants = {name: np.array(value, np.int64) for name, value in values.items()}
    nodes = [
        helper.make_node("Slice", ["x", *constants], ["s"]),
        helper.make_node("Slice", ["s", "zero", "two", "zero"], ["y"]),
        helper.make_node("Concat", ["s", "s"], ["c"], axis=axes[0]),
    ]
    constants |= {"zero": np.array([0]), "two": np.array([2])}
    x = numbers(shape, dtype)
    agree(nodes, {"x": x}, level, constants=constants)
    # The same, with bounds that come with the run.
    fed = {name: constants.pop(name) for name in ("starts", "ends")}
    agree(nodes[:1], {"x": x, **fed}, level, constants=constants)


@every_level
@FEW
@given(shapes, st.sampled_from(TYPES), st.data())
def test_slices_step_forward_and_backward(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    check_slices(level, shape, dtype, data)


@pytest.mark.long
@every_level
@MANY
@given(shapes, st.sampled_from(TYPES), st.data())
def test_many_slices_step_forward_and_backward(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    check_slices(level, shape, dtype, data)


@pytest.mark.parametrize("shift", [2, -2])
def test_an_axis_that_is_rolled_keeps_its_length(shift: int) -> None:
    """As PyTorch's exporter writes ``roll``: the place of the cut is a remainder of the length."""
    nodes = [
        helper.make_node("Shape", ["x"], ["all"], start=0, end=1),
        helper.make_node("Mod", ["all", "four"], ["over"]),
        helper.make_node("Sub", ["four", "over"], ["lacks"]),
        helper.make_node("Mod", ["lacks", "four"], ["more"]),
        helper.make_node("Concat", ["zero", "zero", "more", "zero"], ["pads"], axis=0),
        helper.make_node("Pad", ["x", "pads"], ["p"], mode="reflect"),
        helper.make_node("Shape", ["p"], ["size"], start=0, end=1),
        helper.make_node("Mod", ["shift", "size"], ["cut"]),
        helper.make_node("Slice", ["p", "zero", "cut", "zero"], ["head"]),
        helper.make_node("Slice", ["p", "cut", "size", "zero"], ["tail"]),
        helper.make_node("Concat", ["tail", "head"], ["rolled"], axis=0),
        helper.make_node("Add", ["rolled", "p"], ["y"]),
    ]
    constants = {"four": np.array([4]), "zero": np.array([0]), "shift": np.array([shift])}
    proto = model(nodes, {"x": draw((5, 3))}, ["y"], constants, {"x": ["n", 3]})
    opened = session(proto)
    assert refused(opened) == {}
    for rows in (5, 8, 3, 14):
        x = draw((rows, 3), rows)
        padded = np.pad(x, [(0, -rows % 4), (0, 0)], mode="reflect")
        want = padded + np.roll(padded, -shift, 0)
        np.testing.assert_array_equal(opened.run(None, {"x": x})[0], want)


@every_level
@FEW
@given(shapes, st.sampled_from(TYPES), st.data())
def test_gathers_count_from_either_end(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    assume(size)
    count = data.draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5))
    indices = np.random.default_rng(1).integers(-size, size, count)
    like = np.random.default_rng(2).integers(-size, size, shape)
    narrow = indices.astype(np.int32)
    nodes = [
        helper.make_node("Gather", ["x", "fixed"], ["a"], axis=axis),
        helper.make_node("Gather", ["x", "i"], ["b"], axis=axis),
        helper.make_node("Gather", ["x", "j"], ["c"], axis=axis),
        helper.make_node("GatherElements", ["x", "like"], ["d"], axis=axis),
        helper.make_node("ScatterElements", ["x", "like", "x"], ["e"], axis=axis, reduction="max"),
    ]
    if dtype == "bool" or dtype == "bfloat16":
        nodes.pop()
    feed = {"x": numbers(shape, dtype), "i": indices, "j": narrow}
    agree(nodes, feed, level, constants={"fixed": indices, "like": like})


@every_level
@FEW
@given(shapes, st.sampled_from(TYPES), st.data())
def test_parts_are_split_off_and_joined(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    cuts = sorted(data.draw(st.lists(st.integers(0, size), min_size=1, max_size=3)))
    parts = np.diff([0, *cuts, size]).astype(np.int64)
    names = [f"p{i}" for i in range(len(parts))]
    order = data.draw(st.permutations(names))
    pieces = data.draw(st.integers(1, 4))
    nodes = [
        helper.make_node("Split", ["x", "parts"], names, axis=axis),
        helper.make_node("Concat", [*order, "x"], ["joined"], axis=axis),
    ]
    if size >= pieces * (pieces - 1):
        even = [f"e{i}" for i in range(pieces)]
        nodes.append(helper.make_node("Split", ["x"], even, axis=axis, num_outputs=pieces))
    agree(nodes, {"x": numbers(shape, dtype)}, level, constants={"parts": parts})


def check_pads(level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    rank = len(shape)
    few = st.integers(0, 4)
    pads = {
        "constant": [data.draw(st.integers(-min(s, 2) // 2, 4)) for s in shape * 2],
        "edge": [data.draw(few) for _ in range(2 * rank)],
        "wrap": [data.draw(few) for _ in range(2 * rank)],
        "reflect": [data.draw(st.integers(0, s - 1)) for s in shape * 2],
    }
    constants = {name: np.array(value) for name, value in pads.items()}
    constants |= {"seven": numbers((), dtype), "one": np.array([2, 1]), "last": np.array([-1])}
    nodes = [helper.make_node("Pad", ["x", name], [f"{name}d"], mode=name) for name in pads]
    nodes += [
        helper.make_node("Pad", ["x", "constant", "seven"], ["filled"]),
        helper.make_node("Pad", ["x", "one", "seven", "last"], ["ended"]),
    ]
    agree(nodes, {"x": numbers(shape, dtype)}, level, constants=constants)


full = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=8)
numeric = st.sampled_from([name for name in TYPES if name != "bool"])


@every_level
@FEW
@given(full, numeric, st.data())
def test_borders_of_every_mode(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    check_pads(level, shape, dtype, data)


@pytest.mark.long
@every_level
@MANY
@given(full, numeric, st.data())
def test_many_borders_of_every_mode(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    check_pads(level, shape, dtype, data)


@st.composite
def resizes(data: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any], dict[str, np.ndarray]]:
    """Draw a shape, and the attributes and the inputs of a Resize."""
    rank = data(st.sampled_from([3, 4, 4, 4, 5]))
    shape = (data(st.integers(1, 2)), data(st.integers(1, 19)))
    shape = (*shape, *(data(st.integers(1, 7)) for _ in range(rank - 2)))
    mode = data(st.sampled_from(["nearest", "nearest", "linear", "cubic"]))
    transforms = ["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"]
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": data(st.sampled_from(transforms)),
    }
    if mode == "nearest":
        rounding = ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]
        attributes["nearest_mode"] = data(st.sampled_from(rounding))
    if mode == "cubic":
        attributes["exclude_outside"] = data(st.integers(0, 1))
        attributes["cubic_coeff_a"] = data(st.sampled_from([-0.5, -0.75]))
    if data(st.booleans()):
        factors = st.sampled_from([1.0, 2.0, 3.0, 0.5, 1.5])
        scales = [1.0, 1.0, *(data(factors) for _ in range(rank - 2))]
        return shape, attributes, {"scales": np.float32(scales)}
    sizes = [*shape[:2], *(data(st.integers(1, 12)) for _ in range(rank - 2))]
    return shape, attributes, {"sizes": np.array(sizes)}


def check_resize(level: str, drawn: Any) -> None:
    shape, attributes, constants = drawn
    inputs = ["x", "", "scales"] if "scales" in constants else ["x", "", "", "sizes"]
    nodes = [
        helper.make_node("Resize", inputs, ["r"], **attributes),
        # A convolution before and after keeps the image in blocks of channels.
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Resize", ["c", *inputs[1:]], ["b"], **attributes),
        helper.make_node("Conv", ["b", "w"], ["y"]),
    ]
    w = draw((shape[1], shape[1], *[1] * (len(shape) - 2)), 1)
    agree(nodes, {"x": draw(shape)}, level, constants={**constants, "w": w}, length=400)


@every_level
@few(6)
@given(resizes())
def test_images_are_resized_in_every_mode(level: str, drawn: Any) -> None:
    check_resize(level, drawn)


@pytest.mark.long
@every_level
@MANY
@given(resizes())
def test_many_images_are_resized_in_every_mode(level: str, drawn: Any) -> None:
    check_resize(level, drawn)


@every_level
@FEW
@given(shapes, st.sampled_from(TYPES), st.data())
def test_shapes_and_orders_change(
    level: str, shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    rank = len(shape)
    order = data.draw(st.permutations(range(rank)))
    cut = data.draw(st.integers(0, rank))
    times = [data.draw(st.integers(0, 3)) for _ in range(rank)]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=order),
        helper.make_node("Flatten", ["t"], ["f"], axis=cut),
        helper.make_node("Unsqueeze", ["t", "ends"], ["u"]),
        helper.make_node("Squeeze", ["u", "ends"], ["s"]),
        helper.make_node("Tile", ["x", "times"], ["tiled"]),
        helper.make_node("Expand", ["u", "wide"], ["e"]),
        helper.make_node("Reshape", ["t", "flat"], ["r"], allowzero=1),
        helper.make_node("Shape", ["t"], ["shape"]),
        helper.make_node("Size", ["t"], ["size"]),
    ]
    constants = {
        "ends": np.array([0, -1]),
        "times": np.array(times),
        "wide": np.array([3, *[1] * (rank + 1)]),
        "flat": np.array([int(np.prod(shape)), 1]),
    }
    agree(nodes, {"x": numbers(shape, dtype)}, level, constants=constants)


@every_level
@FEW
@given(
    st.integers(1, 2),
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from(TYPES),
)
def test_channels_become_pixels_and_back(
    level: str, images: int, channels: int, block: int, side: int, dtype: str
) -> None:
    x = numbers((images, channels * block * block, side, side + 1), dtype)
    nodes = [
        helper.make_node("DepthToSpace", ["x"], ["d"], blocksize=block),
        helper.make_node("DepthToSpace", ["x"], ["c"], blocksize=block, mode="CRD"),
        helper.make_node("SpaceToDepth", ["d"], ["s"], blocksize=block),
    ]
    agree(nodes, {"x": x}, level)


@every_level
def test_a_number_without_axes_moves_too(level: str) -> None:
    nodes = [
        helper.make_node("Pad", ["x", "none"], ["p"]),
        helper.make_node("Unsqueeze", ["x", "first"], ["u"]),
        helper.make_node("Concat", ["u", "u"], ["c"], axis=0),
        helper.make_node("Expand", ["x", "to"], ["e"]),
        helper.make_node("Flatten", ["u"], ["f"], axis=0),
        helper.make_node("Reshape", ["x", "one"], ["r"]),
    ]
    constants = {"none": np.array([], np.int64), "first": np.array([0]), "to": np.array([2, 3])}
    constants["one"] = np.array([1])
    agree(nodes, {"x": np.array(np.float32(2.5))}, level, constants=constants)
