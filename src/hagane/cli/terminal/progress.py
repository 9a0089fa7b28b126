"""Progress on the terminal for work that takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with elapsed seconds if the block runs longer than a second.

    Nothing is shown where standard error is no terminal. The block gets a function that takes
    the present activity, in words.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    done = threading.Event()
    texts = [what]
    shown = threading.Thread(target=_spin, args=(texts, done), daemon=True)
    shown.start()
    try:
        yield lambda text: texts.__setitem__(0, f"{what}: {text}")
    finally:
        done.set()
        shown.join()


def _spin(texts: list[str], done: threading.Event) -> None:
    if done.wait(1.0):
        return
    from rich.console import Console

    console = Console(stderr=True)
    started = time.monotonic() - 1.0
    with console.status(texts[0]) as status:
        while not done.wait(0.2):
            status.update(f"{texts[0]} ({time.monotonic() - started:.0f} s)")
