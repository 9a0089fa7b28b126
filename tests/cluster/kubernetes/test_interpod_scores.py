"""Scores of InterPodAffinity.

Upstream: ``pkg/scheduler/framework/plugins/interpodaffinity/scoring_test.go``,
TestPreferredAffinity and TestPreferredAffinityWithHardPodAffinitySymmetricWeight as of 1.23, and
the two numbers in which 1.20 differs. The names of the cases are the names upstream, shortened.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.interpod import InterPodScore
from tests.cluster.kubernetes.scoring import expression, ids, on, scored
from tests.cluster.manifests import node, pod

S1, S2 = {"security": "S1"}, {"security": "S2"}
CHINA, INDIA, AZ1, AZ2 = {"region": "China"}, {"region": "India"}, {"az": "az1"}, {"az": "az2"}
BOTH = {"region": "China", "az": "az1"}
NAMESPACES = tuple(
    {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": name.split(".")[1]}}}
    for name in ("subteam1.team1", "subteam2.team1", "subteam1.team2", "subteam2.team2")
)
TEAM1 = {"matchExpressions": [expression("team", "In", "team1")]}
OF_TEAM1 = {"namespaces": ["subteam2.team2"], "namespaceSelector": TEAM1}


def term(key: str, *expressions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": key, **more}


def preferring(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    preferred = [{"weight": w, "podAffinityTerm": t} for w, t in terms]
    return {"preferredDuringSchedulingIgnoredDuringExecution": preferred}


IS_S1, IS_S2 = expression("security", "In", "S1"), expression("security", "In", "S2")
SAFE = (expression("security", "Exists"), expression("wrongkey", "DoesNotExist"))
STAY_S1 = {"podAffinity": preferring((5, term("region", IS_S1)))}
STAY_S2 = {"podAffinity": preferring((6, term("region", IS_S2)))}
AFFINITY_3 = {
    "podAffinity": preferring(
        (8, term("region", expression("security", "NotIn", "S1"), IS_S2)),
        (2, term("region", *SAFE)),
    )
}
AWAY_S1 = {"podAntiAffinity": preferring((5, term("az", IS_S1)))}
AWAY_S2 = {"podAntiAffinity": preferring((5, term("az", IS_S2)))}
STAY_AWAY = {
    "podAffinity": preferring((8, term("region", IS_S1))),
    "podAntiAffinity": preferring((5, term("az", IS_S2))),
}
HARD = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            term("region", expression("security", "In", "S1", "value2")),
            term("region", *SAFE),
        ]
    }
}
NEAR_TEAM = {"podAffinity": preferring((5, term("region", IS_S1, **OF_TEAM1)))}
FAR_TEAM = {"podAntiAffinity": preferring((5, term("region", IS_S1, **OF_TEAM1)))}
T11, T12, T21, T22 = "subteam1.team1", "subteam1.team2", "subteam2.team1", "subteam2.team2"
SOME = [(0, S2, None), (0, S2, None), (1, S2, None), (2, S2, None), (3, S2, None), (4, S2, None)]
SAME = [*((i, S1, None) for i in (0, 0, 1, 2, 2, 3, 4))]


def of(namespace: str, *at: int) -> list[tuple[int, dict[str, str], None, str]]:
    return [(index, S1, None, namespace) for index in at]


def wanting(labels: dict[str, str] | None, affinity: Any = None, **rest: Any) -> dict[str, Any]:
    more = {"affinity": affinity} if affinity else {}
    return pod("p", labels=labels or {}, **more, **rest)


# TestPreferredAffinity: (name, pod, labels of nodes, bound pods, scores); upstream scores 0
# everywhere where the plugin skips the pod here
CASES: list[Any] = [
    (
        "all nodes are same priority as Affinity is nil",
        wanting(S1),
        [CHINA, INDIA, AZ1],
        [],
        None,
    ),
    (
        "Affinity: pod that matches topology key & pods in nodes will get high score",
        wanting(S1, STAY_S1),
        [CHINA, INDIA, AZ1],
        [(0, S1, None), (1, S2, None), (2, S1, None)],
        [100, 0, 0],
    ),
    (
        "All the nodes that have the same topology key & label value",
        wanting(None, STAY_S1),
        [CHINA, BOTH, INDIA],
        [(0, S1, None)],
        [100, 100, 0],
    ),
    (
        "Affinity: nodes in one region has more matching pods comparing to other region",
        wanting(S1, STAY_S2),
        [CHINA, INDIA, CHINA, CHINA, INDIA],
        SOME,
        [100, 0, 100, 100, 0],
    ),
    (
        "Affinity: different Label operators and values for pod affinity",
        wanting(S1, AFFINITY_3),
        [CHINA, INDIA, AZ1],
        [(0, S1, None), (1, S2, None), (2, S1, None)],
        [20, 100, 0],
    ),
    (
        "Affinity symmetry: considered only the preferredDuringScheduling",
        wanting(S2),
        [CHINA, INDIA, AZ1],
        [(0, S1, STAY_S1), (1, S2, STAY_S2)],
        [0, 100, 0],
    ),
    (
        "Affinity symmetry with namespace selector",
        wanting(S1, namespace=T11),
        [CHINA, INDIA, AZ1],
        [(0, S1, NEAR_TEAM), (1, S2, STAY_S2)],
        [100, 0, 0],
    ),
    (
        "AntiAffinity symmetry with namespace selector",
        wanting(S1, namespace=T11),
        [CHINA, INDIA, AZ1],
        [(0, S1, FAR_TEAM), (1, S2, STAY_S2)],
        [0, 100, 100],
    ),
    (
        "Affinity symmetry: considered RequiredDuringScheduling",
        wanting(S1),
        [CHINA, INDIA, AZ1],
        [(0, S1, HARD), (1, S2, HARD)],
        [100, 100, 0],
    ),
    (
        "Anti Affinity: pod that does not match existing pods in node will get high score",
        wanting(S1, AWAY_S1),
        [AZ1, CHINA],
        [(0, S1, None), (1, S2, None)],
        [0, 100],
    ),
    (
        "Anti Affinity: pod that does not match topology key & match the pods in nodes",
        wanting(S1, AWAY_S1),
        [AZ1, CHINA],
        [(0, S1, None), (1, S1, None)],
        [0, 100],
    ),
    (
        "Anti Affinity: one node has more matching pods comparing to other node",
        wanting(S1, AWAY_S1),
        [AZ1, INDIA],
        [(0, S1, None), (0, S1, None), (1, S2, None)],
        [0, 100],
    ),
    (
        "Anti Affinity symmetry: the existing pods in node which has anti affinity match",
        wanting(S2),
        [AZ1, AZ2],
        [(0, S1, AWAY_S2), (1, S2, AWAY_S1)],
        [0, 100],
    ),
    (
        "Affinity and Anti Affinity: considered only preferredDuringScheduling",
        wanting(S1, STAY_AWAY),
        [CHINA, AZ1],
        [(0, S1, None), (1, S1, None)],
        [100, 0],
    ),
    (
        "Affinity and Anti Affinity: considering both affinity and anti-affinity",
        wanting(S1, STAY_AWAY),
        [BOTH, INDIA, CHINA, CHINA, INDIA],
        SAME,
        [100, 0, 100, 100, 0],
    ),
    (
        "Affinity and Anti Affinity and symmetry: considered only preferredDuringScheduling",
        wanting(S1, STAY_AWAY),
        [CHINA, AZ1, INDIA, AZ2],
        [(0, S1, None), (1, S2, None), (2, {}, STAY_AWAY), (3, {}, AWAY_S1)],
        [100, 0, 100, 0],
    ),
    (
        "Avoid panic when partial nodes in a topology don't have pods with affinity",
        wanting(S1),
        [CHINA, CHINA],
        [(0, S1, None), (1, {}, STAY_AWAY)],
        [0, 0],
    ),
    (
        "Affinity with pods matching NamespaceSelector",
        wanting(S1, NEAR_TEAM, namespace=T11),
        [CHINA, INDIA],
        [*of(T11, 0, 0), *of(T12, 0), *of(T21, 1)],
        [100, 0],
    ),
    (
        "Affinity with pods matching both NamespaceSelector and Namespaces fields",
        wanting(S1, NEAR_TEAM, namespace=T11),
        [CHINA, INDIA],
        [*of(T11, 0, 0), *of(T22, 0), *of(T21, 1)],
        [100, 0],
    ),
    (
        "Affinity with pods matching NamespaceSelector (antiAffinityNamespaceSelector)",
        wanting(S1, FAR_TEAM, namespace=T11),
        [CHINA, INDIA],
        [*of(T11, 0, 0), *of(T12, 0), *of(T21, 1)],
        [0, 100],
    ),
    (
        "Affinity with pods matching both … fields (antiAffinityNamespaceSelector)",
        wanting(S1, FAR_TEAM, namespace=T11),
        [CHINA, INDIA],
        [*of(T11, 0, 0), *of(T22, 0), *of(T21, 1)],
        [0, 100],
    ),
]


def run(case: Any, version: tuple[int, int] = (1, 34)) -> list[int] | None:
    _, wanted, labels, existing, _ = case
    nodes = [node(f"n{i}", label) for i, label in enumerate(labels)]
    pods = [
        on(
            f"n{at}",
            labels=mine,
            **({"affinity": affinity} if affinity else {}),
            **({"namespace": where[0]} if where else {}),
        )
        for at, mine, affinity, *where in existing
    ]
    return scored(InterPodScore(), wanted, nodes, pods, version=version, others=NAMESPACES)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_preferred_affinity(case: Any) -> None:
    assert run(case) == case[-1]


# Where 1.20 measures from 0 (pull request 98096 changed it for 1.21). Upstream has 50 and 40 for
# the second and the last of five nodes.
@pytest.mark.parametrize(
    ("index", "old"), [(3, [100, 50, 100, 100, 50]), (14, [100, 40, 100, 100, 40])]
)
def test_scores_had_zero_in_their_range_up_to_1_20(index: int, old: list[int]) -> None:
    assert run(CASES[index], (1, 20)) == old
    assert run(CASES[index], (1, 21)) == CASES[index][-1]


# TestPreferredAffinityWithHardPodAffinitySymmetricWeight: (name, namespace, weight, scores)
WEIGHTED = [
    ("with default weight", "default", 1, [100, 100, 0]),
    ("with zero weight", "default", 0, None),
    ("with no matching namespace", T12, 1, None),
    ("with matching NamespaceSelector", T11, 1, [100, 100, 0]),
    ("with matching Namespaces", T22, 1, [100, 100, 0]),
]


@pytest.mark.parametrize("case", WEIGHTED, ids=ids(WEIGHTED))
def test_the_weight_of_required_affinity_of_bound_pods(case: Any) -> None:
    _, namespace, weight, expected = case
    required = term(
        "region",
        expression("service", "In", "S1"),
        namespaces=["default", T22],
        namespaceSelector=TEAM1,
    )
    hard = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [required]}}
    wanted = pod("p", labels={"service": "S1"}, namespace=namespace)
    nodes = [node("n0", CHINA), node("n1", INDIA), node("n2", AZ1)]
    pods = [on("n0", affinity=hard), on("n1", affinity=hard)]
    found = scored(InterPodScore(weight), wanted, nodes, pods, others=NAMESPACES)
    assert found == expected
