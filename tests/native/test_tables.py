"""Tables of sizes: formulas as the engine computes them, and new shapes without Python."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.native.kernels.kernel import Kernel, Pointer
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.ready import caller, extension
from hagane.native.run.memory import measure
from hagane.symbolic import (
    Dim,
    ceildiv,
    floordiv,
    maximum,
    minimum,
    mod,
    number_of,
    symbol,
)
from tests.drawing import few
from tests.native.models import draw, model, session

NAMES = ("a", "b", "c")


@st.composite
def dims(draw_: st.DrawFn, depth: int = 3) -> Dim:
    """Return a size of three names."""
    if depth == 0 or draw_(st.integers(0, 4)) == 0:
        return symbol(draw_(st.sampled_from(NAMES))) if draw_(st.booleans()) else draw_(small())
    left, right = draw_(dims(depth - 1)), draw_(dims(depth - 1))
    divisor = draw_(st.integers(1, 9))
    match draw_(st.integers(0, 7)):
        case 0:
            return left + right
        case 1:
            return left - right
        case 2:
            return left * right
        case 3:
            return floordiv(left, divisor)
        case 4:
            return mod(left, divisor)
        case 5:
            return minimum(left, right)
        case 6:
            return maximum(left, right)
        case _:
            return ceildiv(left, divisor)


def small() -> st.SearchStrategy[int]:
    return st.integers(-20, 20)


def bytes_of(size: Dim, sizes: Mapping[str, int]) -> int:
    """Return what a value of some bytes takes of the arena."""
    value = Buffer("value", size, Kind.ARENA)
    return measure([Kernel("k", "", (Pointer(value, 0, True),), (), 1)], sizes).values


@few(150)
@given(dims(), st.tuples(*[st.integers(0, 50)] * 3))
def test_the_engine_computes_formulas_as_python_does(dim: Dim, sizes: Sequence[int]) -> None:
    known = dict(zip(NAMES, sizes, strict=True))
    want = number_of(dim, known)
    if want < 0:
        with pytest.raises(MemoryError, match="beyond any memory"):
            bytes_of(dim, known)
        return
    assert bytes_of(dim, known) == -(-(want + 64) // 64) * 64


def test_numbers_beyond_64_bits_are_no_sizes() -> None:
    a, b = symbol("a"), symbol("b")
    with pytest.raises(MemoryError, match="beyond any memory"):
        bytes_of(a * a * b, {"a": 1 << 40, "b": 1})
    with pytest.raises(MemoryError, match="beyond any memory"):
        bytes_of(a * b, {"a": 1 << 32, "b": 1 << 32})


def network() -> Any:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    constants = {"w": draw((20, 3, 3, 3)) / np.float32(5), "v": draw((8, 20, 3, 3), 1)}
    shapes: dict[str, Any] = {"x": ["n", 3, "h", "w"]}
    return model(nodes, {"x": draw((1, 3, 8, 8))}, constants=constants, shapes=shapes)


def test_the_short_way_is_compiled_where_python_has_headers() -> None:
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        pytest.skip("Python's headers are not installed")
    assert extension.load_extension() is not None


def test_new_shapes_are_a_matter_of_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """One frame, made with the session, serves all shapes that are met once."""
    asked: list[object] = []
    make_entry = caller.make_entry

    def counting(*arguments: Any, **named: Any) -> Any:
        inputs, outputs, fit, *rest = arguments

        def counted(*given: Any) -> Any:
            asked.append(given[0][0].shape)
            return fit(*given)

        return make_entry(inputs, outputs, counted, *rest, **named)

    monkeypatch.setattr("hagane.runtime.opened.make_entry", counting)
    proto = network()
    options = hagane.SessionOptions()
    options.specialize = False
    made, plain = hagane.InferenceSession(proto, options), session(proto, engine="reference")
    assert asked == [(1, 3, 1, 1)]
    shapes = [(1 + i % 3, 3, 4 + 5 * i % 13, 30 - i) for i in range(12)]
    for shape in shapes:
        x = draw(shape, 2)
        want = plain.run(None, {"x": x})[0]
        for _ in range(2):  # the second run finds what the first one left
            np.testing.assert_allclose(made.run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-4)
    assert len(asked) == 1


def test_sizes_that_do_not_go_together_are_explained_on_the_long_way() -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    shapes: dict[str, Any] = {"x": ["n", 4], "z": ["n", 4]}
    made = session(model(nodes, {"x": draw((2, 4)), "z": draw((2, 4))}, shapes=shapes))
    for n in (2, 3):
        x = draw((n, 4))
        np.testing.assert_array_equal(made.run(None, {"x": x, "z": x})[0], x + x)
    told = r"sizes do not broadcast: .*; inputs: float32\[5, 4\], float32\[6, 4\]"
    with pytest.raises(hagane.errors.HaganeError, match=told):
        made.run(None, {"x": draw((5, 4)), "z": draw((6, 4))})
    x = draw((7, 4))
    np.testing.assert_array_equal(made.run(None, {"x": x, "z": x})[0], x + x)


def test_outputs_whose_sizes_are_found_come_by_the_short_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Add", ["x", "x"], ["y"]),
    ]
    shapes: dict[str, Any] = {"x": ["n", "m"]}
    made = session(model(nodes, {"x": draw((2, 3))}, ["where", "y"], shapes=shapes))
    made.run(None, {"x": draw((2, 2))})
    monkeypatch.setattr(type(made), "_run", None)
    for shape in ((3, 4), (5, 1), (0, 7), (3, 4)):
        x = np.where(draw(shape, 3) > 0, draw(shape, 3), np.float32(0))
        where, y = made.run(None, {"x": x})
        np.testing.assert_array_equal(where, np.stack(np.nonzero(x)))
        np.testing.assert_array_equal(y, x + x)
