"""Bounds of length beside patterns and formats: exact where they can be, never too wide."""

import itertools
import json
import logging
import random
import re

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask, Vocabulary
from hagane.lexgen.masks.schemas import formats, lengths
from hagane.lexgen.masks.schemas.formats import FORMATS, shorter
from hagane.lexgen.masks.texts import matching

BYTES = Vocabulary.of([*(bytes([n]) for n in range(256)), b"</s>"], 256)


@pytest.fixture(autouse=True)
def nothing_is_known() -> None:
    """Bounds of states change between tests, and results with them."""
    lengths.within.cache_clear()


def accepts(mask: TokenMask, value: str) -> bool:
    state = mask.start
    for byte in json.dumps(value, ensure_ascii=False).encode():
        if not mask.mask(state)[byte]:
            return False
        state = mask.advance(state, byte)
    return mask.accepts(state)


PATTERNS = ("^a*b?$", "ab", "^(?:a|bb)*$", "^a+(?:b|bab+)$", "^[ab]{2}$", "b$", "^(?:ab)+b*$")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("repeated", [False, True])
def test_texts_with_bounds_match_their_pattern(
    pattern: str, repeated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if repeated:
        monkeypatch.setattr(lengths, "MOST_STATES", 5)
        monkeypatch.setattr(lengths, "_MOST_BEFORE", 6)
    draw = random.Random(pattern)
    for low, high in ((0, 3), (2, 7), (4, 8), (8, 8)):
        schema = {"type": "string", "pattern": pattern, "minLength": low, "maxLength": high}
        texts = ["".join(t) for n in range(10) for t in itertools.product("ab", repeat=n)]
        good = {t for t in texts if low <= len(t) <= high and re.search(pattern, t)}
        if not good:
            with pytest.raises(InvalidArgument, match="has a length within its bounds"):
                TokenMask(schema, BYTES)
            continue
        try:
            mask = TokenMask(schema, BYTES)
        except InvalidArgument:
            assert repeated
            continue
        tried = good | set(draw.sample(texts, 200))
        found = {text for text in tried if accepts(mask, text)}
        assert found <= good
        assert repeated or found == good


def test_long_texts_with_a_pattern_go_on_where_it_repeats(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "hagane.lexgen"):
        mask = TokenMask({"type": "string", "format": "uri", "maxLength": 2083}, BYTES)
    assert "texts of more than 187 characters go on with characters of one kind" in caplog.text
    start = "https://example.com/a"
    assert accepts(mask, start + "b" * (2083 - 64 - len(start)))
    assert not accepts(mask, start + "b" * (2084 - len(start)))
    ends = {"type": "string", "pattern": r"^[ab]\w*-[0-9]{3}$", "minLength": 9_000,
            "maxLength": 10_000}  # fmt: skip
    mask = TokenMask(ends, BYTES)
    assert accepts(mask, "a" * 9_500 + "-123")
    assert not accepts(mask, "a" * 9_500 + "-12")
    assert not accepts(mask, "a" * 8_000 + "-123")
    assert not accepts(mask, "a" * 9_997 + "-123")


@pytest.mark.parametrize("name", ["email", "idn-email", "hostname"])
def test_addresses_with_bounds_keep_the_usual_lengths(name: str) -> None:
    for most in (48, 65, 100, 255):
        texts = matching(FORMATS[name], whole=True) & matching(shorter(name, most), whole=True)
        longest = lengths._longest(texts)
        assert longest is not None
        assert longest <= most
    mask = TokenMask({"type": "string", "format": "email", "maxLength": 255}, BYTES)
    assert accepts(mask, "ann.smith+" + "x" * 40 + "@mail.physics.example.co.uk")
    assert not accepts(mask, "x" * 64 + "@" + ".".join(["y" * 60] * 4))
    assert accepts(
        TokenMask({"format": "hostname", "maxLength": 253}, BYTES), "a.b.c.d.example.org"
    )


def test_bounds_of_length_are_worked_out_once_for_all_schemas() -> None:
    address = {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}
    TokenMask(address, BYTES)
    before = lengths.within.cache_info().misses
    mask = TokenMask({"type": "object", "properties": {"to": address}, "required": ["to"]}, BYTES)
    assert lengths.within.cache_info().misses == before
    state = mask.start
    for byte in b'{"to":"http://a/' + b"x" * 1900:
        state = mask.advance(state, byte)
    assert mask.mask(state)[ord("x")]
    for byte in b'"}':
        state = mask.advance(state, byte)
    assert mask.accepts(state)


def test_a_bound_of_length_makes_no_other_format() -> None:
    formats_made = dict(formats._made)
    TokenMask({"type": "string", "format": "uri", "maxLength": 1999}, BYTES)
    assert formats._made.keys() - formats_made.keys() <= {"uri"}
