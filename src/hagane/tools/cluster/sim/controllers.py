"""Jobs and sets of replicas: makers of pods from a template, and of their replacements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from hagane.tools.cluster.model.objects import Pod, Workload
from hagane.tools.cluster.sim.actions import Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.state import Cluster


class Controller(Submitter):
    """Keeps a workload's pods up.

    A job runs as many pods at a time as its parallelism says until enough have succeeded, or more
    have failed than its limit; anything else is replaced as often as it ends.
    """

    def __init__(self, workload: Workload):
        self.name = f"{workload.kind}/{workload.namespace}/{workload.name}"
        self.workload = workload
        self.active: set[str] = set()
        self.made = 0
        self.succeeded = 0
        self.failed = 0
        self.over = False

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Make the pods that are missing."""
        work = self.workload
        if work.completions is not None:
            if self.succeeded >= work.completions or self.failed > work.backoff_limit:
                self.over = True
                yield Terminate()
                return
            wanted = min(work.replicas, work.completions - self.succeeded)
        else:
            wanted = work.replicas
        while len(self.active) < wanted:
            pod = replace(work.template, name=f"{work.name}-{self.made}")
            self.made += 1
            self.active.add(pod.key)
            yield Submit(pod)

    def next_time(self, clock: float) -> float | None:
        """Return now if something is to be done, else never."""
        work = self.workload
        if work.completions is not None:
            if self.succeeded >= work.completions or self.failed > work.backoff_limit:
                return clock
            return clock if len(self.active) < self._wanted() else math.inf
        return clock if len(self.active) < work.replicas else math.inf

    def finished(self, pod: Pod, clock: float) -> None:
        """Count a pod of this workload that has ended."""
        if pod.key not in self.active:
            return
        self.active.discard(pod.key)
        if pod.phase == "Succeeded":
            self.succeeded += 1
        elif pod.phase == "Failed":
            self.failed += 1

    def _wanted(self) -> int:
        assert self.workload.completions is not None
        return min(self.workload.replicas, self.workload.completions - self.succeeded)
