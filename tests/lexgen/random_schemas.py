"""Random JSON schemas of all keywords mixed, and values, beside another validator.

Run: ``python -m tests.lexgen.random_schemas FIRST LAST`` prints the schemas whose masks allow a
value that they forbid, and those said to have no value that have one.
"""

from __future__ import annotations

import argparse
import json
import random
from typing import Any

import jsonschema

from hagane.errors import InvalidArgument
from hagane.lexgen import TokenMask
from hagane.lexgen.masks.vocabularies.vocabulary import Vocabulary

NAMES = ["a", "b", "ab", "xa", "k", "_z", "a b"]
PATTERNS = ["^a", "b$", "^[ab]+$", "[0-9]", "^x", "a.b", "^$", "(ab)*", "\\d{2,3}",
            "^(?:a|bc)$", "[^a]", "a|b"]  # fmt: skip
TEXTS = ["", "a", "b", "ab", "aab", "abc", "xa", "12", "a1b", "x", "bc", "é", "a b", "\\", '"',
         "_z", "a\nb", "ba"]  # fmt: skip
NUMBERS = [0, 1, 2, 3, -1, -3, 5, 7, 10, 12, 14, 100, 0.5, 1.5, -0.25, 2.25, 0.3, 1000, -7, 49]
COMBINING = ["anyOf", "oneOf", "allOf"]


class Drawn:
    """Draws a schema, and values that may be of it."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.recursive = self.often(0.4)
        root = self.schema(3)
        if isinstance(root, dict) and self.recursive:
            root["$defs"] = {"r": self.schema(2), "q": self.schema(2)}
        self.root: Any = root

    def often(self, share: float) -> bool:
        """Return true so often."""
        return self.draw.random() < share

    def some(self, depth: int, most: int = 3) -> list[Any]:
        """Return one to ``most`` schemas."""
        return [self.schema(depth) for _ in range(self.draw.randint(1, most))]

    def value(self, depth: int = 2) -> Any:
        """Return any value."""
        way = self.draw.randrange(8)
        if way == 0:
            return None
        if way == 1:
            return self.often(0.5)
        if way in (2, 3):
            return self.draw.choice(NUMBERS)
        if way in (4, 5) or depth <= 0:
            return self.draw.choice(TEXTS)
        if way == 6:
            return [self.value(depth - 1) for _ in range(self.draw.randrange(4))]
        names = self.draw.sample(NAMES, self.draw.randrange(4))
        return {name: self.value(depth - 1) for name in names}

    def maybe(self, schema: dict[str, Any], share: float, keyword: str, value: Any) -> None:
        """Add a keyword now and then; ``value`` is called for its value."""
        if self.often(share):
            schema[keyword] = value()

    def numbers(self) -> dict[str, Any]:
        """Return a schema of numbers."""
        found: dict[str, Any] = {
            "type": self.draw.choice(["integer", "number", ["number", "null"]])
        }
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            self.maybe(found, 0.3, keyword, lambda: self.draw.choice(NUMBERS))
        self.maybe(found, 0.25, "multipleOf", lambda: self.draw.choice([1, 2, 3, 7, 0.5, 0.25, 10]))
        return found

    def texts(self) -> dict[str, Any]:
        """Return a schema of texts."""
        found: dict[str, Any] = {"type": "string"}
        self.maybe(found, 0.4, "pattern", lambda: self.draw.choice(PATTERNS))
        self.maybe(found, 0.3, "minLength", lambda: self.draw.randrange(4))
        self.maybe(found, 0.3, "maxLength", lambda: self.draw.randrange(6))
        return found

    def arrays(self, depth: int) -> dict[str, Any]:
        """Return a schema of arrays."""
        found: dict[str, Any] = {"type": "array"}
        self.maybe(found, 0.4, "prefixItems", lambda: self.some(depth, 2))
        self.maybe(found, 0.6, "items", lambda: self.schema(depth))
        self.maybe(found, 0.25, "minItems", lambda: self.draw.randrange(3))
        self.maybe(found, 0.25, "maxItems", lambda: self.draw.randrange(4))
        self.maybe(found, 0.2, "contains", lambda: self.schema(depth))
        self.maybe(found, 0.1, "uniqueItems", lambda: True)
        self.maybe(found, 0.1, "unevaluatedItems", lambda: self.schema(depth - 1))
        if "contains" in found:
            self.maybe(found, 0.3, "minContains", lambda: self.draw.randrange(3))
            self.maybe(found, 0.3, "maxContains", lambda: self.draw.randrange(1, 3))
        return found

    def objects(self, depth: int) -> dict[str, Any]:
        """Return a schema of objects."""
        found: dict[str, Any] = {"type": "object"}

        def names(most: int) -> list[str]:
            return self.draw.sample(NAMES, self.draw.randint(1, most))

        def one(choices: list[str]) -> str:
            return self.draw.choice(choices)

        self.maybe(found, 0.8, "properties", lambda: {n: self.schema(depth) for n in names(3)})
        self.maybe(found, 0.4, "required", lambda: names(2))
        self.maybe(found, 0.3, "additionalProperties", lambda: self.schema(depth))
        self.maybe(found, 0.1, "additionalProperties", lambda: False)
        self.maybe(found, 0.2, "patternProperties", lambda: {one(PATTERNS): self.schema(depth)})
        self.maybe(found, 0.1, "propertyNames", lambda: {"pattern": one(PATTERNS)})
        self.maybe(found, 0.15, "minProperties", lambda: self.draw.randrange(3))
        self.maybe(found, 0.15, "maxProperties", lambda: self.draw.randrange(1, 4))
        self.maybe(found, 0.1, "dependentRequired", lambda: {one(NAMES): [one(NAMES)]})
        self.maybe(found, 0.1, "dependentSchemas", lambda: {one(NAMES): self.schema(depth)})
        self.maybe(found, 0.1, "unevaluatedProperties", lambda: self.schema(depth - 1))
        return found

    def schema(self, depth: int) -> Any:
        """Return a schema of at most so many levels."""
        inner = depth - 1
        if depth <= 0 or self.often(0.05):
            plain = [True, False, {}, *({"type": t} for t in ("null", "boolean", "integer"))]
            return self.draw.choice(plain) if self.often(0.5) else {"const": self.value(1)}
        way = self.draw.randrange(12)
        if way < 2:
            found = self.numbers()
        elif way < 4:
            found = self.texts()
        elif way < 6:
            found = self.arrays(inner)
        elif way < 9:
            found = self.objects(inner)
        elif way == 9:
            found = {"enum": [self.value(1) for _ in range(self.draw.randint(1, 3))]}
        elif way == 10 and self.recursive:
            found = {"$ref": f"#/$defs/{self.draw.choice('rq')}"}
        else:
            found = {self.draw.choice(COMBINING): self.some(inner)}
        self.maybe(found, 0.12, "not", lambda: self.schema(inner))
        if self.often(0.1):
            found["if"] = self.schema(inner)
            self.maybe(found, 0.8, "then", lambda: self.schema(inner))
            self.maybe(found, 0.6, "else", lambda: self.schema(inner))
        self.maybe(found, 0.06, "unevaluatedItems", lambda: self.draw.choice([False, True]))
        self.maybe(found, 0.06, "unevaluatedProperties", lambda: self.draw.choice([False, True]))
        self.maybe(found, 0.12, self.draw.choice(COMBINING), lambda: self.some(inner, 2))
        return found

    def near(self, schema: Any, depth: int) -> Any:
        """Return a value that a schema may well allow."""
        if depth < -4 or not isinstance(schema, dict):
            return self.value(1)
        if "$ref" in schema:
            return self.near(self.root["$defs"][schema["$ref"][-1]], depth - 1)
        if "const" in schema or "enum" in schema:
            return self.draw.choice(schema.get("enum", [schema.get("const")]))
        for keyword in COMBINING:
            if keyword in schema and "type" not in schema:
                return self.near(self.draw.choice(schema[keyword]), depth - 1)
        kind = schema.get("type")
        match self.draw.choice(kind) if isinstance(kind, list) else kind:
            case "integer" | "number":
                return self.draw.choice(NUMBERS)
            case "string":
                return self.draw.choice(TEXTS)
            case "array":
                first = [self.near(each, depth - 1) for each in schema.get("prefixItems", ())]
                more = range(self.draw.randrange(3))
                return first + [self.near(schema.get("items", True), depth - 1) for _ in more]
            case "object":
                needed = schema.get("required", [])
                members = {
                    name: self.near(each, depth - 1)
                    for name, each in schema.get("properties", {}).items()
                    if name in needed or self.often(0.5)
                }
                return members | {n: self.value(1) for n in needed if n not in members}
        return self.value(1)


_END = 256
VOCABULARY = Vocabulary.of([*(bytes([byte]) for byte in range(256)), "</s>"])


def sampled(mask: TokenMask, draw: random.Random) -> bytes | None:
    """Return a text that a mask allows, drawn to its end once it is long."""
    state, text = mask.start, bytearray()
    for number in range(200):
        allowed = mask.mask(state).tokens().tolist()
        if _END in allowed and (number > 40 or draw.random() < 0.3 or len(allowed) == 1):
            return bytes(text)
        plain = [token for token in allowed if 32 <= token < 127]
        closing = [token for token in plain if chr(token) in '"}]']
        chosen = closing if number > 40 and closing and draw.random() < 0.8 else plain
        token = draw.choice(chosen or [token for token in allowed if token != _END])
        text.append(token)
        state = mask.advance(state, token)
    return None


def readable(text: bytes) -> bool:
    """Return whether no number with a fraction is read as a whole one, as great ones are."""
    whole: list[str] = []

    def read(digits: str) -> float:
        fraction = digits.partition(".")[2].partition("e")[0].strip("0")
        if fraction and float(digits).is_integer():
            whole.append(digits)
        return float(digits)

    json.loads(text.lower(), parse_float=read)
    return not whole


def taken(mask: TokenMask, value: Any) -> bool:
    """Return whether a mask allows the text of a value."""
    state = mask.start
    for byte in json.dumps(value, ensure_ascii=False).encode():
        if not mask.mask(state)[byte]:
            return False
        state = mask.advance(state, byte)
    return bool(mask.accepts(state))


def wrong(seed: int) -> tuple[list[str], int]:
    """Return the faults of the masks of a random schema, and how many values were judged."""
    drawn = Drawn(seed)
    validator = jsonschema.Draft202012Validator(drawn.root)
    values = [drawn.value(3) if number % 3 else drawn.near(drawn.root, 3) for number in range(40)]
    try:
        valid = [validator.is_valid(value) for value in values]
    except BaseException as error:  # a panic of its compiled part is no Exception
        if "RecursionError" in f"{type(error).__name__} {error}":
            return [], 0
        raise
    try:
        mask = TokenMask(drawn.root, VOCABULARY)
    except InvalidArgument as error:
        there = [value for value, good in zip(values, valid, strict=True) if good]
        empty = "no text matches" in str(error)
        return ([f"said to have no value: {there[0]!r}"] if empty and there else []), 0
    found = [
        f"allowed, not valid: {value!r}"
        for value, good in zip(values, valid, strict=True)
        if not good and taken(mask, value)
    ]
    texts = [text for _ in range(10) if (text := sampled(mask, drawn.draw)) is not None]
    found += [
        f"written, not valid: {text!r}"
        for text in texts
        if readable(text) and not validator.is_valid(json.loads(text))
    ]
    return found, len(values) + len(texts)


def main() -> None:
    """Print what is wrong in the schemas of some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    asked = parser.parse_args()
    judged = 0
    for seed in range(asked.first, asked.last):
        faults, count = wrong(seed)
        judged += count > 0
        for fault in faults[:3]:
            print(seed, json.dumps(Drawn(seed).root), fault, sep="\n  ", flush=True)
    print(f"{judged} of {asked.last - asked.first} schemas were taken", flush=True)


if __name__ == "__main__":
    main()
