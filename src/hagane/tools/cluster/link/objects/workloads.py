"""Jobs and sets of replicas of clients, as controllers in the simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.objects import Workload
from hagane.tools.cluster.model.read_objects import parse_objects
from hagane.tools.cluster.sim.controllers import Controller
from hagane.tools.cluster.sim.simulation import Simulation

# By the plural of their paths.
KINDS = {
    "deployments": "Deployment",
    "jobs": "Job",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
}
PLURALS = {kind: plural for plural, kind in KINDS.items()}


def is_owned(manifest: Mapping[str, Any]) -> bool:
    """Return whether another controller of the client's keeps the pods up, or tells so."""
    owners = (manifest.get("metadata") or {}).get("ownerReferences") or ()
    return any(owner.get("controller") for owner in owners)


def read_made(manifest: Mapping[str, Any], key: str) -> Workload:
    """Return the job or set of replicas in the body of a request.

    Raises:
        InvalidManifest: It is none, or its pods cannot be simulated.
    """
    kind = str(manifest.get("kind"))
    whole = {name: each for name, each in manifest.items() if name != "status"}
    found = parse_objects(json.dumps(whole), f"{kind} {key!r}").workloads
    if len(found) != 1:
        raise InvalidManifest(f"{kind} {key!r}: expected one, got {len(found)}")
    return found[0]


def controller_of(sim: Simulation, kind: str, key: str) -> Controller | None:
    """Return the controller of a job or a set of replicas, if one is at work."""
    name = f"{kind}/{key}"
    for submitter in sim.submitters.values():
        if isinstance(submitter, Controller) and submitter.name == name:
            return submitter
    return None


def keep_up(
    sim: Simulation, key: str, manifest: Mapping[str, Any], rolled: bool
) -> Controller | None:
    """Make the pods of a new or changed job or set of replicas; return a new controller.

    Args:
        sim: The simulation.
        key: ``namespace/name``.
        manifest: What the client wrote.
        rolled: Whether the template is another one.
    """
    workload = read_made(manifest, key)
    known = controller_of(sim, workload.kind, key)
    if known is not None and not rolled:
        # Written out and read again, a template may differ in form.
        workload = replace(workload, template=known.workload.template)
    cluster = sim.cluster
    others = [w for w in cluster.workloads if (w.kind, w.namespace, w.name) != _named(workload)]
    cluster.workloads = (*others, workload)
    if known is not None:
        known.change(workload)
        sim.ask(known)
        return None
    made = Controller(workload)
    sim.join(made)
    return made


def abandon(sim: Simulation, key: str, kind: str, orphans: bool) -> None:
    """End a job or set of replicas that a client has deleted, and its pods unless they stay."""
    cluster = sim.cluster
    cluster.workloads = tuple(
        w for w in cluster.workloads if (w.kind, f"{w.namespace}/{w.name}") != (kind, key)
    )
    controller = controller_of(sim, kind, key)
    if controller is None:
        return
    sim.dismiss(controller)
    for pod in () if orphans else list(controller.active):
        sim.delete(pod)


def _named(workload: Workload) -> tuple[str, str, str]:
    return workload.kind, workload.namespace, workload.name
