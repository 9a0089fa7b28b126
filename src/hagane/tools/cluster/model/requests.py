"""Requests of a pod, counted as ``k8s.io/component-helpers/resource.PodRequests`` counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hagane.tools.cluster.model.objects import Amounts, Container

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
_SCORED_DEFAULTS = {"cpu": DEFAULT_CPU, "memory": DEFAULT_MEMORY}


def pod_requests(
    containers: Sequence[Container],
    init_containers: Sequence[Container] = (),
    overhead: Amounts | None = None,
    pod_level: Amounts | None = None,
    defaults: Amounts | None = None,
) -> dict[str, int]:
    """Return the request of a whole pod.

    Containers run together, so they add up; init containers run one after another, so the largest
    counts; init containers that restart always (sidecars) stay and add to all that comes after.
    Requests of the pod itself replace those of its containers. Overhead comes on top.

    Args:
        containers: the containers of the pod.
        init_containers: its init containers, in order.
        overhead: the addition of the runtime class.
        pod_level: the pod's own ``resources.requests``.
        defaults: amounts for containers that name no amount of a resource.
    """

    def of(container: Container) -> Mapping[str, int]:
        return {**defaults, **container.requests} if defaults else container.requests

    total = _sum(of(c) for c in containers)
    sidecars: dict[str, int] = {}
    largest: dict[str, int] = {}
    for container in init_containers:
        own = of(container)
        if container.restart_policy == "Always":
            total = _sum((total, own))
            sidecars = _sum((sidecars, own))
            need = sidecars
        else:
            need = _sum((own, sidecars))
        largest = {r: max(largest.get(r, 0), need.get(r, 0)) for r in {**largest, **need}}
    for resource, value in largest.items():
        total[resource] = max(total.get(resource, 0), value)
    for resource, value in (pod_level or {}).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            total[resource] = value
    return _sum((total, overhead or {}))


def scored_requests(
    containers: Sequence[Container],
    init_containers: Sequence[Container] = (),
    overhead: Amounts | None = None,
    pod_level: Amounts | None = None,
) -> tuple[int, int]:
    """Return CPU and memory as scores count them: 100m and 200Mi where a container is silent."""
    total = pod_requests(containers, init_containers, overhead, pod_level, _SCORED_DEFAULTS)
    return total.get("cpu", 0), total.get("memory", 0)


def _sum(parts: Iterable[Amounts]) -> dict[str, int]:
    out: dict[str, int] = {}
    for part in parts:
        for resource, value in part.items():
            out[resource] = out.get(resource, 0) + value
    return out
