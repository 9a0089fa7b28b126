"""Submitters with a list of submissions made beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.state import Cluster


class Replay(Submitter):
    """Submits pods at given times; the pods may come from a generator that never ends.

    Args:
        arrivals: (seconds, pod) in order of time.
        name: the name in logs.
    """

    def __init__(self, arrivals: Iterable[tuple[float, Pod]], name: str = "replay"):
        self.name = name
        self._arrivals: Iterator[tuple[float, Pod]] = iter(arrivals)
        self._next = next(self._arrivals, None)

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Submit everything that is due."""
        while self._next is not None and self._next[0] <= clock:
            yield Submit(self._next[1])
            self._next = next(self._arrivals, None)
        if self._next is None:
            yield Terminate()

    def next_time(self, clock: float) -> float | None:
        """Return the time of the next arrival."""
        return self._next[0] if self._next is not None else None
