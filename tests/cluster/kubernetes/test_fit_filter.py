"""NodeResourcesFit as a filter.

Upstream: ``pkg/scheduler/framework/plugins/noderesources/fit_test.go`` as of 1.23. Every table is
one Go test; the names of its cases are the names upstream.
"""

from __future__ import annotations

from typing import Any

import pytest

from hagane.tools.cluster.kube.fit import FitFilter
from tests.cluster.kubernetes.scoring import ids, reasons
from tests.cluster.manifests import node, pod

A, B = "example.com/aaa", "example.com/bbb"
IO_A, IO_B, HUGE = "kubernetes.io/something", "subdomain.kubernetes.io/something", "hugepages-2Mi"
CPU, MEMORY, STORAGE = "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"
LIMITED = f"Insufficient {A}"


def use(cpu: int = 0, memory: int = 0, **more: object) -> dict[str, Any]:
    return {"cpu": f"{cpu}m", "memory": str(memory), **more}


def wanting(*requests: dict[str, Any], first: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return a pod of containers and of init containers."""
    init = [{"name": f"i{n}", "resources": {"requests": r}} for n, r in enumerate(first)]
    return pod("p", *requests, initContainers=init)


ONE, NONE = use(1, 1), use()
# TestEnoughRequests: (name, pod, what the node's pod uses, reasons)
ENOUGH: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [
    ("no resources requested always fits", pod("p"), use(10, 20), []),
    ("too many resources fails", wanting(ONE), use(10, 20), [CPU, MEMORY]),
    (
        "too many resources fails due to init container cpu",
        wanting(ONE, first=(use(3, 1),)),
        use(8, 19),
        [CPU],
    ),
    (
        "too many resources fails due to highest init container cpu",
        wanting(ONE, first=(use(3, 1), use(2, 1))),
        use(8, 19),
        [CPU],
    ),
    (
        "too many resources fails due to init container memory",
        wanting(ONE, first=(use(1, 3),)),
        use(9, 19),
        [MEMORY],
    ),
    (
        "too many resources fails due to highest init container memory",
        wanting(ONE, first=(use(1, 3), use(1, 2))),
        use(9, 19),
        [MEMORY],
    ),
    (
        "init container fits because it's the max, not sum, of containers and init containers",
        wanting(ONE, first=(ONE,)),
        use(9, 19),
        [],
    ),
    (
        "multiple init containers fit because it's the max, not sum, of containers",
        wanting(ONE, first=(ONE, ONE)),
        use(9, 19),
        [],
    ),
    ("both resources fit", wanting(ONE), use(5, 5), []),
    ("one resource memory fits", wanting(use(2, 1)), use(9, 5), [CPU]),
    ("one resource cpu fits", wanting(use(1, 2)), use(5, 19), [MEMORY]),
    ("equal edge case", wanting(use(5, 1)), use(5, 19), []),
    (
        "equal edge case for init container",
        wanting(use(4, 1), first=(use(5, 1),)),
        use(5, 19),
        [],
    ),
    ("extended resource fits", wanting(use(**{A: 1})), NONE, []),
    ("extended resource fits for init container", wanting(NONE, first=(use(**{A: 1}),)), NONE, []),
    ("extended resource capacity enforced", wanting(use(1, 1, **{A: 10})), NONE, [LIMITED]),
    (
        "extended resource capacity enforced for init container",
        wanting(NONE, first=(use(1, 1, **{A: 10}),)),
        NONE,
        [LIMITED],
    ),
    (
        "extended resource allocatable enforced",
        wanting(use(1, 1, **{A: 1})),
        use(**{A: 5}),
        [LIMITED],
    ),
    (
        "extended resource allocatable enforced for init container",
        wanting(NONE, first=(use(1, 1, **{A: 1}),)),
        use(**{A: 5}),
        [LIMITED],
    ),
    (
        "extended resource allocatable enforced for multiple containers",
        wanting(use(1, 1, **{A: 3}), use(1, 1, **{A: 3})),
        use(**{A: 2}),
        [LIMITED],
    ),
    (
        "extended resource allocatable admits multiple init containers",
        wanting(NONE, first=(use(1, 1, **{A: 3}), use(1, 1, **{A: 3}))),
        use(**{A: 2}),
        [],
    ),
    (
        "extended resource allocatable enforced for multiple init containers",
        wanting(NONE, first=(use(1, 1, **{A: 6}), use(1, 1, **{A: 3}))),
        use(**{A: 2}),
        [LIMITED],
    ),
    (
        "extended resource allocatable enforced for unknown resource",
        wanting(use(1, 1, **{B: 1})),
        NONE,
        [f"Insufficient {B}"],
    ),
    (
        "extended resource allocatable enforced for unknown resource for init container",
        wanting(NONE, first=(use(1, 1, **{B: 1}),)),
        NONE,
        [f"Insufficient {B}"],
    ),
    (
        "kubernetes.io resource capacity enforced",
        wanting(use(1, 1, **{IO_A: 10})),
        NONE,
        [f"Insufficient {IO_A}"],
    ),
    (
        "kubernetes.io resource capacity enforced for init container",
        wanting(NONE, first=(use(1, 1, **{IO_B: 10}),)),
        NONE,
        [f"Insufficient {IO_B}"],
    ),
    (
        "hugepages resource capacity enforced",
        wanting(use(1, 1, **{HUGE: 10})),
        NONE,
        [f"Insufficient {HUGE}"],
    ),
    (
        "hugepages resource capacity enforced for init container",
        wanting(NONE, first=(use(1, 1, **{HUGE: 10}),)),
        NONE,
        [f"Insufficient {HUGE}"],
    ),
    (
        "hugepages resource allocatable enforced for multiple containers",
        wanting(use(1, 1, **{HUGE: 3}), use(1, 1, **{HUGE: 3})),
        use(**{HUGE: 2}),
        [f"Insufficient {HUGE}"],
    ),
    ("resources + pod overhead fits", pod("p", ONE, overhead=use(3, 13)), use(5, 5), []),
    (
        "requests + overhead does not fit for memory",
        pod("p", ONE, overhead=use(1, 15)),
        use(5, 5),
        [MEMORY],
    ),
]


def machine(pods: int, **more: object) -> dict[str, Any]:
    return node("n", has={"cpu": "10m", "memory": "20", "pods": str(pods), **more})


LARGE = machine(32, **{A: 5, "ephemeral-storage": 20, HUGE: 5})


@pytest.mark.parametrize("case", ENOUGH, ids=ids(ENOUGH))
def test_enough_requests(case: Any) -> None:
    _, wanted, used, expected = case
    found = reasons(FitFilter(), wanted, LARGE, pod("old", used, nodeName="n"))
    assert found == ({"n": ", ".join(expected)} if expected else {})


def test_skip_checking_ignored_extended_resource() -> None:
    wanted = wanting(use(1, 1, **{B: 1}))
    assert reasons(FitFilter([B]), wanted, LARGE, pod("old", NONE, nodeName="n")) == {}


def test_skip_checking_ignored_extended_resource_via_resource_groups() -> None:
    wanted = wanting(use(1, 1, **{B: 1, IO_A: 1}))
    found = reasons(FitFilter([], ["example.com"]), wanted, LARGE, pod("old", NONE, nodeName="n"))
    assert found == {"n": f"Insufficient {IO_A}"}


# TestNotEnoughRequests; upstream looks at "Too many pods" alone in all four, as nothing else fails
NOT_ENOUGH = [
    (
        "even without specified resources predicate fails when there's no space",
        pod("p"),
        use(10, 20),
    ),
    ("even if both resources fit predicate fails when there's no space", wanting(ONE), use(5, 5)),
    (
        "even for equal edge case predicate fails when there's no space for additional pod",
        wanting(use(5, 1)),
        use(5, 19),
    ),
    (
        "even for equal edge case … for additional pod due to init container",
        wanting(use(5, 1), first=(use(5, 1),)),
        use(5, 19),
    ),
]


@pytest.mark.parametrize("case", NOT_ENOUGH, ids=ids(NOT_ENOUGH))
def test_not_enough_requests(case: Any) -> None:
    _, wanted, used = case
    found = reasons(FitFilter(), wanted, machine(1), pod("old", used, nodeName="n"))
    assert found == {"n": "Too many pods"}


# TestStorageRequests, but for the case that turns a feature off
STORED = [
    ("due to container scratch disk", wanting(ONE), use(10, 10), CPU),
    ("pod fit", wanting(ONE), use(2, 10), ""),
    (
        "storage ephemeral local storage request exceeds allocatable",
        wanting(use(**{"ephemeral-storage": 25})),
        use(2, 2),
        STORAGE,
    ),
    ("pod fits", wanting(use(**{"ephemeral-storage": 10})), use(2, 2), ""),
]


@pytest.mark.parametrize("case", STORED, ids=ids(STORED))
def test_storage_requests(case: Any) -> None:
    _, wanted, used, expected = case
    found = reasons(FitFilter(), wanted, LARGE, pod("old", used, nodeName="n"))
    assert found == ({"n": expected} if expected else {})


def test_a_sidecar_adds_to_containers() -> None:
    """Not upstream in this form: restartable init containers count beside containers."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": use(4, 1)}}
    wanted = pod("p", ONE, initContainers=[sidecar])
    found = reasons(FitFilter(), wanted, LARGE, pod("old", use(6, 1), nodeName="n"))
    assert found == {"n": CPU}
