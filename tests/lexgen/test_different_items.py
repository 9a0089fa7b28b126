"""``uniqueItems`` of items with few values: exact, or in the order of the schema."""

import itertools
import json
import logging
from typing import Any

import jsonschema
import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask, Vocabulary

BYTES = Vocabulary.of([*(bytes([n]) for n in range(256)), b"</s>"], 256)


def accepts(mask: TokenMask, value: Any) -> bool:
    state = mask.start
    for byte in json.dumps(value, ensure_ascii=False).encode():
        if not mask.mask(state)[byte]:
            return False
        state = mask.advance(state, byte)
    return mask.accepts(state)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"enum": ["r", "w", 'x"é', None, 1]}},
        {"items": {"enum": ["r", "w", "x"]}, "minItems": 2, "maxItems": 2},
        {"items": {"type": ["boolean", "null"]}, "minItems": 2},
        {"items": {"anyOf": [{"const": "r"}, {"pattern": "^[wx]$", "type": "string"}]}},
        {"prefixItems": [{"const": 1}, {"enum": ["r", 1]}], "items": {"enum": ["r", "w", None]}},
        {"prefixItems": [{"enum": ["r", 1]}, {"enum": ["r", 1]}], "items": False},
        {"items": {"enum": ["r", "w"]}, "contains": {"const": "w"}},
    ],
)
def test_items_of_few_values_differ_in_any_order(schema: dict[str, Any]) -> None:
    schema = {"type": "array", "uniqueItems": True, **schema}
    mask = TokenMask(schema, BYTES)
    checks = jsonschema.Draft202012Validator(schema)
    values = ["r", "w", 'x"é', "x", None, 1, True, "q"]
    tried = [list(t) for n in range(4) for t in itertools.product(values, repeat=n)]
    valid = [each for each in tried if checks.is_valid(each)]
    taken = [each for each in tried if accepts(mask, each)]
    if "contains" in schema:  # whose items come first
        assert taken == [each for each in valid if each[0] == "w"]
    else:
        assert taken == valid


def test_items_of_more_values_come_in_order(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"n{number:02}" for number in range(40)]
    schema = {"type": "array", "items": {"enum": names}, "uniqueItems": True}
    with caplog.at_level(logging.WARNING, "hagane.lexgen"):
        mask = TokenMask(schema, BYTES)
    assert "#/uniqueItems: items come in the order of the schema" in caplog.text
    for each in ([], ["n07"], ["n00", "n03", "n39"], names):
        assert accepts(mask, each)
    for each in (["n07", "n07"], ["n03", "n00"], [*names, "n40"]):
        assert not accepts(mask, each)
    mask = TokenMask({**schema, "minItems": 2, "maxItems": 3}, BYTES)
    sizes = [accepts(mask, names[:size]) for size in range(6)]
    assert sizes == [False, False, True, True, False, False]
    assert not accepts(mask, ["n01", "n01"])


def test_items_of_many_values_are_one_at_most() -> None:
    mask = TokenMask({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, BYTES)
    assert [accepts(mask, each) for each in ([], [5], [5, 6])] == [True, True, False]
    many = {"type": "array", "uniqueItems": True, "minItems": 2}
    with pytest.raises(InvalidArgument, match="covered for more than one item of many values"):
        TokenMask(many, BYTES)
