"""A Python scheduler as a scheduler extender: the same code in production.

Serves the verbs ``filter``, ``prioritize``, ``preempt`` and ``bind`` with Go field names. A real
kube-scheduler that is configured with ``nodeCacheCapable: false`` sends whole nodes, and those are
what is judged; with ``nodeCacheCapable: true`` it sends names, which are looked up in the cluster
the server was started with. Bound pods are learned from ``bind`` calls.
"""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import Any

import numpy as np

from hagane.tools.cluster.errors import ClusterError, InvalidManifest
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import total_scores
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.link.listening import BadBody, Listening, read_json
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.model.read_objects import read_node
from hagane.tools.cluster.model.read_pod import read_pod
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.state import Cluster, Ints

_MOST = 10
_VERBS = ("filter", "prioritize", "preempt", "bind")


class ExtenderService:
    """Answers an extender's verbs by a profile's filters and scores, or a greedy scheduler's pick.

    Args:
        cluster: nodes and bound pods that are known beforehand.
        profile: the filters and scores.
        scheduler: if given, its pick gets the highest score and all others none.
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        profile: Profile | None = None,
        scheduler: Greedy | None = None,
    ):
        self.cluster = cluster if cluster is not None else Cluster()
        self.profile = profile or (scheduler.profile if scheduler else default_profile())
        self.scheduler = scheduler
        self.lock = Lock()
        self.pods: dict[str, Pod] = {}

    def answer(self, verb: str, args: dict[str, Any]) -> Any:
        """Return the answer to one call; raises ClusterError for unusable arguments."""
        with self.lock:
            if verb == "bind":
                return self._bind(args)
            if verb == "preempt":
                return self._preempt(args)
            pod = read_pod(_field(args, "Pod", dict), Place("Pod", "", 0))
            self.pods[f"{pod.namespace}/{pod.name}"] = pod
            rows, unknown = self._rows(args)
            cycle = Cycle(pod, self.cluster, self.profile.version)
            if verb == "filter":
                return self._filter(cycle, rows, unknown, args)
            return self._prioritize(cycle, rows)

    def _filter(
        self, cycle: Cycle, rows: Ints, unknown: list[str], args: dict[str, Any]
    ) -> dict[str, Any]:
        failed: dict[str, str] = dict.fromkeys(unknown, "node is not known to the extender")
        hopeless: dict[str, str] = {}
        keep = np.ones(rows.size, dtype=bool)
        for rule in self.profile.filters:
            if rule.skip(cycle):
                continue
            mask = rule.mask(cycle, rows)
            for row in rows[keep & ~mask].tolist():
                store = failed if rule.may_resolve(cycle, row) else hopeless
                store[self.cluster.records[row].node.name] = rule.reason(cycle, row)
            keep &= mask
        names = [self.cluster.records[r].node.name for r in rows[keep].tolist()]
        answer: dict[str, Any] = {
            "Nodes": None,
            "NodeNames": None,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": hopeless,
            "Error": "",
        }
        if args.get("NodeNames") is not None:
            answer["NodeNames"] = names
        else:
            kept = set(names)
            given = args["Nodes"]
            items = given.get("items", given.get("Items")) or []
            answer["Nodes"] = {
                **given,
                "items": [n for n in items if n["metadata"]["name"] in kept],
            }
        return answer

    def _prioritize(self, cycle: Cycle, rows: Ints) -> list[dict[str, Any]]:
        if not rows.size:
            return []
        if self.scheduler is not None:
            totals = np.zeros(rows.size, dtype=np.int64)
            totals[rows == self.scheduler.pick(cycle, rows)[0]] = 1
        else:
            totals = total_scores(self.profile, cycle, rows)
        best = int(totals.max())
        scaled = totals * _MOST // best if best > 0 else totals
        return [
            {"Host": self.cluster.records[row].node.name, "Score": score}
            for row, score in zip(rows.tolist(), scaled.tolist(), strict=True)
        ]

    def _preempt(self, args: dict[str, Any]) -> dict[str, Any]:
        """Agree with kube-scheduler's proposal, in the form of metadata."""
        whole, brief = args.get("NodeNameToVictims"), args.get("NodeNameToMetaVictims")
        out: dict[str, Any] = {}
        for name, victims in (brief or {}).items():
            out[name] = victims
        for name, victims in (whole or {}).items():
            uids = [{"UID": p["metadata"].get("uid", "")} for p in victims.get("Pods") or ()]
            out[name] = {"Pods": uids, "NumPDBViolations": victims.get("NumPDBViolations", 0)}
        return {"NodeNameToMetaVictims": out}

    def _bind(self, args: dict[str, Any]) -> dict[str, str]:
        key = f"{_field(args, 'PodNamespace', str)}/{_field(args, 'PodName', str)}"
        node = _field(args, "Node", str)
        if node not in self.cluster.rows:
            return {"Error": f"node {node!r} is not known to the extender"}
        if key in self.cluster.where:
            return {"Error": f"pod {key!r} is bound already"}
        pod = self.pods.pop(key, None)
        if pod is None:
            return {"Error": f"pod {key!r} is not known to the extender"}
        self.cluster.bind(pod, self.cluster.rows[node])
        return {"Error": ""}

    def _rows(self, args: dict[str, Any]) -> tuple[Ints, list[str]]:
        unknown: list[str] = []
        if args.get("NodeNames") is not None:
            names = [str(n) for n in args["NodeNames"]]
            unknown = [n for n in names if n not in self.cluster.rows]
        else:
            nodes = _field(args, "Nodes", dict)
            names = []
            for item in nodes.get("items", nodes.get("Items")) or []:
                node = read_node(item, Place("Nodes", "", 0))
                if node.name not in self.cluster.rows:
                    self.cluster.add_node(node)
                elif self.cluster.record(node.name).node != node:
                    self.cluster.update_node(node)
                names.append(node.name)
        rows = [self.cluster.rows[n] for n in names if n in self.cluster.rows]
        return np.array(rows, dtype=np.int64), unknown


def serve_extender(service: ExtenderService, port: int = 0) -> Listening:
    """Return a server on 127.0.0.1; use it as a context, or call ``serve_forever`` on it.

    A failed call answers with the field ``Error`` where the verb has one, else with status 400.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        value, code = await _answer(service, Request(scope, receive))
        await JSONResponse(value, code)(scope, receive, send)

    return Listening(app, port)


async def _answer(service: ExtenderService, request: Any) -> tuple[Any, int]:
    verb = request.url.path.rstrip("/").rpartition("/")[2]
    if verb not in _VERBS:
        return {"Error": f"unknown verb {verb!r}: expected one of {', '.join(_VERBS)}"}, 404
    if request.method != "POST":
        return {"Error": f"{verb}: expected POST, got {request.method}"}, 405
    try:
        args = await read_json(request)
        if not isinstance(args, dict):
            raise InvalidManifest(f"expected an object, got {args!r}")
        return await asyncio.to_thread(service.answer, verb, args), 200
    except BadBody as error:
        return {"Error": f"{verb}: {error}"}, error.status
    except (ClusterError, ValueError, KeyError, TypeError, AttributeError) as error:
        return {"Error": f"{verb}: {error}"}, 200 if verb in ("filter", "bind") else 400


def _field(args: dict[str, Any], name: str, kind: type) -> Any:
    value = args.get(name)
    if not isinstance(value, kind):
        raise InvalidManifest(f"{name}: expected {kind.__name__}, got {value!r}")
    return value
