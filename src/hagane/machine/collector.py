"""Garbage collection held off while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from hagane.machine.lock import Lock

_counting = Lock()
_resting = 0  # blocks of all threads that hold collection off
_ran = False  # whether it ran before the first of them


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the collector from going through a million objects again and again within a block.

    Modules, terms and rows that stay set it off without leaving it anything to free: with PyTorch
    loaded, each time takes about 70 ms. When the last block of all threads ends, it runs again if
    it ran before.
    """
    global _resting, _ran
    with _counting:
        if not _resting:
            _ran = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
    finally:
        with _counting:
            _resting -= 1
            if not _resting and _ran:
                gc.enable()
