"""The cases of Kubernetes' own unit tests of preemption."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hagane.tools.cluster.kube.explain import explain
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.preemption import (
    Candidate,
    allowed_disruptions,
    find_candidates,
    pick_candidate,
)
from hagane.tools.cluster.kube.profile import Profile, default_profile
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, one, pod

LOW, MID, HIGH, VERY_HIGH = 0, 100, 1000, 10000
# What the nodes of the tests have, and its parts.
CAPACITY = {"cpu": "500m", "memory": "500"}
SMALL, MEDIUM = {"cpu": "100m", "memory": "100"}, {"cpu": "200m", "memory": "200"}
LARGE, VERY_LARGE = {"cpu": "300m", "memory": "300"}, CAPACITY


def on(
    name: str, at: str, priority: int, size: dict[str, str], start: int | None = None, **rest: Any
) -> dict[str, Any]:
    status = {} if start is None else {"startTime": f"2020-01-01T00:00:{start:02}Z"}
    return pod(name, size, nodeName=at, priority=priority, status=status, **rest)


def candidates(
    wanted: dict[str, Any],
    nodes: int,
    *others: dict[str, Any],
    profile: Profile | None = None,
    offset: int = 0,
) -> dict[str, tuple[list[str], int]]:
    machines = [node(f"node{i + 1}", has=CAPACITY) for i in range(nodes)]
    cluster = Cluster.of(objects(*machines, *others))
    before = {r.node.name: list(r.pods) for r in cluster.nodes()}
    chosen = profile or default_profile()
    cycle = Cycle(one(wanted), cluster)
    found = find_candidates(chosen, cycle, offset)
    assert before == {r.node.name: list(r.pods) for r in cluster.nodes()}
    return {c.node: ([v.name for v in c.victims], c.violations) for c in found}


def test_a_pod_that_fits_on_one_node_when_lower_pods_leave() -> None:
    found = candidates(
        pod("p", LARGE, priority=HIGH),
        2,
        on("p1", "node1", MID, LARGE),
        on("p2", "node2", MID, LARGE),
    )
    assert found == {"node1": (["p1"], 0), "node2": (["p2"], 0)}


def test_a_pod_that_would_fit_on_no_node() -> None:
    assert (
        candidates(
            pod("p", {"cpu": "1"}, priority=HIGH),
            2,
            on("p1", "node1", MID, LARGE),
            on("p2", "node2", MID, LARGE),
        )
        == {}
    )


def test_pods_of_higher_priority_are_no_victims() -> None:
    assert candidates(
        pod("p", LARGE, priority=HIGH),
        2,
        on("p1", "node1", VERY_HIGH, LARGE),
        on("p2", "node2", MID, LARGE),
    ) == {"node2": (["p2"], 0)}


def test_medium_pods_are_preempted_but_lower_ones_stay_where_they_are_small() -> None:
    found = candidates(
        pod("p", LARGE, priority=HIGH),
        2,
        on("p1.1", "node1", LOW, SMALL),
        on("p1.2", "node1", MID, LARGE),
        on("p2", "node2", MID, LARGE),
    )
    assert found == {"node1": (["p1.2"], 0), "node2": (["p2"], 0)}


def test_mixed_priorities_the_important_are_spared_first() -> None:
    found = candidates(
        pod("p", LARGE, priority=HIGH),
        1,
        on("p1.1", "node1", MID, SMALL),
        on("p1.2", "node1", LOW, SMALL),
        on("p1.3", "node1", MID, MEDIUM),
        on("p1.4", "node1", HIGH, SMALL),
    )
    assert found == {"node1": (["p1.3", "p1.2"], 0)}


def test_equal_priorities_the_earliest_start_is_spared_first() -> None:
    found = candidates(
        pod("p", LARGE, priority=HIGH),
        1,
        on("p1.1", "node1", LOW, SMALL, 5),
        on("p1.2", "node1", LOW, SMALL, 4),
        on("p1.3", "node1", LOW, MEDIUM, 3),
        on("p1.4", "node1", LOW, SMALL, 2),
    )
    assert found == {"node1": (["p1.3", "p1.1"], 0)}


def budget(allowed: int, *disrupted: str) -> dict[str, Any]:
    times = dict.fromkeys(disrupted, "2020-01-01T00:00:00Z")
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": times},
    }


APP = {"app": "foo"}
BUDGETS = [
    ("of the same budget", ["p1.1", "p1.2"], budget(1), 1),
    ("a victim that is not in disruptedPods", ["p1.1", "p1.2"], budget(1, "p2"), 1),
    ("a victim that is in disruptedPods", ["p1.1", "p1.2"], budget(1, "p1.2"), 0),
    ("three, one in disruptedPods", ["p1.1", "p1.2", "p1.3"], budget(1, "p1.3"), 1),
]


@pytest.mark.parametrize("case", BUDGETS, ids=[c[0] for c in BUDGETS])
def test_violations_of_budgets(case: Any) -> None:
    _, names, limit, violations = case
    size = MEDIUM if len(names) == 2 else {"cpu": "150m", "memory": "150"}
    found = candidates(
        pod("p", VERY_LARGE, priority=HIGH),
        1,
        limit,
        *(on(n, "node1", MID, size, labels=APP) for n in names),
    )
    assert (sorted(found["node1"][0]), found["node1"][1]) == (names, violations)


def five(*priorities: int) -> list[dict[str, Any]]:
    return [on(f"p{i + 1}", f"node{i + 1}", p, LARGE) for i, p in enumerate(priorities)]


def limited(absolute: int) -> Profile:
    return replace(default_profile(), candidates_percentage=40, candidates_absolute=absolute)


def test_the_search_stops_at_the_number_of_candidates_and_wraps_round() -> None:
    wanted = pod("p", LARGE, priority=HIGH)
    for offset, expected in (
        (4, {"node5", "node1"}),
        (1, {"node2", "node3"}),
        (3, {"node4", "node5"}),
    ):
        found = candidates(wanted, 5, *five(*[MID] * 5), profile=limited(1), offset=offset)
        assert set(found) == expected


def test_nodes_that_don_t_help_are_passed_over() -> None:
    wanted = pod("p", LARGE, priority=HIGH)
    found = candidates(wanted, 5, *five(MID, VERY_HIGH, MID, MID, VERY_HIGH), profile=limited(2))
    assert set(found) == {"node1", "node3"}


def test_the_search_goes_on_until_a_candidate_breaks_no_budget() -> None:
    others = five(*[MID] * 5)
    for index in (0, 1, 4):
        others[index]["metadata"]["labels"] = APP
    found = candidates(
        pod("p", LARGE, priority=HIGH), 5, budget(0), *others, profile=limited(2), offset=4
    )
    assert {n: v for n, (_, v) in found.items()} == {"node3": 0, "node5": 1, "node1": 1, "node2": 1}


def victims(*pairs: tuple[int, int | None]) -> tuple[Pod, ...]:
    return tuple(Pod(f"v{i}", priority=p, started=s) for i, (p, s) in enumerate(pairs))


PICK = [
    ("one node", {"node1": victims((MID, 0))}, "node1"),
    (
        "the lowest of the highest priorities",
        {"node1": victims((HIGH, 0)), "node2": victims((MID, 0)), "node3": victims((LOW, 0))},
        "node3",
    ),
    (
        "then the sum of priorities",
        {
            "node1": victims((MID, 0), (MID, 0)),
            "node2": victims((MID, 0), (LOW, 0)),
            "node3": victims((MID, 0), (MID, 0)),
        },
        "node2",
    ),
    (
        "then the fewest victims",
        {"node1": victims((MID, 0), (-5, 0)), "node2": victims((MID, 0))},
        "node2",
    ),
    (
        "negative priorities don't attract",
        {"node1": victims((LOW - 1, 0), (LOW - 1, 0)), "node2": victims((LOW - 1, 0))},
        "node2",
    ),
    (
        "then the latest start of the highest",
        {
            "node1": victims((HIGH, 4), (MID, 9)),
            "node2": victims((HIGH, 5), (MID, 1)),
            "node3": victims((HIGH, 3), (MID, 8)),
        },
        "node2",
    ),
    (
        "the earliest of the highest counts",
        {"node1": victims((HIGH, 2), (HIGH, 9)), "node2": victims((HIGH, 3), (HIGH, 4))},
        "node2",
    ),
]


@pytest.mark.parametrize("case", PICK, ids=[c[0] for c in PICK])
def test_the_node_is_picked_by_five_rules(case: Any) -> None:
    _, nodes, expected = case
    found = pick_candidate([Candidate(n, v) for n, v in nodes.items()])
    assert found is not None
    assert found.node == expected


def test_fewest_broken_budgets_go_before_everything() -> None:
    found = pick_candidate(
        [Candidate("a", victims((LOW, 0)), 1), Candidate("b", victims((HIGH, 0)), 0)]
    )
    assert found is not None
    assert found.node == "b"
    assert pick_candidate([]) is None


def test_a_pod_of_policy_never_does_not_preempt() -> None:
    known = objects(node("n", has=CAPACITY), on("v", "n", LOW, LARGE))
    wanted = one(pod("p", LARGE, priority=HIGH, preemptionPolicy="Never"))
    assert explain(default_profile(), Cluster.of(known), wanted).preemption_node is None


def test_a_node_that_a_selector_excludes_is_no_candidate() -> None:
    known = objects(node("n", has=CAPACITY), on("v", "n", LOW, LARGE))
    wanted = one(pod("p", LARGE, priority=HIGH, nodeSelector={"a": "b"}))
    assert explain(default_profile(), Cluster.of(known), wanted).preemption_node is None


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 2}, 1),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": 2}, 2),
        ({"maxUnavailable": "34%"}, 2),
        ({"minAvailable": 5}, 0),
    ],
)
def test_a_budget_without_a_status_is_counted_from_the_pods(
    spec: dict[str, Any], allowed: int
) -> None:
    manifest = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": APP}, **spec},
    }
    known = objects(manifest, *(pod(f"p{i}", labels=APP) for i in range(3)), pod("q"))
    assert allowed_disruptions(known.budgets[0], known.pods) == allowed
