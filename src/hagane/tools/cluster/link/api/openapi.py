"""The description of the API server by which kubectl finds the parameters of requests.

Source: the OpenAPI specification 3.0 and the Kubernetes API concepts page (1.34). Schemas of
objects are left out: they are checked as they come in, where the simulation reads them.
"""

from __future__ import annotations

from typing import Any

from hagane.tools.cluster.link.objects.resources import RESOURCES, VERSION, Resource

# The older description, as a message of protocol buffers without any field: for lists in manifests
# kubectl takes schemas from there, and checks no objects that have none.
OLDER, OLDER_TYPE = b"", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def described_versions() -> dict[str, Any]:
    """Return the answer to ``/openapi/v3``: where the description of each version lies."""
    paths = dict.fromkeys(_path(item) for item in RESOURCES)
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def described(path: str) -> dict[str, Any] | None:
    """Return the description of a group and version, such as ``apis/apps/v1``; None without it."""
    inside = [item for item in RESOURCES if _path(item) == path]
    if not inside:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {_place(item): _operations(item) for item in inside},
        "components": {"schemas": {}},
    }


def _path(item: Resource) -> str:
    return f"apis/{item.group}/{item.version}" if item.group else f"api/{item.version}"


def _place(item: Resource) -> str:
    inside = "/namespaces/{namespace}" if item.namespaced else ""
    return f"/{_path(item)}{inside}/{item.plural}/{{name}}"


def _operations(item: Resource) -> dict[str, Any]:
    kind = {"group": item.group, "version": item.version, "kind": item.kind}
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in _PARAMETERS
    ]
    verbs = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    return {
        method: {
            "operationId": f"{verb}{item.kind}",
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": verb,
            "x-kubernetes-group-version-kind": kind,
        }
        for method, verb in verbs.items()
        if verb in item.verbs
    }
