"""Results belong to the caller: writing into one changes no other, and no later run."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import parser

import hagane
from tests.native.models import session

TEXTS = np.array(["a", "b"], object)
X = np.arange(8, dtype=np.float32).reshape(2, 4)
# Each with a feed. Operators of texts, lists and options run between the compiled parts.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "one value under two names": (
        """g (string[N] s, float[N, 4] x)
           => (string[N] u, string[N] v, string[N] w, float[N, 4] y, float[N, 4] z)
           <int64[2] wide = {-1, 1}, int64[1] flat = {-1}> {
             u = StringConcat(s, s) v = Identity(u) r = Reshape(u, wide) w = Reshape(r, flat)
             y = Relu(x) z = Identity(y) }""",
        {"s": TEXTS, "x": X},
    ),
    "constants of a branch": (
        """g (string[N] s, bool c) => (string[M] z, float[K] w) {
             z, w = If <
               then_branch = a () => (string[M] p, float[K] q)
                 <string[1] text = {"t"}, float[2] pair = {1, 2}> {
                 p = Identity(text) q = Identity(pair) },
               else_branch = b () => (string[M] p, float[K] q) {
                 p = Identity(s) q = Constant <value_floats = [3.0]> () }
             > (c) }""",
        {"s": TEXTS, "c": np.array(True)},
    ),
    "values around a branch": (
        """g (string[N] s, bool c) => (string[N] u, string[N] y, string[N] z) {
             u = StringConcat(s, s)
             y, z = If <
               then_branch = a () => (string[N] p, string[N] q) {
                 p = Identity(u) q = Identity(u) },
               else_branch = b () => (string[N] p, string[N] q) {
                 p = Identity(s) q = Identity(s) }
             > (c) }""",
        {"s": TEXTS, "c": np.array(True)},
    ),
    "items of lists": (
        """g (float[N, 4] x) => (float[N, 4] y, seq(float[N, 4]) l, seq(float[N, 4]) m)
           <float[2, 4] k = {1, 2, 3, 4, 5, 6, 7, 8}> {
             y = Relu(x) l = SequenceConstruct(y, y, x, k) m = SequenceInsert(l, y) }""",
        {"x": X},
    ),
    "what is in an option": (
        """g (float[N, 4] x) => (optional(float[N, 4]) y, float[N, 4] z) {
             z = Relu(x) y = Optional(z) }""",
        {"x": X},
    ),
}


def made(name: str, engine: str) -> hagane.InferenceSession:
    text = '<ir_version: 9, opset_import: ["" : 20]>' + MODELS[name][0]
    return session(parser.parse_model(text), engine=engine)


def _arrays(results: list[Any]) -> Iterator[np.ndarray]:
    for value in results:
        yield from value if isinstance(value, list) else [value]


def check_results(results: list[Any], want: list[np.ndarray]) -> None:
    """Fail unless these are the results, each of which may be written into."""
    arrays = list(_arrays(results))
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(array, want[i])
        array[...] = "spoilt" if array.dtype == object else -1


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("name", MODELS)
def test_a_result_shares_memory_with_nothing(name: str, engine: str) -> None:
    one, feed = made(name, engine), MODELS[name][1]
    want = [array.copy() for array in _arrays(one.run(None, feed))]
    given = copy.deepcopy(feed)
    for _ in range(3):
        check_results(one.run(None, given), want)
    for key, value in feed.items():
        np.testing.assert_array_equal(given[key], value)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_name_that_is_asked_for_twice_gives_two_arrays(engine: str) -> None:
    text = """<ir_version: 9, opset_import: ["" : 20]>
        g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) { y = Relu(x) z = Identity(x) }"""
    one = session(parser.parse_model(text), engine=engine)
    for _ in range(3):
        check_results(one.run(["z", "y", "z", "y"], {"x": X.copy()}), [X, X, X, X])


def test_dicts_that_are_asked_for_twice_are_two() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "ai.onnx.ml" : 3]>
        g (float[N, 2] x) => (seq(map(int64, float)) d) {
          y = Softmax(x) d = ai.onnx.ml.ZipMap <classlabels_int64s = [3, 4]> (y) }"""
    one = session(parser.parse_model(text))
    for _ in range(3):
        first, second = one.run(["d", "d"], {"x": np.zeros((1, 2), np.float32)})
        assert first == second == [{3: 0.5, 4: 0.5}]
        first[0].clear()
        assert second == [{3: 0.5, 4: 0.5}]
