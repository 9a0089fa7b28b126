"""Whether another run writes into a folder now."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(folder: Path | str) -> Iterator[bool]:
    """Hold a folder for a run; yields whether no other one holds it.

    The lock is of the folder itself (``flock``) and ends with the process, however that ends. A
    file system without locks counts as one without other runs.
    """
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:
        yield True
        return
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:
            yield True
        else:
            yield True
    finally:
        os.close(held)


__all__ = ["alone"]
