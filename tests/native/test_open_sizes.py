"""Images whose rows and columns only a run knows: one program, which compiles nothing later."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from hagane.errors import KernelError
from hagane.native.run.engine import load_engine
from tests.drawing import few
from tests.native.agreement import agree_over, no_compilation
from tests.native.models import (
    draw,
    engine_bytes,
    every_level,
    every_low_precision_level,
    model,
    refused,
    session,
)
from tests.native.test_open_batch import small_network
from tests.native.test_shapes_convolution import channels, windows
from tests.native.test_shapes_moves import resizes

FEW = few(4)
NAMES = ("d", "h", "w")
# What is added to the sizes that were drawn, from run to run.
MORE = ((0, 0, 0), (3, 1, 20), (1, 17, 2))


def feeds_of(shape: Sequence[int], dtype: str = "float32") -> list[dict[str, np.ndarray]]:
    """Return images of several numbers and sizes, none smaller than the given ones."""
    images, inside, *size = shape
    rank, found = len(size), []
    for number, more in enumerate(MORE):
        own = [a + b for a, b in zip(size, more[-rank:], strict=True)]
        found.append({"x": draw((images + number, inside, *own), number).astype(dtype)})
    return found


def names_of(shape: Sequence[int]) -> list[int | str]:
    """Return a shape in which only the channels are a number."""
    return ["n", shape[1], *NAMES[-(len(shape) - 2) :]]


@every_level
@FEW
@given(windows(), channels())
def test_convolutions_take_images_of_any_size(
    level: str, window: Any, drawn: tuple[int, int, int]
) -> None:
    attributes, size = window
    groups, inside, outside = drawn
    shape = (1, inside, *size)
    w = draw((outside, inside // groups, *attributes["kernel_shape"]), 1)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=groups, **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": w, "b": draw((outside,), 2)}
    agree_over(
        nodes,
        feeds_of(shape),
        level,
        {"x": names_of(shape)},
        constants=constants,
        outputs=["y"],
        length=w[0].size * 16,
    )


SHORT = [(height, width) for height in (1, 2, 5, 7) for width in (1, 3, 4, 7, 8, 15)]


@pytest.mark.parametrize(("outside", "stride"), [(32, 1), (40, 2), (11, 1)])
@every_level
def test_rows_too_short_for_a_tile_share_one(level: str, outside: int, stride: int) -> None:
    """Tiles take two rows where registers hold them; borders lie between rows of all images."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2),
        helper.make_node("Conv", ["c", "v"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["d", "u"], ["e"], pads=[2, 1, 0, 1], strides=[1, 2]),
        helper.make_node("Conv", ["d", "w1"], ["f"], strides=[1, 2]),
        helper.make_node("Add", ["e", "f"], ["g"]),
        helper.make_node("Relu", ["g"], ["y"]),
    ]
    constants = {
        "w": draw((outside, 35, 1, 1), 1),
        "b": draw((outside,), 2),
        "v": draw((48, outside, 3, 3), 3) / 8,
        "u": draw((outside, 48, 3, 3), 4) / 8,
        "w1": draw((outside, 48, 1, 1), 5),
    }
    feeds = [{"x": draw((2, 35, height, width), height)} for height, width in SHORT]
    agree_over(
        nodes, feeds, level, {"x": ["n", 35, "h", "w"]}, constants=constants, outputs=["y"],
        length=30000,
    )  # fmt: skip


@every_level
@FEW
@given(windows(2), st.booleans(), st.booleans())
def test_pools_take_images_of_any_size(
    level: str, window: Any, ceil_mode: bool, whole: bool
) -> None:
    attributes, size = window
    dilations = attributes.pop("dilations")
    shape = (1, 19, *(n + 4 for n in size))
    nodes = [
        helper.make_node("MaxPool", ["x"], ["y"], ceil_mode=ceil_mode, dilations=dilations,
                         **attributes),
        helper.make_node("AveragePool", ["x"], ["z"], ceil_mode=ceil_mode,
                         count_include_pad=whole, **attributes),
        helper.make_node("GlobalAveragePool", ["x"], ["m"]),
        helper.make_node("GlobalMaxPool", ["y"], ["l"]),
    ]  # fmt: skip
    agree_over(nodes, feeds_of(shape), level, {"x": names_of(shape)}, length=100)


@every_level
def test_a_network_of_open_sizes_compiles_once(level: str) -> None:
    nodes, constants = small_network()
    feeds = [{"x": draw((n, 3, h, w), n)} for n, h, w in ((1, 45, 37), (2, 64, 64), (1, 33, 90))]
    shapes = {"x": ["n", 3, "h", "w"]}
    agree_over(nodes, feeds, level, shapes, outputs=["y"], constants=constants, length=3000)


@pytest.mark.long
def test_memory_that_grows_and_is_kept_changes_no_result() -> None:
    nodes, constants = small_network()
    named = {"x": ["n", 3, "h", "w"]}
    proto = model(nodes, {"x": draw((1, 3, 8, 8))}, ["y"], constants, named)
    shapes = [(1, 64, 64), (3, 224, 224), (2, 300, 160), (9, 256, 256), (1, 45, 37), (3, 224, 224)]
    before = engine_bytes()
    opened = session(proto)
    for n, h, w in shapes:
        feed = {"x": draw((n, 3, h, w), n)}
        want = session(proto).run(None, feed)[0]  # its memory is new
        np.testing.assert_array_equal(opened.run(None, feed)[0], want)
    assert load_engine().allocated() - before > 8 << 20
    del opened
    gc.collect()
    assert load_engine().allocated() <= before


@every_level
@pytest.mark.parametrize("stride", [2, 3])
def test_groups_of_few_channels_are_read_in_strides(level: str, stride: int) -> None:
    constants = {"w": draw((12, 6, 3, 3), 1) / np.float32(6), "b": draw((12,), 2)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["y"], group=2, pads=[1] * 4,
                         strides=[1, stride]),
    ]  # fmt: skip
    sizes = ((1, 2, 2), (2, 3, 33), (1, 1, 65), (1, 2, 34))
    feeds = [{"x": draw((n, 12, h, w), w)} for n, h, w in sizes]
    named = {"x": ["n", 12, "h", "w"]}
    agree_over(nodes, feeds, level, named, outputs=["y"], constants=constants, length=54)


@every_level
@FEW
@given(
    st.sampled_from([(2, 2, 0), (4, 2, 1), (3, 1, 1), (3, 2, 1), (5, 3, 0), (16, 8, 4)]),
    st.sampled_from([(1, 3), (20, 17), (32, 16)]),
    st.integers(1, 2),
)
def test_transposed_convolutions_take_images_of_any_size(
    level: str, form: tuple[int, int, int], maps: tuple[int, int], rank: int
) -> None:
    kernel, stride, pad = form
    inside, outside = maps
    shape = (1, inside, *(5 for _ in range(rank)))
    w = draw((inside, outside, *(kernel for _ in range(rank))), 1)
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], strides=[stride] * rank,
                         pads=[pad] * 2 * rank),
        helper.make_node("Relu", ["c"], ["y"]),
    ]  # fmt: skip
    constants = {"w": w, "b": draw((outside,), 2)}
    agree_over(nodes, feeds_of(shape), level, {"x": names_of(shape)}, constants=constants,
               outputs=["y"], length=w.size)  # fmt: skip


@every_level
@FEW
@given(resizes())
def test_images_of_any_size_are_resized(level: str, drawn: Any) -> None:
    shape, attributes, constants = drawn
    if len(shape) == 5 or (attributes["mode"] != "nearest" and len(shape) > 4):
        shape = shape[:4]
        constants = {name: array[:4] for name, array in constants.items()}
    inputs = ["x", "", "scales"] if "scales" in constants else ["x", "", "", "sizes"]
    if "sizes" in constants:
        constants = {"sizes": constants["sizes"][2:]}
        attributes = {**attributes, "axes": list(range(2, len(shape)))}
    nodes = [
        helper.make_node("Resize", inputs, ["r"], **attributes),
        # A convolution before and after keeps the image in blocks of channels.
        helper.make_node("Conv", ["x", "v"], ["c"]),
        helper.make_node("Resize", ["c", *inputs[1:]], ["b"], **attributes),
        helper.make_node("Conv", ["b", "v"], ["y"]),
    ]
    v = draw((shape[1], shape[1], *[1] * (len(shape) - 2)), 1)
    agree_over(nodes, feeds_of(shape), level, {"x": names_of(shape)},
               constants={**constants, "v": v}, outputs=["r", "y"], length=400)  # fmt: skip


@every_low_precision_level
@FEW
@given(
    st.sampled_from([(3, 20, 1), (19, 33, 1), (64, 16, 1), (24, 24, 24)]),
    st.sampled_from(["uint8", "int8"]),
    st.integers(1, 2),
    st.sampled_from(["SAME_UPPER", "NOTSET"]),
)
def test_convolutions_of_bytes_take_images_of_any_size(
    level: str, form: tuple[int, int, int], dtype: str, stride: int, padding: str
) -> None:
    inside, outside, groups = form
    kind = np.dtype(dtype)
    w = (draw((outside, inside // groups, 3, 3), 1) * 40).astype(np.int8)
    window: dict[str, Any] = {"strides": [stride, stride], "auto_pad": padding}
    if padding == "NOTSET":
        window["pads"] = [1, 1, 1, 1]
    scales = ["xs", "xz", "w", "ws", "wz", "ys", "xz"]
    nodes = [
        helper.make_node("QLinearConv", ["x", *scales, "b"], ["q"], group=groups, **window),
        helper.make_node("DequantizeLinear", ["q", "ys", "xz"], ["y"]),
    ]
    if groups == 1:
        nodes.append(helper.make_node("ConvInteger", ["x", "w", "xz"], ["i"], **window))
    constants = {
        "xs": np.array(0.05, np.float32), "xz": np.array(3, kind), "w": w,
        "ws": np.array(0.01, np.float32), "wz": np.array(0, np.int8),
        "ys": np.array(0.2, np.float32), "b": np.arange(outside, dtype=np.int32),
    }  # fmt: skip
    feeds = [{"x": (feed["x"] * 40).astype(kind)} for feed in feeds_of((1, inside, 9, 7))]
    outputs = ["q", *(["i"] if groups == 1 else [])]
    agree_over(nodes, feeds, level, {"x": names_of((1, inside, 9, 7))}, constants=constants,
               outputs=outputs, steps=1)  # fmt: skip


@every_level
@FEW
@given(
    st.sampled_from(["LSTM", "GRU", "RNN"]),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.booleans(),
    st.integers(1, 35),
)
def test_recurrent_nets_take_any_batch_and_lengths(
    level: str, operator: str, direction: str, own: bool, hidden: int
) -> None:
    directions, depth = 1 + (direction == "bidirectional"), 7
    rows = {"LSTM": 4, "GRU": 3, "RNN": 1}[operator] * hidden
    scale = np.float32(1 / np.sqrt(hidden + depth))
    constants = {
        "w": draw((directions, rows, depth), 1) * scale,
        "r": draw((directions, rows, hidden), 2) * scale,
        "b": draw((directions, 2 * rows), 3),
    }
    inputs = ["x", "w", "r", "b", *(["lens"] if own else [])]
    nodes = [
        helper.make_node(operator, inputs, ["y", "h"], hidden_size=hidden, direction=direction)
    ]
    feeds, random = [], np.random.default_rng(0)
    for steps, batch in ((4, 2), (1, 5), (9, 1), (0, 3)):
        feed = {"x": draw((steps, batch, depth))}
        if own:
            feed["lens"] = random.integers(0, steps + 1, batch).astype(np.int32)
        feeds.append(feed)
    shapes: dict[str, Sequence[int | str]] = {"x": ["steps", "batch", depth], "lens": ["batch"]}
    agree_over(nodes, feeds, level, shapes, constants=constants, length=64)


def test_a_sequence_that_is_longer_than_all_is_named() -> None:
    constants = {"w": draw((1, 4, 3)), "r": draw((1, 4, 4))}
    nodes = [helper.make_node("RNN", ["x", "w", "r", "", "lens"], ["y"], "tell", hidden_size=4)]
    feed = {"x": draw((5, 2, 3)), "lens": np.array([3, 6], np.int32)}
    made = session(model(nodes, feed, constants=constants))
    text = "'tell' failed: sequence length 6, expected lengths from 0 to 5"
    with pytest.raises(KernelError, match=text):
        made.run(None, feed)


@every_level
@pytest.mark.parametrize("rank", [1, 3])
def test_fractions_of_a_size_are_no_whole_numbers(rank: int, level: str) -> None:
    constants = {
        "to": np.ones(rank, np.int64),
        "steps": np.array([1, 0.1, -0.25, 1.5, 1e-3], np.float32),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["size"], start=1, end=2),
        helper.make_node("Reshape", ["size", "to"], ["shaped"]),
        helper.make_node("Cast", ["shaped"], ["position"], to=1),
        helper.make_node("Mul", ["position", "steps"], ["y"]),
        helper.make_node("Add", ["position", "steps"], ["z"]),
    ]
    feeds = [{"x": draw((2, length))} for length in (4, 1, 7)]
    agree_over(nodes, feeds, level, {"x": ["batch", "length"]}, constants=constants, length=1)


@every_level
def test_the_largest_fraction_of_a_size_is_no_whole_number(level: str) -> None:
    constants = {"step": np.float32(1.3), "none": np.float32(0)}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], start=1, end=2),
        helper.make_node("Squeeze", ["shape"], ["size"]),
        helper.make_node("Cast", ["size"], ["count"], to=1),
        helper.make_node("Sub", ["count", "step"], ["left"]),
        helper.make_node("Max", ["left", "none"], ["most"]),
        helper.make_node("Div", ["x", "most"], ["y"]),
    ]
    feeds = [{"x": draw((2, length))} for length in (4, 2, 7)]
    agree_over(nodes, feeds, level, {"x": ["batch", "length"]}, constants=constants, length=1)


@pytest.mark.parametrize(
    ("dims", "shapes"),
    [
        (["b", 3, "2*h", "4*w + 3"], [(1, 3, 8, 7), (2, 3, 14, 11), (1, 3, 2, 3)]),
        (["b", 3, "h*w", "w"], [(1, 3, 12, 4), (2, 3, 15, 3)]),
        (["b", 3, "h//2", "h + w"], [(1, 3, 5, 9), (2, 3, 8, 17)]),
    ],
)
def test_sizes_that_expressions_name_are_any_sizes(
    dims: list[int | str], shapes: list[tuple[int, ...]]
) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    feed = {"x": draw(shapes[0])}
    proto = model(nodes, feed, constants={"w": draw((4, 3, 3, 3), 1)}, shapes={"x": dims})
    native, reference = session(proto), session(proto, engine="reference")
    assert [argument.shape for argument in native.get_inputs()] == [
        [str(dim) if isinstance(dim, str) else dim for dim in dims]
    ]
    assert not refused(native)
    with no_compilation():
        for shape in shapes:
            x = draw(shape)
            (got,), (want,) = native.run(None, {"x": x}), reference.run(None, {"x": x})
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_a_plan_of_memory_knows_what_expressions_name() -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Exp", ["c"], ["e"]),
             helper.make_node("GlobalMaxPool", ["e"], ["y"])]  # fmt: skip
    sizes = {"x": draw((1, 3, 8, 8))}
    made = session(
        model(nodes, sizes, constants={"w": draw((4, 3, 3, 3))}, shapes={"x": [1, 3, "2*h", "w"]})
    )
    small, large = (made.memory_plan({"x": (1, 3, side, side)}).values for side in (16, 256))
    assert large > 50 * small - (1 << 16)
    assert made.memory_plan({"x": (1, 3, (16, 256), (16, 256))}).values == large


def test_padding_that_follows_from_sizes_through_floats_is_no_size_of_the_data() -> None:
    """TensorFlow's "same" padding, as PyTorch's exporter writes it: ceil, and a bound of 0."""
    nodes = [
        helper.make_node("Shape", ["x"], ["size"], start=2),
        helper.make_node("Cast", ["size"], ["own"], to=1),
        helper.make_node("Div", ["own", "two"], ["half"]),
        helper.make_node("Ceil", ["half"], ["wanted"]),
        helper.make_node("Sub", ["wanted", "one"], ["steps"]),
        helper.make_node("Mul", ["steps", "two"], ["span"]),
        helper.make_node("Add", ["span", "three"], ["needed"]),
        helper.make_node("Sub", ["needed", "own"], ["missing"]),
        helper.make_node("Clip", ["missing", "none"], ["padding"]),
        helper.make_node("Div", ["padding", "two"], ["middle"]),
        helper.make_node("Floor", ["middle"], ["before"]),
        helper.make_node("Sub", ["padding", "before"], ["behind"]),
        helper.make_node("Concat", ["before", "behind"], ["both"], axis=0),
        helper.make_node("Cast", ["both"], ["pads"], to=7),
        helper.make_node("Pad", ["x", "pads", "", "axes"], ["padded"]),
        helper.make_node("Conv", ["padded", "w"], ["c"], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {
        "one": np.float32(1), "two": np.float32(2), "three": np.float32(3), "none": np.float32(0),
        "axes": np.array([2, 3]), "w": draw((20, 5, 3, 3), 1),
    }  # fmt: skip
    shapes = {"x": ["n", 5, "h", "w"]}
    feeds = feeds_of((1, 5, 9, 14))
    agree_over(nodes, feeds, "", shapes, constants=constants, outputs=["y"], length=45)
