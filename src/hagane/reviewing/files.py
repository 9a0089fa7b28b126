"""From the names on a command line to the files to check."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from hagane.errors import InvalidArgument
from hagane.frontends.python.report.sources import NOTEBOOK

_SUFFIXES = (".py", NOTEBOOK)
# Folders that hold no source of the project's own.
_SKIPPED = frozenset({"__pycache__", "build", "dist", "node_modules", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class Target:
    """A file, and the class or function in it that is meant; empty for all that is annotated."""

    file: Path
    name: str = ""


def targets_of(
    words: Sequence[str], exclude: Sequence[str] = (), *, force: bool = False
) -> list[Target]:
    """Return the files that words name, by their path from the working directory if they lie in it.

    Args:
        words: Files, ``FILE.py:NAME``, folders and dotted names of packages or modules.
        exclude: Patterns of paths that folders and packages leave out, such as ``tests/*``.
        force: Whether files that are named themselves are left out too.

    Raises:
        InvalidArgument: A word names none of these.
    """
    found: dict[Target, None] = {}
    for word in words:
        for target in _named(word, exclude):
            file = _from_here(target.file)
            if not (force and any(_is_excluded(p, exclude) for p in (file, *file.parents))):
                found.setdefault(replace(target, file=file))
    return list(found)


def _from_here(path: Path) -> Path:
    try:
        return path.relative_to(Path.cwd()) if path.is_absolute() else path
    except ValueError:
        return path


def _named(word: str, exclude: Sequence[str]) -> Iterator[Target]:
    path = Path(word)
    if path.is_dir():
        yield from (Target(file) for file in sources(path, exclude))
        return
    if path.is_file() or (path.suffix in _SUFFIXES and ":" not in word):
        yield Target(path)
        return
    front, _, name = word.rpartition(":")
    if front and name and not front.endswith((":", "\\")):
        yield Target(Path(front), name.strip())
        return
    place = _package(word)
    if place is None:
        raise InvalidArgument(
            f"'{word}' is no file, folder or package: expected FILE.py, FILE.py:Class, a folder, "
            "or the dotted name of a package that can be found from here"
        )
    if place.is_dir():
        yield from (Target(file) for file in sources(place, exclude))
    else:
        yield Target(place)


def real(path: Path) -> Path:
    """Return where a path leads; a link in a circle leads to itself."""
    return Path(os.path.realpath(path))


def sources(folder: Path, exclude: Sequence[str] = ()) -> Iterator[Path]:
    """Yield the Python files and notebooks below a folder by name, hidden folders left out."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED
            and not _is_excluded(Path(place, name), exclude)
        )
        for name in sorted(files):
            path = Path(place, name)
            # Links may lead nowhere: editors mark files as open by such.
            if name.endswith(_SUFFIXES) and path.exists() and not _is_excluded(path, exclude):
                yield path


def _is_excluded(path: Path, patterns: Iterable[str]) -> bool:
    text = path.as_posix().removeprefix("./")
    parts = [text, *("/".join(text.split("/")[i:]) for i in range(1, text.count("/") + 1))]
    return any(fnmatch(part, pattern.rstrip("/")) for pattern in patterns for part in parts)


def _package(name: str) -> Path | None:
    """Return the folder or file of a dotted name below the working directory or ``src``."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for root in (Path(), Path("src")):
        place = root.joinpath(*parts)
        if place.is_dir():
            return place
        if place.with_suffix(".py").is_file():
            return place.with_suffix(".py")
    try:
        # Of the first name alone: finding one inside a package would import the package.
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        return None
    for root_text in (spec.submodule_search_locations or ()) if spec is not None else ():
        place = Path(root_text).joinpath(*parts[1:])
        if place.is_dir():
            return place
        if place.with_suffix(".py").is_file():
            return place.with_suffix(".py")
    return None
