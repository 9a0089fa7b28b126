"""A time limit around a scheduler that someone else wrote."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hagane.tools.cluster.errors import SchedulerFault
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import SchedulerAction
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.state import Cluster


class Guarded(Scheduler):
    """Stops a scheduler that does not answer within some seconds of real time.

    The limit interrupts Python code in the main thread; elsewhere it is not enforced.
    """

    def __init__(self, inner: Scheduler, limit: float = 60.0):
        self.inner = inner
        self.limit = limit
        self.name = inner.name

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Ask the scheduler, one action at a time, each within the limit.

        Raises:
            SchedulerFault: if it takes longer.
        """
        with self._limited(clock):
            actions = iter(self.inner.schedule(clock, queue, nodes))
        while True:
            with self._limited(clock):
                action = next(actions, None)
            if action is None:
                return
            yield action

    def added(self, pod: Pod, clock: float) -> None:
        """Pass it on."""
        self.inner.added(pod, clock)

    def gone(self, pod: Pod, clock: float) -> None:
        """Pass it on."""
        self.inner.gone(pod, clock)

    def freed(self, rows: set[int], clock: float, nodes: Cluster) -> None:
        """Pass it on."""
        self.inner.freed(rows, clock, nodes)

    def next_time(self, clock: float) -> float | None:
        """Pass it on."""
        return self.inner.next_time(clock)

    @contextmanager
    def _limited(self, clock: float) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def late(number: int, frame: FrameType | None) -> None:
            raise SchedulerFault(
                "a scheduler answers in time",
                f"at {clock:g} s: scheduler {self.name!r} did not answer within {self.limit:g} s",
            )

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, self.limit)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
