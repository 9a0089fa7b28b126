"""Patterns of RE2 match as ONNX Runtime, which has RE2, matches them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import KernelError

TEXTS = [
    "", "a", "b", "ab", "aB", "café", "CAFÉ", "日本語", "x_1", " ", "\t", "\n", "a\n",
    "A", "é", "]", "[", "-", "^", "a-b", "1", "٣", "foo bar", "foo", "bar.", "ß", "_",
    "\x0b", "ǅ", "…", "\\", "a]b",
]  # fmt: skip
PATTERNS = [
    r"\w+", r"\W+", r"[\w-]+", r"[^\w]+", r"[\W]+", r"[\D\d]+", r"\pL+", r"\p{Lu}.*", r"\PL+",
    r"\p{^L}+", r"[\pL\d]+", r"[[:alpha:]]+", r"[^[:alpha:]]+", r"[[:^alpha:]]+", r"a\z", r"a$",
    r"\Qa-b\E", r"\bfoo\b.*", r".*\bé.*", r"[]]", r"[^]]+", r"[[]", r"[a\]b]+", r"[[a]+",
    r"(?i)CAFÉ", r"\s+", r"[[:space:]]+", r"\x41|\x{e9}", r"(?s).*", r".*", r"[a\-^]+",
    r"(?P<n>a)b", r"[[:punct:]]+", r"[\^]", r"\A\w\z", r"\\", r"\p{Any}",
]  # fmt: skip


def matching(pattern: str) -> bytes:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, ["n"])],
    )  # fmt: skip
    proto = helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 21)])
    content: bytes = proto.SerializeToString()
    return content


def matches(session: Any) -> list[str]:
    (found,) = session.run(None, {"x": np.array(TEXTS, object)})
    return [text for text, is_one in zip(TEXTS, found, strict=True) if is_one]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_they_match_in_re2(pattern: str) -> None:
    content = matching(pattern)
    got = matches(hagane.InferenceSession(content))
    assert got == matches(onnxruntime.InferenceSession(content))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [(r"\p{Greek}", "expected a category of Unicode"), (r"[[:none:]]", "unknown class"),
     ("(", "unterminated")],
)  # fmt: skip
def test_patterns_that_nobody_knows_are_named_by_a_run(pattern: str, message: str) -> None:
    made = hagane.InferenceSession(matching(pattern))
    with pytest.raises(KernelError, match=message):
        made.run(None, {"x": np.array(["a"], object)})


def test_labels_of_not_a_number_and_of_rounded_numbers_are_found() -> None:
    keys = [0.1, float("nan"), 2.0]
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_floats=keys,
        values_strings=["tenth", "none", "two"], default_string="other",
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    proto: onnx.ModelProto = helper.make_model(graph, ir_version=9, opset_imports=opsets)
    feed = {"x": np.array([2, np.nan, 0.1, -1], np.float32)}
    (got,) = hagane.InferenceSession(proto).run(None, feed)
    assert got.tolist() == ["two", "none", "tenth", "other"]
