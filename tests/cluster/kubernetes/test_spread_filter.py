"""PodTopologySpread as a filter.

Upstream: ``pkg/scheduler/framework/plugins/podtopologyspread/filtering_test.go``,
TestSingleConstraint and TestMultipleConstraints, as of 1.23; minDomains and the inclusion policies
as of 1.31. The names of the cases are the names upstream.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.spread import SpreadFilter
from tests.cluster.kubernetes.scoring import expression, ids, reasons
from tests.cluster.manifests import node, pod

SKEWED = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{SKEWED} (missing required label)"
FOO = {"matchExpressions": [expression("foo", "Exists")]}
BAR = {"matchExpressions": [expression("bar", "Exists")]}


def spread(
    *spreads: tuple[int, str, dict[str, Any]],
    labels: tuple[str, ...] = ("foo",),
    rest: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a pod of constraints; ``more`` goes into each, ``rest`` into the pod."""
    return pod(
        "p",
        labels=dict.fromkeys(labels, ""),
        topologySpreadConstraints=[
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
                **more,
            }
            for skew, key, selector in spreads
        ],
        **(rest or {}),
    )


def zoned(**changes: dict[str, str]) -> list[dict[str, Any]]:
    zones = {"a": "zone1", "b": "zone1", "x": "zone2", "y": "zone2"}
    return [node(n, changes.get(n, {"zone": z, "node": n})) for n, z in zones.items()]


def plain(*names: str, **labels: str) -> list[dict[str, Any]]:
    return [node(n, {"node": n, **labels}) for n in names]


def held(*pods: tuple[str, str]) -> list[dict[str, Any]]:
    """Return a bound pod for every (node, labels separated by spaces)."""
    return [
        pod(f"o{i}", labels=dict.fromkeys(labels.split(), ""), nodeName=name)
        for i, (name, labels) in enumerate(pods)
    ]


def foos(**counts: int) -> list[dict[str, Any]]:
    return held(*((name, "foo") for name, count in counts.items() for _ in range(count)))


def moved(pods: list[dict[str, Any]], *namespaces: str) -> list[dict[str, Any]]:
    for other, namespace in zip(pods, namespaces, strict=False):
        other["metadata"]["namespace"] = namespace
    return pods


def dying(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pods[0]["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    return pods


def within(key: str, *values: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [expression(key, "In", *values)]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


BY_ZONE, BY_NODE = spread((1, "zone", FOO)), spread((1, "node", FOO))
UNEVEN, EVEN = foos(a=2, b=1, y=3), foos(a=1, b=1, y=1)
BOTH = spread((1, "zone", FOO), (1, "node", FOO))
MIXED = spread((1, "zone", FOO), (1, "node", BAR), labels=("foo", "bar"))
SELECTED = {"nodeSelector": {"foo": ""}}
THREE_OF_FOUR = [*plain("a", "b", "x", foo=""), *plain("y")]
TAINTED = node("y", {"node": "y"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
TAINTED_LAST = [*plain("a", "b", "x", foo=""), TAINTED]
LACKING_NODE = zoned(x={"zone": "zone2"})
# (name, pod, nodes, bound pods, nodes it is unschedulable on, nodes that lack a label)
CASES: list[Any] = [
    ("no existing pods", BY_ZONE, zoned(), [], "", ""),
    (
        "no existing pods, incoming pod doesn't match itself",
        spread((1, "zone", BAR)),
        zoned(),
        [],
        "",
        "",
    ),
    (
        "existing pods in a different namespace do not count",
        BY_ZONE,
        zoned(),
        moved(foos(a=2, x=1, y=1), "ns1", "ns2"),
        "xy",
        "",
    ),
    ("pods spread across zones as 3/3, all nodes fit", BY_ZONE, zoned(), UNEVEN, "", ""),
    (
        "pods spread across zones as 1/2 due to absence of label 'zone' on node-b",
        BY_ZONE,
        zoned(b={"zon": "zone1", "node": "b"}),
        foos(a=1, b=1, x=1, y=1),
        "xy",
        "b",
    ),
    (
        "pod cannot be scheduled as all nodes don't have label 'rack'",
        spread((1, "rack", FOO)),
        zoned(),
        [],
        "",
        "abxy",
    ),
    (
        "pods spread across nodes as 2/1/0/3, only node-x fits",
        BY_NODE,
        zoned(),
        UNEVEN,
        "aby",
        "",
    ),
    (
        "pods spread across nodes as 2/1/0/3, maxSkew is 2, node-b and node-x fit",
        spread((2, "node", FOO)),
        zoned(),
        UNEVEN,
        "ay",
        "",
    ),
    (
        "pods spread across nodes as 2/1/0/3, but pod doesn't match itself",
        spread((1, "node", FOO), labels=("bar",)),
        zoned(),
        UNEVEN,
        "ay",
        "",
    ),
    (
        "incoming pod has nodeAffinity, pods spread as 2/~1~/~0~/3, hence node-a fits",
        spread((1, "node", FOO), rest=within("node", "a", "y")),
        zoned(),
        UNEVEN,
        "y",
        "",
    ),
    (
        "terminating Pods should be excluded",
        BY_NODE,
        plain("a", "b"),
        dying(foos(a=1, b=1)),
        "b",
        "",
    ),
    (
        "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains < minDomains",
        spread((2, "node", FOO), minDomains=4),
        plain("a", "b", "c"),
        foos(a=2, b=2, c=1),
        "ab",
        "",
    ),
    (
        "pods spread across nodes as 2/2/1, maxSkew is 2, and the number of domains > minDomains",
        spread((2, "node", FOO), minDomains=2),
        plain("a", "b", "c"),
        foos(a=2, b=2, c=1),
        "",
        "",
    ),
    (
        "pods spread across zone as 2/1, maxSkew is 2 and the number of domains < minDomains",
        spread((2, "zone", FOO), minDomains=3),
        zoned(),
        EVEN,
        "ab",
        "",
    ),
    (
        "pods spread across zone as 2/1, maxSkew is 2 and the number of domains > minDomains",
        spread((2, "zone", FOO), minDomains=1),
        zoned(),
        EVEN,
        "",
        "",
    ),
    (
        "NodeAffinityPolicy honored with labelSelectors",
        spread((1, "node", FOO), rest=SELECTED),
        THREE_OF_FOUR,
        EVEN,
        "ab",
        "",
    ),
    (
        "NodeAffinityPolicy ignored with labelSelectors",
        spread((1, "node", FOO), rest=SELECTED, nodeAffinityPolicy="Ignore"),
        THREE_OF_FOUR,
        EVEN,
        "aby",
        "",
    ),
    (
        "NodeAffinityPolicy honored with nodeAffinity",
        spread((1, "node", FOO), rest=within("foo", "")),
        THREE_OF_FOUR,
        EVEN,
        "ab",
        "",
    ),
    (
        "NodeAffinityPolicy ignored with labelSelectors (the second of this name)",
        spread((1, "node", FOO), rest=within("foo", ""), nodeAffinityPolicy="Ignore"),
        THREE_OF_FOUR,
        EVEN,
        "aby",
        "",
    ),
    (
        "NodeTaintsPolicy honored",
        spread((1, "node", FOO), nodeTaintsPolicy="Honor"),
        TAINTED_LAST,
        EVEN,
        "ab",
        "",
    ),
    ("NodeTaintsPolicy ignored", BY_NODE, TAINTED_LAST, EVEN, "aby", ""),
    (
        "two Constraints on zone and node, spreads = [3/3, 2/1/0/3]",
        BOTH,
        zoned(),
        UNEVEN,
        "aby",
        "",
    ),
    (
        "two Constraints on zone and node, spreads = [3/4, 2/1/0/4]",
        BOTH,
        zoned(),
        foos(a=2, b=1, y=4),
        "abxy",
        "",
    ),
    (
        "Constraints hold different labelSelectors, spreads = [1/0, 1/0/0/1]",
        MIXED,
        zoned(),
        held(("a", "foo"), ("y", "bar")),
        "aby",
        "",
    ),
    (
        "Constraints hold different labelSelectors, spreads = [1/0, 0/0/1/1]",
        MIXED,
        zoned(),
        held(("a", "foo"), ("x", "bar"), ("y", "bar")),
        "abxy",
        "",
    ),
    (
        "Constraints hold different labelSelectors, spreads = [2/3, 1/0/0/1]",
        MIXED,
        zoned(),
        held(("a", "foo"), ("a", "foo bar"), ("y", "foo"), ("y", "foo bar"), ("y", "foo")),
        "axy",
        "",
    ),
    (
        "Constraints hold different labelSelectors but pod doesn't match itself on 'zone'",
        spread((1, "zone", FOO), (1, "node", BAR), labels=("bar",)),
        zoned(),
        held(("a", "foo"), ("x", "bar"), ("y", "bar")),
        "xy",
        "",
    ),
    (
        "two Constraints on zone and node, absence of label 'node' on node-x",
        BOTH,
        LACKING_NODE,
        foos(a=1, y=1),
        "ay",
        "x",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_pod_topology_spread(case: Any) -> None:
    _, wanted, nodes, pods, skewed, unlabelled = case
    found = reasons(SpreadFilter(), wanted, *nodes, *pods)
    expected = dict.fromkeys(skewed, SKEWED) | dict.fromkeys(unlabelled, UNLABELLED)
    assert found == expected
