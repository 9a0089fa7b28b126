"""Read FlatBuffers: tables of fields, each found through an offset.

Format: https://flatbuffers.dev/internals/. Every offset is compared with the size of the data, so
damaged bytes are refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hagane.errors import InvalidModel

_SIZES = {"b": 1, "B": 1, "i": 4, "I": 4, "q": 8, "f": 4}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its fields are numbered from 0, as the schema lists them.

    Attributes:
        data: The whole buffer.
        at: Where the table begins.
    """

    data: memoryview
    at: int

    def _field(self, number: int) -> int:
        """Return where a field lies; 0 if it has its default value."""
        table = self.at - int(_number(self.data, self.at, "i"))
        size = int(_number(self.data, table, "H"))
        slot = 4 + 2 * number
        offset = int(_number(self.data, table + slot, "H")) if slot < size else 0
        return self.at + offset if offset else 0

    def number(self, field: int, kind: str, default: float = 0) -> int | float:
        """Return a number; ``kind`` is its letter in the module ``struct``."""
        at = self._field(field)
        return _number(self.data, at, kind) if at else default

    def integer(self, field: int, kind: str = "i", default: int = 0) -> int:
        """Return an integer."""
        return int(self.number(field, kind, default))

    def text(self, field: int) -> str:
        """Return a text; empty if it is absent."""
        at = self._field(field)
        return _text(self.data, _follow(self.data, at)) if at else ""

    def table(self, field: int) -> Table | None:
        """Return a table, if it is there."""
        at = self._field(field)
        return Table(self.data, _follow(self.data, at)) if at else None

    def _vector(self, field: int, size: int) -> tuple[int, int]:
        at = self._field(field)
        if not at:
            return 0, 0
        start = _follow(self.data, at)
        count = _number(self.data, start, "I")
        if start + 4 + int(count) * size > len(self.data):
            raise damaged(f"a vector of {int(count)} elements ends behind the data")
        return start + 4, int(count)

    def tables(self, field: int) -> list[Table]:
        """Return the tables of a vector."""
        start, count = self._vector(field, 4)
        places = range(start, start + 4 * count, 4)
        return [Table(self.data, _follow(self.data, place)) for place in places]

    def texts(self, field: int) -> list[str]:
        """Return the texts of a vector."""
        start, count = self._vector(field, 4)
        places = range(start, start + 4 * count, 4)
        return [_text(self.data, _follow(self.data, place)) for place in places]

    def numbers(self, field: int, kind: str) -> list[int] | list[float]:
        """Return the numbers of a vector."""
        start, count = self._vector(field, _SIZES[kind])
        return list(struct.unpack_from(f"<{count}{kind}", self.data, start))

    def content(self, field: int) -> bytes | None:
        """Return the bytes of a vector, if it is there."""
        start, count = self._vector(field, 1)
        return bytes(self.data[start : start + count]) if start else None


def root_of(data: memoryview) -> Table:
    """Return the first table of a buffer."""
    return Table(data, _follow(data, 0))


def damaged(what: str) -> InvalidModel:
    """Return the error for bytes that are no FlatBuffers."""
    return InvalidModel(f"the model in ONNX Runtime's format is damaged: {what}")


def _number(data: memoryview, at: int, kind: str) -> int | float:
    try:
        found: tuple[int | float, ...] = struct.unpack_from(f"<{kind}", data, at)
    except struct.error:
        raise damaged(f"place {at} is beyond its {len(data)} bytes") from None
    if at < 0:
        raise damaged(f"place {at} is before its first byte")
    return found[0]


def _follow(data: memoryview, at: int) -> int:
    found = at + int(_number(data, at, "I"))
    if found >= len(data):
        raise damaged(f"place {found} is beyond its {len(data)} bytes")
    return found


def _text(data: memoryview, at: int) -> str:
    count = int(_number(data, at, "I"))
    if at + 4 + count > len(data):
        raise damaged(f"a text of {count} bytes ends behind the data")
    try:
        return bytes(data[at + 4 : at + 4 + count]).decode()
    except UnicodeDecodeError:
        raise damaged(f"the text at place {at} is no UTF-8") from None
