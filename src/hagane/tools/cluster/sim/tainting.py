"""Eviction of pods from nodes whose taints do not tolerate them: the effect ``NoExecute``.

Source: Kubernetes 1.34, ``pkg/controller/tainteviction``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from hagane.events import Scheduled
from hagane.tools.cluster.model.selectors import Taint, Toleration

if TYPE_CHECKING:
    from hagane.tools.cluster.sim.life import Running
    from hagane.tools.cluster.sim.simulation import Simulation

_RANK = 1
# A pod that comes to a node stays for this many seconds at least, even if it tolerates the taint
# for none: else it would come and go at one instant for ever.
_ARRIVAL = 1.0


def stay(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> float:
    """Return for how many seconds a pod stays on a node with some taints.

    0 if one of effect ``NoExecute`` is not tolerated; else the least ``tolerationSeconds`` of the
    first toleration of each, infinity if none has any.
    """
    tolerations, least = tuple(tolerations), math.inf
    for taint in taints:
        if taint.effect != "NoExecute":
            continue
        used = next((t for t in tolerations if t.tolerates(taint)), None)
        if used is None:
            return 0.0
        if used.seconds is not None:
            least = min(least, max(used.seconds, 0))
    return least


class Tainting:
    """The evictions that are due in a simulation."""

    def __init__(self, simulation: Simulation):
        self.sim = simulation
        # By pod: since when its node is tainted, and the event of its eviction.
        self._due: dict[str, tuple[float, Scheduled[Callable[[], None]]]] = {}

    def started(self, running: Running) -> None:
        """Take in a pod that has come to a node."""
        if self.sim.cluster.tainted:
            self._expect(running, _ARRIVAL)

    def changed(self, rows: Iterable[int]) -> None:
        """Take in that the taints of some nodes may be others."""
        sim = self.sim
        if not (sim.cluster.tainted or self._due):
            return
        for row in sorted(rows):
            for key in list(sim.cluster.records[row].pods):
                running = sim.life.running.get(key)
                if running is not None:
                    self._expect(running)

    def ended(self, key: str) -> None:
        """Forget a pod that has left its node."""
        if self._due:
            due = self._due.pop(key, None)
            if due is not None:
                self.sim.heap.cancel(due[1])

    def _expect(self, running: Running, least: float = 0.0) -> None:
        sim, pod = self.sim, running.pod
        seconds = stay(sim.cluster.records[running.row].node.taints, pod.tolerations)
        since = self._due[pod.key][0] if pod.key in self._due else sim.clock
        self.ended(pod.key)
        if seconds < math.inf and running.terminating is None:
            at = max(since + seconds, sim.clock + least)
            event = sim.heap.push(at, lambda: self._evict(running), _RANK)
            self._due[pod.key] = (since, event)

    def _evict(self, running: Running) -> None:
        sim, key = self.sim, running.pod.key
        self._due.pop(key, None)
        sim.log.write(sim.clock, "evict", pod=key, node=sim.node_name(running.row), by="taint")
        sim.life.terminate(running, "preempted")
