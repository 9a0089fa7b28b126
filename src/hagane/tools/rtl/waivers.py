"""Points that a team does not want: waived by a file, each with its reason."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from hagane.errors import InvalidArgument

_KEYS = {"kind", "where", "reason"}


@dataclass(frozen=True, slots=True)
class Waiver:
    """Points of a kind (any where it is ``*``) at places that fit a pattern, and why."""

    kind: str
    where: str
    reason: str


@dataclass(slots=True)
class Waivers:
    """Waivers, and which of them were of use."""

    waivers: tuple[Waiver, ...] = ()
    used: set[Waiver] = field(default_factory=set)

    def reason(self, kind: str, where: str) -> str | None:
        """Return why a point is waived, or None where it is not.

        A pattern fits the whole place or its end, so that a file needs no folders.
        """
        for waiver in self.waivers:
            fits = fnmatchcase(where, waiver.where) or fnmatchcase(where, f"*/{waiver.where}")
            if fits and fnmatchcase(kind, waiver.kind):
                self.used.add(waiver)
                return waiver.reason
        return None

    def unused(self) -> list[str]:
        """Return a notice for each waiver that fits no point."""
        return [
            f"the waiver of {item.kind} '{item.where}' fits no point"
            for item in self.waivers
            if item not in self.used
        ]


def read_waivers(path: Path | None) -> Waivers:
    """Return the waivers of a TOML file: tables ``[[waive]]`` of ``kind``, ``where``, ``reason``.

    Raises:
        InvalidArgument: The file is missing or not of that form.
    """
    if path is None:
        return Waivers()
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"--waive {path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"--waive {path}: no TOML: {error}") from None
    tables = read.get("waive", [])
    if not isinstance(tables, list) or set(read) - {"waive"}:
        raise InvalidArgument(f"--waive {path}: expected tables [[waive]], got {sorted(read)}")
    found = []
    for number, table in enumerate(tables, start=1):
        if set(table) - _KEYS or "where" not in table:
            raise InvalidArgument(
                f"--waive {path}: waiver {number}: expected 'where', 'reason' and perhaps 'kind', "
                f"got {sorted(table)}"
            )
        if not str(table.get("reason", "")).strip():
            raise InvalidArgument(
                f"--waive {path}: waiver {number} of '{table['where']}' has no reason"
            )
        found.append(Waiver(table.get("kind", "*"), table["where"], table["reason"]))
    return Waivers(tuple(found))
