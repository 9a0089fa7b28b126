"""The object or list that a path of the API server names."""

from __future__ import annotations

import copy
from typing import Any

from hagane.tools.cluster.link.objects import resources
from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.resources import Resource

# What only running containers have.
OF_CONTAINERS = ("attach", "exec", "log", "portforward", "proxy")


class Target:
    """The object or list that a path names.

    Raises:
        Refused: There is nothing of that name.
    """

    def __init__(self, path: str):
        steps = path.strip("/").split("/")
        group, version = "", ""
        if steps[:1] == ["api"] and len(steps) > 2:
            version, steps = steps[1], steps[2:]
        elif steps[:1] == ["apis"] and len(steps) > 3:
            group, version, steps = steps[1], steps[2], steps[3:]
        else:
            raise unknown(path)
        self.namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2 and steps[2] != "status":
            self.namespace, steps = steps[1], steps[2:]
        if self.namespace and steps == ["bindings"]:  # the pod stands in the body
            steps = ["pods", "", "binding"]
        found = resources.find(group, version, steps[0])
        if found is None or len(steps) > 3:
            raise unknown(path)
        self.resource: Resource = found
        self.name = steps[1] if len(steps) > 1 else ""
        self.sub = steps[2] if len(steps) > 2 else ""
        self.dry = False  # changes are checked and answered, and not made
        self.orphans = False  # what it made stays when it is deleted
        self.writer = ""  # the manager of the fields that are changed
        known = (*found.subresources, "status")
        if found.plural == "pods" and self.sub == "resize":
            raise Refused(
                405,
                "MethodNotAllowed",
                "resizes in place are not simulated: delete the pod and create another",
            )
        if found.plural == "pods":
            known += OF_CONTAINERS
        if self.sub and self.sub not in known:
            raise unknown(path)

    @property
    def key(self) -> str:
        """Under which key of its resource the object is stored."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def of(self, meta: dict[str, Any], kind: Resource | None = None) -> Target:
        """Return one object of the list that is meant, or of another kind."""
        one = copy.copy(self)
        one.resource = kind or self.resource
        one.namespace, one.name = str(meta.get("namespace") or ""), str(meta["name"])
        return one


def unknown(path: str) -> Refused:
    """Return the answer to a path at which there is nothing."""
    return Refused(404, "NotFound", f"the server could not find {path}")
