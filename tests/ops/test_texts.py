"""Loops over texts in C: what Python makes of the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.ops.elementwise.cast import _casting, _of_float
from hagane.ops.ml.labels import _labels, _one_hot
from hagane.ops.text import string
from hagane.ops.values import texts
from tests.drawing import few

WORDS = st.text(alphabet="abé😀 \t\u00a0٣", max_size=6)
FLOATS = {"float32": np.uint32, "float64": np.uint64}


def array(items: list[Any], *shape: int) -> np.ndarray:
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(shape) if shape else made


def plainly(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> Any:
    """Return what a call gives without the module in C."""
    with monkeypatch.context() as patch:
        for module in ("text.string", "elementwise.cast", "ml.labels"):
            patch.setattr(f"hagane.ops.{module}.texts", lambda: None)
        return call()


def same(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any]) -> None:
    assert texts() is not None
    got, want = call(), plainly(monkeypatch, call)
    for left, right in zip(
        *([x] if isinstance(x, np.ndarray) else x for x in (got, want)), strict=True
    ):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(left, right)


@few(50)
@given(st.lists(st.tuples(WORDS, WORDS), max_size=9))
def test_texts_are_joined(pairs: list[tuple[str, str]]) -> None:
    left, right = (array([pair[i] for pair in pairs]) for i in (0, 1))
    assert string._concat(left, right).tolist() == [a + b for a, b in pairs]


def test_texts_are_joined_with_one_that_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    x = array(["a", "", "é", "b", "c", "d"], 2, 3)
    same(monkeypatch, lambda: string._concat(x, array([" x"])))
    same(monkeypatch, lambda: string._concat(array(["é", "-"], 2, 1), x[:, ::-1]))


@few(50)
@given(
    st.lists(WORDS, max_size=9),
    st.sampled_from([None, "", " ", "é", "ab"]),
    st.sampled_from([None, 0, 1, 2]),
)
def test_texts_are_split(words: list[str], delimiter: str | None, limit: int | None) -> None:
    parts, counts = string._split(array(words), delimiter=delimiter, maxsplit=limit)
    want = [word.split(delimiter or None, -1 if limit is None else limit) for word in words]
    assert counts.tolist() == list(map(len, want))
    width = max(map(len, want), default=0)
    assert parts.tolist() == [[*each, *[""] * (width - len(each))] for each in want]


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_become_the_shortest_texts_that_stand_for_them(dtype: str) -> None:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2 ** (8 * np.dtype(dtype).itemsize - 1), 3000, np.uint64)
    powers = 2.0 ** np.arange(-60, 60)
    with np.errstate(all="ignore"):  # bits that are no numbers
        x = np.concatenate(
            [
                bits.astype(FLOATS[dtype]).view(dtype),
                random.standard_normal(3000) * 10.0 ** random.integers(-12, 12, 3000),
                random.integers(0, 10**7, 3000) / 10.0 ** random.integers(0, 9, 3000),
                powers, 10.0 ** np.arange(-9, 10),
                [0, -0.0, np.inf, -np.inf, np.nan, 16777217, 123456789, 999999.94, 1e20, 5e-324],
            ]
        ).astype(dtype)  # fmt: skip
    x = np.concatenate([x, np.nextafter(powers.astype(dtype), np.dtype(dtype).type(0))])
    assert _casting(to=8)(x).tolist() == [_of_float(value) for value in x]


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "uint64", "bool", "float16"])
def test_other_numbers_become_texts(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[0, 1, 100], [7, 60, 127]]).astype(dtype)
    same(monkeypatch, lambda: _casting(to=8)(x[:, ::-1]))
    ends = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert _casting(to=8)(ends).tolist() == [str(n) for n in ends.tolist()]


@few(100)
@given(
    st.lists(
        st.one_of(st.floats().map(repr), st.floats(-1e6, 1e6).map(str), st.integers().map(str)),
        max_size=9,
    )
)
@example(["1", "-0", "+3.5", " 7 ", "inf", "-NaN", ".5", "5.", "٣", "1_0", "0.000000000000000001"])
def test_texts_become_floats(items: list[str]) -> None:
    got = _casting(to=11)(array(items))
    want = np.array([float(item) for item in items])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_texts_become_whole_numbers() -> None:
    assert _casting(to=7)(array(["12", "-7", "+4", "123456789012345678"])).tolist() == [
        *(12, -7, 4, 123456789012345678)
    ]
    assert _casting(to=7)(array(["1.9", " 5", "-1e3"])).tolist() == [1, 5, -1000]
    assert _casting(to=3)(array(["12", "-7"])).dtype == np.int8


@pytest.mark.parametrize("to", [1, 7])
@pytest.mark.parametrize("text", ["x", "", "1e", "--1", "1.2.3"])
def test_texts_that_are_no_numbers_are_named(to: int, text: str) -> None:
    with pytest.raises(ValueError, match="cannot read a number: could not convert"):
        _casting(to=to)(array(["1", text]))


@pytest.mark.parametrize("item", [None, b"a", 3, ["a"]])
def test_what_is_no_text_is_refused(item: Any) -> None:
    wrong = array([item, "b"])
    with pytest.raises(TypeError):
        string._split(wrong)
    with pytest.raises(TypeError):
        string._concat(wrong, array(["a", "b"]))
    assert texts().are_texts(wrong) is False
    assert texts().are_texts(array(["a", "é"])) is True


def test_labels_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    words = array(["é", "b", "", "none", "b", "é"], 2, 3)
    for values in ({"values_int64s": [5, -1, 7]}, {"values_floats": [0.5, -1, 2]},
                   {"values_strings": ["x", "", "é"]}):  # fmt: skip
        given = {"keys_strings": ["é", "b", ""], **values, "default_int64": -9,
                 "default_float": -0.5, "default_string": "?"}  # fmt: skip
        same(monkeypatch, lambda given=given: _labels(attributes=given)(words))
        same(monkeypatch, lambda given=given: _labels(attributes=given)(words.T))
    given = {"keys_int64s": [3, -1, 2**62], "values_strings": ["é", "", "c"], "default_string": "?"}
    numbers = np.array([[3, -1], [2**62, 4]])
    same(monkeypatch, lambda: _labels(attributes=given)(numbers))
    same(monkeypatch, lambda: _labels(attributes=given)(numbers[:, ::-1]))


def test_categories_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    words = array(["é", "b", "no", "c"], 2, 2)
    same(monkeypatch, lambda: _one_hot(cats_strings=["b", "c", "é"])(words))
    same(
        monkeypatch, lambda: _one_hot(cats_int64s=[4, 7])(np.array([[7.0, 3], [4, 4]], np.float32))
    )
    for run in (lambda call: call(), lambda call: plainly(monkeypatch, call)):
        with pytest.raises(ValueError, match="value 'no' is none of the categories"):
            run(lambda: _one_hot(cats_strings=["b", "c", "é"], zeros=0)(words))


def test_patterns_are_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    words = array(["abc", "", "éb", "ab", "b"])
    same(monkeypatch, lambda: string._matching(pattern="a?.?b?")(words))


def test_texts_without_elements() -> None:
    none = np.empty((0, 3), object)
    assert string._concat(none, none).shape == (0, 3)
    assert [part.shape for part in string._split(none)] == [(0, 3, 0), (0, 3)]
    assert _casting(to=1)(none).shape == (0, 3)


def test_a_constant_of_texts_gives_texts() -> None:
    kept = onnx.TensorProto(name="k", data_type=onnx.TensorProto.STRING, dims=[2])
    kept.string_data.extend(["é\0".encode(), b"ab"])
    nodes = [helper.make_node("Constant", [], ["y"], value=kept)]
    outputs = [helper.make_tensor_value_info(name, kept.data_type, [2]) for name in "yk"]
    graph = helper.make_graph(nodes, "g", [], outputs, [kept])
    data = helper.make_model(graph, ir_version=10).SerializeToString()
    for found in hagane.InferenceSession(data).run(None, {}):
        assert found.dtype == object
        assert found.tolist() == ["é\0", "ab"]
