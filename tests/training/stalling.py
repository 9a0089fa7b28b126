"""A dataset whose worker the system stops, once, at a chosen step of its work."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hagane.training.iterators.processes import worker
from hagane.training.iterators.processes.protocol import DONE
from hagane.training.iterators.processes.writer import BatchWriter

AT = 5  # a sample of the second batch of four

STEPS = {
    "task read": (worker._Worker, "_do", "before"),
    "task announced": (worker._Worker, "_check_wanted", "before"),
    "attempt checked": (worker._Worker, "_make", "before"),
    "draw read": (worker._Worker, "_load", "before"),
    "sample asked for": (None, "", "before"),
    "sample written": (BatchWriter, "add", "after"),
    "samples made": (worker._Worker, "_load", "after"),
    "layout written": (BatchWriter, "write_layout", "after"),
    "batch checked": (worker._Worker, "_send", "before"),
    "batch published": (worker._Worker, "_send", "after"),
}


class Stalling:
    """Samples of (index, process that made it); the worker stops at ``step`` of the batch of AT."""

    def __init__(self, step: str, mark: Path):
        self.step = step
        self.mark = mark

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if self.step == "sample asked for" and index == AT:
            self.stall()
        return np.full(1000, index), os.getpid()

    def stall(self) -> None:
        try:
            mark = os.open(self.mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(mark, str(os.getpid()).encode())
        os.close(mark)
        os.kill(os.getpid(), signal.SIGSTOP)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        owner, name, when = STEPS[self.step]
        if owner is None or multiprocessing.parent_process() is None:
            return
        original: Callable[..., Any] = getattr(owner, name)

        def stalled(this: Any, *arguments: Any) -> Any:
            now = self._is_time(this, name, arguments)
            if now and when == "before":
                self.stall()
            result = original(this, *arguments)
            if now and when == "after":
                self.stall()
            return result

        setattr(owner, name, stalled)

    def _is_time(self, this: Any, name: str, arguments: tuple[Any, ...]) -> bool:
        first = arguments[0] if arguments else None
        if name == "_send":
            return first == DONE and arguments[1] == 1
        if name == "add":
            return bool(first[0][0] == AT)
        if name == "write_layout":
            return bool(this.slot.owner == 1)
        return bool(first.ticket == 1)
