"""The open documents of an editor, and the findings in them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from hagane.checking import SCRIPT, Report, Request, is_script
from hagane.errors import HaganeError
from hagane.frontends.python.report.findings import Note, TypedExpression
from hagane.frontends.python.values.values import Place
from hagane.reviewing.cache import key_of
from hagane.reviewing.comments import comments_of, without_ignored
from hagane.reviewing.files import real, sources
from hagane.reviewing.imports import Imports, contents, reads_more
from hagane.reviewing.review import check, is_empty, source_of
from hagane.reviewing.settings import Asked, Settings, settings_from

_SECONDS = 20.0  # of computing for one file, since a person waits


@dataclass(frozen=True, slots=True)
class Seen:
    """The findings in a document as it was checked.

    Attributes:
        report: Those that no comment accepts.
        settings: Those of the project.
        text: The text of the document.
    """

    report: Report
    settings: Settings
    text: str


class Documents:
    """Texts that an editor has open, saved or not, and their findings.

    Texts may come from one thread while another checks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[Path, str] = {}
        self._seen: dict[Path, Seen] = {}
        self._types: dict[Path, list[TypedExpression]] = {}
        self._keys: dict[Path, str] = {}

    def hold(self, file: Path, text: str) -> None:
        """Take the text of a document that was opened or changed."""
        with self._lock:
            self._texts[file] = text

    def forget(self, file: Path) -> None:
        """Forget a document that was closed."""
        with self._lock:
            for kept in (self._texts, self._seen, self._types, self._keys):
                kept.pop(file, None)

    def doubt(self) -> None:
        """Check every document again when it is asked for: files on the disk have changed."""
        with self._lock:
            self._keys.clear()

    def open(self) -> list[Path]:
        """Return the files that are open."""
        with self._lock:
            return list(self._texts)

    def is_current(self, file: Path, seen: Seen) -> bool:
        """Whether a document still has the text with which it was checked."""
        with self._lock:
            return self._texts.get(file) == seen.text

    def check(self, file: Path) -> Seen | None:
        """Check a document; None if nothing that it reads has changed since the last time."""
        with self._lock:
            held = dict(self._texts)
        if file not in held:
            return None
        settings = Settings(file.parent)
        try:
            settings = settings_from(file.parent)
            key = _key(file, settings, held)
            if self._keys.get(file) == key:
                return None
            report = _checked(file, settings, held)
        except HaganeError as error:
            key, report = "", Report(notices=[Note(Place(str(file), 1, 1, 1, 2), str(error))])
        seen = Seen(report, settings, held[file])
        with self._lock:
            if file in self._texts:
                self._keys[file], self._seen[file] = key, seen
                if report.types or not any(p.code == "syntax" for p in report.errors):
                    self._types[file] = report.types  # kept while the text is no Python
        return seen

    def type_at(self, file: Path, line: int, column: int) -> TypedExpression | None:
        """Return the smallest typed expression at a position that counts from 1."""
        with self._lock:
            types = self._types.get(file, [])
        around = [
            one for one in types if one.place.file == str(file) and _covers(one.place, line, column)
        ]
        return min(around, key=lambda one: _size(one.place), default=None)


def _key(file: Path, settings: Settings, held: Mapping[Path, str]) -> str:
    texts = {real(path): text for path, text in held.items()}
    has_project = (settings.root / "pyproject.toml").is_file()
    project = sources(settings.root) if has_project else file.parent.glob("*.py")
    imports = Imports([file, *project], texts)
    read = contents(imports.read_by(file), texts)
    return uuid4().hex if reads_more(read) else key_of(read, repr(settings))


def _checked(file: Path, settings: Settings, held: Mapping[Path, str]) -> Report:
    """Check a file, and return the findings that no comment accepts."""
    texts = {str(path.absolute()): text for path, text in held.items()}
    asked = settings.asked_of(file) or (Asked(),)
    whole = Report()
    for one in asked:
        request = Request(file, one.name, one.inputs, one.make, one.sizes, _SECONDS, texts)
        report = check(request, no_import=True)
        if is_empty(report):
            report = Report(errors=[p for p in report.errors if p.code == "syntax"])
            if len(asked) == 1 and is_script(file, held[file]):
                report = check(replace(request, target=SCRIPT), no_import=True)
        whole.errors += [p for p in report.errors if p not in whole.errors]
        whole.types += report.types
        whole.unknown += report.unknown
        whole.assumptions += report.assumptions
        whole.notices += report.notices
    problems = [p for p in whole.errors if p.code not in settings.ignore]
    left, notes, _ = without_ignored(
        problems,
        str(file),
        lambda name: comments_of(texts.get(str(Path(name).absolute())) or source_of(Path(name))),
        is_read=lambda: not whole.types,
    )
    return replace(whole, errors=left, notices=[*whole.notices, *notes])


def _covers(place: Place, line: int, column: int) -> bool:
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    return start <= (line, column) < end


def _size(place: Place) -> tuple[int, int]:
    return place.end_line - place.line, place.end_column - place.column
