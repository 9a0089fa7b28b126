"""Write FlatBuffers: tables of fields, each behind the offset that leads to it.

Format: https://flatbuffers.dev/internals/. ``flat.py`` reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hagane.errors import InvalidArgument

_SIZES = {"b": 1, "B": 1, "i": 4, "I": 4, "f": 4, "q": 8}
# Signed offsets of 32 bits lead through a buffer.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Number:
    """A number; ``kind`` is its letter in the module ``struct``."""

    kind: str
    value: int | float


@dataclass(frozen=True, slots=True)
class Numbers:
    """A vector of numbers, or of records of numbers.

    Attributes:
        kind: The letters of an element in the module ``struct``.
        values: Elements, or the numbers of all records.
    """

    kind: str
    values: Sequence[int | float]


@dataclass(slots=True)
class NewTable:
    """A table to write: what it has, by the numbers of its fields."""

    fields: dict[int, Content] = field(default_factory=dict)


Behind: TypeAlias = Numbers | NewTable | str | bytes | Sequence[str | NewTable]
Content: TypeAlias = Number | Behind


def written(root: NewTable, identifier: bytes) -> bytes:
    """Return a buffer with a table as its first one.

    Raises:
        InvalidArgument: It would have 2 GiB or more.
    """
    out = bytearray(8)
    out[4:8] = identifier
    _lead(out, 0, _table(out, root))
    if len(out) > _MOST_BYTES:
        raise InvalidArgument(
            f"FlatBuffers have at most {_MOST_BYTES} bytes, this one has {len(out)}"
        )
    return bytes(out)


def _align(out: bytearray, size: int, before: int = 0) -> None:
    """Add bytes until what follows ``before`` more bytes stands at a multiple of ``size``."""
    out.extend(bytes(-(len(out) + before) % size))


def _lead(out: bytearray, at: int, to: int) -> None:
    struct.pack_into("<I", out, at, to - at)


def _table(out: bytearray, table: NewTable) -> int:
    """Write a table and what hangs on it; return where it begins."""
    places: dict[int, int] = {}
    size = 4
    for number, content in table.fields.items():
        own = _SIZES[content.kind] if isinstance(content, Number) else 4
        size += -size % own
        places[number] = size
        size += own
    slots = max(places, default=-1) + 1
    _align(out, 2)
    shape = len(out)
    out += struct.pack("<HH", 4 + 2 * slots, size)
    out += struct.pack(f"<{slots}H", *(places.get(number, 0) for number in range(slots)))
    _align(out, 8)
    start = len(out)
    out += struct.pack("<i", start - shape).ljust(size, b"\0")
    for number, content in table.fields.items():
        at = start + places[number]
        if isinstance(content, Number):
            struct.pack_into(f"<{content.kind}", out, at, content.value)
        else:
            _lead(out, at, _behind(out, content))
    return start


def _behind(out: bytearray, content: Behind) -> int:
    """Write what an offset leads to; return where it begins."""
    match content:
        case NewTable():
            return _table(out, content)
        case str():
            return _block(out, content.encode(), 4, 1, b"\0")
        case bytes():
            return _block(out, content, 16, 1)
        case Numbers():
            widest = max(_SIZES[letter] for letter in content.kind)
            count = len(content.values) // len(content.kind)
            data = struct.pack(f"<{content.kind * count}", *content.values)
            return _block(out, data, widest, sum(_SIZES[letter] for letter in content.kind))
    _align(out, 4)
    start = len(out)
    out += struct.pack("<I", len(content)) + bytes(4 * len(content))
    for i, one in enumerate(content):
        _lead(out, start + 4 + 4 * i, _behind(out, one))
    return start


def _block(out: bytearray, data: bytes, align: int, size: int, end: bytes = b"") -> int:
    _align(out, max(align, 4), before=4)
    start = len(out)
    out += struct.pack("<I", len(data) // size) + data + end
    return start
