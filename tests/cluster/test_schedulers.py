"""What each ready scheduler does with the same arrivals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.fragmentation import typical
from hagane.tools.cluster.kube.allocation import Strategy
from hagane.tools.cluster.kube.profile import default_profile
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import GpuShare, Node, Phase, Pod
from hagane.tools.cluster.model.read_pod import GPU_MILLI
from hagane.tools.cluster.schedulers.backfill import Backfill
from hagane.tools.cluster.schedulers.fair import Drf, Quota, Throttle, Throttled
from hagane.tools.cluster.schedulers.fgd import Fgd
from hagane.tools.cluster.schedulers.gang import Gang
from hagane.tools.cluster.schedulers.greedy import BestFit, Fifo, Greedy, ShortestRemaining
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, pod
from tests.cluster.running import bound, job, machines, simulate


def test_fifo_holds_up_the_queue_and_greedy_does_not() -> None:
    arrivals = [(0, job("a", 2)), (1, job("b", 3)), (2, job("c", 1))]
    assert bound(simulate(machines(3), Fifo(), *arrivals)[1]) == [(0, "a"), (10, "b"), (20, "c")]
    assert bound(simulate(machines(3), Greedy(), *arrivals)[1]) == [(0, "a"), (2, "c"), (12, "b")]


def test_backfill_goes_ahead_only_where_it_delays_nobody() -> None:
    arrivals = [
        (0, job("a", 2, 10)),
        (1, job("b", 3, 5)),
        (2, job("long", 1, 20)),
        (3, job("short", 1, 7)),
    ]
    assert bound(simulate(machines(3), Backfill(), *arrivals)[1]) == [
        (0, "a"),
        (3, "short"),
        (10, "b"),
        (15, "long"),
    ]


def test_shortest_remaining_serves_the_least_work_first() -> None:
    arrivals = [(0, job("x", seconds=5)), (1, job("long", seconds=9)), (2, job("s", seconds=1))]
    assert bound(simulate(machines(1), ShortestRemaining(), *arrivals)[1]) == [
        (0, "x"),
        (5, "s"),
        (6, "long"),
    ]


def test_a_gang_starts_together_or_not_at_all() -> None:
    gang = [job(f"g{i}", 1, group="g", min_member=3) for i in range(3)]
    arrivals = [(0, job("x", 2)), *((1, p) for p in gang)]
    log = bound(simulate(machines(2, 2), Gang(), *arrivals)[1])
    assert log == [(0, "x"), (10, "g0"), (10, "g1"), (10, "g2")]


COSCHEDULING = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 4, "scheduleTimeoutSeconds": 10},
}
VOLCANO = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 4, "queue": "default"},
}


@pytest.mark.parametrize(
    ("meta", "others"),
    [
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, []),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, [COSCHEDULING]),
        ({"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, [COSCHEDULING]),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, [VOLCANO]),
        (
            {
                "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "4"},
            },
            [],
        ),
    ],
    ids=["label alone", "coscheduling", "its first versions", "volcano", "kueue"],
)
def test_pods_that_name_a_group_start_together(
    meta: dict[str, Any], others: list[dict[str, Any]]
) -> None:
    seconds = {"hagane.dev/duration-seconds": "10"}
    meta = {**meta, "annotations": {**meta.get("annotations", {}), **seconds}}
    manifests = [pod(f"g{i}", {"cpu": "1"}, **meta) for i in range(4)]
    nodes = [node(name, has={"cpu": "2", "memory": "4Gi", "pods": 9}) for name in ("a", "b")]
    known = objects(*others, *nodes, *manifests)
    arrivals = [(0, job("x", 2)), *((1, p) for p in known.pods)]
    log = bound(simulate(Cluster.of(replace(known, pods=())), Gang(), *arrivals)[1])
    assert log == [(0, "x"), (10, "g0"), (10, "g1"), (10, "g2"), (10, "g3")]


def test_a_group_waits_until_as_many_pods_have_come_as_its_object_says() -> None:
    known = objects(COSCHEDULING, node("a"))
    arrivals = [(t, job(f"g{t}", 1, group="g")) for t in range(5)]
    log = bound(simulate(Cluster.of(known), Gang(), *arrivals)[1])
    assert log == [(3, "g0"), (3, "g1"), (3, "g2"), (3, "g3"), (4, "g4")]


def test_sizes_of_tasks_in_a_group_are_refused_by_name() -> None:
    group = {**VOLCANO, "spec": {"minMember": 2, "minTaskMember": {"worker": 2}}}
    message = r"minTaskMember: sizes of single tasks are not simulated: give each task a group of"
    with pytest.raises(InvalidManifest, match=message):
        objects(group)


def test_drf_serves_the_smallest_dominant_share_and_quotas_bind() -> None:
    def of(user: str, name: str, cpu: int, memory: int) -> Pod:
        return Pod(
            name,
            requests={"cpu": cpu * 1000, "memory": memory << 30},
            grace=0,
            phases=(Phase(100),),
            user=user,
        )

    # The example of the paper: 9 CPUs and 18 GB; A asks (1, 4), B asks (3, 1): 3 and 2 tasks.
    nodes = Cluster([Node("n", allocatable={"cpu": 9000, "memory": 18 << 30})])
    arrivals = [(0, of("A", f"a{i}", 1, 4)) for i in range(5)]
    arrivals += [(0, of("B", f"b{i}", 3, 1)) for i in range(5)]
    first = [p for t, p in bound(simulate(nodes, Drf(), *arrivals, until=50.0)[1]) if t == 0]
    assert sorted(p[0] for p in first) == ["a", "a", "a", "b", "b"]
    nodes = Cluster([Node("n", allocatable={"cpu": 9000, "memory": 18 << 30})])
    limited = Drf({"A": Quota({"cpu": 1000}, borrow=False)})
    first = [p for t, p in bound(simulate(nodes, limited, *arrivals, until=50.0)[1]) if t == 0]
    assert sorted(p[0] for p in first) == ["a", "b", "b"]


def test_a_throttle_limits_what_matching_pods_hold() -> None:
    rule = (
        objects(
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "b"},
                "spec": {"selector": {"matchLabels": {"team": "x"}}},
            }
        )
        .budgets[0]
        .selector
    )
    assert rule is not None
    throttle = Throttled((Throttle("t", rule, {"cpu": 2000}),))
    arrivals = [(0, job(f"a{i}", labels={"team": "x"})) for i in range(3)] + [(0, job("b"))]
    assert bound(simulate(machines(4), throttle, *arrivals)[1]) == [
        (0, "a0"),
        (0, "a1"),
        (0, "b"),
        (10, "a2"),
    ]


def test_best_fit_fills_the_fuller_node() -> None:
    _, log = simulate(machines(8, 2), BestFit(), (0, job("a")), (0, job("b")), (0, job("c")))
    assert [n for _, k, _, n in log if k == "bind"] == ["n1", "n1", "n0"]


def test_most_allocated_packs_where_least_allocated_spreads() -> None:
    arrivals = [(0, job(f"p{i}", seconds=50)) for i in range(3)]
    used = {}
    for kind in ("LeastAllocated", "MostAllocated"):
        profile = default_profile(strategy=Strategy(kind))
        _, log = simulate(machines(4, 4, 4), KubeScheduler(profile), *arrivals)
        used[kind] = len({n for _, k, _, n in log if k == "bind"})
    assert used == {"LeastAllocated": 3, "MostAllocated": 1}


def test_gradient_descent_gives_ties_to_the_first_name() -> None:
    share = GpuShare(1, 500)
    has = {"cpu": 8000, "memory": 1 << 30, GPU_MILLI: 2000, "pods": 9}
    nodes = [Node(n, allocatable=has, devices=2) for n in ("c", "a", "b")]
    pods = [job(f"p{i}", seconds=100.0, gpu=share) for i in range(5)]
    arrivals = [(float(i), p) for i, p in enumerate(pods)]
    _, log = simulate(Cluster(nodes), Fgd(typical(pods)), *arrivals)
    # Nothing is fragmented as long as halves fit everywhere, so the first name fills up.
    assert [n for _, k, _, n in log if k == "bind"] == ["a", "a", "a", "a", "b"]
