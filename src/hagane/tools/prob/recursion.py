"""Room for deep recursion: programs nest as deep as they are long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FRAMES = 400_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for a while.

    Calls between Python functions use no C stack from Python 3.11 on, so the limit guards memory
    only; the walkers here never recurse through C code.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
