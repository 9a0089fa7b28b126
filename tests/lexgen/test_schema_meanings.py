"""What keywords of JSON Schema mean where they stand together, and how values are written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask

from .random_schemas import VOCABULARY, taken


def takes(mask: TokenMask, text: str) -> bool:
    """Return whether a mask allows a text."""
    state = mask.start
    for byte in text.encode():
        if not mask.mask(state)[byte]:
            return False
        state = mask.advance(state, byte)
    return mask.accepts(state)


NULL, TEXT, WHOLE = {"type": "null"}, {"type": "string"}, {"type": "integer"}
IN_ALL = {"allOf": [{"prefixItems": [WHOLE]}], "unevaluatedItems": False}
BRANCHES = {"if": {"prefixItems": [{"const": 1}]}, "then": {"prefixItems": [True, TEXT]},
            "unevaluatedItems": NULL}  # fmt: skip
TWO_WAYS = {
    "anyOf": [{"properties": {"a": WHOLE}, "required": ["a"]},
              {"properties": {"b": WHOLE}, "required": ["b"]}],
    "unevaluatedProperties": False,
}  # fmt: skip
CONDITION = {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
             "then": {"properties": {"b": WHOLE}}, "unevaluatedProperties": False}  # fmt: skip
TREE = {
    "$dynamicAnchor": "node", "type": "object", "required": ["v"],
    "properties": {"v": WHOLE, "next": {"$dynamicRef": "#node"}},
}  # fmt: skip
DOCUMENTS = {
    "$id": "http://a.org/root",
    "$defs": {
        "n": {"$id": "http://a.org/n", "$defs": {"t": TEXT}, "$ref": "#/$defs/t"},
        "t": WHOLE,
    },
    "$ref": "http://a.org/n",
}
NO_NAMES = {
    "$defs": {"x": {"enum": [{"$anchor": "k"}]}, "y": {"$anchor": "k", "type": "string"}},
    "$ref": "#k",
}


@pytest.mark.parametrize(
    ("schema", "allowed", "forbidden"),
    [
        (IN_ALL, [[], [1]], [["x"], [1, 2]]),
        ({"prefixItems": [WHOLE], "contains": TEXT, "unevaluatedItems": False}, [[1, "x"]],
         [[1], [1, None]]),
        (BRANCHES, [[1, "x", None], [None]], [[1, None], [2], [1, "x", 3]]),
        ({"not": {"not": {"prefixItems": [WHOLE]}}, "unevaluatedItems": False}, [[]], [[1]]),
        (TWO_WAYS, [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}], [{}, {"a": 1, "c": 2}]),
        (CONDITION, [{}, {"a": 1}, {"a": 1, "b": 2}], [{"a": 2}, {"b": 2}]),
        ({"properties": {"a": True}, "unevaluatedProperties": NULL}, [{"a": 1, "b": None}],
         [{"b": 1}]),
        ({"properties": {"a": True}, "unevaluatedProperties": True}, [{"a": 1, "b": 1}], []),
        ({"type": "array", "dependentSchemas": {"a": {"minItems": 2}}}, [[], [1, 2]], [{}]),
        (TREE, [{"v": 1, "next": {"v": 2}}], [{"v": 1, "next": {}}]),
        (DOCUMENTS, ["x"], [1]),
        (NO_NAMES, ["x"], [{"$anchor": "k"}]),
        ({"type": "array", "maxItems": 2**63 - 1}, [[], [1]], [1]),
    ],
    ids=lambda part: json.dumps(part)[:40],
)  # fmt: skip
def test_what_others_evaluate_and_references_name(
    schema: Any, allowed: list[Any], forbidden: list[Any]
) -> None:
    mask = TokenMask(schema, VOCABULARY)
    assert [value for value in allowed if not taken(mask, value)] == []
    assert [value for value in forbidden if taken(mask, value)] == []


@pytest.mark.parametrize(
    ("schema", "allowed", "forbidden"),
    [
        # A type that one schema names stays, though another speaks of other types alone.
        ({"type": ["object", "null"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
         [None, {"b": 1}], [{}, 1]),
        ({"type": "object", "nullable": True, "allOf": [{"properties": {"a": WHOLE}}]},
         [None, {"a": 1}], ["x"]),
        ({"anyOf": [{"minLength": 1}, NULL]}, [None, "x"], ["", 1]),
        ({"allOf": [{"minLength": 1}, {"minimum": 1}]}, ["x", 1], ["", 0, None]),
        ({"enum": ["", "x", 1], "minLength": 1}, ["x", 1], [""]),
    ],
    ids=lambda part: json.dumps(part)[:40],
)  # fmt: skip
def test_values_of_a_type_that_a_schema_names_are_taken(
    schema: Any, allowed: list[Any], forbidden: list[Any]
) -> None:
    mask = TokenMask(schema, VOCABULARY)
    assert [value for value in allowed if not taken(mask, value)] == []
    assert [value for value in forbidden if taken(mask, value)] == []


@pytest.mark.parametrize(
    ("keywords", "allowed", "forbidden"),
    [
        ({"pattern": r"^\s$"}, ["\u00a0", "\ufeff", "\u2003", "\v"], ["x"]),
        ({"pattern": r"^\S$"}, ["x", "é"], ["\u00a0", "\ufeff", "\u2029", "\t"]),
        ({"pattern": "^.$"}, ["x"], ["\n", "\r", "\u2028", "\u2029"]),
        ({"pattern": "^[^]$"}, ["x", "\n"], ["", "xx"]),
        ({"pattern": r"^\p{Letter}\p{digit}$"}, ["x1", "é٣"], ["11", "xx"]),
        ({"pattern": r"^\cJ$"}, ["\n"], ["J"]),
        ({"pattern": r"^(é\bx|\bé)$"}, ["éx"], ["é"]),
        ({"format": "date"}, ["2024-02-29", "2000-02-29"], ["2023-02-29", "1900-02-29"]),
        # What an expression of a format leaves out counts neither as of it nor as not of it.
        ({"not": {"format": "date"}}, ["2023-02-29", "x"], ["2024-02-29", "2024-02-28"]),
        ({"anyOf": [{"not": {"format": "ipv6"}}, {"const": "x"}]}, ["x"], ["::1.2.3.4"]),
        ({"format": "hostname"}, ["a-b.example.org", "a--b", "x" * 63],
         ["xn--x", "ab--c", "x" * 64, "-a", "a-", ".".join(["x" * 63] * 4)]),
    ],
    ids=str,
)  # fmt: skip
def test_texts_are_those_of_ecmascript_and_the_formats(
    keywords: dict[str, Any], allowed: list[str], forbidden: list[str]
) -> None:
    mask = TokenMask({"type": "string", **keywords}, VOCABULARY)
    assert [text for text in allowed if not taken(mask, text)] == []
    assert [text for text in forbidden if taken(mask, text)] == []


def test_control_characters_are_written_as_escapes() -> None:
    for schema in ({"const": "a\0b\x1f\n"}, {"type": "string"}, {"pattern": "^a"}):
        mask = TokenMask(schema, VOCABULARY)
        assert taken(mask, "a\0b\x1f\n")
        assert not takes(mask, '"a\0"')


def test_a_solidus_stands_alone_or_behind_a_backslash() -> None:
    for schema in ({"type": "string"}, {"enum": ["a/b"]}, {"format": "uri-reference"}):
        mask = TokenMask(schema, VOCABULARY)
        assert takes(mask, '"a/b"')
        assert takes(mask, r'"a\/b"')
        assert not takes(mask, r'"a\\\/b"') or schema == {"type": "string"}
    assert not takes(TokenMask({"maxLength": 2, "type": "string"}, VOCABULARY), r'"a\/b"')


VALUE = {"a": [1, {"b": None}], "c": {}, "d": []}
WRITTEN = [json.dumps(VALUE, separators=(",", ":")), json.dumps(VALUE), json.dumps(VALUE, indent=2),
           json.dumps(VALUE, indent="\t")]  # fmt: skip


@pytest.mark.parametrize(
    ("space", "allowed"),
    [
        ("", [1, 0, 0, 0]),
        (" ?", [1, 1, 0, 0]),
        (r"[ \n]*", [1, 1, 1, 0]),
        (r"\s{0,9}", [1, 1, 1, 1]),
    ],
)
def test_white_space_is_that_of_the_setting(space: str, allowed: list[int]) -> None:
    for schema in (
        {"type": "object"},
        {"const": VALUE},
        {"properties": {"a": {}, "c": {}, "d": {}}},
    ):
        mask = TokenMask(schema, VOCABULARY, space=space)
        assert [takes(mask, text) for text in WRITTEN] == [bool(each) for each in allowed]


def test_white_space_that_json_lacks_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="white space alone, got 'x ', which matches 'x '"):
        TokenMask({}, VOCABULARY, space="x ")
    with pytest.raises(InvalidArgument, match="expected a 'space' that JSON has"):
        TokenMask({}, VOCABULARY, space=r"\f")


def test_names_that_may_repeat_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    TokenMask({"type": "object", "minProperties": 2}, VOCABULARY)
    assert "#/minProperties: members of names that the schema leaves free count" in caplog.text
    caplog.clear()
    TokenMask({"type": "object", "minProperties": 1}, VOCABULARY)
    assert not caplog.text


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"items": {"disallow": "integer"}}, "#/items/disallow: a keyword of draft 3 .* 'not'"),
        ({"type": "integer", "divisibleBy": 2}, "#/divisibleBy: .* write 'multipleOf'"),
        ({"extends": {"maximum": 30}, "minimum": 20}, "#/extends: .* write 'allOf'"),
        (
            {"$schema": "http://json-schema.org/draft-03/schema#", "format": "ip-address"},
            r"#/\$schema: 'http.*draft-03.*' is a draft in which keywords have other meanings",
        ),
    ],
)
def test_what_constrained_values_before_draft_4_is_refused(
    schema: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidArgument, match=told):
        TokenMask(schema, VOCABULARY)
