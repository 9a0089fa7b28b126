"""Files that are never seen half written, and the remains of killed processes' files."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from hagane.errors import InvalidArgument

# Folders in which files are written bear the number of their process.
_BEGUN = re.compile(r"tmp.*\.(\d+)\.[^.]+")


@contextmanager
def written_whole(folder: str, filename: str) -> Iterator[str]:
    """Give the path to write a file at, and put it in its place at the end.

    An earlier file of that name stays until then, through any failure.

    Raises:
        InvalidArgument: A folder has that name.
    """
    target = os.path.join(folder, filename)
    if os.path.isdir(target):
        raise InvalidArgument(
            f"'{target}' is a folder, and a file is to have that name: give the extension another "
            "filename, or move the folder away"
        )
    folder, filename = os.path.split(target)
    prefix = f"tmp{filename}.{os.getpid()}."
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as made:
        path = os.path.join(made, filename)
        yield path
        os.replace(path, target)


def remove_begun(folder: str) -> None:
    """Remove the files that processes of this machine began to write and left at their end."""
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
