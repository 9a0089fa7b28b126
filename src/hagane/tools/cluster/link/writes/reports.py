"""Writes of clients of the API server, as changes of the simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.model.read_objects import parse_objects, read_budget
from hagane.tools.cluster.sim.faults import take_down
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster

_ENDED = {"Succeeded": "succeeded", "Failed": "failed"}


def unschedulable(status: Mapping[str, Any]) -> str:
    """Return why a status says that a pod fits nowhere, or nothing if it does not say so."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "Unschedulable")
    return ""


def report_pod(
    sim: Simulation, key: str, status: Mapping[str, Any], described: Mapping[str, Any]
) -> None:
    """Take in the status, and new labels and annotations, of a pod.

    A phase ``Succeeded`` or ``Failed`` ends a pod that runs; a pending pod is nominated by
    ``nominatedNodeName``, and the message of its condition ``PodScheduled`` says why it waits.
    """
    running = sim.life.running.get(key)
    outcome = _ENDED.get(str(status.get("phase") or ""))
    if running is not None:
        if described:
            running.pod = _redescribed(running.pod, described)
            sim.cluster.replace_pod(running.pod)
        if outcome is not None:
            sim.life.end(running, outcome, str(status.get("reason") or "reported"))
        return
    pending = sim.queue.get(key)
    if pending is None:
        return
    if outcome is not None:
        sim.delete(key, f"reported as {status['phase']}")
        return
    if described:
        pending.pod = _redescribed(pending.pod, described)
    if "nominatedNodeName" in status:
        pending.pod = replace(pending.pod, nominated=str(status["nominatedNodeName"] or ""))
    pending.why = unschedulable(status) or pending.why


def _redescribed(pod: Pod, described: Mapping[str, Any]) -> Pod:
    raw = pod.raw or {}
    meta = {**(raw.get("metadata") or {}), **described}
    return replace(pod, **described, raw={**raw, "metadata": meta})


def add_node(sim: Simulation, manifest: Mapping[str, Any]) -> None:
    """Take in a node that a client has made; one that is there already stays as it is."""
    (node,) = parse_objects(json.dumps({**manifest, "kind": "Node"}), "POST of a node").nodes
    if node.name in sim.cluster.rows:
        return
    row = sim.cluster.add_node(node)
    sim.log.write(sim.clock, "add", node=node.name)
    sim.nodes_changed({row})


def remove_node(sim: Simulation, name: str) -> None:
    """Take a node away that a client has deleted; pods that ran on it are lost, as in a failure."""
    if name in sim.cluster.rows:
        take_down(sim, name, "remove")


def report_node(sim: Simulation, name: str, manifest: Mapping[str, Any]) -> None:
    """Take in a changed node: cordon, taints, labels, allocatable resources."""
    if name not in sim.cluster.rows:
        return
    row = sim.cluster.rows[name]
    whole = json.dumps({**manifest, "kind": "Node"})
    (node,) = parse_objects(whole, f"change of node {name!r}").nodes
    sim.cluster.update_node(node)
    sim.log.write(sim.clock, "node-changed", node=name)
    sim.nodes_changed({row})


def add_budget(cluster: Cluster, key: str, manifest: Mapping[str, Any]) -> None:
    """Take in a budget that a client has made."""
    budget = read_budget(dict(manifest), Place(f"POST of budget {key!r}", "", 0))
    remove_budget(cluster, key)
    cluster.budgets = (*cluster.budgets, budget)


def remove_budget(cluster: Cluster, key: str) -> None:
    """Forget a budget that a client has deleted."""
    cluster.budgets = tuple(b for b in cluster.budgets if f"{b.namespace}/{b.name}" != key)


def report_budget(cluster: Cluster, key: str, status: Mapping[str, Any]) -> None:
    """Take in how many disruptions the status of a budget allows."""
    allowed = status.get("disruptionsAllowed")
    if allowed is None:
        return
    cluster.budgets = tuple(
        replace(b, allowed=int(allowed), disrupted=tuple(status.get("disruptedPods") or ()))
        if f"{b.namespace}/{b.name}" == key
        else b
        for b in cluster.budgets
    )


def read_created(manifest: Mapping[str, Any], key: str) -> Pod:
    """Return the pod in the body of a request that creates one.

    Raises:
        InvalidManifest: if it is none.
    """
    text = json.dumps({**manifest, "kind": "Pod"})
    pods = parse_objects(text, f"POST of pod {key!r}").pods
    if len(pods) != 1:
        raise InvalidManifest(f"POST of pod {key!r}: expected one pod, got {len(pods)}")
    return pods[0].with_changes(namespace=key.partition("/")[0])
