"""Which files of a project a file imports, read from its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from hagane.frontends.python.load.places import folders_of_imports, source_at
from hagane.frontends.python.report.sources import read_source
from hagane.reviewing.files import real

_MORE = re.compile(rb"\bsys\.path\b|\bexec\s*\(")
_INSTALLED = ("site-packages", "dist-packages")  # the folders of installed packages


def imported_names(source: str) -> list[tuple[int, str]]:
    """Return the modules that a source imports: (dots before the name, dotted name).

    Names that are imported from a module may be modules too, so they are among them.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found.append((node.level, base))
            found += [(node.level, f"{base}.{alias.name}".strip(".")) for alias in node.names]
    return found


class Imports:
    """The files that each file of a project reads, itself included.

    A name that could mean several files means all of them: a result is thrown away too often
    rather than kept too long. Files are found on the disk too, where a check finds them: a check of
    one folder reads modules that lie in others. Of an installed package, the modules that a file of
    the project names and the package's version stand for all others, which may be thousands.

    Args:
        files: The files of the project.
        held: Unsaved texts of an editor by resolved path; they come before the disk.
    """

    def __init__(self, files: Iterable[Path], held: Mapping[Path, str] | None = None):
        self._held = {} if held is None else held
        self._files = {real(path): path for path in files}
        self._by_name: dict[str, set[Path]] = {}
        for path in self._files:
            parts = path.with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            for start in range(1, len(parts)):
                self._by_name.setdefault(".".join(parts[start:]), set()).add(path)
        self._direct: dict[Path, set[Path]] = {}
        self._tops: dict[Path, bool] = {}

    def read_by(self, path: Path) -> set[Path]:
        """Return the files that a check of ``path`` reads, ``path`` included."""
        found, pending = {real(path)}, [real(path)]
        while pending:
            for one in self._imported(pending.pop()) - found:
                found.add(one)
                if one in self._files or not _is_installed(one):
                    pending.append(one)
        return found | {place for one in found if (place := _version_of(one)) is not None}

    def dependants(self, changed: Iterable[Path]) -> list[Path]:
        """Return the files whose check reads a changed one, the changed included."""
        marks = {real(path) for path in changed}
        return [named for path, named in self._files.items() if self.read_by(path) & marks]

    def _imported(self, path: Path) -> set[Path]:
        if path in self._direct:
            return self._direct[path]
        found: set[Path] = set()
        try:
            source = self._held[path] if path in self._held else read_source(path)
        except (OSError, ValueError):
            source = ""
        folders = folders_of_imports(path, path.parent)
        for dots, name in imported_names(source):
            if dots:
                folder = path.parents[min(dots, len(path.parents)) - 1]
                place = folder.joinpath(*[part for part in name.split(".") if part])
                found |= {one for one in _forms(place) if one in self._files}
                found |= _on_disk(place)
            else:
                words = name.split(".")
                for end in range(1, len(words) + 1):
                    found |= self._by_name.get(".".join(words[:end]), set())
                for folder in folders:
                    if self._holds(folder / words[0]):
                        for end in range(1, len(words) + 1):
                            found |= _on_disk(folder.joinpath(*words[:end]))
        self._direct[path] = found
        return found

    def _holds(self, top: Path) -> bool:
        if top not in self._tops:
            self._tops[top] = top.is_dir() or source_at(top) is not None
        return self._tops[top]


def _is_installed(path: Path) -> bool:
    return any(part in _INSTALLED for part in path.parts)


def _version_of(path: Path) -> Path | None:
    """Return the file that has the version of the installed package that a module belongs to."""
    parts = path.parts
    place = next((i for i, part in enumerate(parts) if part in _INSTALLED), None)
    if place is None:
        return None
    return _metadata(Path(*parts[: place + 1]), parts[place + 1].removesuffix(".py"))


@cache
def _metadata(folder: Path, package: str) -> Path | None:
    found = sorted(folder.glob(f"{package}-*.dist-info"))
    return found[0] / "METADATA" if found else None


def _on_disk(place: Path) -> set[Path]:
    found = source_at(place)
    return set() if found is None else {real(found)}


def _forms(place: Path) -> tuple[Path, Path]:
    return place.with_suffix(".py"), place / "__init__.py"


def reads_more(read: Mapping[Path, bytes]) -> bool:
    """Whether a check may read files that no import names.

    Such are programs that ``exec`` runs, and modules in folders that are added to ``sys.path``.
    """
    return any(_MORE.search(text) for path, text in read.items() if not _is_installed(path))


def contents(paths: Iterable[Path], held: Mapping[Path, str] | None = None) -> dict[Path, bytes]:
    """Return the bytes of files; unsaved text of an editor comes before the disk."""
    found: dict[Path, bytes] = {}
    for path in paths:
        if held and path in held:
            found[path] = held[path].encode()
            continue
        try:
            found[path] = path.read_bytes()
        except OSError:
            found[path] = b""
    return found
