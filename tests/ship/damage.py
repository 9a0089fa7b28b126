"""Manifests whose structure is damaged by chance, for readers in C and in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hagane.ship.sum import sum_of

# Numbers that are huge, negative, fractional, or none that JSON has.
_NUMBERS = (
    *("0", "-0", "-1", "0.5", "-3.25", "1e308", "1e999", "-1e999", "1e-400", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" + "0" * 400),
    *("9" * 5000, "NaN", "-Infinity", "0x10", "1_000", "--1", "+1", "1.", ".5", "01", "truefalse"),
)
_TEXTS = (
    *("", " ", ".", "..", "/", "../../etc/passwd", "a/b", "\\u0000", "a\\u0000b", "\\ud800"),
    *("\\", "\\u12", "\\x", "%s%n%n", "x" * 63, "x" * 64, "x" * 300, "x" * 70_000, "né", "数"),
    *("\u202e", "\x01", "\x7f", "\n", "nul\0nul", "{}", '\\"', '\\"check\\": \\"', "x86_64", "1.0"),
)
_DEPTHS = (8, 15, 16, 17, 40, 900, 1100, 60_000)


class Raw(str):
    """Text that stands in a manifest as it is."""


class Pairs(list[tuple[Any, Any]]):
    """An object whose keys may be there twice."""


def damaged(text: str, seed: int) -> bytes:
    """Return a manifest with a few drawn damages; its checksum fits in two cases of three."""
    random = np.random.default_rng(seed)
    tree = json.loads(text, object_pairs_hook=Pairs)
    tree = Pairs(pair for pair in tree if pair[0] != "check")
    for _ in range(random.integers(1, 4)):
        _damage(tree, random)
    body = _written(tree).removesuffix("}")
    if random.integers(3) == 0:
        return (body + "}\n").encode("utf-8", "surrogatepass")
    head = f"{body},\n  ".encode("utf-8", "surrogatepass")
    return head + f'"check": "{sum_of(head)}"\n}}\n'.encode()


def write_corpus(text: str, count: int, path: Path) -> None:
    """Write damaged manifests to a file, each after its length as eight bytes."""
    cases = [damaged(text, seed) for seed in range(count)]
    path.write_bytes(b"".join(len(case).to_bytes(8, "little") + case for case in cases))


def _damage(tree: Pairs, random: np.random.Generator) -> None:
    """Change one drawn place of a tree."""
    # (Those at the top are drawn as often as all below: readers look at them first.)
    places = list(_places(tree))
    top = [place for place in places if place[0] is tree]
    chosen = top if random.integers(2) and top else places
    if not chosen:
        return
    where, i = chosen[random.integers(len(chosen))]
    match int(random.integers(6)):
        case 0:  # a missing one
            del where[i]
        case 1:  # a doubled one, with the same value or another
            pair = where[i]
            if isinstance(where, Pairs) and random.integers(2):
                pair = (pair[0], _drawn(random))
            where.insert(int(random.integers(len(where) + 1)), pair)
        case 2 if isinstance(where, Pairs):  # a name with odd characters
            where[i] = (_text(random), where[i][1])
        case 3 if isinstance(where, Pairs):  # one more
            where.insert(i, (_text(random), _drawn(random)))
        case _:  # another value
            found = _drawn(random)
            where[i] = (where[i][0], found) if isinstance(where, Pairs) else found


def _places(value: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield value, i
            yield from _places(item[1] if isinstance(value, Pairs) else item)


def _drawn(random: np.random.Generator) -> Any:
    match int(random.integers(7)):
        case 0 | 1:
            return Raw(_NUMBERS[random.integers(len(_NUMBERS))])
        case 2 | 3:
            return _text(random)
        case 4:
            return (None, True, False, [], Pairs(), [[]], [None, "x", 3])[random.integers(7)]
        case 5:
            return [_drawn(random) for _ in range(random.integers(4))]
    depth = _DEPTHS[random.integers(len(_DEPTHS))]
    before, after = (("[", "]"), ('{"a":', "}"), ("[", ""), ('{"a":[', "]"))[random.integers(4)]
    return Raw(before * depth + "1" + after * depth)


def _text(random: np.random.Generator) -> Raw:
    return Raw(f'"{_TEXTS[random.integers(len(_TEXTS))]}"')


def _written(value: Any) -> str:
    match value:
        case Raw():
            return str(value)
        case Pairs():
            pairs = ((k if isinstance(k, Raw) else json.dumps(k), v) for k, v in value)
            return "{" + ", ".join(f"{key}: {_written(item)}" for key, item in pairs) + "}"
        case list():
            return "[" + ", ".join(_written(item) for item in value) + "]"
    return json.dumps(value)
