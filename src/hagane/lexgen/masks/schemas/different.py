"""Arrays whose items differ (``uniqueItems``), of items that have few values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hagane.lexgen.masks.rules.parts import NO_TEXT, Bytes, Net, Part, seq
from hagane.lexgen.masks.schemas.cases import (
    OTHERS,
    Arrays,
    Booleans,
    Conjunction,
    Null,
    Strings,
)
from hagane.lexgen.masks.schemas.keywords import case_texts
from hagane.lexgen.masks.schemas.numbers import Numbers, written
from hagane.lexgen.masks.texts import Texts

if TYPE_CHECKING:
    from hagane.lexgen.masks.schemas.schemas import Schemas

# Of so many values every order is written, of more those in the order of the schema.
_MOST_FREE, _MOST_VALUES, _MOST_PLACES = 8, 2_000, 20_000
_MOST_LENGTH = 200


def different(schemas: Schemas, case: Arrays, where: str, comma: Part, space: Part) -> Part | None:
    """Return what stands between the brackets of arrays of different items; None if they are many.

    Args:
        schemas: The schemas.
        case: The arrays.
        where: The pointer of their schema.
        comma: What stands between items.
        space: What stands before the closing bracket.
    """
    places = [item_values(schemas, each) for each in (*case.prefix, case.rest)]
    values: list[bytes] = []
    for each in places:
        if each is None:
            return None
        values += [value for value in each if value not in values]
    sets = [frozenset(each) for each in places if each is not None]
    high = len(values) if case.high is None else min(case.high, len(values))
    if case.named and case.low <= len(case.prefix):
        high = min(high, len(case.prefix))
    if len(values) <= _MOST_FREE:
        return _in_any_order(values, sets, case.low, high, comma, space)
    if case.prefix or len(values) * (high + 1) > _MOST_PLACES:
        return None
    schemas.note(where, "uniqueItems", "items come in the order of the schema")
    return _in_order(values, case.low, high, comma, space)


def item_values(schemas: Schemas, conjunction: Conjunction) -> list[bytes] | None:
    """Return the texts of the values of which some schemas hold; None if they are many."""
    cases = schemas.cases(conjunction)
    found: list[bytes] = []
    for case in [case for case in cases if case.said != OTHERS] or cases:
        match case:
            case Null():
                found.append(b"null")
            case Booleans(values):
                found += [json.dumps(value).encode() for value in sorted(values)]
            case Numbers(low=low, high=high) if low is not None and low == high:
                found += [written(low).encode()] if case.possible else []
            case Strings():
                texts = _listed(case_texts(case))
                if texts is None:
                    return None
                found += [json.dumps(text, ensure_ascii=False).encode() for text in texts]
            case _:
                return None
    return found if len(found) <= _MOST_VALUES else None


def _listed(texts: Texts) -> list[str] | None:
    """Return the texts of a set; None if they are many."""
    found: list[str] = []
    states = [(0, "")]
    for state, text in states:  # grows while it runs
        if state in texts.accepts:
            found.append(text)
        for low, high, to in texts.edges(state):
            if high - low + len(states) > 4 * _MOST_VALUES or len(text) > _MOST_LENGTH:
                return None
            states += [(to, text + chr(code)) for code in range(low, high + 1)]
    return found


def _in_any_order(
    values: list[bytes], sets: list[frozenset[bytes]], low: int, high: int, comma: Part, space: Part
) -> Part:
    """Return items of which none was before: the places are the sets of those that were."""
    edges: list[tuple[int, Part, int]] = []
    end = 1 << len(values)
    for taken in range(end):
        count = taken.bit_count()
        if low <= count <= high:
            edges.append((taken, space if count else NO_TEXT, end))
        if count < high:
            allowed = sets[min(count, len(sets) - 1)]
            for number, value in enumerate(values):
                if not taken >> number & 1 and value in allowed:
                    item = seq(comma, Bytes(value)) if count else Bytes(value)
                    edges.append((taken, item, taken | 1 << number))
    return Net(tuple(edges), 0, end)


def _in_order(values: list[bytes], low: int, high: int, comma: Part, space: Part) -> Part:
    """Return items each of which stands behind the one before in the list of values."""
    edges: list[tuple[int, Part, int]] = []
    counts = high + 1 if low > 1 or high < len(values) else 2  # else whether there was one
    end = (len(values) + 1) * counts
    for number, value in enumerate(values):
        for count in range(counts):
            at = number * counts + count
            edges.append((at, NO_TEXT, at + counts))
            if count < counts - 1 or counts == 2:
                item = seq(comma, Bytes(value)) if count else Bytes(value)
                edges.append((at, item, (number + 1) * counts + min(count + 1, counts - 1)))
    last = len(values) * counts
    for count in range(counts):
        if count >= low:
            edges.append((last + count, space if count else NO_TEXT, end))
    return Net(tuple(edges), 0, end)
