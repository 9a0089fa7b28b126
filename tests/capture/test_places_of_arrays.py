"""Ufuncs that change elements at places, and windows over arrays, as NumPy has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hagane


def counted(ids: Any, w: Any) -> Any:
    found = np.zeros(5, np.float32)
    np.add.at(found, ids, w)
    np.subtract.at(found, ids[:2], 0.5)
    return found


def raised(ids: Any, w: Any) -> Any:
    found = np.zeros((5, 2), np.float32)
    np.maximum.at(found, (ids, ids % 2), w)
    np.add.at(found, ids, 1)
    return found


def windows(ids: Any, w: Any) -> Any:
    several = np.lib.stride_tricks.sliding_window_view(w, 2)
    return several.max(1), np.corrcoef(w, ids)


def convolved(ids: Any, w: Any) -> Any:
    kernel = np.float32([1, -2, 0.5, 3])
    return tuple(np.convolve(w, kernel, mode) for mode in ("full", "same", "valid"))


@pytest.mark.parametrize("program", [counted, raised, windows, convolved])
def test_a_program_gives_what_numpy_gives(program: Any) -> None:
    example = np.array([3, 0, -1, 3, 1]), np.arange(5, dtype=np.float32)
    model = hagane.capture(program, *example, dynamic={"ids": ("n",), "w": ("n",)})
    session = hagane.InferenceSession(model)
    for length in (2, 5, 9):
        random = np.random.default_rng(length)
        ids, w = random.integers(-5, 5, length), random.standard_normal(length).astype(np.float32)
        want = program(ids, w)
        found = session.run(None, {"ids": ids, "w": w})
        for left, right in zip(found, want if isinstance(want, tuple) else (want,), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
            assert left.dtype == right.dtype


def test_an_example_that_a_ufunc_changes_is_an_output_of_its_new_content() -> None:
    def program(x: Any, ids: Any) -> Any:
        np.add.at(x, ids, 1)
        return 2 * x

    session = hagane.InferenceSession(hagane.capture(program, np.zeros(3), np.array([1])))
    y, new = session.run(None, {"x": np.arange(3.0), "ids": np.array([2])})
    assert [item.name for item in session.get_outputs()] == ["output", "x.new"]
    np.testing.assert_array_equal(y, [0, 2, 6])
    np.testing.assert_array_equal(new, [0, 1, 3])
    typed = hagane.capture(program, "float64[3]", "int64[1]")
    assert [str(value.name) for value in typed.graph.outputs] == ["output", "x.new"]


class Names:
    """Has a function under every name, as namespaces that make operators do."""

    def __getattr__(self, name: str) -> Any:
        def made(x: Any) -> Any:
            return x * (len(name) if isinstance(self, Names) else 0)

        return made


def test_an_object_that_has_every_name_is_no_function_that_keeps_its_results() -> None:
    names = Names()
    session = hagane.InferenceSession(hagane.capture(lambda x: names.four(x), np.ones(3)))
    np.testing.assert_array_equal(session.run(None, {"x": np.ones(3)})[0], [4, 4, 4])
