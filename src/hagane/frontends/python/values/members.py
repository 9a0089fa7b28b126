"""Members of enumerations that are numbers or texts as well: of ``IntEnum``, of ``str, Enum``."""

from __future__ import annotations

import enum
from typing import Any

from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import Value


class Member:
    """A plain value that is a member; ``instance`` has the member's attributes."""

    instance: Instance
    text: str | None = None  # what str() gives, None for the plain value's

    def __str__(self) -> str:
        return self.text if self.text is not None else super().__str__()

    def __format__(self, spec: str) -> str:
        return format(str(self), spec) if self.text is not None else super().__format__(spec)


class IntMember(Member, int):
    """A member that is an integer."""


class FloatMember(Member, float):
    """A member that is a real number."""


class StrMember(Member, str):
    """A member that is a text."""


class BytesMember(Member, bytes):
    """A member that is a row of bytes."""


_KINDS: dict[type, type[Any]] = {
    int: IntMember,
    float: FloatMember,
    str: StrMember,
    bytes: BytesMember,
}


def plain_kind(base: type) -> type | None:
    """Return the class of plain values from which an enumeration's members derive by a base."""
    return next((kind for kind in _KINDS if issubclass(base, kind)), None)


def member_of(kind: type, plain: Any, instance: Instance, text: str | None) -> Value:
    """Return a member of an enumeration that is a plain value of a kind."""
    made: Any = _KINDS[kind](plain)
    made.instance, made.text = instance, text
    return made


def shows_plainly(base: type) -> bool:
    """Whether members of enumerations with a base are shown as their plain values."""
    return issubclass(base, enum.ReprEnum)


__all__ = [
    "BytesMember",
    "FloatMember",
    "IntMember",
    "Member",
    "StrMember",
    "member_of",
    "plain_kind",
    "shows_plainly",
]
