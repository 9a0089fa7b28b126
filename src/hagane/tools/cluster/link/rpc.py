"""Submitters in other processes, over a small RPC: JSON in, JSON out, one POST a call.

``POST <url>/submit`` with ``{"clock": seconds, "nodes": [v1 Node], "metrics": {Clock, Nodes, Pods,
Queue}}`` answers ``{"events": [...], "next": seconds or null}``. An event is ``{"submit": v1
Pod}``, ``{"delete": "namespace/name"}``, ``{"update": v1 Pod}`` or ``{"terminate": true}``.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hagane.tools.cluster.errors import ClusterError, InvalidManifest
from hagane.tools.cluster.link.wire import node_object, pod_object
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.read_objects import read_node
from hagane.tools.cluster.model.read_pod import read_pod
from hagane.tools.cluster.sim.actions import Delete, Submit, SubmitterAction, Terminate, Update
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.state import Cluster


class RemoteSubmitter(Submitter):
    """A submitter that another process answers for.

    Args:
        url: where it listens.
        timeout: seconds of real time for an answer.
        name: the name in logs.
    """

    def __init__(self, url: str, timeout: float = 5.0, name: str = "rpc"):
        self.url = url.rstrip("/") + "/submit"
        self.timeout = timeout
        self.name = name
        self._next: float | None = None

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        """Ask the other process.

        Raises:
            ClusterError: if it does not answer, or not in the form above.
        """
        question = {
            "clock": clock,
            "nodes": [node_object(r.node) for r in nodes.nodes()],
            "metrics": {name: metrics[name] for name in metrics},
        }
        answer = self._ask(question)
        following = answer.get("next")
        self._next = float(following) if isinstance(following, int | float) else None
        for index, event in enumerate(answer.get("events") or ()):
            place = Place(f"{self.url}: events[{index}]", "", 0)
            if not isinstance(event, dict) or len(event) != 1:
                raise place.error(f"expected one of submit, delete, update, terminate: {event!r}")
            kind, value = next(iter(event.items()))
            match kind:
                case "submit":
                    yield Submit(read_pod(value, place))
                case "update":
                    yield Update(read_pod(value, place))
                case "delete":
                    yield Delete(str(value))
                case "terminate":
                    yield Terminate()
                case _:
                    raise place.error(f"unknown event {kind!r}")

    def next_time(self, clock: float) -> float | None:
        """Return the answer of the other process."""
        return self._next

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self.url,
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                value = json.loads(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            raise ClusterError(f"submitter {self.url}: answered with code {error.code}") from None
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"submitter {self.url}: no answer within {self.timeout:g} s: {error}"
            ) from None
        if not isinstance(value, dict):
            raise InvalidManifest(f"submitter {self.url}: expected an object, got {value!r}")
        return value


def serve_submitter(submitter: Submitter, port: int = 0) -> ThreadingHTTPServer:
    """Return a server that answers for a Python submitter; call ``serve_forever`` on it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            question = json.loads(self.rfile.read(size))
            place = Place("request", "", 0)
            nodes = Cluster([read_node(n, place) for n in question["nodes"]])
            actions = submitter.submit(question["clock"], nodes, question["metrics"])
            events = [_event(a) for a in actions]
            following = submitter.next_time(question["clock"])
            # JSON has no infinity; a submitter that waits is asked at the next tick.
            following = None if following == float("inf") else following
            answer = {"events": events, "next": following}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def _event(action: SubmitterAction) -> dict[str, Any]:
    match action:
        case Submit(pod):
            return {"submit": pod_object(pod)}
        case Update(pod):
            return {"update": pod_object(pod)}
        case Delete(key):
            return {"delete": key}
    return {"terminate": True}
