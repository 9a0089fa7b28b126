"""Folders of builds, replaced as a whole."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hagane.errors import InvalidArgument

MANIFEST = "manifest.json"
KIND = "hagane build"
_AT_FDCWD, _EXCHANGE = -100, 2


def is_build(folder: Path) -> bool:
    """Whether a folder has the manifest of a build."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("kind") == KIND


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give an empty folder that takes the place of another when the block ends without an error.

    A symbolic link stays, and the folder that it leads to is replaced.

    Raises:
        InvalidArgument: The other is there, and is neither empty nor a build.
    """
    check_replaceable(folder)
    folder = folder.resolve() if folder.is_symlink() else folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = folder.parent / f".{folder.name}-{secrets.token_hex(6)}"
        fresh.mkdir()
    except OSError as error:
        raise InvalidArgument(f"'{folder}' cannot be written: {error.strerror}") from None
    try:
        yield fresh
        _put(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def check_replaceable(folder: Path) -> None:
    """Raise InvalidArgument unless a folder may be replaced: not there, empty, or a build."""
    if folder.is_symlink() or folder.exists():
        if not folder.is_dir():
            raise InvalidArgument(f"'{folder}' is no folder: -o names a folder to write")
        if any(folder.iterdir()) and not is_build(folder):
            raise InvalidArgument(
                f"'{folder}' is neither empty nor a build: choose another folder, or empty it"
            )


def _put(fresh: Path, folder: Path) -> None:
    """Rename a folder into place; the old one goes where the new one was."""
    if not folder.exists():
        os.rename(fresh, folder)
        return
    with suppress(AttributeError, OSError):
        call = ctypes.CDLL(None, use_errno=True).renameat2
        names = os.fsencode(fresh), os.fsencode(folder)
        if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0:
            return
    # A system that cannot exchange two names at once.
    old = folder.parent / f".{folder.name}-{secrets.token_hex(6)}"
    os.rename(folder, old)
    os.rename(fresh, folder)
    os.rename(old, fresh)
