"""A limit of time for code that does not look at the clock."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeUp(BaseException):
    """The time of :func:`within` is up; no ``except Exception`` on the way keeps it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise ``TimeUp`` in the block after so many seconds; in the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def up(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimeUp

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
