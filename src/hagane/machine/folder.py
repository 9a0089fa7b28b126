"""Where compiled code is kept: a folder that is the user's alone, or a temporary one."""

from __future__ import annotations

import atexit
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from hagane.machine.notices import notice

# Bits of a mode that let others write, and that let others do anything at all.
_OTHERS_WRITE = 0o022
_OTHERS = 0o077


class Place(NamedTuple):
    """Folders of one kind of compiled code.

    Attributes:
        name: The kind, such as ``native``.
        kept: The folder in the user's cache, if it may be trusted.
        writable: Whether ``kept`` can be written to.
    """

    name: str
    kept: Path | None
    writable: bool

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders that may hold entries, the one to write to last where ``kept`` is read-only."""
        made = _temporary.get(self.name)
        return tuple(folder for folder in (self.kept, made) if folder is not None)

    @property
    def folder(self) -> Path:
        """The folder that new entries are written to."""
        return self.kept if self.kept is not None and self.writable else self.temporary()

    def temporary(self) -> Path:
        """Return a private folder that lasts as long as this process; it is made where missing."""
        made = _temporary.get(self.name)
        if made is None or not made.is_dir():
            import tempfile

            made = Path(tempfile.mkdtemp(prefix=f"hagane-{self.name}-"))
            _temporary[self.name] = made
            atexit.register(_remove, made, os.getpid())
        return made


_temporary: dict[str, Path] = {}


def _remove(folder: Path, maker: int) -> None:
    # A child process inherits the registration, but not the folder.
    if os.getpid() == maker:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def find_place(name: str, environment: Mapping[str, str]) -> Place:
    """Return where compiled code of one kind is kept; the folder is made where it is missing.

    It is ``$XDG_CACHE_HOME/hagane/<name>``, or the same below ``$HOME/.cache``. A folder that
    belongs to someone else or that others may write to is not used: code loaded from it could
    be anyone's. One that others may only read is closed to them.
    """
    base = _cache_home(environment)
    if base is None:
        return _without(name, "no home folder is known")
    folder = base / "hagane" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        return _without(name, f"the folder '{folder}' cannot be used: {error}")
    if status.st_uid != os.geteuid():
        return _without(
            name,
            f"the folder '{folder}' belongs to user {status.st_uid}, expected {os.geteuid()}: "
            "remove it",
        )
    if status.st_mode & _OTHERS_WRITE:
        return _without(
            name,
            f"others may write to the folder '{folder}' (mode {stat.S_IMODE(status.st_mode):o}, "
            "expected 700): remove it",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        notice(
            f"the folder '{folder}' cannot be written to: what is not in it is compiled anew by "
            "each process; make it writable, or let XDG_CACHE_HOME name another folder"
        )
        return Place(name, folder, writable=False)
    if status.st_mode & _OTHERS:
        folder.chmod(0o700)
    return Place(name, folder, writable=True)


def data_folder(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return a folder of the user's cache for data of one kind; a temporary one if there is none.

    Args:
        name: The kind.
        environment: Where ``XDG_CACHE_HOME`` and ``HOME`` are looked up; the process's if None.
    """
    return find_place(name, os.environ if environment is None else environment).folder


def is_private(path: Path, kind: int) -> bool:
    """Whether a path is of a kind (``stat.S_IFREG``, …), is ours, and nobody else may write it."""
    status = path.lstat()
    return (
        stat.S_IFMT(status.st_mode) == kind
        and status.st_uid == os.geteuid()
        and not status.st_mode & _OTHERS_WRITE
    )


def _cache_home(environment: Mapping[str, str]) -> Path | None:
    """Return the user's cache folder, as the XDG Base Directory Specification 0.8 has it."""
    stated = Path(environment.get("XDG_CACHE_HOME", ""))
    if stated.is_absolute():
        return stated
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    return home / ".cache" if home.is_absolute() else None


def _without(name: str, reason: str) -> Place:
    notice(
        f"compiled code is kept in a temporary folder, and is compiled anew by each process: "
        f"{reason}, or let XDG_CACHE_HOME name a folder of your own"
    )
    return Place(name, None, writable=False)
