"""A scheduler in another process, over the API server, as a scheduler of the simulation."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from hagane.tools.cluster.errors import SchedulerFault
from hagane.tools.cluster.link.api.apiserver import PREEMPTED, ApiServer
from hagane.tools.cluster.link.objects import namespaces
from hagane.tools.cluster.link.objects.workloads import PLURALS, abandon, keep_up
from hagane.tools.cluster.link.wire import (
    budget_object,
    node_object,
    pod_object,
    workload_object,
    workload_status,
)
from hagane.tools.cluster.link.writes.reports import (
    add_budget,
    add_node,
    read_created,
    remove_budget,
    remove_node,
    report_budget,
    report_node,
    report_pod,
    unschedulable,
)
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import Bind, Evict, SchedulerAction
from hagane.tools.cluster.sim.controllers import Controller
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.sim.simulation import RANK_METRICS, Simulation
from hagane.tools.cluster.state import Cluster

# Real seconds after which a wait for ever begins anew.
_SLICE = 60.0


class Outside(Scheduler):
    """Shows the cluster through an API server and waits for bindings.

    Simulated time stands still while pods are pending that the outside scheduler may still bind:
    a turn ends when all pods that were shown are bound or declared unschedulable, or after
    ``quiet`` seconds of real time without a request (it may have nothing to say). Everything that
    clients write meanwhile takes effect at the next instant at which something happens.

    Args:
        api: the running server.
        quiet: real seconds of silence that end a turn.
        limit: real seconds in which the first request ever must come; None for ever.
    """

    name = "outside"

    def __init__(self, api: ApiServer, quiet: float = 0.5, limit: float | None = 30.0):
        self.api = api
        self.quiet = quiet
        self.limit = limit
        self._shown: dict[str, Pod] = {}
        self._heard = False
        self._nodes_version = -1
        self._nodes: set[str] = set()
        self._sim: Simulation | None = None
        # A request that ended a wait, and is still to be handled.
        self._first: tuple[str, str, Any] | None = None
        self._workloads: list[Controller] = []
        self._recounting = False
        self._others: dict[tuple[str, str], dict[str, Any]] = {}
        self._created: set[str] = set()  # pods of clients
        self._named: set[str] = set()  # namespaces that were shown

    def show_nodes(self, nodes: Cluster) -> None:
        """Bring the server's nodes up to date."""
        if nodes.version == self._nodes_version:
            return
        self._nodes_version = nodes.version
        known, self._nodes = self._nodes, set()
        for record in nodes.nodes():
            self.api.store.show("nodes", record.node.name, node_object(record.node))
            self._nodes.add(record.node.name)
        # A node that a client has just made is not in the simulation yet, and stays.
        for name in known - self._nodes:
            self.api.store.drop("nodes", name)

    def attach(self, simulation: Simulation) -> None:
        """Keep the simulation, which the writes of clients change.

        A pod that a client binds to a full node fails, as a kubelet would have it.
        """
        self._sim = simulation
        simulation.options = replace(simulation.options, overcommit="fail")
        self.api.clock = lambda: simulation.clock
        self._workloads = [s for s in simulation.submitters.values() if isinstance(s, Controller)]

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Show the changes of the cluster, then pass on the requests of clients.

        A turn ends when every pending pod is bound or declared unschedulable.

        Raises:
            SchedulerFault: if nobody ever says anything although pods are pending.
        """
        self._show(queue, nodes)
        waiting = {pod.key for pod in queue}
        started, bound = time.monotonic(), False
        while True:
            first = _SLICE if self.limit is None else self.limit
            patience = (self.quiet if self._heard else first) if waiting else 0.0
            request = self._next(patience)
            if request is None:
                if bound:
                    self._show(queue, nodes)
                if waiting and not self._heard and self.limit is None:
                    continue
                if (
                    waiting
                    and not self._heard
                    and self.limit is not None
                    and time.monotonic() - started >= self.limit
                ):
                    raise SchedulerFault(
                        "a scheduler answers in time",
                        f"at {clock:g} s: no outside scheduler bound any of {len(waiting)} pods "
                        f"within {self.limit:g} s",
                    )
                return
            self._heard = True
            verb, key, body = request
            if verb == "bind":
                waiting.discard(key)
                pending = queue.get(key)
                if pending is not None and str(body) not in nodes.rows:
                    # The node has left, or never was: the pod is shown anew, unbound.
                    pending.why = f"there is no node {str(body)!r}, to which it was bound"
                    self._shown.pop(key, None)
                    waiting.add(key)
                    self._show(queue, nodes)
                elif key in queue or key in nodes.where:
                    yield Bind(key, str(body))
                    bound = True
                    if key not in nodes.where:
                        self._refused_by_node(key, str(body))
                else:  # the simulation ended it before it took the binding
                    self.api.store.drop("pods", key)
            elif verb == "delete" and key in nodes.where and not self._is_final(key, body):
                yield Evict(key, "outside")
            elif isinstance(body, dict):
                if self._report(verb, key, body):
                    waiting.discard(key)
                elif verb == "create":
                    waiting.add(key)
                    self._created.add(key)
                self._show(queue, nodes)
            elif verb == "delete":
                waiting.discard(key)
                self._simulation().delete(key)
                self._show(queue, nodes)

    def _refused_by_node(self, key: str, node: str) -> None:
        """Show that a pod has failed for lack of room, before it is gone."""
        pod = self._shown.get(key)
        if pod is None:
            return
        short = self._simulation().life.shortage(pod, self._simulation().cluster.rows[node])
        failed = pod_object(pod.with_changes(phase="Failed", node_name=node))
        status = {"reason": "OutOfResources", "message": f"node {node!r} is full: {short}"}
        failed["status"] = {**failed["status"], **status}
        self.api.store.show("pods", key, failed)

    def _is_final(self, key: str, why: object) -> bool:
        """Return whether a pod that is deleted is gone: a client's own, not deleted for another.

        Pods of the simulation come back, as their controllers would make them anew.
        """
        return key in self._created and why != PREEMPTED

    def _report(self, verb: str, key: str, body: dict[str, Any]) -> bool:
        """Apply the writes of a client; return whether a pod was declared unschedulable."""
        sim = self._simulation()
        match verb:
            case "create":
                if key not in sim.queue and key not in sim.cluster.where:
                    sim.submit(read_created(body, key))
            case "pods":
                report_pod(sim, key, body["status"], body.get("metadata") or {})
                return bool(unschedulable(body["status"]))
            case "node":
                add_node(sim, body)
            case "nodes":
                report_node(sim, key, body)
            case "no node":
                remove_node(sim, key)
            case "budget":
                add_budget(sim.cluster, key, body)
            case "no budget":
                self._others.pop(("poddisruptionbudgets", key), None)
                remove_budget(sim.cluster, key)
            case "workload" | "roll":
                made = keep_up(sim, key, body, verb == "roll")
                if made is not None:
                    self._workloads.append(made)
            case "no workload" | "orphans":
                gone = f"{body['kind']}/{key}"
                self._workloads = [each for each in self._workloads if each.name != gone]
                self._others.pop((PLURALS[body["kind"]], key), None)
                abandon(sim, key, body["kind"], verb == "orphans")
            case "poddisruptionbudgets":
                report_budget(sim.cluster, key, body["status"])
        return False

    def _simulation(self) -> Simulation:
        assert self._sim is not None, "an outside scheduler runs in a simulation"
        return self._sim

    def _show(self, queue: Queue, nodes: Cluster) -> None:
        """Bring everything the server holds up to date."""
        self.show_nodes(nodes)
        self._show_namespaces(nodes, nodes.namespaces)
        self._show_pods(queue, nodes)
        if nodes.budgets:
            bound = [pod for record in nodes.nodes() for pod in record.pods.values()]
            for budget in nodes.budgets:
                self._put("poddisruptionbudgets", budget_object(budget, bound))
        self._recount()

    def _show_namespaces(self, nodes: Cluster, names: Iterable[str]) -> None:
        """Show namespaces for the first time; a client may delete them afterwards."""
        new = set(names) - self._named
        if new:
            namespaces.show(self.api.store, sorted(new), nodes.namespaces)
            self._named |= new

    def _show_workload(self, controller: Controller) -> None:
        """Bring the counts of a job or a set of replicas up to date."""
        work = controller.workload
        plural, key = PLURALS[work.kind], f"{work.namespace}/{work.name}"
        if self.api.store.get(plural, key) is None and (plural, key) not in self._others:
            namespaces.show(self.api.store, [work.namespace], {})
            self._put(plural, workload_object(controller))
        self._others[plural, key] = status = workload_status(controller)
        self.api.store.tell(plural, key, status)

    def _put(self, resource: str, value: dict[str, Any]) -> None:
        """Store an object unless it is there already as it is."""
        key = f"{value['metadata']['namespace']}/{value['metadata']['name']}"
        if self._others.get((resource, key)) != value:
            self._others[resource, key] = value
            self.api.store.show(resource, key, value)

    def wait(self) -> bool:
        """Wait for a request; return whether one came before the server ended."""
        while not self.api.store.closed:
            try:
                request = self.api.requests.get(timeout=_SLICE)
            except queue.Empty:
                continue
            self._first = request
            return True
        return False

    def gone(self, pod: Pod, clock: float) -> None:
        """Take a pod away from the server."""
        self._shown.pop(pod.key, None)
        self._created.discard(pod.key)
        self.api.store.drop("pods", pod.key)
        if self._workloads and not self._recounting:
            # Their controllers learn of it later in this instant.
            self._recounting = True
            self._simulation().at(clock, self._recount, RANK_METRICS)

    def _recount(self) -> None:
        self._recounting = False
        for controller in self._workloads:
            self._show_workload(controller)

    def _show_pods(self, queue: Queue, nodes: Cluster) -> None:
        now: dict[str, Pod] = {pod.key: pod for pod in queue}
        for record in nodes.nodes():
            now.update(record.pods)
        self._show_namespaces(nodes, {pod.namespace for pod in now.values()})
        for key in [k for k in self._shown if k not in now]:
            del self._shown[key]
            self.api.store.drop("pods", key)
        for key, pod in now.items():
            if self._shown.get(key) is not pod:
                self._shown[key] = pod
                self.api.store.show("pods", key, pod_object(pod))

    def _next(self, patience: float) -> tuple[str, str, object] | None:
        first, self._first = self._first, None
        if first is not None:
            return first
        try:
            if patience <= 0:
                return self.api.requests.get_nowait()
            return self.api.requests.get(timeout=patience)
        except queue.Empty:
            return None
