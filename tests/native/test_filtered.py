"""Convolution into few channels by Winograd's algorithm along columns."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from hagane.machine import LEVELS as MACHINE_LEVELS
from tests.drawing import few
from tests.native.models import RUNNABLE, compare, compiled, draw, every_level, model, session
from tests.native.test_shapes_rounding import largest_error

LEVELS = [name for name in RUNNABLE if name != "amx"]


@few(8)
@given(
    st.sampled_from(LEVELS), st.integers(1, 2), st.integers(1, 9), st.integers(1, 16),
    st.integers(4, 40), st.integers(8, 90), st.sampled_from([3, 5, 7]),
    st.sampled_from([1, 2, 5, 11]), st.integers(1, 2), st.tuples(*[st.integers(0, 3)] * 4),
    st.sampled_from(["", "MaxPool", "AveragePool"]), st.tuples(*[st.integers(1, 3)] * 2),
)  # fmt: skip
def test_all_sizes_equal_the_reference(
    level: str, images: int, channels: int, maps: int, high: int, wide: int, kh: int, kw: int,
    dilation: int, pads: tuple[int, ...], pool: str, window: tuple[int, int],
) -> None:  # fmt: skip
    high, wide = max(high, kh + window[0]), max(wide, (kw - 1) * dilation + 1 + window[1])
    x, w = draw((images, channels, high, wide)), draw((maps, channels, kh, kw), 1)
    w /= np.float32(np.sqrt(channels * kh * kw))
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads, dilations=[1, dilation]),
        helper.make_node("Clip", ["c", "low", "high"], ["r" if pool else "y"]),
    ]
    if pool:
        nodes.append(helper.make_node(pool, ["r"], ["y"], kernel_shape=window, strides=window))
    bounds = {"low": np.float32(-2).reshape(()), "high": np.float32(1.5).reshape(())}
    proto = model(nodes, {"x": x}, constants={"w": w, "b": draw((maps,), 2), **bounds})
    compare(proto, {"x": x}, level, rtol=1e-4, atol=2e-4)


@every_level
@pytest.mark.parametrize(
    ("pool", "window"), [("MaxPool", (2, 5)), ("MaxPool", (1, 11)), ("AveragePool", (3, 9))]
)
def test_pools_windows_of_many_columns_without_branches_on_numbers(
    pool: str, window: tuple[int, int], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = draw((2, 1, 28, 44)), draw((8, 1, 5, 5), 1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[2] * 4),
        helper.make_node(pool, ["c"], ["y"], kernel_shape=window, strides=window),
    ]
    proto = model(nodes, {"x": x}, constants={"w": w})
    made = compiled(monkeypatch, lambda: compare(proto, {"x": x}, level, rtol=1e-4, atol=2e-4))
    assert not any("s_max" in kernel.code for kernel in made)


@every_level
@pytest.mark.parametrize("kernel", [(3, 39), (5, 5), (7, 3), (3, 1)])
def test_rounding_loses_little_more_than_one_digit_in_seven(
    kernel: tuple[int, int], level: str
) -> None:
    x, w = np.abs(draw((1, 8, 60, 100))), draw((6, 8, *kernel), 1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[k // 2 for k in kernel] * 2)]
    assert largest_error(nodes, {"x": x}, {"w": w}, level) < 3e-6


def test_what_is_not_finite_spoils_no_more_than_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """An infinity makes rows of a tile no numbers; results further away are not touched."""
    x, w = draw((1, 2, 40, 40)), draw((4, 2, 5, 5), 1)
    x[0, 1, 20, 20] = np.inf
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2] * 4)]
    proto = model(nodes, {"x": x}, constants={"w": w})
    results: list[np.ndarray] = []
    made = compiled(
        monkeypatch,
        lambda: results.extend(session(proto, instructions=LEVELS[0]).run(None, {"x": x})),
    )
    assert any("Conv" in kernel.label for kernel in made)
    spoilt = np.argwhere(~np.isfinite(results[0]).all(axis=(0, 1)))
    assert spoilt[:, 0].min() >= 16
    assert spoilt[:, 0].max() < 28
    assert np.abs(spoilt[:, 1] - 20).max() == 2


def test_few_rows_or_strides_take_other_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    from hagane.native.rules.convolution import choose
    from hagane.native.rules.convolution.filtering import axis

    asked: list[object] = []
    found = choose.filtered_axis
    monkeypatch.setattr(
        choose, "filtered_axis", lambda *given: asked.append(found(*given)) or found(*given)
    )

    def form(
        size: tuple[int, int], maps: int, kernel: tuple[int, int], **attributes: object
    ) -> object:
        asked.clear()
        x, w = draw((1, 3, *size)), draw((maps, 3, *kernel), 1)
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], **attributes)]
        session(model(nodes, {"x": x}, constants={"w": w}), instructions=LEVELS[0])
        return asked[-1]

    lanes = next(level.lanes for level in MACHINE_LEVELS if level.name == LEVELS[0])
    few = lanes // 2
    assert form((64, 64), few, (5, 5)) == axis(4, 5)
    assert form((64, 64), few, (3, 3)) == (axis(4, 3) if lanes == 16 else None)
    assert form((64, 64), few, (5, 5), strides=[2, 1]) is None
    assert form((64, 64), few, (5, 5), dilations=[2, 1]) is None
    assert form((64, 64), few, (1, 5)) is None
    assert form((64, 64), 40, (5, 5)) is None
    assert form((5, 64), few, (5, 5)) is None


def test_small_programs_give_the_same_however_often_they_run() -> None:
    """After some runs in a row workers are woken, and after a pause they sleep again."""
    x, v, w = draw((1, 1, 28, 28)), draw((8, 1, 5, 5), 1), draw((16, 8, 5, 5), 2)
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[2] * 4),
        helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["b", "w"], ["c"], pads=[2] * 4),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[3, 3], strides=[3, 3]),
    ]
    proto = model(nodes, {"x": x}, constants={"v": v, "w": w})
    (want,) = session(proto, threads=1).run(None, {"x": x})
    made = [session(proto, threads=2) for _ in range(2)]

    def run_often(which: int) -> None:
        for _ in range(4):
            for _ in range(300):
                (got,) = made[which].run(None, {"x": x})
                np.testing.assert_array_equal(got, want)
            time.sleep(0.002)

    run_often(0)
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(run_often, which) for which in (0, 0, 1)]:
            done.result()
