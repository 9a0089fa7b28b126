"""Filters by a node's taints, labels, ports, name and cordon.

Upstream: ``pkg/scheduler/framework/plugins``: ``tainttoleration/taint_toleration_test.go``,
``nodeaffinity/node_affinity_test.go``, ``nodeports/node_ports_test.go``,
``nodename/node_name_test.go``, ``nodeunschedulable/node_unschedulable_test.go``, as of 1.23. Every
table is one Go test; the names of its cases are the names upstream, shortened.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.nodes import (
    NodeAffinityFilter,
    NodeNameFilter,
    PortsFilter,
    TaintFilter,
    UnschedulableFilter,
)
from tests.cluster.kubernetes.scoring import expression, ids, reasons
from tests.cluster.manifests import node, one, pod

NO, SOFT = "NoSchedule", "PreferNoSchedule"


def taint(key: str, value: str, effect: str = NO) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerate(key: str, operator: str, value: str, effect: str = "") -> dict[str, str]:
    out = {"key": key, "operator": operator, "value": value, "effect": effect}
    return {name: text for name, text in out.items() if text}


USER1, FOO = taint("dedicated", "user1"), taint("foo", "bar")
FOR_USER2 = tolerate("dedicated", "Equal", "user2", NO)
ANY_FOO = tolerate("foo", "Exists", "", NO)
# TestTaintTolerationFilter: (name, tolerations, taints, the taint that is not tolerated)
TAINTS: list[Any] = [
    ("A pod having no tolerations can't be scheduled onto a node", [], [USER1], USER1),
    (
        "A pod which can be scheduled on a dedicated node assigned to user1",
        [{"key": "dedicated", "value": "user1", "effect": NO}],
        [USER1],
        None,
    ),
    (
        "A pod which can't be scheduled on a dedicated node assigned to user2",
        [FOR_USER2],
        [USER1],
        USER1,
    ),
    (
        "A pod can be scheduled onto the node, with a toleration uses operator Exists",
        [ANY_FOO],
        [FOO],
        None,
    ),
    (
        "A pod has multiple tolerations, node has multiple taints",
        [FOR_USER2, ANY_FOO],
        [taint("dedicated", "user2"), FOO],
        None,
    ),
    (
        "A pod has a toleration that keys and values match the taint, but effect doesn't match",
        [tolerate("foo", "Equal", "bar", SOFT)],
        [FOO],
        FOO,
    ),
    (
        "The pod has a toleration that keys and values match, the effect of toleration is empty",
        [tolerate("foo", "Equal", "bar")],
        [FOO],
        None,
    ),
    (
        "The pod has a toleration that key and value don't match, but effect PreferNoSchedule",
        [FOR_USER2],
        [taint("dedicated", "user1", SOFT)],
        None,
    ),
    (
        "The pod has no toleration, but the effect of taint on node is PreferNoSchedule",
        [],
        [taint("dedicated", "user1", SOFT)],
        None,
    ),
]


@pytest.mark.parametrize("version", [(1, 23), (1, 34), (1, 35)])
@pytest.mark.parametrize("case", TAINTS, ids=ids(TAINTS))
def test_taint_toleration(case: Any, version: tuple[int, int]) -> None:
    _, tolerations, taints, left = case
    wanted = pod("p", tolerations=tolerations)
    found = reasons(TaintFilter(), wanted, node("n", taints=taints), version=version)
    if left is None:
        assert found == {}
        return
    mark = f"{{{left['key']}: {left['value']}}}"
    # The words of 1.20 and 1.23; those of 1.26 to 1.34; those of 1.35 (pull request 134740).
    words = {
        (1, 23): f"node(s) had taint {mark}, that the pod didn't tolerate",
        (1, 34): f"node(s) had untolerated taint {mark}",
        (1, 35): "node(s) had untolerated taint(s)",
    }
    assert found == {"n": words[version]}


# Not unit tests upstream that we know: the rules of Kubernetes' documentation of 1.35.
@pytest.mark.parametrize(
    ("value", "operator", "bound", "passes"),
    [
        ("800", "Gt", "950", False),
        ("950", "Gt", "900", True),
        ("950", "Lt", "800", False),
        ("800", "Lt", "950", True),
        ("900", "Gt", "900", False),
        ("high", "Gt", "950", False),
        ("0950", "Gt", "900", False),
    ],
)
def test_a_toleration_compares_numbers(value: str, operator: str, bound: str, passes: bool) -> None:
    wanted = pod("p", tolerations=[tolerate("sla", operator, bound, NO)])
    found = reasons(TaintFilter(), wanted, node("n", taints=[taint("sla", value)]))
    assert (found == {}) == passes


def either(*terms: dict[str, Any], **rest: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod("p", affinity=affinity, **rest)


def requiring(*terms: list[Any], **rest: Any) -> dict[str, Any]:
    return either(*({"matchExpressions": t} for t in terms), **rest)


def named(name: str) -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", "In", name)]}


SELECT, BAR = pod("p", nodeSelector={"foo": "bar"}), {"foo": "bar"}
IS_BAR, HAS_FOO = expression("foo", "In", "bar"), expression("foo", "Exists")
GRID, HAS_GPU = {"GPU": "NVIDIA-GRID-K1"}, expression("GPU", "Exists")
BOTH_TERMS = [named("node_1"), {"matchExpressions": [IS_BAR]}]

# TestNodeAffinity: (name, pod, labels, name of the node, whether it passes)
AFFINITY: list[Any] = [
    ("no selector", pod("p"), {}, "n", True),
    ("missing labels", SELECT, {}, "n", False),
    ("same labels", SELECT, BAR, "n", True),
    ("node labels are superset", SELECT, {**BAR, "baz": "blah"}, "n", True),
    (
        "node labels are subset",
        pod("p", nodeSelector={"foo": "bar", "baz": "blah"}),
        BAR,
        "n",
        False,
    ),
    (
        "Pod with matchExpressions using In operator that matches the existing node",
        requiring([expression("foo", "In", "bar", "value2")]),
        BAR,
        "n",
        True,
    ),
    (
        "Pod with matchExpressions using Gt operator that matches the existing node",
        requiring([expression("kernel-version", "Gt", "0204")]),
        {"kernel-version": "0206"},
        "n",
        True,
    ),
    (
        "Pod with matchExpressions using NotIn operator that matches the existing node",
        requiring([expression("mem-type", "NotIn", "DDR", "DDR2")]),
        {"mem-type": "DDR3"},
        "n",
        True,
    ),
    (
        "Pod with matchExpressions using Exists operator that matches the existing node",
        requiring([HAS_GPU]),
        GRID,
        "n",
        True,
    ),
    (
        "Pod with affinity that don't match node's labels won't schedule onto the node",
        requiring([expression("foo", "In", "value1", "value2")]),
        BAR,
        "n",
        False,
    ),
    (
        "Pod with an empty []NodeSelectorTerm in affinity, can't match the node's labels",
        requiring(),
        BAR,
        "n",
        False,
    ),
    (
        "Pod with empty MatchExpressions is not a valid value will match no objects",
        requiring([]),
        BAR,
        "n",
        False,
    ),
    ("Pod with no Affinity will schedule onto a node", pod("p"), BAR, "n", True),
    (
        "Pod with Affinity but nil NodeSelector will schedule onto a node",
        pod("p", affinity={"nodeAffinity": {}}),
        BAR,
        "n",
        True,
    ),
    (
        "Pod with multiple matchExpressions ANDed that matches the existing node",
        requiring([HAS_GPU, expression("GPU", "NotIn", "AMD", "INTER")]),
        GRID,
        "n",
        True,
    ),
    (
        "Pod with multiple matchExpressions ANDed that doesn't match the existing node",
        requiring([HAS_GPU, expression("GPU", "In", "AMD", "INTER")]),
        GRID,
        "n",
        False,
    ),
    (
        "Pod with multiple NodeSelectorTerms ORed in affinity, matches the node's labels",
        requiring(
            [expression("foo", "In", "bar", "value2")],
            [expression("diffkey", "In", "wrong", "value2")],
        ),
        BAR,
        "n",
        True,
    ),
    (
        "Pod with an Affinity and a PodSpec.NodeSelector both are satisfied",
        requiring([HAS_FOO], nodeSelector={"foo": "bar"}),
        BAR,
        "n",
        True,
    ),
    (
        "Pod with an Affinity matches node's labels but the PodSpec.NodeSelector is not satisfied",
        requiring([HAS_FOO], nodeSelector={"foo": "bar"}),
        {"foo": "barrrrrr"},
        "n",
        False,
    ),
    (
        "Pod with matchFields using In operator that matches the existing node",
        either(named("node_1")),
        {},
        "node_1",
        True,
    ),
    (
        "Pod with matchFields using In operator that does not match the existing node",
        either(named("node_1")),
        {},
        "node_2",
        False,
    ),
    (
        "Pod with two terms: matchFields does not match, but matchExpressions matches",
        either(*BOTH_TERMS),
        BAR,
        "node_2",
        True,
    ),
    (
        "Pod with one term: matchFields does not match, but matchExpressions matches",
        either({**BOTH_TERMS[0], **BOTH_TERMS[1]}),
        BAR,
        "node_2",
        False,
    ),
    (
        "Pod with one term: both matchFields and matchExpressions match",
        either({**BOTH_TERMS[0], **BOTH_TERMS[1]}),
        BAR,
        "node_1",
        True,
    ),
    (
        "Pod with two terms: both matchFields and matchExpressions do not match",
        either(named("node_1"), {"matchExpressions": [expression("foo", "In", "not-match")]}),
        BAR,
        "node_2",
        False,
    ),
]


@pytest.mark.parametrize("case", AFFINITY, ids=ids(AFFINITY))
def test_node_affinity(case: Any) -> None:
    _, wanted, labels, name, passes = case
    found = reasons(NodeAffinityFilter(), wanted, node(name, labels))
    why = {name: "node(s) didn't match Pod's node affinity/selector"}
    assert found == ({} if passes else why)


# TestNodeAffinity, with affinity that the profile adds: (name, zone wanted, added term, reason)
IN_BAR = {"matchExpressions": [expression("zone", "In", "bar")]}
ADDED = [
    ("Matches added affinity and Pod's node affinity", "foo", named("node_2"), ""),
    (
        "Matches added affinity but not Pod's node affinity",
        "bar",
        named("node_2"),
        "node(s) didn't match Pod's node affinity/selector",
    ),
    (
        "Doesn't match added affinity",
        None,
        IN_BAR,
        "node(s) didn't match scheduler-enforced node affinity",
    ),
]


@pytest.mark.parametrize("case", ADDED, ids=ids(ADDED))
def test_added_affinity(case: Any) -> None:
    _, zone, term, expected = case
    wanted = requiring([expression("zone", "In", zone)]) if zone else pod("p")
    rule = NodeAffinityFilter(one(either(term)).node_affinity)
    found = reasons(rule, wanted, node("node_2", {"zone": "foo"}))
    assert found == ({"node_2": expected} if expected else {})


def with_ports(name: str, *ports: str, **rest: Any) -> dict[str, Any]:
    """Return a pod of host ports such as ``UDP/127.0.0.1/8080``, as upstream writes them."""
    opened = []
    for port in ports:
        protocol, address, number = port.split("/")
        opened.append(
            {
                "containerPort": 1,
                "hostPort": int(number),
                "protocol": protocol,
                "hostIP": address,
            }
        )
    return pod(name, containers=[{"name": "c", "ports": opened}], **rest)


UDP, TCP = "UDP/127.0.0.1/8080", "TCP/127.0.0.1/8080"
# TestNodePorts: (name, wanted, held, whether it passes)
PORTS: list[tuple[str, list[str], list[str], bool]] = [
    ("nothing running", [], [], True),
    ("other port", [UDP], ["UDP/127.0.0.1/9090"], True),
    ("same udp port", [UDP], [UDP], False),
    ("same tcp port", [TCP], [TCP], False),
    ("different host ip", [TCP], ["TCP/127.0.0.2/8080"], True),
    ("different protocol", [UDP], [TCP], True),
    ("second udp port conflict", ["UDP/127.0.0.1/8000", UDP], [UDP], False),
    (
        "first tcp port conflict",
        ["TCP/127.0.0.1/8001", UDP],
        ["TCP/127.0.0.1/8001", "UDP/127.0.0.1/8081"],
        False,
    ),
    (
        "first tcp port conflict due to 0.0.0.0 hostIP",
        ["TCP/0.0.0.0/8001"],
        ["TCP/127.0.0.1/8001"],
        False,
    ),
    (
        "TCP hostPort conflict due to 0.0.0.0 hostIP",
        ["TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"],
        ["TCP/127.0.0.1/8001"],
        False,
    ),
    (
        "second tcp port conflict to 0.0.0.0 hostIP",
        ["TCP/127.0.0.1/8001"],
        ["TCP/0.0.0.0/8001"],
        False,
    ),
    ("second different protocol", ["UDP/127.0.0.1/8001"], ["TCP/0.0.0.0/8001"], True),
    (
        "UDP hostPort conflict due to 0.0.0.0 hostIP",
        ["UDP/127.0.0.1/8001"],
        ["TCP/0.0.0.0/8001", "UDP/0.0.0.0/8001"],
        False,
    ),
]


@pytest.mark.parametrize("case", PORTS, ids=ids(PORTS))
def test_node_ports(case: Any) -> None:
    _, wanted, held, passes = case
    others = [with_ports("old", *held, nodeName="n")] if held else []
    found = reasons(PortsFilter(), with_ports("p", *wanted), node("n"), *others)
    why = {"n": "node(s) didn't have free ports for the requested pod ports"}
    assert found == ({} if passes else why)


# TestNodeName: (name, the node that the pod names, whether it passes)
NAMES = [
    ("no host specified", "", True),
    ("host matches", "foo", True),
    ("host doesn't match", "bar", False),
]


@pytest.mark.parametrize("case", NAMES, ids=ids(NAMES))
def test_node_name(case: Any) -> None:
    _, name, passes = case
    wanted = pod("p", **({"nodeName": name} if name else {}))
    found = reasons(NodeNameFilter(), wanted, node("foo"))
    assert found == ({} if passes else {"foo": "node(s) didn't match the requested node name"})


# TestNodeUnschedulable: (name, tolerations, cordoned, whether it passes)
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": NO}
CORDONED: list[Any] = [
    ("Does not schedule pod to unschedulable node", [], True, False),
    ("Schedule pod to normal node", [], False, True),
    ("Schedule pod with toleration to unschedulable node", [CORDON], True, True),
]


@pytest.mark.parametrize("case", CORDONED, ids=ids(CORDONED))
def test_node_unschedulable(case: Any) -> None:
    _, tolerations, cordoned, passes = case
    wanted = pod("p", tolerations=tolerations)
    found = reasons(UnschedulableFilter(), wanted, node("n", unschedulable=cordoned))
    assert found == ({} if passes else {"n": "node(s) were unschedulable"})
