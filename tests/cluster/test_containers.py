"""What containers take, with the defaults of the API server and the reports of kubelets."""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.nodes import PortsFilter
from hagane.tools.cluster.kube.spread import count_matching
from hagane.tools.cluster.model.selectors import Requirement, Selector
from tests.cluster.manifests import cycle_of, node, one, pod


def with_port(name: str, on_host: bool, **rest: Any) -> dict[str, Any]:
    container = {"name": "c", "ports": [{"containerPort": 80}]}
    return pod(name, containers=[container], hostNetwork=on_host, **rest)


def test_on_the_hosts_network_all_ports_are_the_hosts() -> None:
    assert [p.port for p in one(with_port("p", True)).ports] == [80]
    assert one(with_port("p", False)).ports == ()
    cycle = cycle_of(with_port("p", True), node("n"), with_port("q", True, nodeName="n"))
    assert not PortsFilter().skip(cycle)
    assert PortsFilter().mask(cycle, slice(0, 1)).tolist() == [False]


def test_a_missing_request_of_a_pod_is_the_sum_of_its_containers_else_its_limit() -> None:
    own = {"limits": {"cpu": "8", "memory": "8Gi"}}
    found = one(pod("p", {"cpu": "1"}, {"cpu": "500m"}, resources=own)).requests
    assert found == {"cpu": 1500, "memory": 8 << 30}
    own["requests"] = {"cpu": "4"}
    assert one(pod("p", {"cpu": "1"}, resources=own)).requests["cpu"] == 4000
    # Without limits of the pod, what it asks for replaces the sums, and only that.
    asked = {"requests": {"memory": "1Gi"}}
    found = one(pod("p", {"cpu": "1"}, resources=asked)).requests
    assert found == {"cpu": 1000, "memory": 1 << 30}


def resized(*conditions: dict[str, str]) -> dict[str, int]:
    state = {
        "name": "c0",
        "resources": {"requests": {"cpu": "3", "memory": "1Gi"}},
        "allocatedResources": {"cpu": "2", "memory": "2Gi"},
    }
    status = {"containerStatuses": [state], "conditions": list(conditions)}
    return dict(one(pod("p", {"cpu": "4"}, nodeName="n", status=status), node("n")).requests)


def test_a_pod_that_is_resized_in_place_takes_the_most_of_what_it_asks_and_has() -> None:
    assert resized() == {"cpu": 4000, "memory": 2 << 30}
    waiting = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    assert resized(waiting) == {"cpu": 4000, "memory": 2 << 30}
    assert resized({**waiting, "reason": "Infeasible"}) == {"cpu": 3000, "memory": 2 << 30}


@pytest.mark.parametrize(
    ("value", "holds"),
    [("10", True), ("+10", True), ("1_0", False), (str(2**63), False), ("x", False), ("2", False)],
)
def test_labels_are_compared_as_decimal_numbers_of_64_bits(value: str, holds: bool) -> None:
    assert Requirement("gen", "Gt", ("2",)).matches({"gen": value}) is holds


def test_a_spread_constraint_whose_selector_is_empty_counts_no_pods() -> None:
    there = one(pod("p", labels={"a": "b"}))
    assert count_matching([there], Selector(), "default") == 0
    assert count_matching([there], Selector((Requirement("a", "Exists"),)), "default") == 1
