"""Schemas of many branches, and of many levels: what they need, and what they allow."""

from __future__ import annotations

from typing import Any

from hagane.lexgen import TokenMask

from .random_schemas import VOCABULARY, taken


def test_values_may_lie_in_each_other_deeply() -> None:
    nested: Any = {"type": "integer"}
    for _ in range(3000):
        nested = {"type": "array", "items": nested}
    mask = TokenMask(nested, VOCABULARY)
    state = mask.start
    for token in [*b"[" * 3000, *b"7", *b"]" * 3000]:
        assert mask.mask(state)[token]
        state = mask.advance(state, token)
    assert mask.accepts(state)


def member(name: str, **more: Any) -> dict[str, Any]:
    """Return the schema of objects of one member and, perhaps, of those that many have."""
    properties = {name: {"type": "string"}, **{f"m{k}": {"type": "string"} for k in range(6)}}
    return {"type": "object", "properties": properties, "required": [name], **more}


def test_one_of_many_that_exclude_each_other_needs_no_contraries() -> None:
    # Lists of different items elsewhere have fewer texts than the schema, which is no hindrance.
    unique = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}
    kinds = [member(name, additionalProperties=False) for name in "abcdefgh"]
    schema = {"type": "object", "properties": {"u": {"oneOf": [unique, {"type": "string"}]},
                                               "v": {"oneOf": kinds}}}  # fmt: skip
    mask = TokenMask(schema, VOCABULARY)
    for value in ({"v": {"h": "x", "m5": ""}}, {"u": ["a"], "v": {"c": "x"}}):
        assert taken(mask, value)
    for value in ({"v": {"a": "", "h": ""}}, {"v": {"m0": ""}}):
        assert not taken(mask, value)


def test_one_of_schemas_with_common_values_does_not_allow_them() -> None:
    # A list of different items has more values than the mask allows: those count here.
    unique = {"type": "array", "uniqueItems": True}
    two = {"type": "array", "minItems": 2}
    mask = TokenMask({"oneOf": [unique, two]}, VOCABULARY)
    assert not taken(mask, [1, 2])
    assert taken(mask, [1])
    unevaluated = {"allOf": [{"prefixItems": [{"type": "integer"}]}], "unevaluatedItems": False}
    mask = TokenMask({"type": "array", "oneOf": [unevaluated, {"minItems": 1}]}, VOCABULARY)
    assert not taken(mask, [1])


def test_values_of_many_branches_are_one_set() -> None:
    kinds = [{"const": f"k{number}", "x-hint": number} for number in range(400)]
    schema = {"allOf": [{"anyOf": kinds}, {"anyOf": kinds}], "not": {"anyOf": kinds[:200]}}
    mask = TokenMask(schema, VOCABULARY)
    assert taken(mask, "k399")
    assert not taken(mask, "k3")
    assert not taken(mask, "k400")
