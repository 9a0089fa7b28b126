"""Elementwise operators: broadcasting all ways, every element type, numbers at the edge."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper

from tests.drawing import few, many
from tests.native.agreement import agree
from tests.native.models import RUNNABLE, draw, every_level

FEW = few(3)
MANY = many(300)
FLOATS = ["float32", "float64", "float16", "bfloat16"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_TINY = np.finfo(np.float32).smallest_subnormal
EDGE = np.float32(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, _TINY, -_TINY, 1e-39, -1e-39, 1.5, -2.5, 0.5, -0.5, 3e38]
)


def kind_of(name: str) -> Any:
    """Return the NumPy type of an element type by name."""
    return ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)


def nodes_of(names: list[str], *inputs: str, **attributes: Any) -> list[Any]:
    """Return a node for each operator, whose output has its name."""
    return [helper.make_node(name, list(inputs), [name], **attributes) for name in names]


def check_broadcast(level: str, drawn: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b, c = (random.normal(0, 2, shape).astype(np.float32) for shape in drawn.input_shapes)
    nodes = [
        *nodes_of(["Add", "Sub", "Mul", "Max", "Min", "Less"], "a", "b"),
        helper.make_node("Sum", ["a", "b", "c"], ["sum"]),
        helper.make_node("Mean", ["c", "a", "b"], ["mean"]),
        helper.make_node("Where", ["Less", "b", "c"], ["chosen"]),
        helper.make_node("Mul", ["Add", "c"], ["ac"]),
        helper.make_node("Tanh", ["ac"], ["y"]),
        helper.make_node("Sub", ["k", "y"], ["z"]),
    ]
    agree(nodes, {"a": a, "b": b, "c": c}, level, constants={"k": draw((7, 1, 1), 3)[:1]}, length=4)


three = hnp.mutually_broadcastable_shapes(
    num_shapes=3, min_dims=0, max_dims=4, min_side=0, max_side=18
)


@every_level
@FEW
@given(three, st.integers(0, 99))
def test_three_shapes_broadcast_in_all_directions(level: str, drawn: Any, seed: int) -> None:
    check_broadcast(level, drawn, seed)


@pytest.mark.long
@every_level
@MANY
@given(three, st.integers(0, 99))
def test_many_shapes_broadcast_in_all_directions(level: str, drawn: Any, seed: int) -> None:
    check_broadcast(level, drawn, seed)


@every_level
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 2), (33,), (5, 16)])
def test_functions_take_arrays_of_any_rank_and_none(level: str, shape: tuple[int, ...]) -> None:
    names = ["Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "Floor", "Sqrt", "Softplus"]
    nodes = [helper.make_node("Abs", ["x"], ["p"]), *nodes_of(names, "p")]
    nodes.append(helper.make_node("Clip", ["x", "low", "high"], ["clip"]))
    bounds = {"low": np.float32(-0.5), "high": np.float32(0.25)}
    constants = {name: np.array(value) for name, value in bounds.items()}
    agree(nodes, {"x": draw(shape)}, level, constants=constants, native=True)


@every_level
def test_numbers_at_the_edge_pass_through_functions(level: str) -> None:
    x = np.resize(EDGE, 3 * len(EDGE) + 5)
    names = [
        "Abs", "Neg", "Ceil", "Floor", "Round", "Relu", "Sign", "Sqrt", "Reciprocal", "Exp",
        "Log", "Sigmoid", "Tanh", "Erf", "Softsign", "Sinh", "Cosh", "Atan", "Asinh", "IsNaN",
        "IsInf", "Identity", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu",
        "Softplus", "HardSwish", "Shrink",
    ]  # fmt: skip
    agree(nodes_of(names, "x"), {"x": x}, level)


@every_level
def test_the_sign_of_zero_is_kept(level: str) -> None:
    x = np.resize(np.float32([0.0, -0.0, -0.25, 0.25, -_TINY]), 37)
    names = ["Abs", "Neg", "Ceil", "Floor", "Round", "Identity", "Sqrt", "Tanh"]
    nodes = [helper.make_node("Abs", ["x"], ["p"]), *nodes_of(names[:6], "x")]
    nodes += [helper.make_node("Mul", ["x", "k"], ["scaled"])]
    agree(nodes, {"x": x}, level, constants={"k": np.float32([-1])}, signs=True)


@every_level
def test_numbers_at_the_edge_meet_in_pairs(level: str) -> None:
    a, b = (m.reshape(-1) for m in np.meshgrid(EDGE, EDGE))
    names = [
        "Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "Greater", "LessOrEqual",
        "GreaterOrEqual", "PRelu", "Pow",
    ]  # fmt: skip
    nodes = [
        *nodes_of(names, "a", "b"),
        helper.make_node("Clip", ["a", "low", "high"], ["inside"]),
        helper.make_node("Clip", ["a", "", "high"], ["below"]),
        helper.make_node("Where", ["Less", "a", "b"], ["chosen"]),
        helper.make_node("Cast", ["a"], ["truth"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["a"], ["double"], to=TensorProto.DOUBLE),
    ]
    constants = {"low": np.array(np.float32(-1)), "high": np.array(np.float32(1))}
    agree(nodes, {"a": a, "b": b}, level, constants=constants)


@every_level
def test_denormal_numbers_are_not_flushed(level: str) -> None:
    x = np.resize(np.float32([_TINY, 1e-40, -1e-39, 1.1754944e-38]), 35)
    nodes = [
        helper.make_node("Mul", ["x", "half"], ["h"]),
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Neg", ["x"], ["n"]),
    ]
    for value in agree(nodes, {"x": x}, level, constants={"half": np.float32([0.5])}):
        assert np.any(value != 0)


@every_level
@pytest.mark.parametrize("dtype", WHOLE)
def test_whole_numbers_of_every_width(level: str, dtype: str) -> None:
    info, random = np.iinfo(dtype), np.random.default_rng(0)
    a = random.integers(info.min, info.max, (5, 33), dtype, endpoint=True)
    b = random.integers(1, 9, (33,)).astype(dtype)
    # Sums and products wrap around, as the processor's do.
    nodes = nodes_of(["Add", "Sub", "Mul", "Div", "Max", "Min"], "a", "b")
    nodes += nodes_of(["Equal", "Less", "GreaterOrEqual"], "a", "b")
    nodes += nodes_of(["BitwiseAnd", "BitwiseOr", "BitwiseXor"], "a", "b")
    nodes += [
        helper.make_node("Mod", ["a", "b"], ["left"]),
        helper.make_node("BitwiseNot", ["a"], ["flipped"]),
        helper.make_node("Clip", ["a", "low", "high"], ["inside"]),
        helper.make_node("Cast", ["a"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["a"], ["truth"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["a"], ["short"], to=TensorProto.INT16),
        helper.make_node("Sign", ["a"], ["sign"]),
    ]
    constants = {"low": np.array(3, dtype), "high": np.array(90, dtype)}
    if info.min < 0:
        nodes += [helper.make_node("Abs", ["b"], ["size"]), helper.make_node("Neg", ["b"], ["neg"])]
    agree(nodes, {"a": a, "b": b}, level, constants=constants)


@every_level
@pytest.mark.parametrize("dtype", WHOLE)
def test_what_division_leaves_has_the_sign_of_the_divisor_or_of_the_dividend(
    level: str, dtype: str
) -> None:
    info = np.iinfo(dtype)
    edge = [info.min, info.max, 0, 1, 2, 3, 7, *([-1, -2, -3, -7] if info.min < 0 else [])]
    divisors = [number for number in edge if number]
    a, b = (m.reshape(-1) for m in np.meshgrid(np.array(edge, dtype), np.array(divisors, dtype)))
    nodes = [
        helper.make_node("Mod", ["a", "b"], ["modulus"]),
        helper.make_node("Mod", ["a", "b"], ["remainder"], fmod=1),
    ]
    agree(nodes, {"a": a, "b": b}, level, native=True)


@every_level
def test_truth_values_combine_and_move(level: str) -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 2, (2, 6, 17)).astype(bool)
    nodes = [
        *nodes_of(["And", "Or", "Xor", "Equal"], "a", "b"),
        helper.make_node("Not", ["And"], ["Not"]),
        helper.make_node("Where", ["Xor", "a", "b"], ["chosen"]),
        helper.make_node("Cast", ["Or"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["Or"], ["long"], to=TensorProto.INT64),
        helper.make_node("Transpose", ["a"], ["turned"]),
        helper.make_node("Concat", ["a", "Not"], ["joined"], axis=1),
        helper.make_node("Slice", ["b", "starts", "ends"], ["part"]),
        helper.make_node("Expand", ["row", "to"], ["wide"]),
    ]
    constants = {
        "starts": np.array([4, -1]), "ends": np.array([1, 2]),
        "row": np.array([[True], [False]]), "to": np.array([3, 2, 5]),
    }  # fmt: skip
    constants["ends"] = np.array([6, 17])
    agree(nodes, {"a": a, "b": b}, level, constants=constants)


@every_level
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_of_every_width(level: str, dtype: str) -> None:
    kind = kind_of(dtype)
    a, b = draw((6, 35)).astype(kind), draw((35,), 1).astype(kind)
    nodes = [
        *nodes_of(["Add", "Mul", "Max", "Min", "Less", "Greater"], "a", "b"),
        *nodes_of(["Relu", "Neg", "Abs", "Floor", "Exp", "Tanh", "Sigmoid"], "a"),
        helper.make_node("Where", ["Less", "a", "b"], ["chosen"]),
        helper.make_node("Cast", ["a"], ["single"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["single"], ["double"], to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["single"], ["back"], to=helper.np_dtype_to_tensor_dtype(a.dtype)),
        helper.make_node("Cast", ["Mul"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Transpose", ["a"], ["turned"]),
        helper.make_node("Concat", ["a", "Add"], ["joined"], axis=0),
        helper.make_node("Identity", ["a"], ["same"]),
        helper.make_node("Mul", ["a", "part"], ["scaled"]),
    ]
    constants = {"part": np.array(0.6, kind)}
    agree(nodes, {"a": a, "b": b}, level, constants=constants, length=2)


@every_level
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats_become_whole_numbers_and_back(level: str, dtype: str) -> None:
    x = np.resize([0.0, -0.9, 1.5, -2.5, 99.99, -1e6, 2**30, 0.1], 41).astype(dtype)
    nodes = []
    for name in ("INT32", "INT64", "INT8", "UINT8", "FLOAT16", "BOOL", "DOUBLE", "FLOAT"):
        source = "small" if name in ("INT8", "UINT8", "FLOAT16") else "x"
        nodes.append(helper.make_node("Cast", [source], [name], to=getattr(TensorProto, name)))
    nodes.append(helper.make_node("Cast", ["INT64"], ["again"], to=TensorProto.FLOAT))
    feed = {"x": x, "small": np.abs(x) % 100}
    agree(nodes, feed, level)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("exponents", ["int32", "int64", "uint64"])
def test_powers_of_whole_numbers_depend_on_their_own_exponents_alone(
    dtype: str, exponents: str
) -> None:
    least = np.iinfo(dtype).min
    x = np.array([0, 1, -1, 2, -3, 7, least, np.iinfo(dtype).max], dtype)
    y = np.array([0, 1, 2, 3, 39, np.iinfo(exponents).max], exponents)
    if exponents.startswith("i"):
        y = np.concatenate([y, np.array([-1, -2, np.iinfo(exponents).min], exponents)])
    x, y = (each.reshape(-1) for each in np.meshgrid(x, y))
    (z,) = agree(nodes_of(["Pow"], "x", "y"), {"x": x, "y": y}, RUNNABLE[0], native=True)
    below, pairs = y < 0, list(zip(x.tolist(), y.tolist(), strict=True))
    cut = [least if a == 0 else int(float(a) ** b) for a, b in pairs if b < 0]
    np.testing.assert_array_equal(z[below], np.array(cut, dtype))
    modulus = 1 << 8 * x.dtype.itemsize
    powers = [pow(a, b, modulus) for a, b in pairs if b >= 0]
    np.testing.assert_array_equal(z[~below].astype(object) % modulus, np.array(powers, object))
