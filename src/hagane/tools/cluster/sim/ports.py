"""The two places where users plug in: submitters of pods, and schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import SchedulerAction, SubmitterAction
from hagane.tools.cluster.state import Cluster

if TYPE_CHECKING:
    from hagane.tools.cluster.sim.simulation import Simulation

Metrics = Mapping[str, Any]


@dataclass(slots=True)
class Pending:
    """A pod that waits for a node.

    Attributes:
        submitted: when the pod first came, in seconds of simulated time.
        queued: when it joined the queue this time; later than ``submitted`` after an eviction.
        why: reasons of the last failed attempt, by number of nodes.
    """

    pod: Pod
    submitted: float
    queued: float
    why: str = ""


class Queue:
    """The pending pods in the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[str, Pending] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Pod]:
        return (p.pod for p in list(self._pods.values()))

    def __contains__(self, key: object) -> bool:
        return key in self._pods

    def get(self, key: str) -> Pending | None:
        """Return the queue's entry of a pending pod."""
        return self._pods.get(key)

    def add(self, pending: Pending) -> None:
        """Put a pod at the end."""
        self._pods[pending.pod.key] = pending

    def remove(self, key: str) -> Pending | None:
        """Take a pod out."""
        return self._pods.pop(key, None)

    def entries(self) -> list[Pending]:
        """Return all entries in order."""
        return list(self._pods.values())


class Submitter:
    """Sends pods to the cluster. Override :meth:`submit`, and :meth:`next_time` to be efficient.

    Submitters are called one after another in the order in which they were registered.
    """

    name = "submitter"

    def attach(self, simulation: Simulation) -> None:
        """Learn of the simulation; for submitters that look at more than the cluster."""

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterable[SubmitterAction]:
        """Return the actions of this moment.

        Args:
            clock: seconds of simulated time.
            nodes: the cluster, to look at.
            metrics: the cluster's metrics, in the form of the original's metrics lines.
        """
        raise NotImplementedError

    def next_time(self, clock: float) -> float | None:
        """Return when to be called next; None for the next tick, infinity for never.

        Asked after each call of :meth:`submit` and of :meth:`finished`.
        """
        return None

    def finished(self, pod: Pod, clock: float) -> None:
        """Learn that a pod of the cluster succeeded, failed or was deleted."""


class Scheduler:
    """Places pods. Override :meth:`schedule`; the other methods report events.

    ``schedule`` may be a generator: each action takes effect before the next is asked for.
    """

    name = "scheduler"

    def attach(self, simulation: Simulation) -> None:
        """Learn of the simulation; for schedulers that stand for more than a scheduler."""

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterable[SchedulerAction]:
        """Return the bindings and evictions of this moment, in order."""
        raise NotImplementedError

    def added(self, pod: Pod, clock: float) -> None:
        """Learn that a pod joined the queue."""

    def gone(self, pod: Pod, clock: float) -> None:
        """Learn that a pod left the queue without being bound."""

    def freed(self, rows: set[int], clock: float, nodes: Cluster) -> None:
        """Learn that something on these rows has changed for the better."""

    def next_time(self, clock: float) -> float | None:
        """Return when to be called although nothing happens, or None."""
        return None
