"""The containers of a pod, with the values that the API server fills in and kubelets report.

Source: Kubernetes 1.34, ``pkg/apis/core/v1/defaults.go`` and ``component-helpers/resource``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hagane.tools.cluster.model.objects import Amounts, Container, Port
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.requests import pod_requests

_OF_PODS = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Containers:
    """What the containers of a pod take.

    Attributes:
        running: the containers that run together.
        init: the init containers, in order.
        overhead: the addition of the runtime class.
        pod_level: requests of the pod itself.
    """

    running: tuple[Container, ...]
    init: tuple[Container, ...]
    overhead: Amounts
    pod_level: Amounts

    @property
    def limits(self) -> dict[str, int]:
        """The sums of the containers' limits."""
        out: dict[str, int] = {}
        for container in self.running:
            for name, value in container.limits.items():
                out[name] = out.get(name, 0) + value
        return out

    @property
    def ports(self) -> tuple[Port, ...]:
        """The host's ports that containers and sidecars take."""
        sidecars = (c for c in self.init if c.restart_policy == "Always")
        return tuple(port for c in (*self.running, *sidecars) for port in c.ports)


def read_containers(spec: Reader, status: Reader) -> Containers:
    """Return the containers of a pod.

    A request that is missing is the limit. While a pod is resized in place, a container takes the
    most of what its ``spec`` asks for, what it was given, and what it has; if the resize is
    infeasible, its ``spec`` does not count. On the host's network all ports are the host's.

    Raises:
        InvalidManifest: at the field that is malformed.
    """
    on_host = spec.flag("hostNetwork")
    asked = tuple(_container(c, on_host) for c in spec.items("containers"))
    init = tuple(_container(c, on_host) for c in spec.items("initContainers"))
    overhead, own = spec.amounts("overhead"), spec.at("resources").amounts("requests")
    limits = spec.at("resources").amounts("limits")
    if limits:
        # A request of the pod that is missing is the sum of its containers', else the limit.
        summed = pod_requests(asked, init)
        own = {**limits, **{n: summed[n] for n in _OF_PODS if n in summed}, **own}
    given = _given(status)
    infeasible = any(
        each.text("type") == "PodResizePending" and each.text("reason") == "Infeasible"
        for each in status.items("conditions")
    )

    def now(container: Container) -> Container:
        amounts = given.get(container.name)
        if amounts is None:
            return container
        requests = {} if infeasible else dict(container.requests)
        for name, value in amounts.items():
            requests[name] = max(requests.get(name, 0), value)
        return replace(container, requests=requests)

    return Containers(
        tuple(now(c) for c in asked),
        tuple(now(c) if c.restart_policy == "Always" else c for c in init),
        overhead,
        own,
    )


def _given(status: Reader) -> Mapping[str, Amounts]:
    """Return the requests that kubelets report, by container: the larger of two fields."""
    out: dict[str, Amounts] = {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for each in status.items(field):
            if each.has("resources"):
                has = each.at("resources").amounts("requests")
                promised = each.amounts("allocatedResources")
                names = {**has, **promised}
                out[each.text("name")] = {
                    name: max(has.get(name, 0), promised.get(name, 0)) for name in names
                }
    return out


def _container(reader: Reader, on_host: bool) -> Container:
    resources = reader.at("resources")
    requests, limits = resources.amounts("requests"), resources.amounts("limits")
    for name, value in requests.items():
        if name in limits and value > limits[name]:
            raise (resources.place / "requests" / name).error(
                f"request {resources.at('requests').value[name]!r} exceeds the limit "
                f"{resources.at('limits').value[name]!r}"
            )
    numbered = [(_host_port(p, on_host), p) for p in reader.items("ports")]
    ports = tuple(
        Port(number, p.text("protocol") or "TCP", p.text("hostIP") or "0.0.0.0")
        for number, p in numbered
        if number
    )
    return Container(
        reader.text("name"),
        reader.text("image"),
        {**limits, **requests},
        limits,
        ports,
        reader.text("restartPolicy") or None,
    )


def _host_port(port: Reader, on_host: bool) -> int:
    """Return the host's port that a container takes, or 0."""
    number = port.integer("hostPort", low=0, high=65535)
    return number or (port.integer("containerPort", low=0, high=65535) if on_host else 0)
