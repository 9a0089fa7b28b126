"""Time, the life of pods, the rules a scheduler must keep."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.events import EventLog
from hagane.tools.cluster.errors import InvalidManifest, SchedulerFault
from hagane.tools.cluster.kube.profile import default_profile
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Phase, Pod
from hagane.tools.cluster.schedulers.backfill import Backfill
from hagane.tools.cluster.schedulers.greedy import BestFit, Greedy
from hagane.tools.cluster.schedulers.guard import Guarded
from hagane.tools.cluster.sim.actions import Bind, Delete, Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.config import load_config
from hagane.tools.cluster.sim.ports import Metrics, Queue, Scheduler, Submitter
from hagane.tools.cluster.sim.setup import prepare
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.manifests import node, objects, one, pod
from tests.cluster.running import job, machines, simulate


def test_a_pod_waits_runs_for_its_duration_and_leaves() -> None:
    sim, log = simulate(machines(1), KubeScheduler(), (0, job("a")), (3, job("b")))
    assert log == [
        (0, "bind", "a", "n0"),
        (10, "finish", "a", "n0"),
        (10, "bind", "b", "n0"),
        (20, "finish", "b", "n0"),
    ]
    summary = sim.summary()
    assert summary["utilisation"] == {"gpu": 0.0, "cpu": 1.0, "memory": 0.0}
    assert summary["waiting_seconds"]["max"] == 7  # type: ignore[index]
    assert summary["queue_length"] == {"mean": 7 / 20, "max": 1}


def test_in_ticks_everything_happens_at_their_multiples() -> None:
    _, log = simulate(
        machines(1), KubeScheduler(), (0, job("a", seconds=13)), (4, job("b")), tick=10.0
    )
    assert log == [
        (0, "bind", "a", "n0"),
        (13, "finish", "a", "n0"),
        (20, "bind", "b", "n0"),
        (30, "finish", "b", "n0"),
    ]


def test_the_back_off_doubles_from_one_second_to_ten() -> None:
    scheduler = KubeScheduler()
    queue = scheduler.backoff
    queue.add(job("a"), 0.0)
    now, waits = 0.0, []
    for _ in range(6):
        entry = queue.pop(now)
        assert entry is not None
        queue.fail(entry, now)
        queue.wake_all(now)
        assert queue.pop(now) is None
        ready = queue.next_time()
        assert ready is not None
        waits.append(ready - now)
        now = ready
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_more_important_pod_preempts_and_its_victim_waits_again() -> None:
    sim, log = simulate(
        machines(1),
        KubeScheduler(),
        (0, job("low", seconds=100, grace=5)),
        (10, job("high", priority=5)),
    )
    assert log == [
        (0, "bind", "low", "n0"),
        (10, "evict", "low", "n0"),
        (15, "remove", "low", "n0"),
        (15, "bind", "high", "n0"),
        (25, "finish", "high", "n0"),
        (25, "bind", "low", "n0"),
        (125, "finish", "low", "n0"),
    ]
    assert sim.books.counts["preempted"] == 1
    assert sim.books.lost_seconds == 15


def test_a_checkpoint_saves_the_work_up_to_it() -> None:
    sim, log = simulate(
        machines(1),
        KubeScheduler(),
        (0, job("low", seconds=100, checkpoint=4.0)),
        (10, job("high", priority=5)),
    )
    assert sim.books.lost_seconds == 2
    # The preemptor backs off for a second before it takes the room it has made.
    assert log[-1] == (11 + 10 + 92, "finish", "low", "n0")


def test_nominated_room_is_kept_from_less_important_pods() -> None:
    _, log = simulate(
        machines(2),
        KubeScheduler(),
        (0, job("low", 2, 100, grace=20)),
        (10, job("high", 2, priority=5)),
        (12, job("small", 1, priority=1)),
    )
    binds = [(t, p) for t, k, p, _ in log if k == "bind"]
    assert binds[:3] == [(0, "low"), (30, "high"), (40, "small")]


def test_using_more_than_a_node_has_fails_the_pod() -> None:
    greedy = Pod(
        "greedy",
        requests={"cpu": 1000},
        grace=0,
        phases=(Phase(5, {"cpu": 500}), Phase(5, {"cpu": 9000})),
    )
    sim, log = simulate(machines(2), KubeScheduler(), (0, greedy))
    assert log[-1] == (5, "fail", "greedy", "n0")
    assert sim.books.counts["failed"] == 1


class Script(Scheduler):
    """Binds what it is told to, whatever the rules say."""

    name = "script"

    def __init__(self, *binds: tuple[str, str]):
        self.binds = binds

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> list[Bind]:
        return [Bind(f"default/{p}", n) for p, n in self.binds]


@pytest.mark.parametrize(
    ("binds", "message"),
    [
        (
            [("a", "nowhere")],
            r"pod 'default/a' to node 'nowhere', which does not exist .rule: a "
            r"pod is bound to a node of the cluster",
        ),
        (
            [("a", "n0"), ("a", "n0")],
            r"'default/a' to node 'n0', but it is bound to 'n0' already "
            r".rule: a pod is bound once",
        ),
        (
            [("a", "n0"), ("b", "n0")],
            r"pod 'default/b' to node 'n0', which is full: cpu: 1000 "
            r"requested, 0 free .rule: a node's pods request at most",
        ),
        ([("ghost", "n0")], r"pod 'default/ghost', which is not pending"),
    ],
)
def test_a_scheduler_that_breaks_a_rule_is_named_and_the_log_is_intact(
    tmp_path: Path, binds: list[tuple[str, str]], message: str
) -> None:
    path = tmp_path / "log"
    with EventLog(path) as log, pytest.raises(SchedulerFault, match=message):
        Simulation(
            machines(1), Script(*binds), [Replay([(0, job("a")), (0, job("b"))])], log=log
        ).run()
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds[:2] == ["submit", "submit"]
    assert kinds[-1] == "fault"
    assert kinds.count("bind") == len(binds) - 1


def test_a_scheduler_that_hangs_is_stopped() -> None:
    class Hang(Scheduler):
        name = "hang"

        def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> list[Bind]:
            while True:
                time.monotonic()

    with pytest.raises(SchedulerFault, match=r"scheduler 'hang' did not answer within 0.05 s"):
        simulate(machines(1), Guarded(Hang(), 0.05), (0, job("a")))


def test_a_duplicate_pod_is_named() -> None:
    with pytest.raises(InvalidManifest, match="duplicate pod 'default/a'"):
        simulate(machines(1), KubeScheduler(), (0, job("a")), (1, job("a")))


class Reacting(Submitter):
    """Looks at the metrics, deletes, and ends."""

    name = "reacting"

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        self.seen.append((clock, metrics["Queue"]["PendingPodsNum"]))
        if clock == 0:
            yield Submit(job("a", seconds=None))
            yield Submit(job("b", seconds=None))
        elif clock == 20:
            yield Delete("default/b")
            yield Delete("default/a")
            yield Terminate()


def test_a_submitter_reacts_to_metrics_and_deletes() -> None:
    submitter = Reacting()
    _, log = simulate(machines(1), KubeScheduler(), submitters=(submitter,), poll=10.0)
    assert submitter.seen == [(0, 0), (10, 1), (20, 1)]
    assert log == [
        (0, "bind", "a", "n0"),
        (20, "delete", "b", ""),
        (20, "delete", "a", ""),
        (20, "remove", "a", "n0"),
    ]


JOB = {
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "parallelism": 2,
        "completions": 3,
        "template": {
            "metadata": {"annotations": {"hagane.dev/duration-seconds": "10"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}],
            },
        },
    },
}


def configuration(tmp_path: Path, **fields: Any) -> Path:
    nodes = [
        {
            "metadata": {"name": f"n{i}"},
            "status": {"allocatable": {"cpu": 4, "memory": "8Gi", "nvidia.com/gpu": 2, "pods": 20}},
        }
        for i in range(2)
    ]
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"cluster": nodes, **fields}))
    return path


def test_a_job_runs_its_completions_at_its_parallelism(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB))
    prepared = prepare(load_config(configuration(tmp_path, objects=["job.yaml"])))
    summary = prepared.run()
    assert summary["succeeded"] == 3
    assert summary["seconds"] == 20


def test_a_run_repeats_to_the_byte_with_its_seed_and_not_with_another(tmp_path: Path) -> None:
    poisson = {"kind": "poisson", "rate": 0.5, "count": 60, "job": {"kind": "philly"}}
    config = load_config(configuration(tmp_path, submitters=[poisson], until=2000))
    digests = []
    for seed in (1, 1, 2):
        prepared = prepare(config, seed)
        prepared.run()
        digests.append(prepared.simulation.log.digest())
    assert digests[0] == digests[1] != digests[2]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 20), st.integers(0, 2)),
        max_size=25,
    ),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_no_node_is_ever_overfull_and_every_pod_that_can_end_ends(
    pods: list[tuple[int, int, int, int]], nodes: list[int], which: int
) -> None:
    cluster = machines(*nodes)
    scheduler = (KubeScheduler(), Greedy(), Backfill(), BestFit())[which]
    arrivals = sorted(
        ((float(t), job(f"p{i}", c, float(s), priority=p)) for i, (t, c, s, p) in enumerate(pods)),
        key=lambda a: a[0],
    )
    sim = Simulation(cluster, scheduler, [Replay(arrivals)])
    sim.begin()
    while sim.step():
        assert (cluster.requested[0] <= cluster.allocatable[0]).all()
    fitting = sum(c <= max(nodes) for _, c, _, _ in pods)
    assert sim.books.counts["succeeded"] == fitting
    assert cluster.requested.sum() == 0


def test_explained_and_simulated_placements_agree() -> None:
    manifests = [
        node("a", has={"cpu": 4, "memory": "8Gi"}),
        node("b", has={"cpu": 8, "memory": "8Gi"}),
        pod("old", {"cpu": 3}, nodeName="b"),
    ]
    from hagane.tools.cluster import explain

    wanted = one(pod("p", {"cpu": 1, "memory": "1Gi"}))
    chosen = explain(default_profile(), Cluster.of(objects(*manifests)), wanted).chosen
    _, log = simulate(Cluster.of(objects(*manifests)), KubeScheduler(), (0, wanted), until=5.0)
    assert log[0][3] == chosen
