"""Events of nodes: failures, repairs, drains, additions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.preemption import budget_limits, split_by_budget
from hagane.tools.cluster.model.objects import Node
from hagane.tools.cluster.sim.simulation import RANK_FAULT, Simulation

KINDS = ("fail", "repair", "cordon", "uncordon", "drain", "add", "remove")
_DRAIN_RETRY = 5.0


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """Something that happens to a node at a time."""

    at: float
    kind: str
    name: str
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class FaultModel:
    """Failures by chance, in seconds.

    Attributes:
        mtbf: mean time between failures of one node; 0 never fails.
        mttr: mean time to repair it.
        crash: mean time between crashes of one pod; 0 never crashes.
        seed: of both.
    """

    mtbf: float = 0.0
    mttr: float = 3600.0
    crash: float = 0.0
    seed: int = 0


class Faults:
    """Lets faults and planned events happen in a simulation."""

    def __init__(
        self, sim: Simulation, model: FaultModel | None = None, events: Sequence[NodeEvent] = ()
    ):
        self.sim = sim
        self.model = model or FaultModel()
        self.down: dict[str, Node] = {}
        self.chance = random.Random(f"faults/{self.model.seed}")
        for event in events:
            sim.at(event.at, lambda event=event: self.happen(event), RANK_FAULT)  # type: ignore[misc]
        if self.model.mtbf > 0:
            for record in sim.cluster.nodes():
                self._expect(record.node.name)
        if self.model.crash > 0:
            crashes = random.Random(f"crashes/{self.model.seed}")
            sim.life.crash_after = lambda pod: crashes.expovariate(1 / self.model.crash)

    def happen(self, event: NodeEvent) -> None:
        """Let one event happen.

        Raises:
            InvalidManifest: if the node is not there, or is there already.
        """
        sim, name = self.sim, event.name
        there = name in sim.cluster.rows
        if event.kind == "add":
            if event.node is None:
                raise InvalidManifest(
                    f"event 'add' of node {name!r} at {event.at:g} s: no manifest"
                )
            self._up(event.node, "add")
            return
        if event.kind == "repair":
            if name in self.down:
                self._up(self.down.pop(name), "repair")
            return
        if not there and name not in self.down:
            raise InvalidManifest(
                f"event {event.kind!r} at {event.at:g} s: there is no node {name!r}"
            )
        if not there:
            return
        if event.kind in ("cordon", "uncordon"):
            sim.cluster.cordon(name, event.kind == "cordon")
            sim.log.write(sim.clock, event.kind, node=name)
            sim.nodes_changed({sim.cluster.rows[name]})
        elif event.kind == "drain":
            sim.cluster.cordon(name)
            sim.log.write(sim.clock, "drain", node=name)
            self._drain(name)
        else:
            self.take_down(name, event.kind)

    def take_down(self, name: str, kind: str = "fail") -> None:
        """Take a node away with everything on it; its pods are lost."""
        if kind == "fail":
            self.sim.books.counts["node_failures"] += 1
            self.down[name] = self.sim.cluster.record(name).node
        take_down(self.sim, name, kind)

    def _up(self, node: Node, kind: str) -> None:
        row = self.sim.cluster.add_node(node)
        self.sim.log.write(self.sim.clock, kind, node=node.name)
        self.sim.nodes_changed({row})

    def _drain(self, name: str) -> None:
        """Evict the pods that budgets allow, and come back for the rest."""
        sim = self.sim
        if name not in sim.cluster.rows:
            return
        pods = [p for p in sim.cluster.record(name).pods.values() if not p.deleting]
        keep, go = split_by_budget(pods, sim.cluster.budgets, budget_limits(sim.cluster))
        for pod in go:
            sim.life.terminate(sim.life.running[pod.key], "preempted")
        if keep:
            sim.at(sim.clock + _DRAIN_RETRY, lambda: self._drain(name), RANK_FAULT)
        sim.nodes_changed(set())

    def _expect(self, name: str) -> None:
        sim = self.sim
        sim.background(
            sim.clock + self.chance.expovariate(1 / self.model.mtbf), lambda: self._fail(name)
        )

    def _fail(self, name: str) -> None:
        sim = self.sim
        if name not in sim.cluster.rows:
            self._expect(name)
            return
        self.take_down(name)
        back = sim.clock + self.chance.expovariate(1 / self.model.mttr)
        sim.at(back, lambda: self._repair(name), RANK_FAULT)

    def _repair(self, name: str) -> None:
        if name in self.down:
            self._up(replace(self.down.pop(name), unschedulable=False), "repair")
        self._expect(name)


def take_down(sim: Simulation, name: str, kind: str) -> None:
    """Take a node out of the cluster; pods that ran on it are lost."""
    record = sim.cluster.record(name)
    sim.log.write(sim.clock, kind, node=name)
    for key in list(record.pods):
        running = sim.life.running.get(key)
        if running is not None:
            sim.life.end(running, running.outcome or "lost")
    sim.cluster.remove_node(name)
    sim.freed.discard(record.row)
    sim.nodes_changed(set())
