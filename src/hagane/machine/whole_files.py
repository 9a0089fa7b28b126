"""Files that are never seen half written, and the remains of killed processes' files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hagane.errors import InvalidArgument

# Folders in which files are written bear the number of their process.
_BEGUN = re.compile(r"tmp.*\.(\d+)\.[^.]+")
_STREAM = re.compile(r"/dev/(?:std(?:out|err)|fd/\d+)|/proc/[^/]+/fd/\d+")
_NAME = 40  # characters of a file's name in that of its folder
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of errors of writes to a full disk, which name no file."""
_NO_NEW_FILE = (errno.EACCES, errno.EPERM, errno.EROFS)  # of a folder, whose files may be writable
_STAYS = (errno.EBUSY, errno.EXDEV)  # what is mounted keeps its place


@contextmanager
def written_whole(file: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path to write a file at, and put it in its place at the end.

    An earlier file of that name stays until then, through any failure; its permissions and links
    that lead to it stay. Other files that are written beside the path take their places before it.
    Pipes and devices, and a file in a folder that takes no new ones, are written where they are.

    Raises:
        InvalidArgument: A folder has that name.
        OSError: It cannot be written; the error names the file.
    """
    import shutil  # these cost milliseconds, and few commands write a file
    import tempfile

    if os.path.isdir(file):
        raise InvalidArgument(
            f"'{file}' is a folder, and a file is to have that name: give another name, or move "
            "the folder away"
        )
    there = os.path.exists(file)
    plain = os.path.isfile(file) and os.access(file, os.W_OK)
    if (there and not plain) or _STREAM.fullmatch(os.fspath(file)):
        yield Path(file)
        return
    target = Path(os.path.realpath(file))
    prefix = f"tmp{target.name[:_NAME]}.{os.getpid()}."
    try:
        folder = tempfile.mkdtemp(prefix=prefix, dir=target.parent)
    except OSError as error:
        if not there or error.errno not in _NO_NEW_FILE:
            raise OSError(error.errno, error.strerror, str(file)) from None
        yield Path(file)
        return
    try:
        path = Path(folder, target.name)
        yield path
        for made in Path(folder).rglob("*"):
            if made.is_file() and path not in (made, *made.parents):
                _put(made, target.parent / made.relative_to(folder))
        _put(path, target)
    except OSError as error:
        if str(error.filename).startswith(folder):
            raise OSError(error.errno, error.strerror, str(file)) from error
        if error.filename is None and error.errno in NO_ROOM:
            error.filename = str(file)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_whole(file: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file, text as UTF-8; see ``written_whole``."""
    with written_whole(file) as path:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def _put(made: Path, target: Path) -> None:
    import shutil

    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and made.exists():
        shutil.copymode(target, made)
    try:
        os.replace(made, target)
    except OSError as error:
        if error.errno not in _STAYS:
            raise
        shutil.copyfile(made, target)


def remove_begun(folder: str) -> None:
    """Remove the files that processes of this machine began to write and left at their end."""
    import shutil

    with os.scandir(folder) as entries:
        folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    for entry in folders:
        found = _BEGUN.fullmatch(entry.name)
        if found is not None and not _runs(int(found[1])):
            shutil.rmtree(entry.path, ignore_errors=True)  # (Another run may be doing the same.)


def _runs(process: int) -> bool:
    """Whether a process is at work; one that has ended may stay listed until it is waited for."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # of another user, or no number of a process
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[:1]
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a system without these files
    return state not in ([b"Z"], [b"X"])
