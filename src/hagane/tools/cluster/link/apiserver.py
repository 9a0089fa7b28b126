"""A minimal Kubernetes API server, enough for a scheduler that uses the ordinary client.

Served: list, get and watch of pods, nodes, namespaces, priority classes, disruption budgets and
jobs; creation and deletion of pods; ``POST .../pods/NAME/binding``; patches of pods' and budgets'
status and of nodes. Simulated time stands still while an outside scheduler is asked.
"""

from __future__ import annotations

import json
import queue
import re
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.link.reports import merged, read_created
from hagane.tools.cluster.link.store import Compacted, Store

# resource -> (group/version, kind of the list)
RESOURCES = {
    "pods": ("v1", "PodList"),
    "nodes": ("v1", "NodeList"),
    "namespaces": ("v1", "NamespaceList"),
    "events": ("v1", "EventList"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClassList"),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudgetList"),
    "jobs": ("batch/v1", "JobList"),
}
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+/[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?/?"
)
# What may be patched; only the status of these but nodes.
_PATCHED = ("pods", "nodes", "poddisruptionbudgets")
_PATIENCE = 0.5
_TOO_OLD = "too old resource version: list again"


class ApiServer:
    """Serves a store; what clients ask to change goes into ``requests``.

    Each request is (verb, key, body): ("bind", "namespace/name", node), ("delete", key, None),
    ("create", key, manifest), or, for a patch, (resource, key, patch).
    """

    def __init__(self, port: int = 0):
        self.store = Store()
        self.requests: queue.Queue[tuple[str, str, Any]] = queue.Queue()
        # Says why a binding is refused, or nothing; set by whoever owns the cluster.
        self.refuse: Callable[[str, str], str] = lambda key, node: ""
        server = self

        class Handler(_Handler):
            api = server

        self.http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self._thread = Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self) -> ApiServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()
        self.http.shutdown()
        self._thread.join()
        self.http.server_close()


class _Handler(BaseHTTPRequestHandler):
    api: ApiServer
    protocol_version = "HTTP/1.1"
    # Headers and body leave in one packet, or small answers wait for acknowledgements.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        split = urlsplit(self.path)
        query = {k: v[-1] for k, v in parse_qs(split.query).items()}
        if split.path in ("/healthz", "/readyz", "/livez"):
            self._send(200, "ok")
            return
        if split.path == "/version":
            self._send(200, {"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
            return
        found = self._route(split.path)
        if found is None:
            return
        resource, namespace, name, _ = found
        if name:
            key = f"{namespace}/{name}" if namespace else name
            objects, _ = self.api.store.all(resource)
            value = next((o for o in objects if _key(o) == key), None)
            if value is None:
                self._fail(404, "NotFound", f'{resource} "{name}" not found')
            else:
                self._send(200, value)
            return
        chosen = _chooser(namespace, query)
        if query.get("watch") in ("true", "1"):
            self._watch(resource, chosen, query)
            return
        objects, version = self.api.store.all(resource)
        group, kind = RESOURCES[resource]
        self._send(
            200,
            {
                "apiVersion": group,
                "kind": kind,
                "metadata": {"resourceVersion": str(version)},
                "items": [o for o in objects if chosen(o)],
            },
        )

    def do_POST(self) -> None:
        body = self._body()
        found = self._route(urlsplit(self.path).path)
        if found is None or body is None:
            return
        resource, namespace, name, sub = found
        if resource == "pods" and sub == "binding":
            self._bind(f"{namespace}/{name}", body)
        elif resource == "pods" and not name:
            self._create(namespace or "default", body)
        elif resource == "events":
            self._send(201, body)
        else:
            self._fail(405, "MethodNotAllowed", f"{resource} cannot be created here")

    def do_DELETE(self) -> None:
        self._body()
        found = self._route(urlsplit(self.path).path)
        if found is None:
            return
        resource, namespace, name, _ = found
        if resource != "pods" or not name:
            self._fail(405, "MethodNotAllowed", f"{resource} cannot be deleted here")
            return
        key = f"{namespace}/{name}"
        pod = self.api.store.objects.get("pods", {}).get(key)
        if pod is None:
            self._fail(404, "NotFound", f'pods "{key}" not found')
            return
        self.api.requests.put(("delete", key, None))
        self._send(200, pod)

    def do_PATCH(self) -> None:
        body = self._body()
        found = self._route(urlsplit(self.path).path)
        if found is None or body is None:
            return
        resource, namespace, name, _ = found
        key = f"{namespace}/{name}" if namespace else name
        objects, _ = self.api.store.all(resource)
        value = next((o for o in objects if _key(o) == key), None)
        if value is None:
            self._fail(404, "NotFound", f'{resource} "{name}" not found')
            return
        if resource not in _PATCHED:
            self._fail(405, "MethodNotAllowed", f"{resource} cannot be changed here")
            return
        patch = body if resource == "nodes" else {"status": body.get("status") or {}}
        self.api.store.put(resource, key, merged(value, patch))
        self.api.requests.put((resource, key, patch))
        self._send(200, self.api.store.objects[resource][key])

    do_PUT = do_PATCH  # noqa: N815

    def _create(self, namespace: str, body: dict[str, Any]) -> None:
        key = f"{namespace}/{(body.get('metadata') or {}).get('name', '')}"
        if key in self.api.store.objects.get("pods", {}):
            self._fail(409, "AlreadyExists", f'pods "{key}" already exists')
            return
        try:
            read_created(body, key)
        except InvalidManifest as error:
            self._fail(422, "Invalid", str(error))
            return
        self.api.requests.put(("create", key, body))
        self._send(201, body)

    def _bind(self, key: str, body: dict[str, Any]) -> None:
        node = (body.get("target") or {}).get("name", "")
        pod = self.api.store.objects.get("pods", {}).get(key)
        if pod is None:
            self._fail(404, "NotFound", f'pods "{key}" not found')
            return
        bound = pod["spec"].get("nodeName")
        if bound:
            self._fail(409, "Conflict", f'pod {key} is already assigned to node "{bound}"')
            return
        why = self.api.refuse(key, node)
        if why:
            self._fail(409, "Conflict", why)
            return
        spec = {**pod["spec"], "nodeName": node}
        self.api.store.put("pods", key, {**pod, "spec": spec})
        self.api.requests.put(("bind", key, node))
        self._send(201, {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})

    def _watch(
        self, resource: str, chosen: Callable[[dict[str, Any]], bool], query: dict[str, str]
    ) -> None:
        version = int(query.get("resourceVersion") or 0)
        ends = time.monotonic() + float(query.get("timeoutSeconds") or 3600)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            for line in self._lines(resource, chosen, version, ends):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            # The client is gone.
            self.close_connection = True

    def _lines(
        self,
        resource: str,
        chosen: Callable[[dict[str, Any]], bool],
        version: int,
        ends: float,
    ) -> Iterator[bytes]:
        while time.monotonic() < ends and not self.api.store.closed:
            try:
                changes = self.api.store.since(resource, version, _PATIENCE)
            except Compacted:
                # As an API server says it once the answer has begun.
                event = {"type": "ERROR", "object": _status(410, "Expired", _TOO_OLD)}
                yield json.dumps(event).encode() + b"\n"
                return
            for change in changes:
                version = change.version
                if chosen(change.object):
                    event = {"type": change.kind, "object": change.object}
                    yield json.dumps(event).encode() + b"\n"

    def _route(self, path: str) -> tuple[str, str, str, str] | None:
        found = _PATH.fullmatch(path)
        resource = found["resource"] if found else ""
        if found is None or resource not in RESOURCES:
            self._fail(404, "NotFound", f"the server could not find {path}")
            return None
        return resource, found["namespace"] or "", found["name"] or "", found["sub"] or ""

    def _body(self) -> dict[str, Any] | None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            value = json.loads(text or b"{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self._fail(
                400, "BadRequest", "the body is not a JSON object; patches are merge patches"
            )
            return None
        return value

    def _fail(self, code: int, reason: str, message: str) -> None:
        self._send(code, _status(code, reason, message))

    def _send(self, code: int, value: Any) -> None:
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _key(value: dict[str, Any]) -> str:
    meta = value["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else str(meta["name"])


def _chooser(namespace: str, query: dict[str, str]) -> Callable[[dict[str, Any]], bool]:
    """Return a predicate for a namespace and for field and label selectors of equalities."""
    wanted: list[tuple[tuple[str, ...], bool, str]] = []
    for part in filter(None, query.get("fieldSelector", "").split(",")):
        name, equal, text = re.split(r"(!=|==?)", part, maxsplit=1)
        wanted.append((tuple(name.split(".")), equal != "!=", text))
    for part in filter(None, query.get("labelSelector", "").split(",")):
        name, equal, text = re.split(r"(!=|==?)", part, maxsplit=1)
        wanted.append((("metadata", "labels", name), equal != "!=", text))

    def chosen(value: dict[str, Any]) -> bool:
        if namespace and value["metadata"].get("namespace") != namespace:
            return False
        for steps, equal, text in wanted:
            here: Any = value
            for step in steps:
                here = (here or {}).get(step)
            if ((here or "") == text) != equal:
                return False
        return True

    return chosen
