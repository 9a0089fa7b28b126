"""Lines on a terminal that are written over."""

from __future__ import annotations

import sys
import time
from collections import deque
from datetime import timedelta
from typing import Any


def is_terminal(out: Any) -> bool:
    """Return whether a stream understands the codes that erase lines."""
    return bool(getattr(out, "isatty", lambda: False)())


class Bar:
    """Lines that show how far something is.

    Args:
        length: Characters of a bar.
        out: A stream, the standard output if None.
    """

    def __init__(self, length: int = 50, out: Any = None):
        self.length = length
        self.out = sys.stdout if out is None else out
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=100)

    def draw(self, label: str, rate: float) -> str:
        """Return one bar."""
        marks = "#" * int(rate * self.length)
        return f"{label} [{marks.ljust(self.length, '.')}] {rate:6.2%}\n"

    def speed(self, iteration: float, detail: float) -> tuple[float, float]:
        """Return iterations and epochs a second, of the last hundred calls."""
        now = time.monotonic()
        self._recent.append((iteration, detail, now))
        old_iteration, old_detail, then = self._recent[0]
        if now == then:
            return float("inf"), float("inf")
        return (iteration - old_iteration) / (now - then), (detail - old_detail) / (now - then)

    def remaining(self, left: float, speed: float, iterations: float) -> str:
        """Return the line with speed and time left, ``left`` in units of ``speed``."""
        seconds = max(left, 0.0) / speed if speed > 0 else 0.0
        return (
            f"{iterations:10.5g} iters/sec. Estimated time to finish: "
            f"{timedelta(seconds=seconds)}.\n"
        )

    def show(self, lines: list[str]) -> None:
        """Write lines over those before."""
        over = is_terminal(self.out)
        text = "".join(lines)
        self.out.write(f"\033[J{text}\033[{len(lines)}A" if over else text)
        self.flush()

    def close(self) -> None:
        """Erase the lines."""
        if is_terminal(self.out):
            self.out.write("\033[J")
        self.flush()

    def flush(self) -> None:
        """Flush the stream."""
        if hasattr(self.out, "flush"):
            self.out.flush()
