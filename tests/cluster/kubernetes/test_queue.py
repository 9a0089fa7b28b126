"""The order of the queue, back-off, sampling of nodes, and what users plug in.

Upstream, as of 1.23: ``pkg/scheduler/generic_scheduler_test.go`` (TestNumFeasibleNodesToFind,
TestFairEvaluationForNodes), ``framework/plugins/queuesort/priority_sort_test.go`` (TestLess) and
``internal/queue/scheduling_queue_test.go`` (TestPriorityQueue_calculateBackoffDuration). The names
of the cases are the names upstream.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hagane.tools.cluster.kube.backoff import BackoffQueue, Waiting
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.placement import find_feasible, sample_size
from hagane.tools.cluster.kube.profile import default_profile
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node, Pod
from hagane.tools.cluster.state import Cluster, Ints
from tests.cluster.kubernetes.scoring import ids

SAMPLES = [
    ("not set percentageOfNodesToScore and nodes number not more than 50", 0, 10, 10),
    ("set percentageOfNodesToScore and nodes number not more than 50", 40, 10, 10),
    ("not set percentageOfNodesToScore and nodes number more than 50", 0, 1000, 420),
    ("set percentageOfNodesToScore and nodes number more than 50", 40, 1000, 400),
    ("not set percentageOfNodesToScore and nodes number more than 50*125", 0, 6000, 300),
    ("set percentageOfNodesToScore and nodes number more than 50*125", 40, 6000, 2400),
]


@pytest.mark.parametrize("case", SAMPLES, ids=ids(SAMPLES))
def test_num_feasible_nodes_to_find(case: tuple[str, int, int, int]) -> None:
    _, percentage, nodes, wanted = case
    assert sample_size(nodes, percentage) == wanted


def machines(count: int) -> Cluster:
    has = {"cpu": 1000, "memory": 1 << 30, "pods": 9}
    return Cluster([Node(f"n{i}", allocatable=has) for i in range(count)])


def test_fair_evaluation_for_nodes() -> None:
    """Every search begins where the last one ended, so that all nodes are looked at in turn."""
    cluster = machines(500)
    scheduler = KubeScheduler(replace(default_profile(), percentage=30))
    seen: set[int] = set()
    for turn in range(2 * (500 // 150 + 1)):
        cycle = Cycle(Pod("p"), cluster)
        rows = find_feasible(scheduler.profile, cycle, scheduler.start).rows
        assert rows.size == 150
        seen |= set(rows.tolist())
        scheduler.place(cycle)
        assert scheduler.start == (turn + 1) * 150 % 500
    assert seen == set(range(500))


# (name, priority and arrival of one, of the other, whether one is first)
LESS = [
    ("p1.priority less than p2.priority", (10, 0.0), (100, 0.0), False),
    ("p1.priority greater than p2.priority", (100, 0.0), (10, 0.0), True),
    (
        "equal priority. p1 is added to schedulingQ earlier than p2",
        (100, 1.0),
        (100, 2.0),
        True,
    ),
    (
        "equal priority. p2 is added to schedulingQ earlier than p1",
        (100, 2.0),
        (100, 1.0),
        False,
    ),
]


@pytest.mark.parametrize("case", LESS, ids=ids(LESS))
def test_less(case: tuple[str, tuple[int, float], tuple[int, float], bool]) -> None:
    _, one, other, expected = case
    entries = [
        Waiting(Pod(f"p{i}", priority=priority), added, i)
        for i, (priority, added) in enumerate((one, other))
    ]
    assert (entries[0] < entries[1]) == expected


# (name, largest, attempts); from one, the largest is reached
BACKOFF = [
    ("normal", 32.0, 16),
    ("overflow_32bit", float(2**31 - 1), 32),
    ("overflow_64bit", float(2**63 - 1), 64),
]


@pytest.mark.parametrize("case", BACKOFF, ids=ids(BACKOFF))
def test_calculate_backoff_duration(case: tuple[str, float, int]) -> None:
    _, largest, attempts = case
    entry = Waiting(Pod("p"), 0.0, 0)
    entry.attempts = attempts
    assert BackoffQueue(1.0, largest)._backoff(entry) == largest


def test_predicates_and_prioritizers_of_users_count() -> None:
    """Not upstream: what its framework calls out-of-tree plugins."""

    def odd(cycle: Cycle, rows: Ints) -> Ints:
        return rows[rows % 2 == 1]

    def last(cycle: Cycle, rows: Ints, totals: Ints) -> Ints:
        return totals + np.where(rows == rows.max(), 1000, 0)

    cluster = machines(6)
    assert KubeScheduler(extra_filters=(odd,)).place(Cycle(Pod("p"), cluster)) in (1, 3, 5)
    assert KubeScheduler(extra_scores=(last,)).place(Cycle(Pod("p"), cluster)) == 5
    both = KubeScheduler(extra_filters=(odd,), extra_scores=(last,))
    assert both.place(Cycle(Pod("p"), cluster)) == 5
    none = KubeScheduler(extra_filters=(lambda cycle, rows: rows[:0],))
    assert none.place(Cycle(Pod("p"), cluster)) is None
    assert none.why == "0/6 nodes: 6 other"
