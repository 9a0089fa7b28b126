"""The cases of Kubernetes' own unit tests of the filter plugins."""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.fit import FitFilter
from hagane.tools.cluster.kube.framework import Filter
from hagane.tools.cluster.kube.interpod import InterPodFilter
from hagane.tools.cluster.kube.nodes import (
    NodeAffinityFilter,
    NodeNameFilter,
    PortsFilter,
    TaintFilter,
    UnschedulableFilter,
)
from hagane.tools.cluster.kube.spread import SpreadFilter
from tests.cluster.manifests import cycle_of, node, pod

CPU, MEMORY, BOTH = (
    "Insufficient cpu",
    "Insufficient memory",
    "Insufficient cpu, Insufficient memory",
)


def reasons(
    rule: Filter, wanted: dict[str, Any], *manifests: dict[str, Any], version: Any = (1, 34)
) -> dict[str, str]:
    """Reasons by node; nodes that pass are left out."""
    cycle = cycle_of(wanted, *manifests, version=version)
    if rule.skip(cycle):
        return {}
    mask = rule.mask(cycle, slice(0, cycle.cluster.size))
    return {
        r.node.name: rule.reason(cycle, r.row) for r in cycle.cluster.nodes() if not mask[r.row]
    }


def amounts(cpu: int, memory: int, **more: object) -> dict[str, Any]:
    return {"cpu": f"{cpu}m", "memory": str(memory), **more}


A, B = "example.com/aaa", "example.com/bbb"
FIT = [
    ("no resources requested always fits", pod("p"), amounts(10, 20), ""),
    ("too many resources", pod("p", amounts(1, 1)), amounts(10, 20), BOTH),
    (
        "init container's CPU",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[{"name": "i", "resources": {"requests": amounts(3, 1)}}],
        ),
        amounts(8, 19),
        CPU,
    ),
    (
        "the highest init container's CPU",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[
                {"name": "i", "resources": {"requests": amounts(3, 1)}},
                {"name": "j", "resources": {"requests": amounts(2, 1)}},
            ],
        ),
        amounts(8, 19),
        CPU,
    ),
    (
        "init container's memory",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[{"name": "i", "resources": {"requests": amounts(1, 3)}}],
        ),
        amounts(9, 19),
        MEMORY,
    ),
    (
        "init container fits: the largest counts, not the sum",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[{"name": "i", "resources": {"requests": amounts(1, 1)}}],
        ),
        amounts(9, 19),
        "",
    ),
    (
        "several init containers fit",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[
                {"name": "i", "resources": {"requests": amounts(1, 1)}},
                {"name": "j", "resources": {"requests": amounts(1, 1)}},
            ],
        ),
        amounts(9, 19),
        "",
    ),
    ("both fit", pod("p", amounts(1, 1)), amounts(5, 5), ""),
    ("one resource memory fits", pod("p", amounts(2, 1)), amounts(9, 5), CPU),
    ("one resource cpu fits", pod("p", amounts(1, 2)), amounts(5, 19), MEMORY),
    ("equal edge case", pod("p", amounts(5, 1)), amounts(5, 19), ""),
    (
        "equal edge case for init containers",
        pod(
            "p",
            amounts(4, 1),
            initContainers=[{"name": "i", "resources": {"requests": amounts(5, 1)}}],
        ),
        amounts(5, 19),
        "",
    ),
    ("extended resource fits", pod("p", {A: "1"}), amounts(0, 0), ""),
    (
        "extended resource capacity",
        pod("p", amounts(1, 1, **{A: 10})),
        amounts(0, 0),
        f"Insufficient {A}",
    ),
    (
        "extended resource allocatable",
        pod("p", amounts(1, 1, **{A: 1})),
        amounts(0, 0, **{A: 5}),
        f"Insufficient {A}",
    ),
    (
        "extended resource for several containers",
        pod("p", amounts(1, 1, **{A: 3}), {A: 3}),
        amounts(0, 0, **{A: 2}),
        f"Insufficient {A}",
    ),
    (
        "unknown extended resource",
        pod("p", amounts(1, 1, **{B: 1})),
        amounts(0, 0),
        f"Insufficient {B}",
    ),
    ("overhead counts", pod("p", amounts(1, 1), overhead=amounts(2, 13)), amounts(5, 10), MEMORY),
    ("overhead fits", pod("p", amounts(1, 1), overhead=amounts(3, 1)), amounts(5, 5), ""),
    (
        "sidecar adds to containers",
        pod(
            "p",
            amounts(1, 1),
            initContainers=[
                {"name": "s", "restartPolicy": "Always", "resources": {"requests": amounts(4, 1)}}
            ],
        ),
        amounts(6, 1),
        CPU,
    ),
]


@pytest.mark.parametrize("case", FIT, ids=[c[0] for c in FIT])
def test_node_resources_fit(case: Any) -> None:
    _, wanted, held, expected = case
    machine = node("n", has={"cpu": "10m", "memory": "20", "pods": "32", A: "5"})
    found = reasons(FitFilter(), wanted, machine, pod("old", held, nodeName="n"))
    assert found == ({"n": expected} if expected else {})


def test_node_resources_fit_counts_pods() -> None:
    machine = node("n", has={"cpu": "10m", "memory": "20", "pods": "1"})
    for wanted in (pod("p"), pod("p", amounts(1, 1))):
        found = reasons(FitFilter(), wanted, machine, pod("old", amounts(1, 1), nodeName="n"))
        assert found == {"n": "Too many pods"}


def test_node_resources_fit_leaves_ignored_resources_to_others() -> None:
    wanted = pod("p", amounts(1, 1, **{B: 2}))
    machine = node("n", has={"cpu": "10m", "memory": "20", "pods": "32"})
    assert reasons(FitFilter(), wanted, machine) == {"n": f"Insufficient {B}"}
    assert reasons(FitFilter([B]), wanted, machine) == {}
    assert reasons(FitFilter([], ["example.com"]), wanted, machine) == {}


def tolerated(taints: list[Any], tolerations: list[Any], version: Any = (1, 34)) -> dict[str, str]:
    wanted = pod("p", tolerations=tolerations)
    return reasons(TaintFilter(), wanted, node("n", taints=taints), version=version)


def mark(key: str, value: str, effect: str, operator: str = "Equal") -> dict[str, str]:
    out = {"key": key, "value": value, "effect": effect}
    if operator == "Exists":
        del out["value"]
    return {**out, "operator": operator}


def taint(key: str, value: str, effect: str) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


NO, SOFT = "NoSchedule", "PreferNoSchedule"
TAINTS = [
    ("no tolerations", [taint("dedicated", "user1", NO)], [], False),
    ("tolerated", [taint("dedicated", "user1", NO)], [mark("dedicated", "user1", NO)], True),
    ("another value", [taint("dedicated", "user1", NO)], [mark("dedicated", "user2", NO)], False),
    ("Exists", [taint("foo", "bar", NO)], [mark("foo", "", NO, "Exists")], True),
    (
        "several, all tolerated",
        [taint("dedicated", "user2", NO), taint("foo", "bar", NO)],
        [mark("dedicated", "user2", NO), mark("foo", "", NO, "Exists")],
        True,
    ),
    ("another effect", [taint("foo", "bar", NO)], [mark("foo", "bar", SOFT)], False),
    ("no effect is every effect", [taint("foo", "bar", NO)], [mark("foo", "bar", "")], True),
    (
        "PreferNoSchedule is no rule",
        [taint("dedicated", "user1", SOFT)],
        [mark("dedicated", "user2", NO)],
        True,
    ),
    ("PreferNoSchedule without tolerations", [taint("dedicated", "user1", SOFT)], [], True),
    ("Gt below", [taint("sla", "800", NO)], [mark("sla", "950", NO, "Gt")], False),
    ("Gt above", [taint("sla", "950", NO)], [mark("sla", "750", NO, "Gt")], True),
    ("Lt above", [taint("sla", "950", NO)], [mark("sla", "800", NO, "Lt")], False),
    ("Lt below", [taint("sla", "800", NO)], [mark("sla", "950", NO, "Lt")], True),
    ("Gt of no number", [taint("sla", "high", NO)], [mark("sla", "950", NO, "Gt")], False),
]


@pytest.mark.parametrize("case", TAINTS, ids=[c[0] for c in TAINTS])
def test_taint_toleration(case: Any) -> None:
    _, taints, tolerations, passes = case
    assert (tolerated(taints, tolerations) == {}) == passes


def test_the_words_of_an_untolerated_taint_by_version() -> None:
    taints = [taint("a", "b", NO)]
    assert tolerated(taints, [], (1, 21)) == {
        "n": "node(s) had taint {a: b}, that the pod didn't tolerate"
    }
    assert tolerated(taints, [], (1, 30)) == {"n": "node(s) had untolerated taint {a: b}"}
    assert tolerated(taints, [], (1, 36)) == {"n": "node(s) had untolerated taint(s)"}


def requiring(*terms: list[dict[str, Any]], field: str = "matchExpressions") -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{field: t} for t in terms]}
    return pod(
        "p", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    )


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


AFFINITY = [
    ("missing label", pod("p", nodeSelector={"foo": "bar"}), {}, False),
    ("same labels", pod("p", nodeSelector={"foo": "bar"}), {"foo": "bar"}, True),
    (
        "node labels are a superset",
        pod("p", nodeSelector={"foo": "bar"}),
        {"foo": "bar", "baz": "blah"},
        True,
    ),
    (
        "node labels are a subset",
        pod("p", nodeSelector={"foo": "bar", "baz": "blah"}),
        {"foo": "bar"},
        False,
    ),
    ("In", requiring([expression("foo", "In", "bar", "value2")]), {"foo": "bar"}, True),
    (
        "Gt",
        requiring([expression("kernel-version", "Gt", "0204")]),
        {"kernel-version": "0206"},
        True,
    ),
    (
        "NotIn",
        requiring([expression("mem-type", "NotIn", "DDR", "DDR2")]),
        {"mem-type": "DDR3"},
        True,
    ),
    ("Exists", requiring([expression("GPU", "Exists")]), {"GPU": "NVIDIA-GRID-K1"}, True),
    ("no match", requiring([expression("foo", "In", "value1", "value2")]), {"foo": "bar"}, False),
    ("no terms match nothing", requiring(), {"foo": "bar"}, False),
    ("an empty term matches nothing", requiring([]), {"foo": "bar"}, False),
    ("no affinity", pod("p"), {}, True),
    (
        "several expressions, ANDed",
        requiring([expression("GPU", "Exists"), expression("GPU", "NotIn", "AMD", "INTER")]),
        {"GPU": "NVIDIA-GRID-K1"},
        True,
    ),
    (
        "several expressions, one fails",
        requiring([expression("GPU", "Exists"), expression("GPU", "In", "AMD", "INTER")]),
        {"GPU": "NVIDIA-GRID-K1"},
        False,
    ),
    (
        "several terms, ORed",
        requiring(
            [expression("foo", "In", "bar", "value2")], [expression("diffkey", "In", "wrong")]
        ),
        {"foo": "bar"},
        True,
    ),
    (
        "the name of the node",
        requiring([expression("metadata.name", "In", "n")], field="matchFields"),
        {},
        True,
    ),
    (
        "another node's name",
        requiring([expression("metadata.name", "In", "m")], field="matchFields"),
        {},
        False,
    ),
]


@pytest.mark.parametrize("case", AFFINITY, ids=[c[0] for c in AFFINITY])
def test_node_affinity(case: Any) -> None:
    _, wanted, labels, passes = case
    found = reasons(NodeAffinityFilter(), wanted, node("n", labels))
    why = {"n": "node(s) didn't match Pod's node affinity/selector"}
    assert found == ({} if passes else why)


def port(number: int, protocol: str = "TCP", address: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {"containerPort": 1, "hostPort": number, "protocol": protocol}
    return {**out, "hostIP": address} if address else out


def with_ports(name: str, *ports: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return pod(name, containers=[{"name": "c", "ports": list(ports)}], **rest)


PORTS = [
    ("nothing running", [port(8080, "UDP", "127.0.0.1")], [], True),
    ("another port", [port(8080, "UDP", "127.0.0.1")], [port(9090, "UDP", "127.0.0.1")], True),
    ("same UDP port", [port(8080, "UDP", "127.0.0.1")], [port(8080, "UDP", "127.0.0.1")], False),
    ("same TCP port", [port(8080, "TCP", "127.0.0.1")], [port(8080, "TCP", "127.0.0.1")], False),
    ("another address", [port(8080, "TCP", "127.0.0.1")], [port(8080, "TCP", "127.0.0.2")], True),
    ("another protocol", [port(8080, "UDP", "127.0.0.1")], [port(8080, "TCP", "127.0.0.1")], True),
    (
        "second of two",
        [port(8000, "UDP", "127.0.0.1"), port(8080, "UDP", "127.0.0.1")],
        [port(8080, "UDP", "127.0.0.1")],
        False,
    ),
    (
        "every address takes one",
        [port(8001, "TCP", "0.0.0.0")],
        [port(8001, "TCP", "127.0.0.1")],
        False,
    ),
    ("one takes every address", [port(8001, "TCP", "127.0.0.1")], [port(8001)], False),
    (
        "every address, another protocol",
        [port(8001, "UDP", "0.0.0.0")],
        [port(8001, "TCP", "127.0.0.1")],
        True,
    ),
]


@pytest.mark.parametrize("case", PORTS, ids=[c[0] for c in PORTS])
def test_node_ports(case: Any) -> None:
    _, wanted, held, passes = case
    found = reasons(
        PortsFilter(), with_ports("p", *wanted), node("n"), with_ports("old", *held, nodeName="n")
    )
    why = {"n": "node(s) didn't have free ports for the requested pod ports"}
    assert found == ({} if passes else why)


def test_node_name_and_cordon() -> None:
    named = pod("p", nodeName="m")
    assert reasons(NodeNameFilter(), named, node("n"), node("m")) == {
        "n": "node(s) didn't match the requested node name"
    }
    closed = node("n", unschedulable=True)
    why = {"n": "node(s) were unschedulable"}
    assert reasons(UnschedulableFilter(), pod("p"), closed) == why
    brave = mark("node.kubernetes.io/unschedulable", "", NO, "Exists")
    assert reasons(UnschedulableFilter(), pod("p", tolerations=[brave]), closed) == {}


FOO = {"matchExpressions": [expression("foo", "Exists")]}


def constrained(*spreads: tuple[int, str], **more: Any) -> dict[str, Any]:
    return pod(
        "p",
        labels={"foo": ""},
        topologySpreadConstraints=[
            {
                "maxSkew": skew,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": FOO,
                **more,
            }
            for skew, key in spreads
        ],
    )


def zoned() -> list[dict[str, Any]]:
    return [
        node(n, {"zone": z, "node": n})
        for n, z in (("a", "zone1"), ("b", "zone1"), ("x", "zone2"), ("y", "zone2"))
    ]


def holding(**counts: int) -> list[dict[str, Any]]:
    return [
        pod(f"{n}-{i}", labels={"foo": ""}, nodeName=n) for n, c in counts.items() for i in range(c)
    ]


SPREAD = [
    ("no existing pods", constrained((1, "zone")), {}, set()),
    ("3/3: all fit", constrained((1, "zone")), {"a": 2, "b": 1, "x": 0, "y": 3}, set()),
    (
        "2/1/0/3 on node: only the emptiest fits",
        constrained((1, "node")),
        {"a": 2, "b": 1, "y": 3},
        {"a", "b", "y"},
    ),
    ("1/2 on zone: zone1 fits", constrained((1, "zone")), {"a": 1, "x": 2}, {"x", "y"}),
    ("3/1 on zone, maxSkew 2", constrained((2, "zone")), {"a": 3, "x": 1}, {"a", "b"}),
    (
        "two constraints: 3/3 on zone, 2/1/0/3 on node",
        constrained((1, "zone"), (1, "node")),
        {"a": 2, "b": 1, "y": 3},
        {"a", "b", "y"},
    ),
    (
        "minDomains beyond the domains counts an empty one",
        constrained((1, "zone"), minDomains=3),
        {"a": 1, "x": 1},
        {"a", "b", "x", "y"},
    ),
]


@pytest.mark.parametrize("case", SPREAD, ids=[c[0] for c in SPREAD])
def test_pod_topology_spread(case: Any) -> None:
    _, wanted, counts, rejected = case
    found = reasons(SpreadFilter(), wanted, *zoned(), *holding(**counts))
    assert set(found) == rejected
    assert set(found.values()) <= {"node(s) didn't match pod topology spread constraints"}


def test_pod_topology_spread_needs_the_label() -> None:
    found = reasons(SpreadFilter(), constrained((1, "zone")), node("n", {"other": "x"}))
    words = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert found == {"n": words}


SERVICE_1 = {"matchExpressions": [expression("service", "In", "securityscan", "value2")]}
SERVICE_2 = {"matchExpressions": [expression("service", "NotIn", "securityscan3", "value3")]}
SCAN = {"service": "securityscan"}
REGION = {"region": "r1", "zone": "z11"}
NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"


def term(selector: dict[str, Any], key: str, **more: Any) -> dict[str, Any]:
    return {"labelSelector": selector, "topologyKey": key, **more}


def affine(near: list[Any] = (), far: list[Any] = (), **rest: Any) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {}
    if near:
        affinity["podAffinity"] = {required: near}
    if far:
        affinity["podAntiAffinity"] = {required: far}
    return pod(rest.pop("name", "p"), affinity=affinity, **rest)


INTERPOD = [
    ("no rules", pod("p"), [], ""),
    ("affinity In", affine([term(SERVICE_1, "region")]), [pod("o", labels=SCAN)], ""),
    ("affinity NotIn", affine([term(SERVICE_2, "region")]), [pod("o", labels=SCAN)], ""),
    (
        "another namespace",
        affine([term(SERVICE_1, "region", namespaces=["DiffNameSpace"])]),
        [pod("o", labels=SCAN, namespace="ns")],
        NEAR,
    ),
    (
        "unmatching selector",
        affine(
            [term({"matchExpressions": [expression("service", "In", "antivirusscan")]}, "region")]
        ),
        [pod("o", labels=SCAN)],
        NEAR,
    ),
    (
        "several terms, all match",
        affine(
            [
                term(
                    {
                        "matchExpressions": [
                            expression("service", "Exists"),
                            expression("wrongkey", "DoesNotExist"),
                        ]
                    },
                    "region",
                ),
                term(SERVICE_1, "region"),
            ]
        ),
        [pod("o", labels=SCAN)],
        "",
    ),
    (
        "several terms, one does not",
        affine(
            [
                term({"matchExpressions": [expression("service", "In", "nope")]}, "region"),
                term(SERVICE_1, "region"),
            ]
        ),
        [pod("o", labels=SCAN)],
        NEAR,
    ),
    (
        "affinity, and anti-affinity to another",
        affine(
            [term(SERVICE_1, "region")],
            [term({"matchExpressions": [expression("service", "In", "antivirusscan")]}, "node")],
        ),
        [pod("o", labels=SCAN)],
        "",
    ),
    (
        "affinity and anti-affinity to the same",
        affine([term(SERVICE_1, "region")], [term(SERVICE_1, "zone")]),
        [pod("o", labels=SCAN)],
        FAR,
    ),
    (
        "an existing pod's anti-affinity",
        pod("p", labels=SCAN),
        [affine(far=[term(SERVICE_1, "zone")], name="o", labels={"security": "S2"})],
        OTHERS,
    ),
    (
        "an existing pod's anti-affinity to others",
        pod("p", labels={"other": "x"}),
        [affine(far=[term(SERVICE_1, "zone")], name="o")],
        "",
    ),
    (
        "the first of a group may go anywhere",
        affine([term(SERVICE_1, "region")], labels=SCAN),
        [],
        "",
    ),
    (
        "the first of a group without the label",
        affine([term(SERVICE_1, "rack")], labels=SCAN),
        [],
        NEAR,
    ),
]


@pytest.mark.parametrize("case", INTERPOD, ids=[c[0] for c in INTERPOD])
def test_inter_pod_affinity(case: Any) -> None:
    _, wanted, existing, why = case
    for other in existing:
        other["spec"]["nodeName"] = "n"
    assert reasons(InterPodFilter(), wanted, node("n", REGION), *existing) == (
        {"n": why} if why else {}
    )
