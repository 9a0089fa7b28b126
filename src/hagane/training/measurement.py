"""Whether loading or compute is the limit of a training loop.

With loading in parallel an iteration costs ``max(compute, loading)``. Both are measured alone,
then the loop as it runs, and how long it waits for batches.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from hagane.errors import InvalidArgument
from hagane.training.expected import need, need_callable, need_number

_BAR = 24


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of a training loop, in seconds a batch.

    Attributes:
        batches: Batches in the longest of the three measurements.
        loading: Time to make a batch when nothing else happens.
        compute: Time of a step on a batch that is there.
        iteration: Time of an iteration of the loop, loading and compute together.
        waiting: Share of the loop's time spent waiting for a batch, from 0 to 1.
    """

    batches: int
    loading: float
    compute: float
    iteration: float
    waiting: float

    @property
    def limit(self) -> Literal["loading", "compute"]:
        """Which of the two is the longer."""
        return "loading" if self.loading > self.compute else "compute"

    @property
    def overlap(self) -> float:
        """An iteration as a multiple of ``max(compute, loading)``; 1 is perfect overlap."""
        longest = max(self.loading, self.compute)
        return self.iteration / longest if longest else 1.0

    def __str__(self) -> str:
        remedy = {
            "loading": "more workers, or less work in the dataset, would make it faster",
            "compute": "faster loading would change nothing",
        }
        return (
            f"{self.limit} is the limit: loading {self.loading * 1e3:.2f} ms, "
            f"compute {self.compute * 1e3:.2f} ms, iteration {self.iteration * 1e3:.2f} ms a batch "
            f"({self.overlap:.2f} × the longer), {self.waiting:.0%} of the time spent waiting; "
            f"{remedy[self.limit]}"
        )


def measure(
    iterator: Any,
    step: Callable[[Any], object],
    *,
    batches: int = 50,
    seconds: float = 5.0,
    progress: bool | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Measurement:
    """Return how long loading, compute and both together take.

    Iterators with ``state_dict`` and ``load_state_dict`` stand afterwards where they stood.

    Args:
        iterator: Gives batches; one of ``hagane.training.iterators``, or any iterable, such as a
            PyTorch ``DataLoader``. One that ends is reset, or iterated again.
        step: The training step. It must not return before its work is done: wait for the device.
        batches: Most batches in each of the three measurements.
        seconds: Most seconds in each of them.
        progress: Draw a bar on standard error; None does if that is a terminal.
        clock: Returns seconds.

    Raises:
        InvalidArgument: The iterator gives no batches, or ``batches`` is not positive.
    """
    need("measure: iterator", iterator, "an iterator or a loader of batches", "__iter__")
    need_callable("measure: step", step)
    need_number("measure: batches", batches)
    need_number("measure: seconds", seconds)
    if batches < 1:
        raise InvalidArgument(f"measure: expected a positive number of batches, got {batches}")
    shown = sys.stderr.isatty() if progress is None else progress
    bar = _Bar(sys.stderr if shown else None, batches, clock)
    saved = iterator.state_dict() if hasattr(iterator, "load_state_dict") else None
    source = _endless(iterator)
    ahead = getattr(iterator, "n_prefetch", 1) + getattr(iterator, "n_processes", 1)
    for _ in range(ahead + 1):  # workers start, and batches made ahead of time are used up
        batch = next(source)
    step(batch)

    def loop(name: str, turn: Callable[[], object]) -> tuple[int, float]:
        begun = clock()
        for done in range(1, batches + 1):
            turn()
            elapsed = clock() - begun
            bar.show(name, done, elapsed)
            if elapsed >= seconds:
                break
        return done, elapsed

    waited = 0.0

    def both() -> None:
        nonlocal waited
        begun = clock()
        batch = next(source)
        waited += clock() - begun
        step(batch)

    try:
        loaded, loading = loop("loading", lambda: next(source))
        computed, compute = loop("compute", lambda: step(batch))
        for _ in range(ahead + 1):
            step(next(source))
        turned, together = loop("both", both)
    finally:
        bar.clear()
    if saved is not None:
        iterator.load_state_dict(saved)
    return Measurement(
        max(loaded, computed, turned),
        loading / loaded,
        compute / computed,
        together / turned,
        waited / together if together else 0.0,
    )


def _endless(iterable: Any) -> Iterator[Any]:
    while True:
        any_yet = False
        for batch in iterable:
            any_yet = True
            yield batch
        if not any_yet:
            raise InvalidArgument(
                "measure: the iterator gives no batches; pass one that repeats, or an iterable "
                "that can be iterated again"
            )
        if hasattr(iterable, "reset"):
            iterable.reset()


class _Bar:
    """A line on a terminal that is drawn over, ten times a second."""

    def __init__(self, stream: TextIO | None, total: int, clock: Callable[[], float]):
        self._stream = stream
        self._total = total
        self._clock = clock
        self._drawn = -1.0

    def show(self, name: str, done: int, elapsed: float) -> None:
        now = self._clock()
        if self._stream is None or (now - self._drawn < 0.1 and done < self._total):
            return
        self._drawn = now
        text = f" {done}/{self._total} batches, {elapsed / done * 1e3:.1f} ms each"
        # A line that reaches the last column is not drawn over but begun anew below.
        room = shutil.get_terminal_size().columns - len(f"{name:8}[]{text} ") - 1
        width = max(0, min(_BAR, room))
        full = width * done // self._total
        bar = f"[{'#' * full}{'.' * (width - full)}]"
        self._stream.write(f"\r{name:8}{bar}{text} ")
        self._stream.flush()

    def clear(self) -> None:
        if self._stream is not None and self._drawn >= 0:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
