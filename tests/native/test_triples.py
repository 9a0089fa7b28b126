"""Float32 in matrix tiles, cut into three bfloat16: as exact as vectors, infinities included."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from onnx import helper

from hagane.native.lowering.facts import Facts
from hagane.native.rules.convolution import choose
from hagane.native.rules.products import matrix
from hagane.native.tiles.triples import splits, tiles_of_image
from tests.drawing import few
from tests.native.models import RUNNABLE, convolutions_and_sums, draw, model, session

needs_tiles = pytest.mark.skipif("amx" not in RUNNABLE, reason="no matrix tiles on this processor")
FEW = few(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
# Half a unit in the last place of a float32, and how many of them a sum may be off by.
HALF, OFF = 2.0**-24, 16
TOLERANCE = {"fp32": 4e-6, "bf16": 3e-2}
SPECIAL = [np.inf, -np.inf, np.nan, 3.4e38, -3.4028235e38, 1e-42, 0.0]


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all products that can be cut into pieces be, however small."""
    for rule in (choose, matrix):
        monkeypatch.setattr(rule, "splits", lambda *_, **__: True)
    monkeypatch.setattr(choose, "winograd_size", lambda *_: 0)


def run(proto: onnx.ModelProto, x: np.ndarray, level: str = "amx", **entries: Any) -> np.ndarray:
    made = session(proto, instructions=level, **entries)
    (got,) = made.run(None, {"x": x})
    assert made._programs.native, "the kernels could not be compiled"
    return np.asarray(got)


def product(w: np.ndarray, x: np.ndarray, *then: onnx.NodeProto, **more: np.ndarray) -> Any:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p" if then else "y"]), *then]
    return model(nodes, {"x": x}, constants={"w": w, **more})


@needs_tiles
@FEW
@given(st.integers(4, 700), st.integers(1, 300), st.integers(1, 200), st.integers(-30, 30))
def test_a_product_is_off_by_no_more_than_one_in_float32_may_be(
    m: int, k: int, n: int, power: int
) -> None:
    x, w = draw((m, k)) * np.float32(2.0**power), draw((k, n), 1)
    got = run(product(w, x), x)
    exact = x.astype(np.float64) @ w
    bound = np.abs(x).astype(np.float64) @ np.abs(w)
    assert (np.abs(got - exact) <= OFF * HALF * bound).all()


@needs_tiles
def test_long_sums_are_as_exact_as_those_of_vectors() -> None:
    x, w = draw((128, 3072)), draw((3072, 64), 1)
    exact = x.astype(np.float64) @ w
    errors = [np.abs(run(product(w, x), x, level) - exact).mean() for level in ("avx512", "amx")]
    assert errors[1] <= 1.5 * errors[0]


@needs_tiles
@FEW
@given(st.integers(4, 90), st.integers(1, 90), st.floats(2.0**-80, 2.0**120, width=32))
def test_no_bit_of_a_number_is_lost(m: int, k: int, scale: float) -> None:
    x = draw((m, k)) * np.float32(scale)
    np.testing.assert_array_equal(run(product(np.eye(k, dtype=np.float32), x), x), x)
    one = np.eye(k, dtype=np.float32)
    np.testing.assert_array_equal(run(product(x[:1].T * one, one), one)[0], (x[:1].T * one)[0])


@needs_tiles
@FEW
@given(
    st.integers(4, 80), st.integers(33, 90), st.integers(1, 70),
    st.lists(st.sampled_from(SPECIAL), max_size=6), st.booleans(),
)  # fmt: skip
def test_what_is_not_finite_comes_out_as_from_vectors(
    m: int, k: int, n: int, special: list[float], of_weights: bool
) -> None:
    x, w = draw((m, k)), draw((k, n), 1)
    changed = w if of_weights else x
    rng = np.random.default_rng(len(special))
    for number in special:
        changed[rng.integers(changed.shape[0]), rng.integers(changed.shape[1])] = number
    then = [helper.make_node("Add", ["p", "b"], ["y"])]
    proto = product(w, x, *then, b=draw((n,), 2))
    want, got = (run(proto, x, level) for level in ("avx512", "amx"))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    infinite = np.isinf(want)
    np.testing.assert_array_equal(got[infinite], want[infinite])
    np.testing.assert_array_equal(np.isinf(got), infinite)
    want, got = want[np.isfinite(want)], got[np.isfinite(want)]
    assert (np.abs(got - want) <= 1e-5 * np.abs(want).max(initial=1.0)).all()


@pytest.mark.long
@needs_tiles
@FEW
@given(
    st.integers(1, 2), st.integers(5, 70), st.integers(1, 70), st.integers(5, 40),
    st.integers(5, 40), st.sampled_from([(1, 1), (1, 3), (3, 3), (5, 2)]), st.integers(1, 2),
    st.integers(1, 2),
)  # fmt: skip
def test_convolutions_agree_with_those_of_vectors(
    images: int, channels: int, maps: int, high: int, wide: int,
    kernel: tuple[int, int], dilation: int, stride: int,
) -> None:  # fmt: skip
    """Small images lie in pieces between convolutions, large ones are split by their readers."""
    proto, x = convolutions_and_sums(
        images, channels, maps, (high, wide), kernel, dilation, stride=stride, between="LeakyRelu"
    )
    want, got = (run(proto, x, level) for level in ("avx512", "amx"))
    assert np.abs(got - want).max() <= 4e-6 * np.abs(want).max()


@needs_tiles
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("maps", "side"), [(48, 20), (9, 7), (40, 32)])
def test_what_fills_wide_blocks_is_added_to_nothing(precision: str, maps: int, side: int) -> None:
    """The last convolution reads blocks twice as wide as those that the sum before it adds."""
    proto, x = convolutions_and_sums(1, 37, maps, (side, side), (1, 1), 1, between="LeakyRelu")
    want = run(proto, x, "avx512")
    got = run(proto, x, precision=precision)
    assert np.abs(got - want).max() <= TOLERANCE[precision] * np.abs(want).max()


@needs_tiles
@pytest.mark.parametrize("level", ["avx512", "amx"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("function", ["Log", "Reciprocal"])
@pytest.mark.parametrize("maps", [21, 24, 37])
@pytest.mark.parametrize("side", [9, 30])
def test_what_fills_blocks_of_channels_need_not_stay_finite(
    level: str, precision: str, function: str, maps: int, side: int
) -> None:
    x = 1 + np.abs(draw((1, 40, side, side)))
    weights = {"v": np.abs(draw((maps, 40, 1, 1), 1)), "w": draw((20, maps, 3, 3), 2)}
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"]),
        helper.make_node(function, ["a"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Conv", ["b", "w"], ["d"], pads=[1] * 4),
        helper.make_node("Conv", ["c", "w"], ["e"], pads=[1] * 4),
        helper.make_node("Add", ["d", "e"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants=weights)
    want = run(proto, x, "avx2")
    got = run(proto, x, level, precision=precision)
    assert np.abs(got - want).max() <= TOLERANCE[precision] * np.abs(want).max()


@pytest.mark.long
@needs_tiles
@pytest.mark.parametrize("taps", [49, 600])
def test_long_filters_take_no_more_of_the_stack_than_there_is(taps: int) -> None:
    x, w = draw((1, 40, 1300)), draw((32, 40, taps), 1)
    proto = model([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": x}, constants={"w": w})
    want, got = (run(proto, x, level) for level in ("avx512", "amx"))
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@needs_tiles
@pytest.mark.parametrize(("groups", "side"), [(2, 9), (3, 30)])
def test_groups_of_whole_blocks_are_cut_too(groups: int, side: int) -> None:
    x, w = draw((1, 32 * groups, side, side)), draw((32 * groups, 32, 3, 3), 1)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[1] * 4)
    proto = model([node], {"x": x}, constants={"w": w})
    want, got = (run(proto, x, level) for level in ("avx512", "amx"))
    assert np.abs(got - want).max() <= 4e-6 * np.abs(want).max()


@pytest.mark.long
@needs_tiles
@FEW
@given(st.integers(1, 300), st.integers(33, 300), st.integers(2, 80), st.booleans())
def test_a_product_may_store_the_pieces_that_the_next_one_reads(
    m: int, k: int, half: int, last: bool
) -> None:
    n = 32 * half if last else 2 * half
    x, w, v = draw((m, k)), draw((k, n), 1) / np.float32(k), draw((n, 17), 2)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants={"w": w, "v": v})
    want, got = (run(proto, x, level) for level in ("avx512", "amx"))
    assert np.abs(got - want).max() <= 4e-6 * max(1.0, np.abs(want).max())


@needs_tiles
@pytest.mark.parametrize(("k", "n"), [(96, 64), (33, 17), (384, 160)])
def test_an_unknown_number_of_rows_goes_to_vectors_or_tiles(k: int, n: int) -> None:
    weights = {"w": draw((k, n), 1), "b": draw((n,), 2), "v": draw((n, 40), 3)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    proto = model(nodes, {"x": draw((3, k))}, constants=weights, shapes={"x": ["rows", k]})
    made = [session(proto, instructions=level) for level in ("avx512", "amx")]
    for m in (0, 1, 5, 23, 24, 31, 64, 100, 257, 600):
        x = draw((m, k), m)
        want, got = (each.run(None, {"x": x})[0] for each in made)
        assert all(each._programs.native for each in made)
        assert np.abs(got - want).max(initial=0) <= 4e-6 * np.abs(want).max(initial=1)


@needs_tiles
def test_large_products_are_cut_and_small_ones_are_not() -> None:
    from hagane.machine import level_named

    assert splits(1, 128, 768, (8, 768, 768), 768)
    assert not splits(1, 1, 768, (1, 768, 768), 768)
    assert not splits(1, 3136, 64, (196, 64, 16), 64)
    plain = Facts(level_named("avx512"), None, {}, frozenset())  # type: ignore[arg-type]
    assert not plain.words.pieces > 1


def test_tiles_run_on_over_ends_of_rows() -> None:
    assert tiles_of_image(7, 7, (1, 1), 7) == 4
    assert tiles_of_image(7, 7, (1, 1), 9) == 4
    assert tiles_of_image(1, 100, (1, 2), 200) == 7
