"""Typed access to the fields of one document; every failure names its place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.quantity import amount
from hagane.tools.cluster.model.schema import nearest


class Reader:
    """A map in a document, read field by field."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: Place):
        if value is not None and not isinstance(value, dict):
            raise place.error(f"expected an object, got {value!r}")
        self.value: dict[str, Any] = value or {}
        self.place = place

    def has(self, name: str) -> bool:
        """Return whether the field is present and not null."""
        return self.value.get(name) is not None

    def at(self, name: str) -> Reader:
        """Return the object in a field; an absent one reads as empty."""
        return Reader(self.value.get(name), self.place / name)

    def items(self, name: str) -> Iterator[Reader]:
        """Yield the objects of a list."""
        for index, item in enumerate(self.list(name)):
            yield Reader(item, self.place / name / index)

    def list(self, name: str) -> list[Any]:
        """Return a list; an absent one reads as empty."""
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise (self.place / name).error(f"expected a list, got {value!r}")
        return value

    def text(self, name: str, default: str = "", choices: tuple[str, ...] = ()) -> str:
        """Return text, one of the choices where some are given."""
        value = self.value.get(name)
        if value is None:
            value = default
        if not isinstance(value, str):
            raise (self.place / name).error(f"expected a string, got {value!r}")
        if choices and value not in choices:
            raise (self.place / name).error(
                f"unsupported value {value!r}: expected one of {', '.join(choices)}"
                f"{nearest(value, choices)}"
            )
        return value

    def required(self, name: str) -> str:
        """Return text that must be there."""
        if not self.text(name):
            raise (self.place / name).error("required value is missing")
        return self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        for index, item in enumerate(self.list(name)):
            if not isinstance(item, str):
                raise (self.place / name / index).error(f"expected a string, got {item!r}")
        return tuple(self.list(name))

    def integer(
        self, name: str, default: int = 0, low: int | None = None, high: int | None = None
    ) -> int:
        """Return an integer within bounds."""
        value = self.value.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise (self.place / name).error(f"expected an integer, got {value!r}")
        if (low is not None and value < low) or (high is not None and value > high):
            raise (self.place / name).error(
                f"{value} is out of range: expected at least {low}"
                + (f" and at most {high}" if high is not None else "")
            )
        return value

    def number(self, name: str, default: float = 0.0, low: float | None = None) -> float:
        """Return a number, at least ``low``."""
        value = self.value.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise (self.place / name).error(f"expected a number, got {value!r}")
        if low is not None and value < low:
            raise (self.place / name).error(f"{value} is out of range: expected at least {low}")
        return float(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise (self.place / name).error(f"expected true or false, got {value!r}")
        return value

    def labels(self, name: str) -> dict[str, str]:
        """Return a map from text to text."""
        value = self.value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise (self.place / name).error(f"expected a map, got {value!r}")
        for key, item in value.items():
            if not isinstance(key, str) or not isinstance(item, str):
                raise (self.place / name / str(key)).error(
                    f"expected a string, got {item!r}; quote it"
                )
        return value

    def amounts(self, name: str) -> dict[str, int]:
        """Return a map from resource to counted amount."""
        value = self.value.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise (self.place / name).error(f"expected a map, got {value!r}")
        out = {}
        for key, item in value.items():
            try:
                out[str(key)] = amount(str(key), item)
            except InvalidManifest as error:
                raise (self.place / name / str(key)).error(str(error)) from None
        return out

    def time(self, name: str) -> float | None:
        """Return an RFC 3339 instant in seconds since 1970, or None."""
        if not self.has(name):
            return None
        try:
            return parse_time(self.text(name))
        except ValueError:
            raise (self.place / name).error(
                f"expected an RFC 3339 time like 2019-01-01T00:00:00Z, got {self.value[name]!r}"
            ) from None


def parse_time(text: str) -> float:
    """Return an RFC 3339 instant in seconds since 1970.

    Raises:
        ValueError: if the text is not a time.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
