"""Which node preemption picks, and when it happens at all.

Upstream: ``defaultpreemption/default_preemption_test.go``, TestSelectBestCandidate,
TestPodEligibleToPreemptOthers and TestPostFilter, as of 1.23. The names of the cases are the names
upstream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hagane.tools.cluster.kube.explain import explain
from hagane.tools.cluster.kube.preemption import Candidate, eligible, pick_candidate
from hagane.tools.cluster.kube.profile import default_profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import Cluster
from tests.cluster.kubernetes.preempting import (
    HIGH,
    LARGE,
    LOW,
    MEDIUM,
    MID,
    NEGATIVE,
    SMALL,
    VERY_HIGH,
    VERY_LARGE,
    found,
    machines,
    on,
)
from tests.cluster.kubernetes.scoring import ids
from tests.cluster.manifests import node, objects, one, pod

SIZES = {"s": SMALL, "m": MEDIUM, "l": LARGE}
# (name, pods of node1, of node2, …: (priority, size, start), the node picked)
CASES: list[Any] = [
    (
        "node with min highest priority pod is picked",
        [
            [(MID, "m", 0), (MID, "l", 0)],
            [(MID, "m", 0), (LOW, "m", 0)],
            [(LOW, "m", 0), (LOW, "m", 0)],
        ],
        "node3",
    ),
    (
        "when highest priorities are the same, minimum sum of priorities is picked",
        [
            [(MID, "m", 0), (MID, "l", 0)],
            [(MID, "l", 0), (LOW, "m", 0)],
            [(MID, "m", 0), (MID, "m", 0)],
        ],
        "node2",
    ),
    (
        "when highest priority and sum are the same, minimum number of pods is picked",
        [
            [(MID, "s", 0), (NEGATIVE, "s", 0), (MID, "s", 0), (NEGATIVE, "s", 0)],
            [(MID, "l", 0), (NEGATIVE, "m", 0)],
            [(MID, "m", 0), (NEGATIVE, "s", 0), (LOW, "s", 0)],
        ],
        "node2",
    ),
    (
        "sum of adjusted priorities is considered",
        [
            [(MID, "s", 0), (NEGATIVE, "s", 0), (NEGATIVE, "s", 0)],
            [(MID, "l", 0), (NEGATIVE, "m", 0)],
            [(MID, "m", 0), (NEGATIVE, "s", 0), (LOW, "s", 0)],
        ],
        "node2",
    ),
    (
        "non-overlapping lowest high priority, sum priorities, and number of pods",
        [
            [(MID, "s", 0), (LOW, "s", 0), (LOW, "s", 0)],
            [(HIGH, "l", 0)],
            [(MID, "m", 0), (LOW, "s", 0), (LOW, "s", 0), (LOW, "m", 0)],
            [(MID, "m", 0), (MID, "s", 0), (MID, "s", 0), (NEGATIVE, "s", 0)],
        ],
        "node1",
    ),
    (
        "same priority, same number of victims, different start time for each node's pod",
        [
            [(MID, "m", 2), (MID, "m", 2)],
            [(MID, "m", 3), (MID, "m", 3)],
            [(MID, "m", 1), (MID, "m", 1)],
        ],
        "node2",
    ),
    (
        "same priority, same number of victims, different start time for all pods",
        [
            [(MID, "m", 4), (MID, "m", 2)],
            [(MID, "m", 5), (MID, "m", 1)],
            [(MID, "m", 3), (MID, "m", 6)],
        ],
        "node3",
    ),
    (
        "different priority, same number of victims, different start time for all pods",
        [
            [(LOW, "m", 4), (MID, "m", 2)],
            [(MID, "m", 6), (LOW, "m", 1)],
            [(LOW, "m", 3), (MID, "m", 5)],
        ],
        "node2",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_select_best_candidate(case: Any) -> None:
    name, nodes, expected = case
    bound = [
        on(f"p{i + 1}.{j + 1}", f"node{i + 1}", priority, SIZES[size], start)
        for i, pods in enumerate(nodes)
        for j, (priority, size, start) in enumerate(pods)
    ]
    priority = VERY_HIGH if name.startswith("non-overlapping") else HIGH
    candidates = found(pod("p", VERY_LARGE, priority=priority), *machines(len(nodes)), *bound)
    chosen = pick_candidate(candidates)
    assert chosen is not None
    assert chosen.node == expected


def test_a_pod_that_fits_on_both_nodes_when_lower_priority_pods_are_preempted() -> None:
    bound = [on("p1", "node1", MID, LARGE, 0), on("p2", "node2", MID, LARGE, 0)]
    chosen = pick_candidate(found(pod("p", LARGE, priority=HIGH), *machines(2), *bound))
    assert chosen is not None
    assert chosen.node in ("node1", "node2")


def victims(*priorities: int) -> tuple[Pod, ...]:
    return tuple(Pod(f"v{i}", priority=p) for i, p in enumerate(priorities))


def test_fewest_broken_budgets_go_before_everything() -> None:
    """The first of the five rules, in the words of ``pickOneNodeForPreemption``."""
    chosen = pick_candidate([Candidate("a", victims(LOW), 1), Candidate("b", victims(HIGH), 0)])
    assert chosen is not None
    assert chosen.node == "b"
    assert pick_candidate([]) is None


# TestPodEligibleToPreemptOthers; the first of its cases needs the status of a filter cycle
ELIGIBLE = [
    ("Pod with nominated node, but without nominated node status", "node1", "", False),
    ("Pod without nominated node", "", "", True),
    ("Pod with 'PreemptNever' preemption policy", "", "Never", False),
]


@pytest.mark.parametrize("case", ELIGIBLE, ids=ids(ELIGIBLE))
def test_pod_eligible_to_preempt_others(case: Any) -> None:
    _, nominated, policy, expected = case
    dying = on("p1", "node1", LOW, SMALL)
    dying["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    cluster = Cluster.of(objects(*machines(1), dying))
    rest = {"preemptionPolicy": policy} if policy else {}
    wanted = replace(one(pod("p", priority=HIGH, **rest)), nominated=nominated)
    assert eligible(cluster, wanted) == expected


ONE_POD = {"cpu": "10", "memory": "1Gi", "pods": "1"}
# Upstream's nodes offer no pods; they get the kubelet's number here.
SCANT = {"cpu": "200m", "memory": "400"}


def small(name: str, at: str, priority: int = 0) -> dict[str, Any]:
    return pod(name, nodeName=at, priority=priority)


# TestPostFilter: (name, pod, nodes, bound pods, the node that is nominated)
POST: list[Any] = [
    (
        "pod with higher priority can be made schedulable",
        pod("p", priority=HIGH),
        {"node1": ONE_POD},
        [small("p1", "node1")],
        "node1",
    ),
    (
        "pod with tied priority is still unschedulable",
        pod("p"),
        {"node1": ONE_POD},
        [small("p1", "node1")],
        None,
    ),
    (
        "pod can be made schedulable on one node",
        pod("p", priority=MID),
        {"node1": ONE_POD, "node2": ONE_POD},
        [small("p1", "node1", HIGH), small("p2", "node2", LOW)],
        "node2",
    ),
    (
        "no candidate nodes found, no enough resource after removing low priority pods",
        pod("p", LARGE, priority=HIGH),
        {"node1": SCANT, "node2": SCANT},
        [small("p1", "node1"), small("p2", "node2")],
        None,
    ),
    (
        "no candidate nodes found with mixed reasons, no lower priority pod and no enough CPU",
        pod("p", LARGE, priority=HIGH),
        {"node1": ONE_POD, "node2": SCANT},
        [small("p1", "node1", HIGH), small("p2", "node2")],
        None,
    ),
]


@pytest.mark.parametrize("case", POST, ids=ids(POST))
def test_post_filter(case: Any) -> None:
    _, wanted, nodes, bound, expected = case
    machines = [node(name, has=has) for name, has in nodes.items()]
    cluster = Cluster.of(objects(*machines, *bound))
    result = explain(default_profile(), cluster, one(wanted))
    assert result.chosen is None
    assert result.preemption_node == expected


def test_preemption_should_respect_filtered_nodes_statuses() -> None:
    """No eviction helps where a selector excludes the node (UnschedulableAndUnresolvable)."""
    known = objects(node("n", has=VERY_LARGE), on("v", "n", LOW, LARGE))
    wanted = one(pod("p", LARGE, priority=HIGH, nodeSelector={"a": "b"}))
    assert explain(default_profile(), Cluster.of(known), wanted).preemption_node is None
