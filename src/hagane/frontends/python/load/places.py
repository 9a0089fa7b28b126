"""The folders in which the modules of a program are looked for."""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path

# Names at the root of a project; its modules lie there, or in its folder ``src``.
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def folders_of_imports(file: Path, root: Path) -> tuple[Path, ...]:
    """Return the folders that an absolute import is looked for in, the first one first.

    They are the file's own, ``root``, the one above its package, and those of the project that
    the file lies in. An installed project finds its modules in the same places.

    Args:
        file: The file that imports.
        root: The folder that the program starts from.
    """
    beside = file.parent
    folders = (beside, root, _above_packages(beside), *_of_project(beside))
    return tuple(dict.fromkeys(folders))


def source_at(path: Path) -> Path | None:
    """Return the file of the module or package at a path without suffix, if there is one."""
    for candidate in (path.with_name(path.name + ".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _above_packages(folder: Path) -> Path:
    """Return the folder from which the package that a folder belongs to is imported."""
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def _of_project(folder: Path) -> tuple[Path, ...]:
    whole = folder.absolute()
    for place in (whole, *whole.parents):
        if any((place / mark).exists() for mark in _MARKS):
            # Findings are told by relative paths where the file was named by one.
            named = place if folder.is_absolute() else Path(os.path.relpath(place))
            return (named, *(named / inner for inner in _package_folders(place)))
    return ()


@cache
def _package_folders(project: Path) -> tuple[str, ...]:
    """Return the folders of a project in which packages lie, by its settings and by custom."""
    try:
        settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
        tools = settings["tool"]["setuptools"]
    except (OSError, ValueError, KeyError, TypeError):
        return ("src",)
    try:
        named = [
            *tools.get("package-dir", {}).values(),
            *tools.get("packages", {}).get("find", {}).get("where", ()),
        ]
    except (AttributeError, TypeError):
        named = []
    return tuple(dict.fromkeys(["src", *(name for name in named if isinstance(name, str))]))
