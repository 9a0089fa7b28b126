"""Kernels that take lines, rows and squares of elements at once, at sizes around theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.native.written import check, node

RNG = np.random.default_rng(0)


def draw(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (RNG.standard_normal(shape) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_axes_change_places_at_every_size(dtype: str) -> None:
    shapes = [(1, 1, 1), (2, 3, 4), (3, 8, 16), (2, 17, 25), (1, 70, 3), (1, 4, 300)]
    feeds = [{"x": draw(*shape, dtype=dtype)} for shape in shapes]
    check(node("Transpose", ["x"], perm=[0, 2, 1]), feeds)


def test_the_best_are_chosen_among_equal_and_odd_numbers() -> None:
    feeds = []
    for lines, n, k in [(3, 40, 16), (3, 70, 17), (1, 700, 60), (2, 33, 33), (5, 1000, 3)]:
        x = np.round(draw(lines, n))
        x[:, ::7], x[:, 3::11], x[:, 5::13] = np.nan, np.inf, -np.inf
        feeds.append({"x": x, "k": np.array([k])})
    for largest in (0, 1):
        check(node("TopK", ["x", "k"], ["y", "i"], largest=largest), feeds, fixed=["k"])
    across = [{"x": feed["x"].T.copy(), "k": feed["k"]} for feed in feeds]
    check(node("TopK", ["x", "k"], ["y", "i"], axis=0), across, fixed=["k"])


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
def test_the_first_and_the_last_of_the_best_are_found(operator: str) -> None:
    feeds = []
    for shape in [(2, 1, 3), (3, 64, 2), (2, 130, 65), (1, 200, 1)]:
        x = np.round(draw(*shape))
        x[:, shape[1] // 2 :, 0] = np.nan
        feeds += [{"x": np.round(draw(*shape))}, {"x": x}]
    for last in (0, 1):
        for axis in (1, 2):
            check(node(operator, ["x"], axis=axis, select_last_index=last), feeds)


def test_the_first_of_the_largest_becomes_one() -> None:
    feeds = []
    for shape in [(2, 1, 3), (3, 64, 2), (2, 130, 65), (1, 200, 1), (2, 0, 3)]:
        x = np.round(draw(*shape))
        x[:, shape[1] // 2 :, 0] = np.nan
        feeds += [{"x": np.round(draw(*shape))}, {"x": x}]
    for axis in (1, 2):
        check(node("Hardmax", ["x"], axis=axis), feeds)


def test_every_16_bit_float_is_read_and_written_as_it_is() -> None:
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    check(
        node("CumSum", ["x", "axis"]), [{"x": every[:, None], "axis": np.array(1)}], fixed=["axis"]
    )
    pairs = np.stack([every, np.roll(every, 777)], axis=1)  # rounded, to denormals and infinity too
    with np.errstate(over="ignore", invalid="ignore"):
        check(node("ReduceProd", ["x"], axes=[1]), [{"x": pairs}], opset=17)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 0, 1]}),
        ("MaxPool", {"kernel_shape": [2, 3], "dilations": [1, 2], "ceil_mode": 1}),
        ("MaxPool", {"kernel_shape": [3, 3, 3], "strides": [2, 2, 2], "pads": [1] * 6}),
        ("MaxPool", {"kernel_shape": [5], "strides": [3], "auto_pad": "SAME_LOWER"}),
        ("MaxPool", {"kernel_shape": [1, 7, 2], "dilations": [1, 1, 3], "ceil_mode": 1}),
        (
            "AveragePool",
            {"kernel_shape": [2, 3, 9], "strides": [1, 2, 4], "pads": [1, 2, 8, 0, 1, 8]},
        ),
        ("LpPool", {"kernel_shape": [2, 2, 2], "auto_pad": "SAME_UPPER", "p": 3}),
        ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
        (
            "AveragePool",
            {"kernel_shape": [3], "strides": [2], "pads": [1, 1], "count_include_pad": 1},
        ),
        ("LpPool", {"kernel_shape": [2, 2], "p": 1}),
    ],
)
def test_windows_of_open_images_are_pooled(operator: str, attributes: dict[str, Any]) -> None:
    rank = len(attributes["kernel_shape"])
    shapes = [(1, 1, 7, 9, 8), (2, 3, 8, 10, 11), (1, 5, 9, 7, 40)]
    feeds = [{"x": draw(*shape[:2], *shape[5 - rank :])} for shape in shapes]
    check(node(operator, ["x"], **attributes), feeds, length=27)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_the_largest_of_no_elements_is_the_least_number(dtype: str) -> None:
    feeds = [
        {"x": RNG.integers(-100, -1, (2, 3, *size)).astype(dtype)} for size in [(3, 3), (4, 70)]
    ]
    for attributes in (
        {"kernel_shape": [2, 2], "dilations": [4, 4], "pads": [1] * 4},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "ceil_mode": 1},
    ):
        check(node("MaxPool", ["x"], **attributes), feeds)


def test_sums_run_along_lines_beside_and_behind_one_another() -> None:
    feeds = [{"x": draw(*shape), "a": np.array(1)} for shape in [(3, 5, 2), (20, 9, 1), (1, 4, 70)]]
    for more in ({}, {"exclusive": 1}, {"reverse": 1}):
        check(node("CumSum", ["x", "a"], **more), feeds, fixed=["a"], length=70)
        last = [{**feed, "a": np.array(-1)} for feed in feeds]
        check(node("CumSum", ["x", "a"], **more), last, fixed=["a"], length=70)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_pictures_of_many_channels_are_read_between_pixels(mode: str) -> None:
    feeds = [
        {"x": draw(2, channels, 7, 9), "g": np.tanh(draw(2, 5, points, 2)) * 1.2}
        for channels, points in [(7, 3), (16, 8), (37, 11)]
    ]
    for padding in ("zeros", "border", "reflection"):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": 1}
        check(node("GridSample", ["x", "g"], **attributes), feeds, fixed=["g:3"], length=64)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_states_of_heads_take_up_tokens(rule: str) -> None:
    """Columns of 32 at once and fewer, two queries a head, gates for heads and for features."""
    fixed = ["q:2", "k:2", "v:2", "p:1", "p:2", "p:3", "g:2", "b:2"]
    for size, gates, rates in [(35, 2, 2), (64, 12, 1)]:
        feeds = []
        for batch, steps in [(1, 1), (2, 5)]:
            feed = {
                "q": draw(batch, steps, 24), "k": draw(batch, steps, 12) / 6,
                "v": draw(batch, steps, 2 * size), "p": draw(batch, 2, 6, size),
                "g": -np.abs(draw(batch, steps, gates)),
                "b": np.abs(draw(batch, steps, rates)) / 6,
            }  # fmt: skip
            unused = ("" if rule.startswith("gated") else "g", "" if "delta" in rule else "b")
            feeds.append({key: item for key, item in feed.items() if key not in unused})
        inputs = [name if name in feeds[0] else "" for name in "qkvpgb"]
        made = node(
            "LinearAttention", inputs, ["y", "s"], q_num_heads=4, kv_num_heads=2, update_rule=rule
        )
        check(
            made, feeds, fixed=[each for each in fixed if each[0] in feeds[0]], length=99, opset=28
        )


@pytest.mark.long
@pytest.mark.parametrize(("group", "moves"), [(1, 1), (1, 2), (4, 2)])
def test_moved_taps_of_groups_are_multiplied(group: int, moves: int) -> None:
    feeds = [
        {
            "x": draw(1, 4, *size), "w": draw(20, 4 // group, 2, 1),
            "o": draw(1, 4 * moves, *size) / 3, "b": draw(20), "m": draw(1, 2 * moves, *size),
        }
        for size in [(3, 3), (2, 17)]
    ]  # fmt: skip
    attributes = {"pads": [1, 0, 0, 0], "group": group, "offset_group": moves}
    made = node("DeformConv", ["x", "w", "o", "b", "m"], **attributes)
    check(made, feeds, fixed=["w", "x:1", "o:1", "m:1", "b"], length=32)


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
def test_whole_numbers_are_divided_as_numpy_does(operator: str, dtype: str) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.min, limits.max, 7, 0, limits.min + 1, 100], dtype)
    b = np.array([3, limits.max, 2, 5, limits.max, 99], dtype)
    if limits.min < 0:
        a, b = np.concatenate([a, a, -a[2:]]), np.concatenate([b, -b, b[2:]])
    check(node(operator, ["a", "b"]), [{"a": a, "b": b}])


def test_operands_repeat_along_the_last_axis() -> None:
    shapes = [((4, 6), (4, 1), (1, 6)), ((3, 40), (1, 40), (3, 1)), ((2, 5), (2, 5), (2, 5))]
    for dtype in ("float32", "int64"):
        feeds = [
            {name: draw(*shape, dtype=dtype) for name, shape in zip("abc", each, strict=True)}
            for each in shapes
        ]
        check(node("Max", ["a", "b", "c"]), feeds)


def test_halves_of_a_triangle_stay() -> None:
    feeds = [{"x": draw(2, *shape), "k": np.array(k)} for shape, k in [((5, 7), 2), ((6, 3), -9)]]
    for upper in (0, 1):
        check(node("Trilu", ["x", "k"], upper=upper), feeds, fixed=["k"])


def test_products_of_doubles_fill_tiles_and_less() -> None:
    feeds = [
        {"a": draw(2, m, k, dtype="float64"), "b": draw(k, n, dtype="float64")}
        for m, k, n in [(1, 1, 1), (7, 9, 17), (100, 5, 33)]
    ]
    check(node("MatMul", ["a", "b"]), feeds, length=9)


def test_truth_values_are_read_and_written_in_vectors() -> None:
    feeds = [{"a": draw(n), "b": draw(n)} for n in (1, 15, 16, 33)]
    check([node("Less", ["a", "b"], ["c"]), node("Where", ["c", "a", "b"])], feeds)
    check(node("Cast", ["a"], to=TensorProto.BOOL), [{"a": np.round(f["a"])} for f in feeds])
