"""Progress on the terminal for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner with elapsed seconds if the block runs longer than a second.

    Nothing is shown where standard error is no terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    shown = threading.Thread(target=_spin, args=(what, done), daemon=True)
    shown.start()
    try:
        yield
    finally:
        done.set()
        shown.join()


def _spin(what: str, done: threading.Event) -> None:
    if done.wait(1.0):
        return
    from rich.console import Console

    console = Console(stderr=True)
    started = time.monotonic() - 1.0
    with console.status(what) as status:
        while not done.wait(0.2):
            status.update(f"{what} ({time.monotonic() - started:.0f} s)")
