"""Results that are kept by the content of everything that they came from."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache as once
from importlib import metadata
from pathlib import Path
from typing import Any

import hagane
from hagane.frontends.python.report.findings import Note, Problem, Report
from hagane.frontends.python.values.values import Place

_FORM = 1


class ResultCache:
    """A folder of results; without one, nothing is kept."""

    def __init__(self, folder: Path | None):
        self._folder = folder

    def get(self, key: str) -> tuple[Report, int] | None:
        """Return the result of a check whose key is the same, if it is kept.

        The types of its expressions are not kept, only their number.
        """
        if self._folder is None:
            return None
        try:
            found = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
            return _report(found), int(found["expressions"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, report: Report) -> None:
        """Keep a result; where the folder cannot be written, it is not kept."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            made = self._folder / f".{key}.{os.getpid()}"
            made.write_text(json.dumps(_plain(report)), encoding="utf-8")
            made.replace(self._folder / f"{key}.json")
        except OSError:
            return


def cache_folder() -> Path:
    """Return the folder of results in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "hagane" / "check"


def key_of(read: Mapping[Path, bytes], asked: str) -> str:
    """Return the key of a check.

    Args:
        read: The files that it reads, with their content.
        asked: The objects to check, and how.
    """
    digest = hashlib.sha256()
    for text in (str(_FORM), asked, _checker()):
        digest.update(text.encode() + b"\0")
    for path, content in sorted(read.items()):
        digest.update(str(path).encode() + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()[:40]


@once
def _checker() -> str:
    """Return a mark of the checker and the libraries whose tables it reads."""
    folder = Path(hagane.__file__).parent
    parts = ("frontends", "ops", "symbolic", "reviewing")
    stamps = [
        (path.name, stat.st_mtime_ns, stat.st_size)
        for part in parts
        for path in sorted((folder / part).rglob("*.py"))
        if (stat := path.stat())
    ]
    versions = [hagane.__version__, sys.version]
    for name in ("torch", "numpy", "chainer", "einops"):
        try:
            versions.append(metadata.version(name))
        except metadata.PackageNotFoundError:
            versions.append("")
    return hashlib.sha256(repr((stamps, versions)).encode()).hexdigest()


def _plain(report: Report) -> dict[str, Any]:
    return {
        "errors": [asdict(problem) for problem in report.errors],
        "expressions": len(report.types),
        "notes": {
            kind: [asdict(note) for note in getattr(report, kind)]
            for kind in ("assumptions", "unknown", "notices")
        },
        "returned": report.returned,
        "conditions": report.conditions,
        "checked": report.checked,
    }


def _report(found: Mapping[str, Any]) -> Report:
    notes = found["notes"]
    return Report(
        errors=[_problem(one) for one in found["errors"]],
        returned=found["returned"],
        conditions=list(found["conditions"]),
        checked=found["checked"],
        assumptions=[_note(one) for one in notes["assumptions"]],
        unknown=[_note(one) for one in notes["unknown"]],
        notices=[_note(one) for one in notes["notices"]],
    )


def _problem(found: dict[str, Any]) -> Problem:
    found = dict(found)
    found["place"] = Place(**found["place"])
    found["calls"] = tuple(Place(**one) for one in found["calls"])
    found["steps"] = tuple(found["steps"])
    found["within"] = _place(found["within"])
    return Problem(**found)


def _note(found: Mapping[str, Any]) -> Note:
    return Note(_place(found["place"]), found["message"], _place(found["within"]))


def _place(found: Mapping[str, Any] | None) -> Place | None:
    return None if found is None else Place(**found)
