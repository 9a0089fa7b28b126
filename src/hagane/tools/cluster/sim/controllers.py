"""Jobs and sets of replicas: makers of pods from a template, and of their replacements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hagane.tools.cluster.model.objects import Pod, Workload
from hagane.tools.cluster.sim.actions import Delete, Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.state import Cluster

if TYPE_CHECKING:
    from hagane.tools.cluster.sim.simulation import Simulation

# Whose pods give way to those of a changed template; others keep the pods that they have.
_ROLLED = ("Deployment", "StatefulSet")


class Controller(Submitter):
    """Keeps a workload's pods up.

    A job runs as many pods at a time as its parallelism says until enough have succeeded, or more
    have failed than its limit, and has none while it is suspended; anything else is replaced as
    often as it ends. Pods are numbered; a number whose name another pod of the cluster has is left
    out.
    """

    def __init__(self, workload: Workload):
        self.name = f"{workload.kind}/{workload.namespace}/{workload.name}"
        self.workload = workload
        # The pods by their key, in the order in which they came.
        self.active: dict[str, Pod] = {}
        self.made = 0
        self.succeeded = 0
        self.failed = 0
        self.over = False
        self._leaving: set[str] = set()
        self._simulation: Simulation | None = None

    def attach(self, simulation: Simulation) -> None:
        """Keep the simulation, whose other pods have names too."""
        self._simulation = simulation

    def is_bound(self, key: str) -> bool:
        """Return whether a pod is on a node."""
        return self._simulation is not None and key in self._simulation.cluster.where

    def change(self, workload: Workload) -> None:
        """Keep another workload's pods up: more, fewer, or of another template."""
        self.workload = workload

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Make the pods that are missing, and delete those that are too many."""
        for key in self._surplus():
            self._leaving.add(key)
            yield Delete(key)
        if self._done():
            self.over = True
            yield Terminate()
            return
        for _ in range(self._wanted() - len(self._staying())):
            pod = self._next()
            self.active[pod.key] = pod
            yield Submit(pod)

    def next_time(self, clock: float) -> float | None:
        """Return now if something is to be done, else never."""
        idle = not self._done() and len(self._staying()) == self._wanted() and not self._old()
        return math.inf if idle else clock

    def finished(self, pod: Pod, clock: float) -> None:
        """Count a pod of this workload that has ended."""
        if pod.key not in self.active:
            return
        del self.active[pod.key]
        self._leaving.discard(pod.key)
        if pod.phase == "Succeeded":
            self.succeeded += 1
        elif pod.phase == "Failed":
            self.failed += 1

    def _done(self) -> bool:
        work = self.workload
        return work.completions is not None and (
            self.succeeded >= work.completions or self.failed > work.backoff_limit
        )

    def _wanted(self) -> int:
        work = self.workload
        if work.suspended:
            return 0
        if work.completions is None:
            return work.replicas
        return min(work.replicas, work.completions - self.succeeded)

    def _staying(self) -> list[str]:
        return [key for key in self.active if key not in self._leaving]

    def _old(self) -> list[str]:
        """Return the pods of an earlier template that give way."""
        if self.workload.kind not in _ROLLED:
            return []
        template = self.workload.template
        return [
            key
            for key in self._staying()
            if replace(self.active[key], name=template.name) != template
        ]

    def _surplus(self) -> list[str]:
        """Return the pods to delete: those of an earlier template, and the latest of too many."""
        if self._done():
            return []
        old = self._old()
        staying = [key for key in self._staying() if key not in old]
        return [*old, *staying[self._wanted() :]]

    def _next(self) -> Pod:
        sim, work = self._simulation, self.workload
        while True:
            pod = replace(work.template, name=f"{work.name}-{self.made}")
            self.made += 1
            if pod.key in self.active:
                continue
            if sim is None or not (pod.key in sim.queue or pod.key in sim.cluster.where):
                return pod
