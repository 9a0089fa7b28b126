"""Winograd's algorithm over one axis and two: exact on paper, near in float32, pooled in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.native.rules.convolution import choose
from hagane.native.rules.convolution.filtering import axis, combine, sizes_of, transform
from hagane.native.rules.convolution.winograd_sizes import Shape, tile_size
from hagane.native.tiles.contraction import Pool
from tests.native.agreement import agree_over
from tests.native.models import RUNNABLE, compare, compiled, draw, every_level, model, session
from tests.native.test_shapes_rounding import largest_error

KERNELS = [(3, 3), (5, 5), (1, 3), (3, 1), (1, 5), (5, 1), (1, 7), (7, 1)]


def forms() -> Iterator[tuple[tuple[int, int], int]]:
    """Yield every kernel with every size of tiles that there is for it."""
    for kernel in KERNELS:
        for size in Shape(1, 16, 16, 8, 8, kernel).sizes:
            yield kernel, size


every_form = pytest.mark.parametrize(("kernel", "size"), list(forms()))


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that has tiles of one size used wherever they can be."""

    def to(size: int) -> None:
        monkeypatch.setattr(
            choose, "tile_size", lambda shape, *_, **__: size if size in shape.sizes else 0
        )

    return to


def chain(
    kernel: tuple[int, int], shape: tuple[int, ...], then: str = ""
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a convolution with a bias, a sum and bounds, perhaps pooled."""
    taps = kernel if len(shape) == 4 else kernel[1:]
    pads = [k // 2 for k in taps] * 2
    weights = {"w": draw((40, shape[1], *taps), 1) / np.float32(20), "b": draw((40,), 3)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads)]
    if then:
        window = [2] * len(taps)
        nodes += [
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node(then, ["r"], ["y"], kernel_shape=window, strides=window),
        ]
    else:
        nodes += [
            helper.make_node("Conv", ["x", "w", "b"], ["d"], pads=pads),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Add", ["d", "r"], ["y"]),
        ]
    x = draw(shape)
    return model(nodes, {"x": x}, constants=weights), {"x": x}


@every_form
def test_filters_are_found_from_their_points(kernel: tuple[int, int], size: int) -> None:
    taps = max(kernel)
    found = axis(size, taps)
    x, w = np.random.default_rng(0).standard_normal((2, found.side))
    points = np.array(found.weight) @ w[:taps] * (np.array(found.input) @ x)
    exact = [x[i : i + taps] @ w[:taps] for i in range(size)]
    np.testing.assert_allclose(np.array(found.output) @ points, exact, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("then", ["", "MaxPool", "AveragePool"])
@every_level
@every_form
def test_winograd_equals_its_reference(
    kernel: tuple[int, int], size: int, level: str, then: str, force: Any
) -> None:
    force(size)
    # Large tiles lose about two bits of what the direct form keeps; results reach 8.
    compare(*chain(kernel, (2, 20, 19, 14), then), level, atol=1e-4)
    if kernel[0] == 1:
        compare(*chain(kernel, (2, 20, 37), then), level, atol=1e-4)


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("size", [2, 4])
@every_level
def test_weights_that_vary_are_transformed_in_each_run(
    level: str, size: int, operator: str, force: Any
) -> None:
    force(size)
    shape = (40, 20, 3, 3) if operator == "Conv" else (20, 40, 3, 3)
    x, w = draw((3, 20, 9, 14)), draw(shape, 1) / np.float32(20)
    nodes = [
        helper.make_node("Tanh", ["w"], ["t"]),
        helper.make_node(operator, ["x", "t", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    feed = {"x": x, "w": w, "b": draw((40,), 3)}
    proto = model(nodes, feed, shapes={"x": ("n", 20, 9, 14)})
    compare(proto, feed, level, atol=1e-4)
    kernels = session(proto, instructions=level)._programs.general.parts()
    assert any("(input transform)" in str(part.segment.kernels) for part in kernels)


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_weights_of_signals_that_vary_are_transformed_too(operator: str, force: Any) -> None:
    force(2)
    shape = (40, 20, 3) if operator == "Conv" else (20, 40, 3)
    feed = {"x": draw((3, 20, 29)), "w": draw(shape, 1) / np.float32(20)}
    nodes = [helper.make_node(operator, ["x", "w"], ["y"], pads=[1, 1])]
    compare(model(nodes, feed), feed, RUNNABLE[0], atol=1e-4)


@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 0, 0, 0], [2, 0, 1, 1]])
@every_level
def test_borders_may_differ(level: str, pads: list[int], force: Any) -> None:
    force(4)
    x, w = draw((2, 48, 17, 12)), draw((40, 48, 3, 3), 1) / np.float32(20)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=pads)]
    compare(model(nodes, {"x": x}, constants={"w": w}), {"x": x}, level, atol=1e-4)


@pytest.mark.parametrize("length", [1, 5, 40])
@every_level
def test_an_image_of_one_column_is_one_of_one_row(level: str, length: int, force: Any) -> None:
    force(4)
    compare(*chain((5, 1), (2, 30, length, 1)), level, atol=1e-4)
    if length > 1:
        x, w = draw((1, 17, length, 1)), draw((20, 17, 3, 1), 1)
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 0, 1, 0]),
            helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[2, 1], strides=[2, 1]),
        ]
        compare(model(nodes, {"x": x}, constants={"w": w}), {"x": x}, level, atol=1e-4)


@every_level
@every_form
def test_rounding_loses_little_more_than_one_digit_in_seven(
    kernel: tuple[int, int], size: int, level: str, force: Any
) -> None:
    force(size)
    x, w = np.abs(draw((1, 64, 28, 28))), draw((64, 64, *kernel), 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[k // 2 for k in kernel] * 2)]
    assert largest_error(nodes, {"x": x}, {"w": w}, level) < 3e-6


@pytest.mark.skipif("avx512" not in RUNNABLE, reason="a rule for wide vectors")
def test_whole_windows_are_pooled_as_tiles_are_stored(
    monkeypatch: pytest.MonkeyPatch, force: Any
) -> None:
    force(4)
    proto, feed = chain((3, 3), (1, 32, 28, 28), "MaxPool")
    made = compiled(monkeypatch, lambda: session(proto, instructions="avx512").run(None, feed))
    labels = [kernel.label for kernel in made]
    assert any("output transform" in label for label in labels)
    assert not any(label.startswith("MaxPool") for label in labels)
    shape = Shape(1, 16, 16, 28, 28, (3, 3))
    assert shape.pools(4, Pool(2, 4, 14, 7, True))
    assert not shape.pools(4, Pool(3, 3, 9, 9, True))


def test_sizes_are_those_that_there_are_points_for() -> None:
    assert sizes_of(3) == (2, 4)
    assert sizes_of(5) == (2, 4)
    assert sizes_of(7) == (2,)
    assert Shape(1, 64, 64, 28, 28, (5, 5)).sizes == (2,)
    assert Shape(1, 64, 64, 28, 28, (3, 5)).sizes == ()
    assert Shape(1, 64, 64, 28, 28, (1, 1)).sizes == ()
    assert Shape(1, 64, 64, 28, 28, (9, 9)).sizes == ()


def test_large_layers_are_transformed_and_small_ones_are_not() -> None:
    assert tile_size(Shape(1, 256, 256, 28, 28, (3, 3)), 1) == 4
    assert tile_size(Shape(1, 256, 512, 1, 2048, (1, 5)), 2) == 4
    assert tile_size(Shape(1, 8, 64, 28, 28, (3, 3)), 1) == 0
    assert tile_size(Shape(1, 16, 16, 4, 4, (3, 3)), 1) == 0


def computed(lines: list[str], vectors: dict[str, float]) -> dict[str, float]:
    """Return what C statements declare, on numbers."""
    names: dict[str, Any] = dict(vectors)
    names |= {"v_fma": lambda a, b, c: a * b + c, "v_set1": lambda x: x}
    for line in lines:
        name, text = re.fullmatch(r"vf (\w+) = (.*);", line).groups()  # type: ignore[union-attr]
        text = re.sub(r"0x[\d.a-f]+p[+-]\d+f", lambda m: repr(float.fromhex(m[0][:-1])), text)
        names[name] = eval(text, {}, names)
    return names


@every_form
@pytest.mark.parametrize("which", ["input", "output"])
def test_shared_parts_of_a_transform_add_up_to_its_product(
    kernel: tuple[int, int], size: int, which: str
) -> None:
    found = axis(size, max(kernel))
    matrix = np.array(getattr(found, which))
    x = np.random.default_rng(0).standard_normal(found.side)
    vectors = {f"d{i}": float(value) for i, value in enumerate(x)}
    made = [f"e{i}" for i in range(len(matrix))]
    names = computed(transform(getattr(found, which), list(vectors), made), vectors)
    np.testing.assert_allclose([names[name] for name in made], matrix @ x, rtol=1e-6, atol=1e-6)


def test_sums_of_multiples_begin_with_a_plain_term() -> None:
    assert combine((-1, 0, 1), "abc") == "(c) - a"
    assert combine((2, -1), "ab") == "(a * 0x1.0000000000000p+1f) - b"
    assert combine((0, 0.5, 1), "abc") == "v_fma(b, v_set1(0x1.0000000000000p-1f), c)"


@pytest.mark.parametrize(("kernel", "size"), list(forms())[::2])
def test_tiles_of_images_of_any_size(force: Any, kernel: tuple[int, int], size: int) -> None:
    force(size)
    pads = [k // 2 for k in kernel] * 2
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[*pads[:2], 0, 0]),
        helper.make_node("Conv", ["x", "u"], ["s"], pads=[*pads[:2], 0, 0]),
        helper.make_node("Add", ["d", "s"], ["y"]),
    ]
    constants = {
        "w": draw((40, 21, *kernel), 1) / np.float32(20),
        "b": draw((40,), 3),
        "v": draw((24, 40, *kernel), 2) / np.float32(20),
        "u": draw((24, 21, *kernel), 4) / np.float32(20),
    }
    sizes = [(1, 9, 9), (3, 8, 21), (1, 30, 7), (2, 7, 40), (1, 16, 16)]
    feeds = [{"x": draw((n, 21, h, w), h)} for n, h, w in sizes]
    agree_over(
        nodes, feeds, RUNNABLE[0], {"x": ["n", 21, "h", "w"]},
        constants=constants, outputs=["r", "y"], length=400,
    )  # fmt: skip


@every_level
@pytest.mark.parametrize("names", [["n", 21, 11, "w"], ["n", 21, "h", 6], [1, 21, "h", "h"]])
def test_tiles_of_images_of_which_some_sizes_are_numbers(
    force: Any, level: str, names: list[int | str]
) -> None:
    force(4)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    feeds = [
        {"x": draw(tuple(each.get(d, d) if isinstance(d, str) else d for d in names), 2)}
        for each in ({"n": 1, "h": 5, "w": 5}, {"n": 3, "h": 18, "w": 33})
    ]
    constants = {"w": draw((40, 21, 3, 3), 1) / np.float32(20)}
    agree_over(nodes, feeds, level, {"x": names}, constants=constants, length=400)


def test_signals_of_any_length_are_tiled(force: Any) -> None:
    force(4)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2, 2])]
    feeds = [{"x": draw((n, 17, length), length)} for n, length in ((1, 5), (2, 64), (1, 301))]
    constants = {"w": draw((33, 17, 5), 1) / np.float32(20)}
    agree_over(nodes, feeds, RUNNABLE[0], {"x": ["n", 17, "l"]}, constants=constants, length=400)


def test_an_image_of_open_sizes_is_tiled_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])]
    x, w = draw((1, 64, 56, 56)), draw((64, 64, 3, 3), 1)
    proto = model(nodes, {"x": x}, constants={"w": w}, shapes={"x": [1, 64, "h", "w"]})
    kernels = compiled(monkeypatch, lambda: session(proto))
    assert any("input transform" in kernel.label for kernel in kernels)
