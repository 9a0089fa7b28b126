"""Check the files of a project, each result from the cache where nothing it reads has changed."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hagane.checking import SCRIPT, Report, Request, check_imported, check_source
from hagane.frontends.python.interpret.reading.packages import is_installed, nearest_to
from hagane.frontends.python.report.findings import Problem
from hagane.frontends.python.report.sources import read_source
from hagane.reviewing.baseline import fingerprint, without_known
from hagane.reviewing.cache import ResultCache, key_of
from hagane.reviewing.cells import in_cells
from hagane.reviewing.comments import comments_of, without_ignored
from hagane.reviewing.files import Target
from hagane.reviewing.imports import Imports, contents, reads_more
from hagane.reviewing.settings import Asked, Settings

_NOTHING = "nothing to check in "


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The findings in one file.

    Attributes:
        file: The file.
        report: The findings that are left.
        expressions: How many expressions have a type.
        empty: Whether the file has nothing that can be checked.
        accepted: How many findings comments accept.
        known: How many findings the baseline knows.
        kept: Whether the result came from the cache.
    """

    file: Path
    report: Report
    expressions: int
    empty: bool = False
    accepted: int = 0
    known: int = 0
    kept: bool = False

    def status(self, allow_unknown: bool) -> int:
        """Return 0 clean, 1 errors, 2 not checked or not everything."""
        if self.empty and not self.report.errors:
            return 0
        status = self.report.exit_code
        return 0 if status == 2 and allow_unknown and not self.report.errors else status


@dataclass
class Review:
    """The check of a project.

    Attributes:
        settings: Those of the project.
        files: All files that may import each other.
        cache: Where results are kept.
        known: Findings of the baseline.
        asked: Requests of the command line for every target; they go before the settings.
    """

    settings: Settings
    files: Sequence[Path]
    cache: ResultCache
    known: Counter[str] = field(default_factory=Counter)
    asked: Asked | None = None
    _imports: Imports | None = None

    @property
    def imports(self) -> Imports:
        """Which file reads which."""
        if self._imports is None:
            self._imports = Imports(self.files)
        return self._imports

    def run(self, targets: Iterable[Target]) -> Iterator[Reviewed]:
        """Check targets one after another."""
        rest = Counter(self.known)
        for target in targets:
            reviewed = self._one(target)
            problems, known = without_known(reviewed.report.errors, rest, self.settings.root)
            if known:
                rest -= Counter(_marks(reviewed.report.errors, self.settings.root))
                report = replace(reviewed.report, errors=problems)
                reviewed = replace(reviewed, report=report, known=known)
            yield replace(reviewed, report=in_cells(reviewed.report, target.file))

    def _one(self, target: Target) -> Reviewed:
        asked = self._asked_of(target)
        results = [self._checked(target.file, one) for one in asked]
        report = _joined([one for one, _, _ in results])
        empty = all(is_empty(one) for one, _, _ in results)
        report.errors = [p for p in report.errors if p.code not in self.settings.ignore]
        if empty:
            # The effects of its statements at import were not asked for.
            report.errors = [p for p in report.errors if p.code == "syntax"]
            report.notices, report.unknown = [], []
        left, notes, accepted = without_ignored(
            report.errors,
            str(target.file),
            lambda file: comments_of(source_of(Path(file))),
            is_read=lambda: len(self.imports.dependants([target.file])) > 1,
        )
        report.errors, report.notices = left, [*report.notices, *notes]
        count = sum(expressions for _, expressions, _ in results)
        kept = all(was_kept for _, _, was_kept in results)
        return Reviewed(target.file, report, count, empty, accepted, kept=kept)

    def _asked_of(self, target: Target) -> tuple[Asked, ...]:
        configured = self.settings.asked_of(target.file)
        if self.asked is not None and self.asked != Asked():
            return (replace(self.asked, name=target.name),)
        if target.name:
            named = [one for one in configured if one.name == target.name]
            return tuple(named) or (Asked(target.name),)
        return configured or (Asked(),)

    def _checked(self, file: Path, asked: Asked) -> tuple[Report, int, bool]:
        request = Request(file, asked.name, asked.inputs, asked.make, asked.sizes)
        read = contents(self.imports.read_by(file))
        if reads_more(read):  # what it reads may change
            report = check(request, no_import=self.settings.no_import)
            return report, len(report.types), False
        words = [str(file), asked.name, asked.make, dict(asked.inputs), dict(asked.sizes)]
        key = key_of(read, json.dumps([*words, self.settings.no_import]))
        found = self.cache.get(key)
        if found is not None:
            return (*found, True)
        report = check(request, no_import=self.settings.no_import)
        self.cache.put(key, report)
        return report, len(report.types), False


_STRANGER = re.compile(
    r"'(\w+)(?:\.\w+)*' is not understood: .* no library|'(torchvision)\.(?:models|ops)\b"
)
_OF_LIBRARY = re.compile(r"'((?:torch|torchvision|numpy|einops)(?:\.\w+)+)' is not understood$")

_OF_PARAMETERS = ("'inspect.signature' is not understood",)


def check(request: Request, *, no_import: bool) -> Report:
    """Check from source; import only where that leaves the object unknown."""
    report = check_source(request)
    if no_import or report.errors or (report.checked and not report.unknown):
        return report
    if asks_for_libraries(report):
        with_libraries = check_source(replace(request, libraries=True))
        report = with_libraries if with_libraries.types else report
        if report.errors or (report.checked and not report.unknown):
            return report
    return check_imported(request, report) if request.target not in ("", SCRIPT) else report


def asks_for_libraries(report: Report) -> bool:
    """Whether packages that are installed, and that no table knows, left something unknown."""
    found = (_STRANGER.match(note.message) for note in report.unknown)
    if any(one and is_installed(one[1] or one[2]) for one in found):
        return True
    if any(note.message in _OF_PARAMETERS for note in report.unknown):
        return True
    named = (_OF_LIBRARY.match(note.message) for note in report.unknown)
    return any(one and nearest_to(one[1]) is not None for one in named)


def _marks(problems: Iterable[Problem], root: Path) -> Iterator[str]:
    return (fingerprint(problem, root) for problem in problems)


def is_empty(report: Report) -> bool:
    """Whether a file has nothing that can be checked."""
    return any(note.message.startswith(_NOTHING) for note in report.notices)


def _joined(reports: Sequence[Report]) -> Report:
    """Return the findings of several reports as one, each finding once."""
    if len(reports) == 1:
        return replace(reports[0])
    whole = Report(checked=all(one.checked for one in reports))
    for report in reports:
        whole.errors += [p for p in report.errors if p not in whole.errors]
        whole.types += report.types
        for kind in ("assumptions", "unknown", "notices"):
            notes = getattr(whole, kind)
            notes += [note for note in getattr(report, kind) if note not in notes]
    return whole


def source_of(file: Path) -> str:
    """Return the text of a file, empty where it cannot be read."""
    try:
        return read_source(file)
    except (OSError, ValueError):
        return ""


def changes_between(
    before: Mapping[Path, tuple[int, int]], after: Mapping[Path, tuple[int, int]]
) -> list[Path]:
    """Return the files that changed, came or went between two states."""
    return [p for p in sorted({*before, *after}) if before.get(p) != after.get(p)]


def state_of(files: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return the time and size of each file that is there."""
    found = {}
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        found[file] = (stat.st_mtime_ns, stat.st_size)
    return found
