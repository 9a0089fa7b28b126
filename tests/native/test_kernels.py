"""Elementwise groups, products, reductions and moves against the reference kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper

from hagane.errors import KernelError
from tests.drawing import few
from tests.native.agreement import agree_over
from tests.native.models import compare, compiled, draw, every_level, model, refused, session
from tests.native.test_safety_names import codes

FEW = few(6)

UNARY = [
    "Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
    "LeakyRelu", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Softplus", "Softsign", "Tanh", "Celu", "ThresholdedRelu", "Identity", "IsNaN",
]  # fmt: skip
BINARY = [
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "PRelu",
]  # fmt: skip
REDUCTIONS = [
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
    "ReduceSumSquare",
]  # fmt: skip


@every_level
def test_functions_of_one_number_equal_their_reference(level: str) -> None:
    x = np.concatenate([draw((1000,)) * 4, np.float32([0, -0.0, 1e-7, -1e-7, 80, -80, 30, -30])])
    nodes = [helper.make_node(name, ["x"], [name]) for name in UNARY]
    nodes += [
        helper.make_node("Abs", ["x"], ["positive"]),
        helper.make_node("Log", ["positive"], ["Log"]),
        helper.make_node("Sqrt", ["positive"], ["Sqrt"]),
    ]
    proto = model(nodes, {"x": x}, [*UNARY, "Log", "Sqrt"])
    compare(proto, {"x": x}, level, rtol=2e-6, atol=1e-6)


@every_level
def test_not_a_number_and_infinity_pass_through(level: str) -> None:
    x = np.float32([np.nan, np.inf, -np.inf, 1.0] * 9)
    names = ["Relu", "Abs", "Neg", "Floor", "Sign", "Exp", "Sigmoid", "Tanh"]
    nodes = [helper.make_node(name, ["x"], [name]) for name in names]
    nodes += [
        helper.make_node("Clip", ["x", "low", "high"], ["clipped"]),
        helper.make_node("Max", ["x", "low"], ["largest"]),
    ]
    constants = {"low": np.float32(-2).reshape(()), "high": np.float32(2).reshape(())}
    compare(model(nodes, {"x": x}, [*names, "clipped", "largest"], constants), {"x": x}, level)


@every_level
@FEW
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=19), st.integers(0, 99))
def test_operators_of_two_numbers_broadcast(level: str, drawn: Any, seed: int) -> None:
    left, right = draw(drawn.input_shapes[0], seed), draw(drawn.input_shapes[1], seed + 1)
    feed = {"a": left, "b": right}
    names = BINARY
    if len(drawn.input_shapes[1]) > len(drawn.input_shapes[0]) or left.shape != drawn.result_shape:
        names = BINARY[:-1]  # the slope of PRelu broadcasts to the data only
    nodes = [helper.make_node(name, ["a", "b"], [name]) for name in names]
    compare(model(nodes, feed, names), feed, level)


@every_level
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float64", "int8"])
def test_other_element_types_are_computed_too(level: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 100, (7, 33)).astype(dtype)
    b = random.integers(1, 9, (33,)).astype(dtype)
    names = ["Add", "Mul", "Sub", "Div", "Max", "Min", "Equal", "Less"]
    nodes = [helper.make_node(name, ["a", "b"], [name]) for name in names]
    nodes.append(helper.make_node("Cast", ["Less"], ["number"], to=1))
    nodes.append(helper.make_node("Where", ["Less", "a", "b"], ["chosen"]))
    compare(model(nodes, {"a": a, "b": b}, [*names, "number", "chosen"]), {"a": a, "b": b}, level)


def test_whole_numbers_are_divided_without_a_trap() -> None:
    a = np.array([1, -5, -(2**31), 7], np.int32)
    b = np.array([3, 2, -1, 2], np.int32)
    made = session(model([helper.make_node("Div", ["a", "b"], ["y"])], {"a": a, "b": b}))
    (y,) = made.run(None, {"a": a, "b": b})
    assert [y[0], y[1], y[3]] == [0, -2, 3]
    with pytest.raises(KernelError, match="Div '-> y' failed: .*integer division by zero"):
        made.run(None, {"a": a, "b": np.array([0, 0, -1, 2], np.int32)})


@every_level
@FEW
@given(st.integers(1, 40), st.integers(1, 70), st.integers(1, 90), st.booleans())
def test_products_with_constant_matrices(level: str, m: int, k: int, n: int, row: bool) -> None:
    x = draw((m, k))
    constants = {"w": draw((k, n), 1), "b": draw((n,), 2)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"])]
    if row:
        nodes.append(helper.make_node("Add", ["p", "b"], ["q"]))
    nodes.append(helper.make_node("Relu", ["q" if row else "p"], ["y"]))
    proto = model(nodes, {"x": x}, constants=constants)
    compare(proto, {"x": x}, level, rtol=1e-4, atol=1e-4)


# One compiled model serves every number of rows, and has kernels for many of them.
@every_level
@few(4)
@given(
    st.lists(st.integers(1, 40), min_size=6, max_size=9),
    st.integers(1, 70),
    st.integers(1, 90),
    st.booleans(),
)
def test_products_of_any_number_of_rows(
    level: str, rows: list[int], k: int, n: int, row: bool
) -> None:
    constants = {"w": draw((k, n), 1), "b": draw((n,), 2)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"])]
    if row:
        nodes.append(helper.make_node("Add", ["p", "b"], ["q"]))
    nodes.append(helper.make_node("Relu", ["q" if row else "p"], ["y"]))
    x = draw((1, k))
    proto = model(nodes, {"x": x}, constants=constants, shapes={"x": ["rows", k]})
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    for m in rows:
        x = draw((m, k), m)
        got, want = made.run(None, {"x": x})[0], reference.run(None, {"x": x})[0]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    assert refused(made) == {}
    assert not made._programs.repeats.values()


@every_level
@FEW
@given(st.integers(1, 3), st.integers(1, 30), st.integers(1, 40), st.integers(1, 70), st.booleans())
def test_products_of_computed_matrices(
    level: str, batch: int, m: int, k: int, n: int, transposed: bool
) -> None:
    a, b = draw((batch, m, k)), draw((n, k) if transposed else (k, n), 1)
    nodes = [helper.make_node("MatMul", ["a", "t" if transposed else "b"], ["y"])]
    if transposed:
        nodes.insert(0, helper.make_node("Transpose", ["b"], ["t"], perm=[1, 0]))
    feed = {"a": a, "b": b}
    compare(model(nodes, feed), feed, level, rtol=1e-4, atol=1e-4)


@every_level
@pytest.mark.parametrize("transposed", ["", "ab"])
def test_rows_of_products_that_many_columns_meet_are_packed_once(
    level: str, transposed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    k, n = 259, 301  # more than one block of the inner size, columns of several tasks
    nodes = [
        helper.make_node("Transpose", [name], [f"{name}t"], perm=[1, 0]) for name in transposed
    ]
    read = [f"{name}t" if name in transposed else name for name in "ab"]
    nodes.append(helper.make_node("MatMul", read, ["y"]))
    b = draw((k, n), 1)
    feeds = []
    for m in (130, 0, 1, 61):
        a = draw((m, k))
        given = {"a": a, "b": b}
        feeds.append(
            {x: np.ascontiguousarray(v.T if x in transposed else v) for x, v in given.items()}
        )
    open_sizes = {"a": (k, "m") if "a" in transposed else ("m", k)}
    agree_over(nodes, feeds, level, open_sizes, outputs=["y"], length=k)
    proto = model(nodes, feeds[0])
    compare(proto, feeds[0], level, rtol=1e-4, atol=1e-4)
    made = compiled(monkeypatch, lambda: session(proto, instructions=level))
    assert any(kernel.name.startswith("pack_rows") for kernel in made)


@every_level
@FEW
@given(
    hnp.array_shapes(min_dims=1, max_dims=4, max_side=21),
    st.data(),
    st.sampled_from(
        [
            "ReduceSum",
            "ReduceMean",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceSumSquare",
        ]
    ),
)
def test_reductions_over_any_axes(
    level: str, shape: tuple[int, ...], data: st.DataObject, operator: str
) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    keep = data.draw(st.integers(0, 1))
    x = draw(shape)
    node = helper.make_node(operator, ["x", "axes"], ["y"], keepdims=keep)
    proto = model([node], {"x": x}, constants={"axes": np.array(axes)})
    compare(proto, {"x": x}, level, rtol=1e-4, atol=1e-5)


@every_level
@FEW
@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=50), st.data())
def test_softmax_and_normalisation(level: str, shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = draw(shape) * 5
    nodes = [
        helper.make_node("Softmax", ["x"], ["soft"], axis=axis),
        helper.make_node("LogSoftmax", ["x"], ["log"], axis=axis),
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["norm"], axis=-1),
        helper.make_node("ArgMax", ["x"], ["most"], axis=axis),
    ]
    constants = {"scale": draw(shape[-1:], 1), "shift": draw(shape[-1:], 2)}
    proto = model(nodes, {"x": x}, ["soft", "log", "norm", "most"], constants)
    compare(proto, {"x": x}, level, rtol=1e-4, atol=1e-4)


@every_level
def test_moves_without_arithmetic(level: str) -> None:
    x = draw((2, 6, 4, 5))
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["s"]),
        helper.make_node("Split", ["x"], ["p", "q", "o"], axis=1, num_outputs=3),
        helper.make_node("Concat", ["p", "s2", "o"], ["c"], axis=1),
        helper.make_node("Neg", ["q"], ["s2"]),
        helper.make_node("Gather", ["x", "rows"], ["g"], axis=2),
        helper.make_node("Tile", ["x", "times"], ["tile"]),
        helper.make_node("Pad", ["x", "pads"], ["pad"]),
        helper.make_node("DepthToSpace", ["d4"], ["space"], blocksize=2),
        helper.make_node("Concat", ["x", "p"], ["d4"], axis=1),
        helper.make_node("Expand", ["row", "to"], ["wide"]),
        helper.make_node("Resize", ["x", "", "scales"], ["big"], mode="nearest",
                         coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    ]  # fmt: skip
    order = [0, 1, 2, 3, 5, 4, 6, 7, 8, 10, 9, 11, 12]
    constants = {
        "shape": np.array([0, -1, 3]),
        "starts": np.array([3, -1]),
        "ends": np.array([-9, 0]),
        "axes": np.array([2, 1]),
        "steps": np.array([-1, -2]),
        "rows": np.array([[0, 3], [-1, 1]]),
        "times": np.array([1, 2, 1, 3]),
        "pads": np.array([0, 1, 0, 2, 0, 0, 3, 1]),
        "row": draw((1, 5), 3),
        "to": np.array([2, 3, 5]),
        "scales": np.array([1, 1, 2, 3], np.float32),
    }
    outputs = ["t", "r", "s", "q", "c", "g", "tile", "pad", "space", "wide", "big"]
    proto = model([nodes[i] for i in order], {"x": x}, outputs, constants)
    compare(proto, {"x": x}, level)


def test_empty_arrays_are_computed_too() -> None:
    x = np.zeros((0, 4), np.float32)
    nodes = [
        helper.make_node("Add", ["x", "one"], ["a"]),
        helper.make_node("Concat", ["a", "x"], ["c"], axis=0),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
    ]
    constants = {"one": np.ones(4, np.float32), "w": draw((4, 3))}
    compare(model(nodes, {"x": x}, constants=constants), {"x": x}, "portable", native=False)


def test_an_index_out_of_range_names_the_node_and_the_value() -> None:
    feed = {"table": draw((5, 3)), "rows": np.array([1, -6])}
    proto = model([helper.make_node("Gather", ["table", "rows"], ["y"], "look_up")], feed)
    message = "Gather 'look_up' failed: index -6 is out of range for axis 0 with size 5"
    with pytest.raises(KernelError, match=message):
        session(proto).run(None, feed)
    (y,) = session(proto).run(None, {**feed, "rows": np.array([4, -5])})
    np.testing.assert_array_equal(y, feed["table"][[4, 0]])


def test_operators_without_a_kernel_run_between_compiled_parts() -> None:
    x = (draw((4, 6)) > 0).astype(np.float32)
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Bernoulli", ["a"], ["b"]),  # of certain events
        helper.make_node("Exp", ["b"], ["y"]),
    ]
    proto = model(nodes, {"x": x})
    made = session(proto)
    np.testing.assert_allclose(made.run(None, {"x": x})[0], np.exp(x), rtol=1e-5)
    assert sum(1 for _ in made._programs.general.parts("native")) == 2
    assert refused(made) == {}  # Bernoulli has no rule that could refuse


def test_names_of_a_model_never_reach_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = '"); system("false"); /* */ #include "/etc/passwd" \\\n\x00 KERNEL'
    x = draw((2, 33))
    nodes = [
        helper.make_node("Exp", ["x"], [f"{hostile}1"], f"{hostile}2"),
        helper.make_node("Softmax", [f"{hostile}1"], ["y"], hostile),
    ]
    proto = model(nodes, {"x": x})
    for value in proto.graph.node:
        value.doc_string = hostile
    compare(proto, {"x": x}, "portable")
    compiled = codes(monkeypatch, lambda: session(proto))
    assert len(compiled) >= 1
    assert not any("system" in code for code in compiled)
