"""Texts of which only a run knows all: one number in them, or what comes behind their start."""

from __future__ import annotations

from dataclasses import dataclass

from hagane.frontends.python.values.values import (
    Outside,
    Unknown,
    Value,
)


@dataclass(frozen=True, slots=True, eq=False)
class Begun(Outside):
    """A text such as ``f"cuda:{rank}"`` where types are followed: its start is known."""

    before: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class OpenText(Unknown):
    """A text such as ``f"expert_{i}"`` where a graph is built: it may be the key of an item.

    Attributes:
        before: The text in front of the number.
        number: The number: a size, or a tensor of one.
        behind: The text behind it.
    """

    before: str = ""
    number: Value = None
    behind: str = ""

    def number_in(self, text: str) -> int | None:
        """Return the number with which this is a text; None if it is with none."""
        length = len(self.before) + len(self.behind)
        middle = text[len(self.before) : len(text) - len(self.behind)]
        if len(text) <= length or self.before + middle + self.behind != text:
            return None
        digits = middle.removeprefix("-")
        return int(middle) if digits.isdecimal() and str(int(middle)) == middle else None
