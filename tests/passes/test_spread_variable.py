"""Gemm and BatchNormalization whose parameters are inputs run on kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.native.bodies import node
from tests.native.models import RUNNABLE, compare, draw, model, refused, session
from tests.oracle import assert_agrees
from tests.passes.harness import applied


def check(proto: Any, feed: dict[str, np.ndarray], count: int = 1) -> None:
    counts, left = applied(proto, feed)
    assert counts.get("spread_variable", 0) == count
    assert count == 0 or not {"Gemm", "BatchNormalization"} & set(left)
    assert_agrees(proto, feed)
    made = session(proto)
    made.run(None, feed)
    assert refused(made) == {}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    ("attributes", "a", "b", "c"),
    [
        ({}, (5, 7), (7, 3), (3,)),
        ({"transB": 1, "alpha": 0.5, "beta": 2.0}, (5, 7), (3, 7), (5, 3)),
        ({"transA": 1}, (7, 5), (7, 3), None),
        ({"transA": 1, "transB": 1, "beta": 0.0}, (7, 5), (3, 7), (5, 1)),
        ({"alpha": -1.0}, (1, 1), (1, 17), (1,)),
    ],
    ids=str,
)
def test_a_gemm_of_inputs_is_native(
    attributes: dict[str, Any], a: tuple[int, int], b: tuple[int, int],
    c: tuple[int, ...] | None, symbolic: bool,
) -> None:  # fmt: skip
    feed = {"a": draw(a), "b": draw(b, 1)}
    if c is not None:
        feed["c"] = draw(c, 2)
    shapes = {"a": ("n", a[1]) if not attributes.get("transA") else (a[0], "n")} if symbolic else {}
    if symbolic and c is not None and len(c) == 2:
        shapes["c"] = ("n", c[1])
    check(model([node("Gemm", " ".join(feed), "y", **attributes)], feed, shapes=shapes), feed)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint64"])
@pytest.mark.parametrize("constant", [True, False])
def test_a_gemm_of_any_type_is_native(dtype: str, constant: bool) -> None:
    feed = {"a": (draw((5, 7)) * 4).astype(dtype)}
    rest = {"b": (draw((3, 7), 1) * 4).astype(dtype), "c": (draw((5, 1), 2) * 4).astype(dtype)}
    nodes = [node("Gemm", "a b c", "y", transB=1)]
    if constant:
        proto = model(nodes, feed, constants=rest)
    else:
        feed |= rest
        proto = model(nodes, feed, shapes={"a": ("m", "k"), "b": ("n", "k")})
    compare(proto, feed, RUNNABLE[0], rtol=1e-2)


def test_a_gemm_of_whole_numbers_may_be_scaled() -> None:
    feed = {"a": np.arange(6).reshape(2, 3), "b": np.arange(12).reshape(3, 4) - 5}
    proto = model([node("Gemm", "a b", "y", alpha=0.5)], feed)
    made = session(proto)
    (got,) = made.run(None, feed)
    assert refused(made) == {}
    np.testing.assert_array_equal(got, (feed["a"] @ feed["b"] * 0.5).astype(np.int64))


def test_a_normalisation_of_doubles_is_native() -> None:
    feed = {"x": draw((2, 6, 5)).astype(np.float64)}
    constants = {"s": np.linspace(0.5, 2, 6), "b": np.linspace(-1, 1, 6)}
    proto = model(
        [node("InstanceNormalization", "x s b", "y")], feed,
        constants=constants, shapes={"x": ("n", 6, "w")},
    )  # fmt: skip
    compare(proto, feed, RUNNABLE[0], rtol=1e-9, atol=1e-9)


def test_a_constant_gemm_stays() -> None:
    feed = {"a": draw((5, 7))}
    proto = model(
        [node("Gemm", "a b c", "y")], feed, constants={"b": draw((7, 3)), "c": draw((3,))}
    )
    check(proto, feed, 0)


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (4, 3), (2, 3, 7), (2, 3, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("trains", [False, True])
def test_a_normalisation_by_inputs_is_native(shape: tuple[int, ...], trains: bool) -> None:
    feed = {"x": draw(shape), **{name: draw((3,), i) for i, name in enumerate("smk")}}
    feed["v"] = np.abs(draw((3,), 7)) + 0.5
    outputs = ["y", "a", "b"] if trains else ["y"]
    settings = {"training_mode": 1, "momentum": 0.75} if trains else {}
    nodes = [node("BatchNormalization", "x s m k v", " ".join(outputs), epsilon=1e-3, **settings)]
    check(model(nodes, feed, outputs, shapes={"x": ("n", *shape[1:])}), feed)


def test_a_normalisation_by_the_batch_of_constant_parameters_is_native() -> None:
    feed = {"x": draw((2, 3, 4, 4))}
    constants = {
        "s": draw((3,), 1),
        "m": draw((3,), 2),
        "k": draw((3,), 3),
        "v": np.ones(3, np.float32),
    }
    nodes = [node("BatchNormalization", "x s m k v", "y a b", training_mode=1)]
    check(model(nodes, feed, ("y", "a", "b"), constants), feed)


def test_other_element_types_keep_theirs() -> None:
    feed = {name: draw((4, 4), i).astype(np.float64) for i, name in enumerate("abc")}
    proto = model([node("Gemm", "a b c", "y", alpha=0.5)], feed)
    applied(proto, feed)
    assert session(proto).run(None, feed)[0].dtype == np.float64
