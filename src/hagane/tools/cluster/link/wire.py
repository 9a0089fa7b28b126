"""Objects as the Kubernetes API writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hagane.tools.cluster.kube.preemption import allowed_disruptions
from hagane.tools.cluster.model.objects import (
    Container,
    DisruptionBudget,
    Node,
    Pod,
    PriorityClass,
)
from hagane.tools.cluster.model.quantity import format_amount
from hagane.tools.cluster.model.read_pod import GPU_COUNT, USER_LABEL
from hagane.tools.cluster.model.selectors import Selector
from hagane.tools.cluster.sim.controllers import Controller
from hagane.tools.cluster.sim.snapshot import rfc3339


def pod_object(pod: Pod, start: float = 0.0) -> dict[str, Any]:
    """Return a pod as a v1 Pod; its source with its present binding and status."""
    raw: dict[str, Any] = dict(pod.raw) if pod.raw is not None else {}
    meta = dict(raw.get("metadata") or {})
    meta.update(name=pod.name, namespace=pod.namespace, uid=pod.uid or pod.key)
    if pod.labels or pod.user:
        meta["labels"] = {**pod.labels, **({USER_LABEL: pod.user} if pod.user else {})}
    if pod.annotations or pod.gpu is not None:
        extra = {GPU_COUNT: str(pod.gpu.count)} if pod.gpu is not None else {}
        meta["annotations"] = {**pod.annotations, **extra}
    if pod.deleting:
        meta["deletionTimestamp"] = rfc3339(start)
        meta["deletionGracePeriodSeconds"] = pod.grace
    meta["creationTimestamp"] = rfc3339(start + (pod.created or 0.0))
    spec = dict(raw.get("spec") or {})
    if "containers" not in spec:
        spec["containers"] = [_container(c) for c in pod.containers] or [
            {
                "name": "main",
                "resources": {
                    "requests": {n: format_amount(n, v) for n, v in pod.requests.items()}
                },
            }
        ]
        if pod.node_selector:
            spec["nodeSelector"] = dict(pod.node_selector)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_with_text(c) for c in spec[field]]
    if spec.get("overhead"):
        spec["overhead"] = {n: str(v) for n, v in spec["overhead"].items()}
    spec["priority"] = pod.priority
    spec["restartPolicy"] = pod.restart_policy
    spec["schedulerName"] = pod.scheduler_name
    spec["terminationGracePeriodSeconds"] = pod.grace
    if pod.node_name:
        spec["nodeName"] = pod.node_name
    status: dict[str, Any] = {**(raw.get("status") or {}), "phase": pod.phase}
    if pod.started is not None:
        status["startTime"] = rfc3339(start + pod.started)
    if pod.nominated:
        status["nominatedNodeName"] = pod.nominated
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def node_object(node: Node) -> dict[str, Any]:
    """Return a node as a v1 Node, ready."""
    raw: dict[str, Any] = dict(node.raw) if node.raw is not None else {}
    meta = {**(raw.get("metadata") or {}), "name": node.name, "uid": node.name}
    meta.setdefault("creationTimestamp", rfc3339(0.0))
    if node.labels:
        meta["labels"] = dict(node.labels)
    spec: dict[str, Any] = dict(raw.get("spec") or {})
    spec.pop("unschedulable", None)
    if node.unschedulable:
        spec["unschedulable"] = True
    if node.taints:
        spec["taints"] = [
            {"key": t.key, "effect": t.effect, **({"value": t.value} if t.value else {})}
            for t in node.taints
        ]
    amounts = {name: format_amount(name, value) for name, value in node.allocatable.items()}
    status = {
        **(raw.get("status") or {}),
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def priority_class_object(item: PriorityClass) -> dict[str, Any]:
    """Return a priority class as a scheduling.k8s.io/v1 PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": item.name, "uid": item.name},
        "value": item.value,
        "globalDefault": item.default,
        "preemptionPolicy": item.preemption_policy,
    }


def namespace_object(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return a namespace as a v1 Namespace."""
    meta = {"name": name, "uid": name, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def budget_object(budget: DisruptionBudget, bound: Sequence[Pod]) -> dict[str, Any]:
    """Return a budget as a policy/v1 PodDisruptionBudget, its status counted from bound pods."""
    spec: dict[str, Any] = {}
    if budget.selector is not None:
        spec["selector"] = _selector(budget.selector)
    if budget.min_available is not None:
        spec["minAvailable"] = budget.min_available
    if budget.max_unavailable is not None:
        spec["maxUnavailable"] = budget.max_unavailable
    selected = [
        pod
        for pod in bound
        if pod.namespace == budget.namespace
        and budget.selector is not None
        and budget.selector.matches(pod.labels)
    ]
    healthy = sum(not pod.deleting for pod in selected)
    allowed = allowed_disruptions(budget, bound)
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": max(0, healthy - allowed),
        "expectedPods": len(selected),
    }
    meta = {"name": budget.name, "namespace": budget.namespace, "uid": f"pdb/{budget.name}"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta,
        "spec": spec,
        "status": status,
    }


def workload_object(controller: Controller) -> dict[str, Any]:
    """Return a job or a set of replicas as batch/v1 or apps/v1 has it, with its pods counted."""
    work = controller.workload
    template = pod_object(work.template)
    job = work.kind == "Job"
    labels = dict(work.template.labels)
    spec: dict[str, Any] = {
        "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
    }
    if job:
        spec.update(
            parallelism=work.replicas,
            completions=work.completions,
            backoffLimit=work.backoff_limit,
        )
        if work.suspended:
            spec["suspend"] = True
    else:
        spec["replicas"] = work.replicas
        if work.selector is not None:
            spec["selector"] = _selector(work.selector)
    return {
        "apiVersion": "batch/v1" if job else "apps/v1",
        "kind": work.kind,
        "metadata": {"name": work.name, "namespace": work.namespace, "uid": work.template.owner},
        "spec": spec,
        "status": workload_status(controller),
    }


def workload_status(controller: Controller) -> dict[str, Any]:
    """Return the counts of the pods of a job or a set of replicas."""
    work = controller.workload
    if work.kind != "Job":
        running = sum(controller.is_bound(key) for key in controller.active)
        known = {"replicas": len(controller.active), "readyReplicas": running}
        if work.kind == "Deployment":
            known["updatedReplicas"] = len(controller.active)
        return {**known, "availableReplicas": running}
    status: dict[str, Any] = {
        "active": len(controller.active),
        "succeeded": controller.succeeded,
        "failed": controller.failed,
    }
    if controller.over:
        done = work.completions is not None and controller.succeeded >= work.completions
        status["conditions"] = [{"type": "Complete" if done else "Failed", "status": "True"}]
    return status


def _selector(selector: Selector) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": r.key, "operator": r.operator, "values": list(r.values)}
            for r in selector.requirements
        ]
    }


def _with_text(container: dict[str, Any]) -> dict[str, Any]:
    """Return a container whose quantities are text, as the API server gives them out."""
    resources = container.get("resources")
    if not resources:
        return container
    texts = {
        field: {n: str(v) for n, v in value.items()} if field != "claims" and value else value
        for field, value in resources.items()
    }
    return {**container, "resources": texts}


def _container(container: Container) -> dict[str, Any]:
    resources = {
        "requests": {n: format_amount(n, v) for n, v in container.requests.items()},
        "limits": {n: format_amount(n, v) for n, v in container.limits.items()},
    }
    return {
        "name": container.name or "main",
        "image": container.image,
        "resources": {k: v for k, v in resources.items() if v},
    }
