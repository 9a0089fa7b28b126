"""Models of 16-bit floats run natively: kept in 16 bits, computed with in 32."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.drawing import few
from tests.native.models import compare, every_level, model, refused, session

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
every_half = pytest.mark.parametrize("dtype", HALVES, ids=["float16", "bfloat16"])
# One unit in the last place, relative.
UNIT = {HALVES[0]: 2.0**-10, HALVES[1]: 2.0**-7}
TO = {HALVES[0]: TensorProto.FLOAT16, HALVES[1]: TensorProto.BFLOAT16}


def draw(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(proto: Any, feed: dict[str, np.ndarray], level: str, dtype: np.dtype[Any]) -> None:
    """Compare what both engines return, as float32 and within a unit in the last place."""
    made = session(proto, instructions=level)
    got = made.run(None, feed)
    want = session(proto, engine="reference").run(None, feed)
    for left, right in zip(got, want, strict=True):
        assert left.dtype == right.dtype
        wide = right.astype(np.float32)
        scale = max(1e-3, float(np.abs(wide[np.isfinite(wide)]).max(initial=0)))
        np.testing.assert_allclose(
            left.astype(np.float32), wide, rtol=UNIT[dtype], atol=UNIT[dtype] * scale / 4
        )
    assert refused(made) == {}


@every_level
@every_half
def test_every_bit_pattern_keeps_its_meaning(level: str, dtype: np.dtype[Any]) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Neg", ["x"], ["negative"]),
    ]
    proto = model(nodes, {"x": bits}, ["wide", "negative"])
    wide, negative = session(proto, instructions=level).run(None, {"x": bits})
    np.testing.assert_array_equal(wide, bits.astype(np.float32))
    finite = ~np.isnan(bits.astype(np.float32))
    np.testing.assert_array_equal(
        negative.view(np.uint16)[finite], bits.view(np.uint16)[finite] ^ 0x8000
    )
    assert np.isnan(negative.astype(np.float32)[~finite]).all()


@every_level
@every_half
@few(10)
@given(st.integers(0, 2**32 - 1))
def test_float32_rounds_to_the_nearest_with_ties_to_even(
    level: str, dtype: np.dtype[Any], seed: int
) -> None:
    random = np.random.default_rng(seed)
    x = random.integers(0, 1 << 32, 4097, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        ties = np.arange(1 << 16, dtype=np.uint16).view(dtype).astype(np.float32)
        ties = ((ties[:-1].astype(np.float64) + ties[1:]) / 2).astype(np.float32)
    x = np.concatenate([x, ties[random.integers(0, len(ties), 500)]])
    proto = model([helper.make_node("Cast", ["x"], ["y"], to=TO[dtype])], {"x": x})
    (y,) = session(proto, instructions=level).run(None, {"x": x})
    with np.errstate(all="ignore"):
        want = x.astype(dtype)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(y.view(np.uint16)[known], want.view(np.uint16)[known])
    assert np.isnan(y.astype(np.float32)[~known]).all()


@every_level
@every_half
def test_elementwise_operators_round_after_each_step(level: str, dtype: np.dtype[Any]) -> None:
    x, y = draw((3, 37), dtype), draw((37,), dtype, 1)
    nodes = [
        helper.make_node("Add", ["x", "y"], ["sum"]),
        helper.make_node("Mul", ["sum", "sum"], ["square"]),
        helper.make_node("Sub", ["square", "x"], ["rest"]),
        helper.make_node("Greater", ["x", "y"], ["more"]),
        helper.make_node("Where", ["more", "rest", "x"], ["chosen"]),
        helper.make_node("Relu", ["chosen"], ["z"]),
    ]
    proto = model(nodes, {"x": x, "y": y}, ["z", "more"])
    compare(proto, {"x": x, "y": y}, level, rtol=0, atol=0)


@every_level
@every_half
def test_functions_are_computed_in_float32(level: str, dtype: np.dtype[Any]) -> None:
    x = draw((5, 65), dtype)
    names = ["Exp", "Tanh", "Sigmoid", "Erf", "Gelu", "Softplus", "Sqrt", "HardSwish"]
    nodes = [helper.make_node(name, ["x"], [name]) for name in names]
    proto = model(nodes, {"x": np.abs(x)}, names)
    close(proto, {"x": np.abs(x)}, level, dtype)


@every_level
@every_half
def test_elements_are_moved_bit_by_bit(level: str, dtype: np.dtype[Any]) -> None:
    x = np.arange(0, 1 << 16, 7, dtype=np.uint16)[: 24 * 390].reshape(24, 390).view(dtype)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Slice", ["t", "starts", "ends", "axes", "steps"], ["s"]),
        helper.make_node("Concat", ["s", "s"], ["c"], axis=1),
        helper.make_node("Gather", ["c", "rows"], ["y"], axis=0),
    ]
    constants = {
        "starts": np.array([300]), "ends": np.array([-1000]), "axes": np.array([0]),
        "steps": np.array([-2]), "rows": np.array([3, 0, -1]),
    }  # fmt: skip
    proto = model(nodes, {"x": x}, constants=constants)
    made = session(proto, instructions=level)
    (got,) = made.run(None, {"x": x})
    (want,) = session(proto, engine="reference").run(None, {"x": x})
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))
    assert refused(made) == {}


@every_level
@every_half
def test_a_network_of_16_bit_floats_runs_natively(level: str, dtype: np.dtype[Any]) -> None:
    x = draw((2, 5, 12, 11), dtype)
    constants = {
        "w": draw((24, 5, 3, 3), dtype, 1), "b": draw((24,), dtype, 2),
        "m": draw((24, 10), dtype, 3),
        "scale": draw((10,), dtype, 4), "shift": draw((10,), dtype, 5),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["h"]),
        helper.make_node("LayerNormalization", ["h", "scale", "shift"], ["n"]),
        helper.make_node("Softmax", ["n"], ["y"]),
    ]
    close(model(nodes, {"x": x}, constants=constants), {"x": x}, level, dtype)


def test_a_double_is_rounded_to_a_half_once() -> None:
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1.0])  # through float32 it would be a tie
    proto = model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)], {"x": x})
    made = session(proto)
    (y,) = made.run(None, {"x": x})
    np.testing.assert_array_equal(y, x.astype(np.float16))
    assert made._programs.refused == {}


@pytest.mark.parametrize(
    ("operator", "feed", "attributes"),
    [
        ("GridSample", {"x": (2, 3, 9, 11), "g": (2, 7, 5, 2)}, {"mode": "linear"}),
        ("GridSample", {"x": (2, 3, 9, 11), "g": (2, 7, 5, 2)}, {"mode": "cubic"}),
        ("GridSample", {"x": (1, 2, 4, 5, 6), "g": (1, 3, 4, 5, 3)}, {"mode": "nearest"}),
        ("RoiAlign", {"x": (2, 3, 9, 11), "r": (2, 4)}, {"output_width": 3, "sampling_ratio": 2}),
    ],
)
def test_places_are_counted_in_more_than_16_bits(
    operator: str, feed: dict[str, tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    random = np.random.default_rng(0)
    scale = 8 if operator == "RoiAlign" else 1
    fed = {name: random.random(shape).astype(np.float16) for name, shape in feed.items()}
    fed[list(fed)[1]] *= np.float16(scale)
    if operator == "RoiAlign":
        fed["batch"] = np.array([0, 1])
    node = helper.make_node(operator, [*fed], ["y"], **attributes)
    shapes = {name: [f"{name}{i}" for i in range(a.ndim)] for name, a in fed.items()}
    proto = model([node], fed, shapes=shapes, opset=22)
    made = session(proto)
    assert refused(made) == {}
    (got,), (want,) = made.run(None, fed), session(proto, engine="reference").run(None, fed)
    np.testing.assert_array_equal(got, want)
