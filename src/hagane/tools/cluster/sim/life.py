"""The life of bound pods: phases, ends, deletions, lost work."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hagane.events import Scheduled
from hagane.tools.cluster.model.objects import Amounts, Pod
from hagane.tools.cluster.sim.ports import Pending
from hagane.tools.cluster.sim.shares import gpus_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hagane.tools.cluster.sim.simulation import Simulation

_NO_USAGE: Amounts = {}


@dataclass(slots=True)
class Running:
    """A pod on a node.

    Attributes:
        submitted: when it was first submitted.
        bound: when it came to this node.
        done: seconds of work that an earlier life has saved.
        work: seconds of work in all; 0 where the pod never ends.
        ends: the event of its next change.
        outcome: what its end will be called, once it is terminating.
    """

    pod: Pod
    row: int
    submitted: float
    bound: float
    done: float = 0.0
    work: float = 0.0
    ends: Scheduled[Callable[[], None]] | None = None
    terminating: float | None = None
    restarts: int = 0
    origin: float = field(default=0.0)
    outcome: str = ""

    def executed(self, clock: float) -> float:
        """Return the seconds the pod has run on this node."""
        return clock - self.bound

    def usage(self, clock: float) -> Amounts:
        """Return the present use of the pod, by its phases."""
        if self.pod.phases is None:
            return self.pod.requests
        at = self.done + (clock - self.origin)
        for phase in self.pod.phases:
            at -= phase.seconds
            if at < 0:
                return phase.usage
        return self.pod.phases[-1].usage if self.pod.phases else _NO_USAGE


class Life:
    """Pods on nodes, and work saved by pods that wait for another node."""

    def __init__(self, simulation: Simulation):
        self.sim = simulation
        self.running: dict[str, Running] = {}
        self.saved: dict[str, float] = {}
        # Seconds until a pod that starts now would crash.
        self.crash_after: Callable[[Pod], float] | None = None

    def start(self, pending: Pending, row: int, devices: tuple[int, ...] | None = None) -> None:
        """Bind a pod and let it run."""
        sim = self.sim
        now = sim.clock
        pod = pending.pod.with_changes(
            node_name=sim.node_name(row), started=now, phase="Running", nominated=""
        )
        sim.cluster.bind(pod, row, devices)
        sim.books.hold(pod, 1)
        if pod.key not in self.saved:
            sim.books.waiting.add(now - pending.submitted)
        running = Running(pod, row, pending.submitted, now, self.saved.pop(pod.key, 0.0))
        self._run(running)

    def resume(self, pod: Pod, row: int) -> None:
        """Let a pod that was bound before the start run on."""
        self._run(Running(pod, row, self.sim.clock, self.sim.clock))

    def _run(self, running: Running) -> None:
        self.running[running.pod.key] = running
        running.work = running.pod.duration or 0.0
        running.origin = self.sim.clock
        self._next(running)
        self._expect_crash(running)
        self.sim.tainting.started(running)

    def _expect_crash(self, running: Running) -> None:
        if self.crash_after is None:
            return
        at = running.origin + self.crash_after(running.pod)
        if running.pod.phases is None or at < running.origin + running.work - running.done:
            life = running.restarts
            self.sim.heap.push(at, lambda: self._crash(running, life), 1)

    def _crash(self, running: Running, life: int) -> None:
        """Restart a pod in place, or fail it, by its restart policy."""
        sim = self.sim
        key = running.pod.key
        if self.running.get(key) is not running or running.restarts != life:
            return
        if running.terminating is not None:
            return
        if running.pod.restart_policy == "Never":
            self.remember(running)
            self.saved.pop(key, None)
            self.end(running, "failed", "crash")
            return
        self.remember(running)
        # Back-off before a restart: ten seconds, doubling, five minutes at most.
        pause = min(10.0 * 2**running.restarts, 300.0)
        running.restarts += 1
        running.done = self.saved.pop(key)
        running.origin = sim.clock + pause
        sim.books.counts["restarts"] += 1
        sim.log.write(sim.clock, "restart", pod=key, node=sim.node_name(running.row))
        if running.ends is not None:
            sim.heap.cancel(running.ends)
        self._next(running)
        self._expect_crash(running)

    def _next(self, running: Running) -> None:
        """Set the pod's next change: the end of a phase, or of the pod."""
        phases = running.pod.phases
        if phases is None:
            return
        left = running.work - running.done
        when = running.origin + left
        if len(phases) > 1:
            at = running.done + (self.sim.clock - running.origin)
            edge = 0.0
            for phase in phases[:-1]:
                edge += phase.seconds
                if edge > at:
                    when = min(when, running.origin + edge - running.done)
                    break
        running.ends = self.sim.heap.push(
            max(when, self.sim.clock), lambda: self._change(running), 0
        )
        if self._overuses(running):
            self.sim.heap.cancel(running.ends)
            running.ends = self.sim.heap.push(
                self.sim.clock, lambda: self.end(running, "failed", "OverCapacity"), 0
            )

    def _change(self, running: Running) -> None:
        # The end is compared as it was computed, not by subtracting floats again.
        if self.sim.clock >= running.origin + (running.work - running.done):
            self.end(running, "succeeded")
        else:
            self._next(running)

    def _overuses(self, running: Running) -> bool:
        """Return whether the pods of a node use more than the node has, this one among them."""
        phases = running.pod.phases
        if phases is None or not any(p.usage for p in phases):
            return False
        cluster, now = self.sim.cluster, self.sim.clock
        record = cluster.records[running.row]
        total: dict[str, int] = {}
        for key in record.pods:
            other = self.running.get(key)
            if other is None:
                continue
            for name, value in other.usage(now).items():
                total[name] = total.get(name, 0) + value
        mine = running.usage(now)
        return any(
            total[name] > record.node.allocatable.get(name, 0)
            for name, value in mine.items()
            if value
        )

    def end(self, running: Running, outcome: str, why: str = "") -> None:
        """Take a pod off its node; ``outcome`` is succeeded, failed, deleted, preempted or lost."""
        sim = self.sim
        pod = running.pod
        del self.running[pod.key]
        if running.ends is not None:
            sim.heap.cancel(running.ends)
            # The event knows the pod; without this the two would be a cycle.
            running.ends = None
        sim.tainting.ended(pod.key)
        sim.cluster.unbind(pod.key)
        sim.books.hold(pod, -1)
        fields = {"pod": pod.key, "node": sim.node_name(running.row)}
        if why:
            fields["why"] = why
        kind = {"succeeded": "finish", "failed": "fail", "lost": "lose"}.get(outcome, "remove")
        sim.log.write(sim.clock, kind, **fields)
        if outcome in ("succeeded", "failed", "deleted"):
            sim.books.counts[outcome] += 1
        if outcome == "succeeded":
            sim.books.done(pod, running.submitted, sim.clock, running.work)
        sim.left(running, outcome)

    def terminate(self, running: Running, why: str) -> None:
        """Begin a pod's grace period; at its end the pod is gone."""
        sim = self.sim
        if running.terminating is not None:
            return
        running.terminating = sim.clock
        pod = replace(running.pod, deleting=True)
        running.pod = pod
        sim.cluster.records[running.row].pods[pod.key] = pod
        if why != "preempted":
            sim.log.write(sim.clock, "delete", pod=pod.key, why=why)
        outcome = running.outcome = "preempted" if why == "preempted" else "deleted"
        sim.heap.push(sim.clock + pod.grace, lambda: self._grace_over(running, outcome), 0)

    def _grace_over(self, running: Running, outcome: str) -> None:
        if self.running.get(running.pod.key) is running:
            self.end(running, outcome)

    def remember(self, running: Running) -> None:
        """Keep the saved work of a pod that lost its node, and count the work it lost."""
        pod = running.pod
        done = running.done + max(0.0, self.sim.clock - running.origin)
        saved = done // pod.checkpoint * pod.checkpoint if pod.checkpoint else 0.0
        saved = max(saved, running.done if pod.checkpoint else 0.0)
        self.saved[pod.key] = saved
        lost = done - saved
        self.sim.books.lost_seconds += lost
        self.sim.books.lost_gpu_seconds += lost * gpus_of(pod.requests)

    def shortage(self, pod: Pod, row: int) -> str:
        """Return the resources that a node lacks for a pod, or nothing."""
        cluster = self.sim.cluster
        if cluster.counts[row] >= cluster.allocatable[3, row]:
            return "Too many pods"
        for name, value in pod.requests.items():
            index = cluster.resource(name)
            free = int(cluster.allocatable[index, row] - cluster.requested[index, row])
            if value > free:
                return f"{name}: {value} requested, {free} free"
        if pod.gpu is not None and len(cluster.pick_devices(pod, row)) < pod.gpu.count:
            return f"GPU devices: {pod.gpu.count} with {pod.gpu.milli} thousandths requested"
        return ""
