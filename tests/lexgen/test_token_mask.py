"""Masks of tokens: sampled outputs match, and masks are what trying every token says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hagane.errors import InvalidArgument, NoSuchFile
from hagane.lexgen import Regex, RegexSyntaxError, TokenMask, Vocabulary
from hagane.lexgen.masks.schemas.writing import schema_rules
from hagane.lexgen.masks.vocabularies.vocabulary import joined

END = "</s>"
VOCABULARY: list[Any] = [
    *(chr(code) for code in range(32, 127)),
    *("ab", "12", "1.5", '"a', '":', '{"', "true", "20", "2024-", "-0", "@ex", ".com", "é", "日本"),
    END,
    *(bytes([byte]) for byte in range(128, 256)),
]
PATTERNS = [
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?",
    r"[a-z]+@[a-z]+(\.[a-z]+)+",
    r'\{"name": "[^"\\]*", "age": [0-9]{1,3}\}',
    "é*|日本",
    "^a+$",
]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "tags": {"type": "array", "items": {"enum": ["a", 'b"c', 3]}, "maxItems": 3},
        "x": {"type": ["number", "null"]},
        "id": {"type": "string", "pattern": r"^[a-z\"]{2}-\d$"},
        "child": {"$ref": "#/$defs/child"},
    },
    "required": ["name", "tags"],
    "$defs": {"child": {"type": "object", "properties": {"ok": {"type": "boolean"}}}},
}


def sample(index: TokenMask, generator: np.random.Generator, limit: int = 60) -> bytes | None:
    state, tokens = index.start, []
    while state != index.done:
        mask = index.mask(state)
        if len(tokens) > limit and index.end is not None and mask[index.end]:
            break
        if len(tokens) > 1000 * limit:
            return None
        tokens.append(int(generator.choice(mask.tokens())))
        state = index.advance(state, tokens[-1])
    return joined(tokens, index.vocabulary)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_sampled_outputs_match_the_pattern(pattern: str) -> None:
    index = TokenMask(pattern, VOCABULARY)
    generator = np.random.default_rng(3)
    for _ in range(200):
        output = sample(index, generator)
        assert output is not None
        assert re.fullmatch(pattern, output.decode()), output


@pytest.mark.long
def test_ten_thousand_sampled_outputs_match() -> None:
    indices = [(re.compile(p), TokenMask(p, VOCABULARY)) for p in PATTERNS]
    generator = np.random.default_rng(4)
    for number in range(10_000):
        pattern, index = indices[number % len(indices)]
        output = sample(index, generator)
        assert output is not None
        assert pattern.fullmatch(output.decode()), output


@pytest.mark.parametrize("pattern", PATTERNS)
def test_c_and_numpy_build_the_same_index(pattern: str) -> None:
    native, plain = TokenMask(pattern, VOCABULARY), TokenMask(pattern, VOCABULARY, native=False)
    assert native.states == plain.states or set(native.states) == set(plain.states)
    for state in native.states:
        assert (native.mask(state).words == plain.mask(state).words).all()


def test_a_mask_allows_exactly_the_tokens_after_which_a_match_is_possible() -> None:
    pattern = "ab(12)*é?"
    index = TokenMask(pattern, VOCABULARY, native=False)
    state = index.advance(index.start, VOCABULARY.index("ab"))
    allowed = {VOCABULARY[token] for token in index.mask(state).tokens()}
    assert allowed == {"1", "12", "é", b"\xc3", END}
    assert index.accepts(state)


def test_tokens_that_lead_into_a_dead_end_are_not_allowed() -> None:
    index = TokenMask("ab|cd", ["a", "b", "c", "x"])
    assert index.mask(index.start).tokens().tolist() == [0]
    with pytest.raises(InvalidArgument, match="no sequence of tokens"):
        TokenMask("cd", ["a", "b", "c"])


def test_sampled_outputs_of_a_schema_are_valid() -> None:
    index = TokenMask(SCHEMA, VOCABULARY)
    generator = np.random.default_rng(5)
    seen = set()
    for _ in range(300):
        output = sample(index, generator)
        assert output is not None
        value = json.loads(output)
        seen |= set(value)
        assert {"name", "tags"} <= set(value) <= set(SCHEMA["properties"])  # type: ignore[call-overload]
        assert len(value["name"]) <= 5
        assert 0 <= value.get("age", 0) <= 130
        assert all(tag in ["a", 'b"c', 3] for tag in value["tags"])
        assert re.fullmatch(r'[a-z"]{2}-[0-9]', value.get("id", 'a"-1'))
    assert seen == set(SCHEMA["properties"])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"minimum": 1.5, "maximum": 4.5}, {2, 3, 4}),
        ({"exclusiveMinimum": 1.5, "exclusiveMaximum": 4}, {2, 3}),
        ({"minimum": 3, "exclusiveMinimum": 1, "maximum": 9, "exclusiveMaximum": 5}, {3, 4}),
        ({"exclusiveMinimum": -3, "exclusiveMaximum": -1}, {-2}),
    ],
)
def test_bounds_of_a_schema_hold_together(bounds: dict[str, float], expected: set[int]) -> None:
    index = TokenMask({"type": "integer", **bounds}, VOCABULARY)
    generator = np.random.default_rng(6)
    assert {int(sample(index, generator) or b"") for _ in range(60)} == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"minimum": "a"}, "#/minimum: expected a finite number, got 'a'"),
        (
            {"$dynamicRef": "#a", "$defs": {"x": {"$id": "/x"}}},
            r"#/\$dynamicRef: a reference that depends on the way to it",
        ),
        ({"const": ["\ud800"]}, "#/const: expected a value of JSON"),
        ({"properties": {"\ud800": {}}}, "#/properties: expected an object of schemas"),
        ({"contains": {}, "minContains": "x"}, "#/minContains: expected a whole number"),
        ({"uniqueItems": True, "minItems": 2}, "#/uniqueItems: that items differ is not covered"),
        ({"type": "number", "multipleOf": 0.123457}, "multiples of 0.123457 need too many states"),
        ({"format": "idn-hostname"}, "#/format: expected one of date, .*, got 'idn-hostname'"),
        ({"pattern": "a(?=b)"}, "#/pattern: look-ahead is not covered"),
        ({"$ref": "#"}, "the schema refers to itself without a value in between"),
        ({"not": True}, "no text matches 'JSON schema"),
        ({"properties": {"a": False}, "required": ["a"], "type": "object"}, "no text matches"),
        ({"minProperties": 600}, "#: more than 511 members are not counted"),
        ({"unevaluatedProperties": 5}, "#/unevaluatedProperties: expected a schema"),
        ({"type": "strin"}, "expected a type"),
        ({"properties": {"a": {"type": "list"}}}, "#/properties/a/type: expected a type"),
        (
            {"$ref": "#/$defs/no", "$defs": {"yes": True}},
            r"#/\$ref: there is nothing at '#/\$defs/no', no 'no'; there are: yes",
        ),
        (
            {"$ref": "other.json"},
            r"#/\$ref: expected a pointer within the schema, got 'other.json'",
        ),
    ],
)
def test_schemas_that_are_not_covered_are_refused_with_their_place(
    schema: Any, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        TokenMask(schema, VOCABULARY)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (3, "#: expected a schema (an object, true or false), got 3"),
        ({"type": None}, "#/type: expected a type (string, number, integer, boolean, null, object, "
         'array) or a list of types, got None; write "null" for the type of null'),
        ({"type": []}, 'got []; write "string", or ["string", "null"] for several'),
        ({"type": "object", "required": "a"},
         """#/required: expected a list of different names, got 'a'; write ["a"]"""),
        ({"properties": {"a": {"type": "string", "required": True}}},
         "#/properties/a/required: expected a list of different names, got True; since draft 4 the "
         "object lists the names of its required properties"),
        ({"required": ["a", 1]}, "got ['a', 1]; write each name once, as in [\"name\"]"),
        ({"required": ["a", "a"]}, "got ['a', 'a']; write each name once"),
        ({"properties": ["a"]}, "#/properties: expected an object of schemas, got ['a']; write "
         "{\"name\": {…}} for each property; names that must be there go into 'required'"),
        ({"properties": {"a/b": "string"}}, "#/properties: expected an object of schemas, got "
         """{'a/b': 'string'}; write {"name": {"type": "string"}}, or {"name": true}"""),
        ({"properties": {"a/b": {"items": [1]}}},
         "#/properties/a~1b/items: expected a schema, or a list of them, got [1]; write"),
        ({"items": "string"}, "#/items: expected a schema, or a list of them, got 'string'; write"),
        ({"$ref": 3}, '#/$ref: expected a pointer as a string, got 3; write "#/$defs/name"'),
        ({"enum": "a"}, "#/enum: expected a list of values, not empty, got 'a'; write [\"a\", 1]"),
        ({"enum": []}, "#/enum: expected a list of values, not empty, got []"),
        ({"enum": [{1, 2}]}, "#/enum: expected a list of values, not empty, got [{1, 2}]"),
        ({"const": float("nan")}, "#/const: expected a value of JSON, got nan"),
        ({"anyOf": {}}, "#/anyOf: expected a list of schemas, not empty, got {}"),
        ({"anyOf": [{"type": "null"}, {"minLength": "3"}]},
         "#/anyOf/1/minLength: expected a whole number of at least 0, got '3'; drop it"),
        ({"maxItems": True}, "#/maxItems: expected a whole number of at least 0, got True"),
        ({"pattern": ["a"]}, "#/pattern: expected a string, got ['a']; write it in quotes"),
        ({"type": "integer", "maximum": True}, "#/maximum: expected a finite number, got True"),
        ({"additionalProperties": "no"}, "#/additionalProperties: expected a schema, got 'no'"),
    ],
)  # fmt: skip
def test_malformed_schemas_are_refused_with_what_was_expected(schema: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        schema_rules(schema)


def test_references_follow_pointers_through_lists_and_escapes() -> None:
    schema = {
        "anyOf": [{"$ref": "#/$defs/a~1b%20c"}, {"$ref": "#/anyOf/2"}, {"const": 7}, False],
        "$defs": {"a/b c": {"enum": ["x", None]}},
    }
    index = TokenMask(schema, VOCABULARY)
    generator = np.random.default_rng(7)
    assert {sample(index, generator) for _ in range(60)} == {b'"x"', b"null", b"7"}


def test_logits_of_any_shape_are_masked() -> None:
    index = TokenMask("12", VOCABULARY)
    logits = np.zeros((2, 1, len(VOCABULARY) + 5), np.float32)
    masked = index.apply(logits, index.start)
    assert masked.dtype == np.float32
    allowed = np.flatnonzero(np.isfinite(masked[1, 0]))
    assert [VOCABULARY[token] for token in allowed] == ["1", "12"]
    assert (np.asarray(index.mask(index.start)) == np.isfinite(masked[0, 0, : index.size])).all()
    with pytest.raises(InvalidArgument, match="expected logits with a last axis of at least"):
        index.apply(logits[..., :5], index.start)


def test_a_token_that_is_not_allowed_cannot_be_taken() -> None:
    index = TokenMask(Regex("a"), VOCABULARY)
    with pytest.raises(InvalidArgument, match=r"token 0 \(b' '\) is not allowed here"):
        index.advance(index.start, 0)


def test_tokenizer_files_are_decoded(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    content: dict[str, Any] = {
        "model": {"type": "BPE", "vocab": {"Ġa": 0, "Ã©": 1, "b": 2, "<|endoftext|>": 3}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": 3, "content": "<|endoftext|>", "special": True}],
    }
    path.write_text(json.dumps(content))
    vocabulary = Vocabulary.of(path)
    assert vocabulary.tokens == (b" a", "é".encode(), b"b", None)
    assert vocabulary.end == 3
    content["model"]["vocab"] = {"▁a": 0, "<0xC3>": 1, "b": 2, "</s>": 3}
    content["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]}
    content["added_tokens"] = []
    path.write_text(json.dumps(content))
    assert Vocabulary.of(str(path)).tokens == (b" a", b"\xc3", b"b", None)


def test_unusable_vocabularies_and_patterns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFile, match="there is no tokenizer"):
        TokenMask("a", str(tmp_path / "none.json"))
    with pytest.raises(InvalidArgument, match="at least one token"):
        TokenMask("a", [])
    with pytest.raises(InvalidArgument, match="got int as token 1"):
        TokenMask("a", ["a", 3])  # type: ignore[list-item]
    with pytest.raises(RegexSyntaxError):
        TokenMask("(a", ["a"])


def test_a_vocabulary_of_bytes_has_its_end_token_by_name() -> None:
    for end in (None, "</s>"):
        mask = TokenMask("a+", [b"a", b"\xff", b"</s>"], end=end)
        assert mask.end == 2
        assert mask.mask(mask.advance(mask.start, 0)).tokens().tolist() == [0, 2]
    with pytest.raises(InvalidArgument, match="there is no token '<end>' to end an output with"):
        TokenMask("a+", [b"a", b"</s>"], end="<end>")
