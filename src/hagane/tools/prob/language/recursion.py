"""Room for deep recursion: programs nest as deep as they are long."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hagane.errors import HaganeError

_FRAMES = 400_000


class TooDeep(HaganeError, RecursionError):
    """A program that nests, or whose functions recurse, deeper than Python may."""

    def __init__(self) -> None:
        super().__init__(
            f"the program nests, or its functions recurse, too deep for {_FRAMES:,} nested calls "
            "in Python; let functions recurse less deep, or split long expressions with 'let'"
        )


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for a while.

    Calls between Python functions use no C stack from Python 3.11 on, so the limit guards memory
    only; the walkers here never recurse through C code.

    Raises:
        TooDeep: Even that was not enough.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    except RecursionError as error:
        if isinstance(error, HaganeError):
            raise
        raise TooDeep from None
    finally:
        sys.setrecursionlimit(before)
