"""Random schemas: the masks allow no value that another validator forbids."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask

from .random_schemas import VOCABULARY, taken, wrong


@pytest.mark.parametrize("seed", range(6))
def test_masks_of_random_schemas_allow_valid_values_alone(seed: int) -> None:
    assert wrong(seed)[0] == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 200))
def test_masks_of_more_random_schemas_allow_valid_values_alone(seed: int) -> None:
    assert wrong(seed)[0] == []


@pytest.mark.parametrize(
    ("schema", "allowed", "forbidden"),
    [
        ({"not": {"const": {"a": [1, "x"]}}},
         [{"a": [1]}, {"a": [1, "y"]}, {"a": 1}, {}, {"a": [1, "x"], "b": 1}, [1, "x"]],
         [{"a": [1, "x"]}]),
        ({"not": {"enum": [[], [1, 2], {}, 3]}}, [[1], [1, 3], [2, 2], [1, 2, 3], {"a": 1}, 4],
         [[], [1, 2], {}, 3]),
        ({"not": {"oneOf": [{"type": "integer"}, {"minimum": 2, "type": "number"}]}},
         ["x", None, 2, 3, 1.5], [1, 2.5]),
        ({"not": {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"type": "null"}}},
         ["", "a", 1, [], {}], ["ab", None]),
        ({"not": {"dependentRequired": {"a": ["b"]}}}, [{"a": 1}], [{}, {"a": 1, "b": 1}, 1]),
        ({"not": {"dependentSchemas": {"a": {"required": ["b"]}}}}, [{"a": 1}],
         [{}, {"a": 1, "b": 1}, "x"]),
        ({"type": "array", "not": {"items": {"type": "integer"}}}, [["x"], ["x", 1]], [[], [1, 2]]),
        ({"type": "array", "prefixItems": [{"type": "null"}], "contains": {"type": "integer"}},
         [[None, 1], [None, 1, "x"]], [[None], [1], [None, "x"]]),
        ({"properties": {"a": {"const": 1}, "b": {"const": True}, "c": {"const": 1.0}}},
         [{"a": 1, "b": True}, {"c": 1}], [{"a": True}, {"b": 1}, {"c": True}]),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"items": {"$ref": "#/$defs/a"}, "type": "array"}],
          "$defs": {"a": {"type": "string", "title": "x"}, "b": {"type": "string", "title": "y"}}},
         ["x", ["x"], []], [1, [1], [["x"]]]),
        ({"type": "object", "properties": {"a": False}, "minProperties": 1}, [{"b": 1}],
         [{}, {"a": 1}]),
        ({"properties": {"k": {"type": "string"}},
          "not": {"additionalProperties": {"type": "null"}}},
         [{"k": "x"}], [{}, {"k": None}]),
        ({"type": "object", "not": {"patternProperties": {"^b": {"type": "null"}}}}, [{"b": 1}],
         [{}, {"b": None}, {"c": 1}]),
        ({"properties": {"x": {}}, "required": ["x"], "not": {"propertyNames": {"pattern": "^a"}}},
         [{"x": 1}], [{}, {"a": 1}]),
        ({"oneOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"],
             "additionalProperties": False},
            {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
             "required": ["a"], "additionalProperties": False}]},
         [{"a": 1, "b": 2}], [{"a": 1}, {"a": 1, "b": "x"}, {"a": 1, "c": 2}]),
    ],
    ids=lambda part: json.dumps(part)[:40],
)  # fmt: skip
def test_contraries_are_exact(schema: Any, allowed: list[Any], forbidden: list[Any]) -> None:
    mask = TokenMask(schema, VOCABULARY)
    assert [value for value in allowed if not taken(mask, value)] == []
    assert [value for value in forbidden if taken(mask, value)] == []


def test_members_of_a_constant_do_not_count_as_evaluated() -> None:
    with pytest.raises(InvalidArgument, match="no text matches"):
        TokenMask({"const": {"a": 1}, "unevaluatedProperties": False}, VOCABULARY)


@pytest.mark.parametrize(
    ("schema", "text", "most"),
    [
        ({"type": "string", "format": "uri", "maxLength": 2083}, "http://a.b/c?d", 2083 - 64),
        ({"type": "string", "pattern": "^arn:[a-z]{3,12}:.*$", "maxLength": 90_000}, "arn:aws:x",
         90_000),
    ],
)  # fmt: skip
def test_a_great_length_beside_a_pattern_is_narrowed_with_a_notice(
    schema: dict[str, Any], text: str, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    mask = TokenMask(schema, VOCABULARY)
    (start,) = re.findall(
        r"#/maxLength: texts of more than (\d+) characters go on with characters of one kind here",
        caplog.text,
    )
    assert int(start) > 100
    longest = text + "x" * (most - len(text))
    assert [taken(mask, each) for each in (text, longest)] == [True, True]
    assert [taken(mask, each) for each in ("a b", longest + "x" * 65)] == [False, False]
