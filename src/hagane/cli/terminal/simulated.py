"""A progress bar that shows simulated time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

_EVERY = 0.1


@contextmanager
def simulating(until: float | None) -> Iterator[Callable[[float], None] | None]:
    """Yield the function that a simulation calls with its clock; None without a terminal.

    Args:
        until: the simulated second at which it ends, if that is known.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("simulated {task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("0:00:00", total=until)
        last = 0.0

        def show(clock: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY:
                last = now
                bar.update(task, completed=clock, description=str(timedelta(seconds=int(clock))))

        yield show
