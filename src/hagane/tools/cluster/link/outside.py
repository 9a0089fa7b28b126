"""A scheduler in another process, over the API server, as a scheduler of the simulation."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

from hagane.tools.cluster.errors import SchedulerFault
from hagane.tools.cluster.link.apiserver import ApiServer
from hagane.tools.cluster.link.wire import node_object, pod_object
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.actions import Bind, Evict, SchedulerAction
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.state import Cluster


class Outside(Scheduler):
    """Shows the cluster through an API server and waits for bindings.

    Simulated time stands still while pods are pending that the outside scheduler may still bind:
    a turn ends when all pods that were shown are bound, or after ``quiet`` seconds of real time
    without a request (it may have nothing to say).

    Args:
        api: the running server.
        quiet: real seconds of silence that end a turn.
        limit: real seconds in which the first request ever must come.
    """

    name = "outside"

    def __init__(self, api: ApiServer, quiet: float = 0.5, limit: float = 30.0):
        self.api = api
        self.quiet = quiet
        self.limit = limit
        self._shown: dict[str, Pod] = {}
        self._heard = False
        self._nodes_version = -1

    def show_nodes(self, nodes: Cluster) -> None:
        """Bring the server's nodes up to date."""
        if nodes.version == self._nodes_version:
            return
        self._nodes_version = nodes.version
        known = set(self.api.store.objects.get("nodes", {}))
        for record in nodes.nodes():
            self.api.store.put("nodes", record.node.name, node_object(record.node))
            known.discard(record.node.name)
        for name in known:
            self.api.store.drop("nodes", name)

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[SchedulerAction]:
        """Show what has changed, then pass on what the outside scheduler does.

        Raises:
            SchedulerFault: if it never says anything although pods are pending.
        """
        self.show_nodes(nodes)
        self._show_pods(queue, nodes)
        waiting = {pod.key for pod in queue}
        started = time.monotonic()
        while waiting:
            patience = self.quiet if self._heard else self.limit
            request = self._next(patience)
            if request is None:
                if not self._heard and time.monotonic() - started >= self.limit:
                    raise SchedulerFault(
                        "a scheduler answers in time",
                        f"at {clock:g} s: no outside scheduler bound any of {len(waiting)} pods "
                        f"within {self.limit:g} s",
                    )
                return
            verb, key, body = request
            if verb == "bind":
                self._heard = True
                waiting.discard(key)
                yield Bind(key, str(body))
            elif verb == "delete" and key in nodes.where:
                self._heard = True
                yield Evict(key, "outside")

    def gone(self, pod: Pod, clock: float) -> None:
        """Take a pod away from the server."""
        self._shown.pop(pod.key, None)
        self.api.store.drop("pods", pod.key)

    def _show_pods(self, queue: Queue, nodes: Cluster) -> None:
        now: dict[str, Pod] = {pod.key: pod for pod in queue}
        for record in nodes.nodes():
            now.update(record.pods)
        for key in [k for k in self._shown if k not in now]:
            del self._shown[key]
            self.api.store.drop("pods", key)
        for key, pod in now.items():
            if self._shown.get(key) is not pod:
                self._shown[key] = pod
                self.api.store.put("pods", key, pod_object(pod))

    def _next(self, patience: float) -> tuple[str, str, object] | None:
        try:
            return self.api.requests.get(timeout=patience)
        except queue.Empty:
            return None
