"""The folder of logs: ``rollouts/<time>/rollout_log.jsonl`` and ``images/*.png``.

Nothing outside is ever opened: names are checked, links are resolved, and their targets have to
lie within the folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from datetime import datetime
from pathlib import Path

from hagane.tools.rl.errors import NoSuchRollout, RlError

LOG_NAME = "rollout_log.jsonl"
_TIME = "%Y%m%dT%H%M%S.%f"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}


class LogFolder:
    """The rollouts below one folder, which is made if it is missing.

    Raises:
        RlError: it cannot be made, or is no folder.
    """

    def __init__(self, root: Path):
        try:
            (root / "rollouts").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RlError(f"log folder {root}: cannot be made: {error.strerror}") from None
        self.root = root.resolve()
        self.rollouts = (self.root / "rollouts").resolve()
        if not self.rollouts.is_relative_to(self.root):
            raise RlError(f"log folder {root}: its 'rollouts' is a link to another place")

    def ids(self) -> list[str]:
        """Return the rollouts' names, oldest first; none if the folder was taken away."""
        try:
            entries = list(os.scandir(self.rollouts))
        except OSError:
            return []
        found = (entry for entry in entries if entry.is_dir(follow_symlinks=False))
        return sorted(entry.name for entry in found if _ID.fullmatch(entry.name))

    def latest(self) -> str | None:
        """Return the newest rollout by the time in its name, None if there is none."""
        ids = self.ids()
        timed = [name for name in ids if _is_time(name)]
        return (timed or ids)[-1] if ids else None

    def rollout(self, name: str) -> Path:
        """Return the folder of a rollout.

        Raises:
            NoSuchRollout: there is none of that name within the log folder.
        """
        path = self.rollouts / name
        if not _ID.fullmatch(name) or path.is_symlink() or not path.is_dir():
            raise NoSuchRollout(f"rollout {name[:80]!r}: there is none in {self.rollouts}")
        return path

    def new(self) -> Path:
        """Make and return the folder of a new rollout, named by the time."""
        while True:
            path = self.rollouts / datetime.now().strftime(_TIME)
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            (path / "images").mkdir()
            return path

    def picture(self, text: str) -> tuple[Path, str]:
        """Return a picture of the log folder and its media type, for a path as logs hold it.

        A log that was moved holds paths of its former place; ``rollouts/<id>/images/<name>`` at the
        end of one is looked up here.

        Raises:
            NoSuchRollout: it is not in this folder at its whole path, nor in ``rollouts/<id>/`` of
                it by the end of its path, or is no picture.
        """
        refused = NoSuchRollout(f"picture {text[:200]!r}: not one of this log folder")
        if not text or "\0" in text:
            raise refused
        path = Path(text)
        media = _PICTURES.get(path.suffix.lower())
        if media is None or ".." in path.parts:
            raise refused
        for place in (path if path.is_absolute() else None, self._moved(path)):
            with contextlib.suppress(OSError, RuntimeError):
                resolved = place.resolve(strict=True) if place else None
                if resolved and resolved.is_relative_to(self.root) and resolved.is_file():
                    return resolved, media
        raise refused

    def _moved(self, path: Path) -> Path | None:
        """Return the place of a picture of a log that was written elsewhere."""
        for start in range(len(path.parts) - 1, -1, -1):
            if path.parts[start] == "rollouts":
                below = path.parts[start + 1 :]
                return self.rollouts.joinpath(*below) if len(below) > 2 else None
        return None

    def holds(self, path: Path) -> bool:
        """Return whether a resolved path lies below ``rollouts``."""
        return path.is_relative_to(self.rollouts)

    def file(self, rollout: str, *parts: str) -> Path:
        """Return a regular file of a rollout.

        Raises:
            NoSuchRollout: there is none, or a link leads out of the folder.
        """
        path = self.rollout(rollout).joinpath(*parts)
        try:
            resolved = path.resolve(strict=True)
        except (OSError, RuntimeError):
            resolved = None
        if resolved is None or not self.holds(resolved) or not resolved.is_file():
            raise NoSuchRollout(f"rollout {rollout!r}: there is no {'/'.join(parts)} in it")
        return resolved


def made_within(folder: Path, name: str) -> Path:
    """Make and return a folder of a rollout to write to.

    Raises:
        NoSuchRollout: a link or a file is in its place.
    """
    path = folder / name
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise NoSuchRollout(f"{folder.name}: {name} is a link or a file; nothing is written there")
    path.mkdir(exist_ok=True)
    return path


def open_regular(path: Path) -> int:
    """Open a file for reading that is neither a link nor anything else than a file.

    Raises:
        NoSuchRollout: it is.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise NoSuchRollout(f"{path.name}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoSuchRollout(f"{path.name}: cannot be read: not a file")
    return descriptor


def _is_time(name: str) -> bool:
    try:
        datetime.strptime(name, _TIME)
    except ValueError:
        return False
    return True
