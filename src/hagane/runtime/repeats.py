"""Shapes that come again and again: when programs of their own are begun for them.

The part of this that a session from the cache needs loads nothing else.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from weakref import WeakMethod

from hagane.machine import Lock

Shapes = tuple[tuple[int, ...], ...]

# The run of a shape at which a program of its own is begun.
RUNS = 8
# For how many runs a short way of the program for all shapes is not asked for again, so that the
# run at which another one is begun is counted.
LEASE = RUNS - 1
# How many shapes are counted.
MOST_COUNTED = 1024
# How far a program for one shape is put behind all else.
_NICE = 10


def step_back() -> None:
    """Put the thread that calls this behind all others of the machine."""
    with contextlib.suppress(OSError, AttributeError):  # a wish, which not every system grants
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


class Met:
    """Counts the shapes of a session from the cache; the first that comes often is prepared.

    Then the model is there, and its programs count.

    Args:
        prepare: Gives a shape a program of its own. It is held weakly: the counter is held by C
            functions, which the collector of cycles does not see.
    """

    def __init__(self, prepare: WeakMethod[Callable[[Shapes], None]]):
        self._prepare = prepare
        self._lock = Lock()
        self._counts: OrderedDict[Shapes, int] = OrderedDict()
        self._begun = False

    def count(self, shapes: Shapes, runs: int) -> None:
        """Note some runs of a shape."""
        with self._lock:
            count = self._counts[shapes] = self._counts.pop(shapes, 0) + runs
            if len(self._counts) > MOST_COUNTED:
                self._counts.popitem(last=False)
            if count < RUNS or self._begun:
                return
            self._begun = True
        threading.Thread(
            target=self._work, args=(shapes,), name="hagane-specialize", daemon=True
        ).start()

    def _work(self, shapes: Shapes) -> None:
        step_back()
        prepare = self._prepare()
        if prepare is not None:
            prepare(shapes)
