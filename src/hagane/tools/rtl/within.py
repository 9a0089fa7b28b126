"""A limit of time for code that does not look at the clock."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AGAIN = 0.2  # seconds until TimeUp is raised again: longer than any clean-up that it starts


class TimeUp(BaseException):
    """The time of :func:`within` is up; no ``except Exception`` on the way keeps it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise ``TimeUp`` in the block after so many seconds; in the main thread only.

    Python drops what is raised in a finalizer, and ctypes makes an error of its own of what is
    raised while it converts arguments. So ``TimeUp`` is raised until the block ends, and an error
    that it became leaves the block as ``TimeUp``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raised = ended = False

    def up(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        del number, frame
        if ended:
            return
        raised = True
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        raise TimeUp

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        try:
            yield
        finally:
            ended = True
    except Exception as error:
        if raised:
            raise TimeUp from error
        raise
    finally:
        ended = True  # again, for a TimeUp that came before the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
