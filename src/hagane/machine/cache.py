"""A folder of compiled code, private to the user, whose entries are verified before use."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path


class CodeCache:
    """Shared libraries by the hash of what they were made from.

    Several processes may use one folder: an entry is written under a name of its own and renamed
    into place, its checksum beside it. An entry whose checksum does not fit, as a full disk or a
    broken copy leaves behind, is made anew.

    Args:
        name: Subfolder of the user's cache, such as ``native``.
        environment: Where ``XDG_CACHE_HOME`` is looked up; that of the process if None.
    """

    def __init__(self, name: str, environment: Mapping[str, str] | None = None):
        self.folder = cache_folder(name, os.environ if environment is None else environment)

    def path(self, key: str) -> Path:
        """Return where the entry of ``key`` lies, whether it is there or not."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / f"{digest[:40]}.so"

    def find(self, key: str) -> Path | None:
        """Return the entry of ``key`` if it is there and whole."""
        library = self.path(key)
        try:
            stated = library.with_suffix(".sha256").read_text(encoding="ascii").strip()
            content = library.read_bytes()
        except (OSError, UnicodeDecodeError):
            return None
        return library if hashlib.sha256(content).hexdigest() == stated else None

    def get(self, key: str, make: Callable[[Path], Path]) -> Path:
        """Return the entry of ``key``; where it is missing, ``make(folder)`` builds it.

        Args:
            key: Everything that the entry depends on.
            make: Writes a library into the empty folder that it is given and returns its path.
        """
        found = self.find(key)
        if found is not None:
            return found
        library = self.path(key)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="build-") as build:
            made = make(Path(build))
            checksum = Path(build) / "checksum"
            checksum.write_text(hashlib.sha256(made.read_bytes()).hexdigest(), encoding="ascii")
            os.replace(made, library)
            os.replace(checksum, library.with_suffix(".sha256"))
        return library

    def get_folder(self, key: str, make: Callable[[Path], None]) -> Path:
        """Return the folder of ``key``; where it is missing, ``make(folder)`` fills it."""
        folder = self.path(key).with_suffix("")
        if not folder.is_dir():
            build = Path(tempfile.mkdtemp(dir=self.folder, prefix="build-"))
            try:
                make(build)
                os.replace(build, folder)
            except OSError:
                # Another process was faster.
                shutil.rmtree(build, ignore_errors=True)
                if not folder.is_dir():
                    raise
        return folder


def cache_folder(name: str, environment: Mapping[str, str]) -> Path:
    """Return the folder ``hagane/<name>`` of the user's cache; it is made where it is missing.

    A folder that belongs to someone else, that others may write to, or that cannot be written,
    is not used: code loaded from it could be anyone's. A temporary one takes its place.
    """
    home = environment.get("HOME") or os.path.expanduser("~")
    base = environment.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    folder = Path(base) / "hagane" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
        if ours and os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return _temporary_folder(name)


@cache
def _temporary_folder(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"hagane-{name}-"))
