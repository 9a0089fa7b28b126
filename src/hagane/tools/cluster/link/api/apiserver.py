"""A Kubernetes API server: the requests of schedulers, informers and kubectl over a store.

Served are discovery, and list, get, watch, creation, change and deletion of the objects in
:mod:`hagane.tools.cluster.link.objects.resources`, bindings and evictions of pods. Changes of pods,
nodes and budgets are passed on to the simulation; of other kinds they are kept as they come. Bodies
are JSON. The interface is that of the Kubernetes API concepts page (1.34).
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.link.api.accepting import wants_table
from hagane.tools.cluster.link.api.openapi import (
    OLDER,
    OLDER_TYPE,
    described,
    described_versions,
)
from hagane.tools.cluster.link.listening import BadBody, Listening
from hagane.tools.cluster.link.objects import namespaces, priorities, resources
from hagane.tools.cluster.link.objects.collecting import NOTHING, belonging, check_deletion
from hagane.tools.cluster.link.objects.refusal import Refused, status
from hagane.tools.cluster.link.objects.resources import Resource
from hagane.tools.cluster.link.objects.store import Store
from hagane.tools.cluster.link.objects.target import OF_CONTAINERS, Target
from hagane.tools.cluster.link.objects.workloads import KINDS, is_owned, read_made
from hagane.tools.cluster.link.reads import tables
from hagane.tools.cluster.link.reads.listing import lines, listed
from hagane.tools.cluster.link.reads.selecting import BadSelector, chooser
from hagane.tools.cluster.link.writes.bodies import APPLY, is_dry, read_body, read_options
from hagane.tools.cluster.link.writes.changing import (
    applied_to,
    check_labels,
    check_pod,
    check_template,
    deleted,
    evictable,
    held_back,
    is_free,
    named_anew,
    patched,
    put_in_place,
    redescribed,
    scale,
    scaled,
    timestamp,
    with_data,
    with_defaults,
)
from hagane.tools.cluster.link.writes.fields import after_update, read_managed, with_managed
from hagane.tools.cluster.link.writes.reports import read_created
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.read_objects import read_budget, read_node

_VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Objects of the simulation, whose changes by clients it is told.
_SIMULATED = ("pods", "nodes", "poddisruptionbudgets")
# What clients make and delete, and the simulation is told.
_MADE = {"nodes": "node", "poddisruptionbudgets": "budget", **dict.fromkeys(KINDS, "workload")}
# Kinds of whose deletion the answer is a status, and not the object.
_TOLD = {
    "configmaps", "csistoragecapacities", "deployments", "events", "jobs", "leases", "namespaces",
    "nodes", "poddisruptionbudgets", "priorityclasses", "replicasets", "replicationcontrollers",
    "secrets", "statefulsets",
}  # fmt: skip
# Of a deletion: to make room for another pod, which its condition says.
PREEMPTED = "preempted"
_DONE = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}


class ApiServer:
    """Serves a store; changes by clients go into ``requests``.

    Each request is (verb, key, body): ("bind", "namespace/name", node), ("delete", key, None or
    PREEMPTED), ("create", key, manifest), ("node", name, manifest) and ("budget", key, manifest)
    for new ones, ("workload", key, manifest) for jobs and sets of replicas, new or of another
    number of pods, ("roll", …) for another template; ("no node", name, manifest), ("no budget", …)
    and ("no workload", …) for those that are deleted, ("orphans", …) if their pods stay; or, for a
    change, ("nodes", name, manifest) or (resource, key, patch).

    Args:
        port: Where to listen on 127.0.0.1; 0 picks one.
    """

    def __init__(self, port: int = 0):
        self.store = Store()
        # Of C: a signal that interrupts its reader finds no lock in between.
        self.requests: queue.SimpleQueue[tuple[str, str, Any]] = queue.SimpleQueue()
        # The simulated time in seconds, set by the owner too.
        self.clock: Callable[[], float] = lambda: 0.0
        self._listening = Listening(self, port)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return self._listening.url

    def __enter__(self) -> ApiServer:
        namespaces.show(self.store, namespaces.FIRST, {})
        priorities.show(self.store)
        self._listening.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()
        self._listening.__exit__(*error)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as an ASGI application."""
        from starlette.requests import Request
        from starlette.responses import JSONResponse

        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as error:
            response = JSONResponse(error.status, error.code)
        except BadBody as error:
            reason = {413: "RequestEntityTooLarge", 408: "Timeout"}.get(error.status, "BadRequest")
            response = JSONResponse(status(error.status, reason, str(error)), error.status)
        except BadSelector as error:
            response = JSONResponse(status(400, "BadRequest", str(error)), 400)
        await response(scope, receive, send)

    async def _answer(self, request: Any) -> Any:
        from starlette.responses import JSONResponse, PlainTextResponse, Response

        path = request.url.path.rstrip("/")
        if path in ("/healthz", "/readyz", "/livez"):
            return PlainTextResponse("ok")
        if path == "/openapi/v2":
            return Response(OLDER, media_type=OLDER_TYPE)
        verb = request.method
        if verb not in _VERBS:
            known = ", ".join(_VERBS)
            raise Refused(405, "MethodNotAllowed", f"expected one of {known}, got {verb}")
        found = self._described(path)
        if found is not None:
            return JSONResponse(found)
        target = Target(path)
        tabled = wants_table(",".join(request.headers.getlist("accept")))
        if target.sub in OF_CONTAINERS:
            self._one(target)
            raise Refused(
                405,
                "MethodNotAllowed",
                f"pods are simulated and run no containers: {target.key} has no {target.sub}",
            )
        if verb == "GET":
            return await self._get(request, target, tabled)
        if target.resource.plural != "pods" or target.sub != "binding":
            _check_verb(target, verb)
        query = dict(request.query_params)
        if verb == "DELETE":
            options = await read_options(request)
            target.dry = is_dry(request, options)
            policy = options.get("propagationPolicy") or query.get("propagationPolicy")
            check_deletion(self._one(target) if target.name else NOTHING, options, policy)
            target.orphans = policy == "Orphan"
            if not target.name:
                return JSONResponse(self._delete_all(target, query))
            return JSONResponse(self._delete(target))
        body, form = await read_body(request)
        target.dry = is_dry(request, {})
        agent = request.headers.get("user-agent", "").partition("/")[0]
        target.writer = query.get("fieldManager") or agent or "unknown"
        if verb == "POST":
            return JSONResponse(self._post(target, body), 201)
        if form == APPLY:
            return JSONResponse(*self._apply(target, body, query))
        return JSONResponse(self._change(target, verb, body, form))

    def _described(self, path: str) -> dict[str, Any] | None:
        steps = path.strip("/").split("/")
        match steps:
            case ["version"]:
                return dict(resources.VERSION)
            case ["api"]:
                return resources.core_versions(self.url.removeprefix("http://"))
            case ["apis"]:
                return resources.groups()
            case ["apis", group]:
                return resources.group(group)
            case ["api", version]:
                return resources.resource_list("", version)
            case ["apis", group, version]:
                return resources.resource_list(group, version)
            case ["openapi", "v3"]:
                return described_versions()
            case ["openapi", "v3", *version]:
                return described("/".join(version))
        return None

    # Reading

    async def _get(self, request: Any, target: Target, tabled: bool) -> Any:
        from starlette.responses import JSONResponse, StreamingResponse

        query = dict(request.query_params)
        kind = target.resource
        if target.sub == "scale":
            return JSONResponse(scale(self._one(target)))
        if target.name and query.get("watch") not in ("true", "1"):
            one = self._one(target)
            if tabled:
                one = tables.table(kind, [one], {}, self.clock, query.get("includeObject", ""))
            return JSONResponse(one)
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        chosen = chooser(kind.plural, target.namespace, query)
        if query.get("watch") in ("true", "1"):
            clock = self.clock if tabled else None
            return StreamingResponse(
                lines(self.store, kind, chosen, query, clock), media_type="application/json"
            )
        found = listed(self.store, kind, chosen, query)
        if tabled:
            rows, shown = found["items"], query.get("includeObject", "")
            found = tables.table(kind, rows, found["metadata"], self.clock, shown)
        return JSONResponse(found)

    def _one(self, target: Target) -> dict[str, Any]:
        value = self.store.get(target.resource.name, target.key)
        if value is None:
            raise Refused(404, "NotFound", f'{target.resource.plural} "{target.name}" not found')
        return _typed(target.resource, value)

    # Writing

    def _post(self, target: Target, body: dict[str, Any], applied: bool = False) -> dict[str, Any]:
        kind, name = target.resource, target.resource.name
        if kind.plural == "pods" and target.sub == "binding":
            target.name = target.name or str((body.get("metadata") or {}).get("name") or "")
            return self._bind(target.key, body, target.dry)
        if kind.plural == "pods" and target.sub == "eviction":
            return self._evict(target)
        if target.name or target.sub:
            raise Refused(405, "MethodNotAllowed", f"{kind.plural} cannot be created here")
        if kind.namespaced and not target.namespace:
            meta = body.get("metadata") or {}
            target.namespace = str(meta.get("namespace") or "default")
        if kind.namespaced:
            namespaces.require(self.store, target.namespace)
        value = named_anew(kind, target.namespace, body, self.store.version)
        key = _key(value)
        check_labels(value)
        if kind.plural == "pods":
            value = priorities.with_priority(self.store, value)
            _read(lambda: read_created(value, key))
            value = with_defaults(value)
        elif kind.plural == "namespaces":
            value = namespaces.active(value)
        elif kind.plural == "nodes":
            _read(lambda: read_node(value, Place(f"POST of node {key!r}", "", 0)))
        elif kind.plural == "poddisruptionbudgets":
            _read(lambda: read_budget(value, Place(f"POST of budget {key!r}", "", 0)))
        elif kind.plural == "priorityclasses":
            _read(lambda: priorities.read(value))
        elif kind.plural in KINDS and not is_owned(value):
            _read(lambda: read_made(priorities.with_priority(self.store, value), key))
            _read(lambda: check_template(value, Place(f"POST of {kind.kind} {key!r}", "", 0)))
        value = with_data(kind, value)
        value["metadata"].setdefault("creationTimestamp", timestamp())
        managed = (
            read_managed(value)
            if applied
            else after_update({}, value, target.writer, "", timestamp())
        )
        value = with_managed(value, managed)
        if target.dry and self.store.get(name, key) is None:
            return _typed(kind, value)
        # Stored at once: a binding may follow before the simulation has taken the pod in.
        if not self.store.create(name, key, value):
            raise Refused(409, "AlreadyExists", f'{kind.plural} "{key}" already exists')
        if kind.plural == "pods":
            self.requests.put(("create", key, value))
        elif kind.plural in _MADE and not is_owned(value):
            told = priorities.with_priority(self.store, value)
            self.requests.put((_MADE[kind.plural], key, told))
        return _typed(kind, self.store.get(name, key) or value)

    def _bind(self, key: str, body: dict[str, Any], dry: bool) -> dict[str, Any]:
        node = str((body.get("target") or {}).get("name", ""))
        pod = self.store.get("pods", key)
        if pod is None:
            raise Refused(404, "NotFound", f'pods "{key}" not found')
        bound = pod["spec"].get("nodeName")
        if bound:
            raise Refused(409, "Conflict", f'pod {key} is already assigned to node "{bound}"')
        if pod["metadata"].get("deletionTimestamp"):
            why = f'pod {key} is being deleted, cannot be assigned to node "{node}"'
            raise Refused(409, "Conflict", why)
        if dry:
            return dict(_DONE)
        self.store.put("pods", key, {**pod, "spec": {**pod["spec"], "nodeName": node}})
        self.requests.put(("bind", key, node))
        return dict(_DONE)

    def _evict(self, target: Target) -> dict[str, Any]:
        pod = self._one(target)
        why = evictable(pod, self.store.all("poddisruptionbudgets")[0])
        if why:
            raise Refused(429, "TooManyRequests", why)
        if not target.dry:
            self._leave(target.key, pod)
        return dict(_DONE)

    def _leave(self, key: str, pod: dict[str, Any]) -> dict[str, Any]:
        """Let a pod be deleted by the simulation, and return it; till then nothing binds it."""
        meta = {"deletionTimestamp": timestamp(), **pod["metadata"]}
        leaving = {**pod, "metadata": meta}
        self.store.put("pods", key, leaving)
        conditions = (pod.get("status") or {}).get("conditions") or ()
        preempted = any(each.get("type") == "DisruptionTarget" for each in conditions)
        self.requests.put(("delete", key, PREEMPTED if preempted else None))
        return leaving

    def _delete(self, target: Target) -> dict[str, Any]:
        value = self._one(target)
        if target.dry:
            return value
        if target.resource.plural == "pods":
            leaving = self._leave(target.key, value)
            self._collect(target, value)
            return leaving
        if value["metadata"].get("finalizers"):
            held = held_back(value, timestamp())
            self.store.put(target.resource.name, target.key, held)
            return held
        self.store.drop(target.resource.name, target.key)
        # The pods of the simulation's own controllers go with these.
        if target.resource.plural not in KINDS or is_owned(value):
            self._collect(target, value)
        if target.resource.plural in _MADE:
            stay = target.orphans and target.resource.plural in KINDS
            verb = "orphans" if stay else f"no {_MADE[target.resource.plural]}"
            self.requests.put((verb, target.key, value))
        return deleted(target.resource, value) if target.resource.plural in _TOLD else value

    def _collect(self, target: Target, gone: dict[str, Any]) -> None:
        """Delete what belonged to an object alone, and take the reference from the rest."""
        for kind, value, owners in belonging(self.store, target.resource, gone):
            one = target.of(value["metadata"], kind)
            if owners or (target.orphans and target.resource.plural != "namespaces"):
                meta = {k: v for k, v in value["metadata"].items() if k != "ownerReferences"}
                meta.update({"ownerReferences": owners} if owners else {})
                self.store.put(kind.name, one.key, {**value, "metadata": meta})
            elif not value["metadata"].get("deletionTimestamp"):
                self._delete(one)

    def _delete_all(self, target: Target, query: dict[str, str]) -> dict[str, Any]:
        """Delete the objects that selectors choose, and return the list of them.

        Raises:
            Refused: The resource is not deleted in collections.
        """
        kind = target.resource
        if "deletecollection" not in kind.taken:
            raise Refused(405, "MethodNotAllowed", f"{kind.plural} are deleted one by one")
        chosen = chooser(kind.plural, target.namespace, query)
        found = listed(self.store, kind, chosen, {"limit": query.get("limit", "")})
        for value in found["items"]:
            one = target.of(value["metadata"])
            # Others may delete it meanwhile.
            if self.store.get(kind.name, one.key) is not None:
                self._delete(one)
        return found

    def _apply(
        self, target: Target, body: dict[str, Any], query: dict[str, str]
    ) -> tuple[dict[str, Any], int]:
        """Apply a configuration, of which an object is made if there is none; its code besides."""
        kind, manager = target.resource, query.get("fieldManager", "")
        if target.sub not in ("", "status"):
            raise Refused(415, "UnsupportedMediaType", f"{target.sub}: expected a merge patch")
        force = query.get("force") in ("true", "1")
        if target.sub or self.store.get(kind.name, target.key) is not None:
            value = self._one(target)
            new = applied_to(value, target, body, manager, force)
            return self._replace(target, "PATCH", value, new, body, applied=True), 200
        new = applied_to({"metadata": {}}, target, body, manager, force)
        new["metadata"]["name"] = target.name
        target.name = ""
        return self._post(target, new, applied=True), 201

    def _change(self, target: Target, verb: str, body: Any, form: str) -> dict[str, Any]:
        kind = target.resource
        if verb == "PUT" and self.store.get(kind.name, target.key) is None:
            raise Refused(404, "NotFound", f'{kind.plural} "{target.name}" not found')
        value = self._one(target)
        if target.sub == "scale":
            asked = body if verb == "PUT" else patched(scale(value), body, form)
            return scale(self._replace(target, verb, value, scaled(value, asked), {}))
        new = put_in_place(value, body) if verb == "PUT" else patched(value, body, form)
        return self._replace(target, verb, value, new, body)

    def _replace(
        self,
        target: Target,
        verb: str,
        value: dict[str, Any],
        new: dict[str, Any],
        body: Any,
        applied: bool = False,
    ) -> dict[str, Any]:
        """Put an object that a client has changed in another's place, and return it."""
        kind = target.resource
        described: dict[str, Any] = {}
        check_labels(new)
        managers = new["metadata"].get("managedFields")
        if target.sub == "status" or kind.plural == "poddisruptionbudgets":
            # Of budgets only the status may change.
            new = {**value, "status": new.get("status") or {}}
        elif kind.plural == "pods":
            described = redescribed(value, new)
            check_pod(target.key, value, new)
            status_ = new.get("status") or {}
            new = {**value, "status": status_, "metadata": {**value["metadata"], **described}}
        new["metadata"] = {**new["metadata"], **_identity(value)}
        if kind.plural == "nodes":
            new.setdefault("status", value.get("status") or {})
            _read(lambda: read_node(new, Place(f"{verb} of node {target.key!r}", "", 0)))
        elif kind.plural in KINDS and not is_owned(new):
            if "status" in value:
                new.setdefault("status", value["status"])
            made = priorities.with_priority(self.store, new)
            _read(lambda: read_made(made, target.key))
        new["metadata"]["resourceVersion"] = value["metadata"].get("resourceVersion")
        if applied:
            new["metadata"]["managedFields"] = managers
        else:
            managed = after_update(value, new, target.writer, target.sub, timestamp())
            new = with_managed(new, managed)
        new = _typed(kind, with_data(kind, new))
        # A write that changes nothing makes no version; but a pod's status may be said again.
        if target.dry or (new == value and kind.plural != "pods"):
            return new
        self.store.put(kind.name, target.key, new)
        if kind.plural != "pods" and is_free(new):
            return self._delete(target)
        if kind.plural in KINDS and target.sub != "status" and not is_owned(new):
            same = new["spec"].get("template") == value["spec"].get("template")
            self.requests.put(("workload" if same else "roll", target.key, made))
        elif kind.plural in _SIMULATED:
            told = new
            if kind.plural != "nodes":
                patch = body if isinstance(body, dict) and verb == "PATCH" else new
                told = {"status": patch.get("status") or {}, "metadata": described}
            self.requests.put((kind.plural, target.key, told))
        return _typed(kind, self.store.get(kind.name, target.key) or new)


def _read(read: Callable[[], object]) -> None:
    try:
        read()
    except InvalidManifest as error:
        raise Refused(422, "Invalid", str(error)) from None


def _check_verb(target: Target, method: str) -> None:
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method)
    if verb not in target.resource.verbs:
        done = {"create": "created", "delete": "deleted"}.get(verb or "", "changed")
        message = f"{target.resource.plural} cannot be {done} here"
        message = resources.NOT_SIMULATED.get(target.resource.plural, message)
        raise Refused(405, "MethodNotAllowed", message)


def _identity(value: dict[str, Any]) -> dict[str, Any]:
    meta = value["metadata"]
    names = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
    return {name: meta[name] for name in names if name in meta}


def _key(value: dict[str, Any]) -> str:
    meta = value["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _typed(kind: Resource, value: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.group_version, "kind": kind.kind, **value}
