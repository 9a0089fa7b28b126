"""Products in bfloat16: chosen by the caller only, and exactly what rounding the factors gives."""

from __future__ import annotations

import logging
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.errors import InvalidArgument
from hagane.machine import cpu_features
from tests.drawing import few
from tests.native.models import RUNNABLE, convolutions_and_sums, model

needs_bf16 = pytest.mark.skipif(
    "avx512_bf16" not in cpu_features(), reason="this processor has no products of bfloat16"
)
FEW = few(6)
# The levels that have such products: in matrix tiles, and in vectors.
paired_levels = pytest.mark.parametrize(
    "level", [name for name in RUNNABLE if name in ("amx", "avx512")]
)


def session(proto: onnx.ModelProto, precision: Any = "bf16", **entries: Any) -> Any:
    options = hagane.SessionOptions()
    options.precision = precision
    options.intra_op_num_threads = 2
    for key, value in entries.items():
        options.add_session_config_entry(f"hagane.{key}", value)
    made = hagane.InferenceSession(proto, options)
    # Reference kernels would take over silently, and are near enough for some of the tests.
    assert made._programs.native or "engine" in entries, "the kernels could not be compiled"
    return made


def draw(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16).astype(np.float32)


@needs_bf16
@paired_levels
@FEW
@given(st.integers(1, 70), st.integers(1, 150), st.integers(1, 90), st.booleans())
def test_a_product_is_that_of_rounded_factors(
    level: str, m: int, half: int, n: int, dynamic: bool
) -> None:
    k = 2 * half
    x, w, b = draw((m, k)), draw((k, n), 1), draw((n,), 2)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Relu", ["q"], ["y"]),
    ]
    shapes = {"x": ["rows", k]} if dynamic else None
    proto = model(nodes, {"x": x}, constants={"w": w, "b": b}, shapes=shapes)
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    want = np.maximum(rounded(x).astype(np.float64) @ rounded(w) + b, 0)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@needs_bf16
@paired_levels
@FEW
@given(
    st.integers(1, 2), st.integers(5, 40), st.integers(1, 40), st.integers(3, 12),
    st.integers(3, 12), st.sampled_from([1, 3]), st.integers(1, 2), st.integers(0, 1),
)  # fmt: skip
def test_a_convolution_is_that_of_rounded_factors(
    level: str,
    images: int,
    channels: int,
    maps: int,
    high: int,
    wide: int,
    side: int,
    stride: int,
    pad: int,
) -> None:
    x, w = draw((images, channels, high, wide)), draw((maps, channels, side, side), 1)
    conv = helper.make_node(
        "Conv", ["x", "w", "b"], ["c"], strides=[stride] * 2, pads=[pad] * 4, name="conv"
    )
    constants = {"w": w, "b": draw((maps,), 2), "w2": draw((7, maps, 1, 1), 3)}
    nodes = [
        conv,
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["y"], name="second"),
    ]
    proto = model(nodes, {"x": x}, constants=constants)
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    exact = model(nodes[:2], {"x": x}, ["r"], {**constants, "w": rounded(w)})
    (first,) = session(exact, "fp32", engine="reference").run(None, {"x": rounded(x)})
    last = np.einsum("nchw,oc->nohw", first.astype(np.float64), constants["w2"][:, :, 0, 0])
    scale = np.abs(last).max() + 1
    assert np.abs(got - last).max() <= 2.0**-6 * scale


@needs_bf16
def test_fp32_is_the_default_and_bf16_changes_results_only_a_little() -> None:
    x, w = draw((64, 256)), draw((256, 128), 1)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, constants={"w": w})
    (plain,) = hagane.InferenceSession(proto).run(None, {"x": x})
    (fp32,) = session(proto, "fp32").run(None, {"x": x})
    (bf16,) = session(proto).run(None, {"x": x})
    np.testing.assert_array_equal(plain, fp32)
    assert not np.array_equal(plain, bf16)
    assert np.abs(plain - bf16).max() < 0.01 * np.abs(plain).max()


@needs_bf16
@paired_levels
@pytest.mark.parametrize("groups", [2, 3])
def test_groups_of_whole_blocks_are_paired_too(level: str, groups: int) -> None:
    x, w = draw((1, 32 * groups, 9, 9)), draw((32 * groups, 32, 3, 3), 1)
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[1] * 4)
    proto = model([node], {"x": x}, constants={"w": w})
    exact = model([node], {"x": x}, constants={"w": rounded(w)})
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    (want,) = session(exact, "fp32", engine="reference").run(None, {"x": rounded(x)})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.long
@needs_bf16
@paired_levels
@FEW
@given(
    st.integers(1, 2), st.integers(5, 70), st.integers(5, 70), st.integers(5, 20),
    st.integers(5, 20), st.sampled_from([(1, 1), (1, 3), (3, 3), (5, 2)]), st.integers(1, 2),
)  # fmt: skip
def test_sums_of_convolutions_are_close_to_those_of_fp32(
    level: str, images: int, channels: int, maps: int, high: int, wide: int,
    kernel: tuple[int, int], dilation: int,
) -> None:  # fmt: skip
    """Images are kept in bfloat16 between convolutions, and are added to results as they are."""
    proto, x = convolutions_and_sums(images, channels, maps, (high, wide), kernel, dilation)
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    (want,) = session(proto, "fp32", engine="reference").run(None, {"x": x})
    assert np.abs(got - want).max() <= 0.03 * np.abs(want).max()


@needs_bf16
@paired_levels
@FEW
@given(
    st.integers(1, 2), st.integers(1, 4), st.integers(5, 40), st.integers(3, 40),
    st.integers(3, 40), st.sampled_from([(1, 1), (3, 3), (7, 7), (2, 19)]), st.integers(1, 3),
    st.booleans(),
)  # fmt: skip
def test_a_convolution_of_few_channels_is_that_of_fp32_but_for_rounding(
    level: str, images: int, channels: int, maps: int, high: int, wide: int,
    kernel: tuple[int, int], stride: int, last: bool,
) -> None:  # fmt: skip
    kh, kw = kernel
    x = draw((images, high, wide, channels) if last else (images, channels, high, wide))
    w = draw((maps, channels, kh, kw), 1)
    pads = [kh // 2, kw // 2, kh - 1 - kh // 2, kw - 1 - kw // 2]
    conv = helper.make_node(
        "Conv", ["t" if last else "x", "w"], ["y"], pads=pads, strides=[stride] * 2
    )
    turn = helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2])
    proto = model([turn, conv] if last else [conv], {"x": x}, constants={"w": w})
    exact = model([turn, conv] if last else [conv], {"x": x}, constants={"w": rounded(w)})
    (got,) = session(proto, instructions=level).run(None, {"x": x})
    if level == "amx" and maps > 8:
        (want,) = session(exact, "fp32", engine="reference").run(None, {"x": rounded(x)})
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)
    else:
        (want,) = session(proto, "fp32", engine="reference").run(None, {"x": x})
        np.testing.assert_allclose(got, want, rtol=0.03, atol=0.03 * np.abs(want).max())


@needs_bf16
@paired_levels
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("wide", [64, 80])
@pytest.mark.parametrize("operator", ["Gelu", "Relu", "Tanh", "Identity"])
def test_what_lies_between_two_products_is_computed_with_the_first(
    level: str, operator: str, wide: int, dynamic: bool
) -> None:
    x, w1, w2 = draw((3, 15, 48)), draw((48, wide), 1) / 7, draw((wide, 24), 2) / 9
    w3 = draw((48, 24), 3)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node(operator, ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "w2"], ["e"]),
        helper.make_node("MatMul", ["x", "w3"], ["f"]),
        helper.make_node("Add", ["e", "f"], ["y"]),
    ]
    constants = {"w1": w1, "b": draw((wide,), 4), "w2": w2, "w3": w3}
    shapes = {"x": ["batch", "tokens", 48]} if dynamic else None
    proto = model(nodes, {"x": x}, constants=constants, shapes=shapes)
    made = session(proto, instructions=level)
    for rows in (15, 4) if dynamic else (15,):
        part = np.ascontiguousarray(x[:, :rows])
        (got,) = made.run(None, {"x": part})
        (want,) = session(proto, "fp32", engine="reference").run(None, {"x": part})
        assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()
    if level == "amx" and wide % 32 == 0:
        names = [kernel.name for kernel in made.profile({"x": x}, runs=1).kernels]
        assert len([name for name in names if name.startswith("MatMul")]) == 3
        assert not any(name.startswith(operator) for name in names)


@needs_bf16
@paired_levels
def test_what_fills_the_last_block_does_not_count(level: str) -> None:
    """A product that is not a number must stay in its row, whatever lay in memory before."""
    x, w = draw((20, 48)), draw((48, 40), 1)
    w2 = draw((40, 8), 2)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Sqrt", ["h"], ["s"]),
        helper.make_node("MatMul", ["s", "w2"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants={"w": np.abs(w), "w2": w2})
    made = session(proto, instructions=level)
    x = np.abs(x)
    x[:3] *= -1
    for _ in range(2):
        (got,) = made.run(None, {"x": x})
        assert np.isnan(got[:3]).all()
        assert np.isfinite(got[3:]).all()


def test_a_level_without_such_products_says_so_and_runs_in_fp32(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x, w = draw((5, 32)), draw((32, 16), 1)
    proto = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, constants={"w": w})
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = session(proto, instructions="portable")
    assert "no products of bfloat16 (avx512_bf16): the model runs in fp32" in caplog.text
    (got,) = made.run(None, {"x": x})
    np.testing.assert_allclose(got, x @ w, rtol=1e-5, atol=1e-5)


def test_another_precision_is_refused() -> None:
    x = draw((2, 2))
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": x})
    with pytest.raises(InvalidArgument, match=r"precision: expected 'fp32' or 'bf16', got 'int8'"):
        session(proto, "int8")


@needs_bf16
@paired_levels
@pytest.mark.parametrize("operator", ["LeakyRelu", "Sigmoid", "HardSwish", "Elu", "Tanh", "Neg"])
@pytest.mark.parametrize("channels", [3, 40])
def test_a_function_of_a_convolution_is_computed_with_it(
    level: str, operator: str, channels: int
) -> None:
    x = draw((2, channels, 9, 10))
    w, w2 = draw((24, channels, 3, 3), 1) / 9, draw((8, 24, 1, 1), 2)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
        helper.make_node(operator, ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2]),
        helper.make_node("Conv", ["c", "w2"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants={"w": w, "w2": w2})
    made = session(proto, instructions=level)
    (got,) = made.run(None, {"x": x})
    (want,) = session(proto, "fp32", engine="reference").run(None, {"x": x})
    assert np.abs(got - want).max() <= 0.02 * np.abs(want).max()
    if level == "amx":
        names = [kernel.name for kernel in made.profile(runs=1).kernels]
        assert not any(name.startswith(operator) for name in names)
