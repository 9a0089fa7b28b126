"""Traces, and GPU sharing on them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hagane.cli import main
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.fragmentation import Workload, fragmentation, fragments, typical
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.schedulers.fgd import Fgd
from hagane.tools.cluster.schedulers.greedy import BestFit
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.ports import Scheduler
from hagane.tools.cluster.sim.setup import traced
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from hagane.tools.cluster.trace import openb
from hagane.tools.cluster.trace.jobs import read_jobs

DATA = Path(__file__).parent / "data"
NODES, PODS = DATA / "openb_nodes.csv", DATA / "openb_pods.csv"


def whole_trace() -> tuple[Path, Path]:
    beside = Path(__file__).parents[3] / "shared/data/openb"
    folder = Path(os.environ.get("HAGANE_OPENB", beside))
    paths = folder / "openb_node_list_gpu_node.csv", folder / "openb_pod_list_default.csv"
    if not all(p.exists() for p in paths):
        pytest.skip("the openb trace is not here; HAGANE_OPENB names its folder")
    return paths


def test_rows_of_the_trace_become_nodes_and_pods() -> None:
    nodes = openb.read_nodes(NODES)
    assert [(n.name, n.devices, n.allocatable["cpu"]) for n in nodes] == [
        (f"openb-node-000{i}", 2, 64000) for i in range(3)
    ]
    pods = list(openb.read_pods(PODS))
    assert [(t, p.name) for t, p in pods][:2] == [(0, "openb-pod-0000"), (427061, "openb-pod-0001")]
    share = pods[1][1]
    assert share.gpu is not None
    assert (share.gpu.count, share.gpu.milli) == (1, 460)
    assert share.duration == 12902960 - 427061


def test_a_trace_runs_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "cluster",
                "run",
                "--nodes",
                str(NODES),
                "--pods",
                str(PODS),
                "--format",
                "openb",
                "--json",
            ]
        )
    out = json.loads(capsys.readouterr().out)
    assert out["bound"] == out["succeeded"] == 5


def test_what_is_wrong_with_a_trace_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "pods.csv"
    lines = PODS.read_text().splitlines()
    bad.write_text("\n".join([lines[0], lines[1].replace("12000", "many")]))
    with pytest.raises(InvalidManifest, match=r"pods.csv:2: cpu_milli: expected a number"):
        list(openb.read_pods(bad))
    bad.write_text("\n".join([lines[0], lines[1], lines[1]]))
    with pytest.raises(InvalidManifest, match=r"pods.csv:3: duplicate pod 'openb-pod-0000'"):
        list(openb.read_pods(bad))
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidManifest, match=r"pods.csv:1: column 'name' is missing"):
        list(openb.read_pods(bad))
    bad.write_bytes(b"\xff\xfe")
    with pytest.raises(
        InvalidManifest, match=r"pods.csv: cannot be read: expected a table .*UTF-8"
    ):
        list(openb.read_pods(bad))
    bad.write_text("\n".join([lines[0], "x" * 200_000]))
    with pytest.raises(InvalidManifest, match=r"behind line 1: field larger than field limit"):
        list(openb.read_pods(bad))
    with pytest.raises(InvalidManifest, match="cannot be read"):
        openb.read_nodes(tmp_path / "none.csv")
    with pytest.raises(InvalidManifest, match="unknown trace format 'x'"):
        traced(NODES, PODS, "x")


def test_a_generic_job_log_is_read_from_csv_and_parquet(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("submit_time,duration,cpu,memory,gpu,user\n5,60,2,4Gi,1,ann\n7,1.5,500m,,,\n")
    found = list(read_jobs(path))
    assert [(t, p.duration, dict(p.requests), p.user) for t, p in found] == [
        (5, 60, {"cpu": 2000, "memory": 4 << 30, "nvidia.com/gpu": 1}, "ann"),
        (7, 1.5, {"cpu": 500}, ""),
    ]
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'cluster'")
    import pyarrow

    table = pyarrow.table({"submit_time": [5], "duration": [60], "gpu": [2]})
    parquet.write_table(table, tmp_path / "jobs.parquet")
    [(time, pod)] = read_jobs(tmp_path / "jobs.parquet")
    assert (time, pod.requests) == (5, {"nvidia.com/gpu": 2})
    path.write_text("submit_time,duration\n5,-1\n")
    with pytest.raises(InvalidManifest, match=r"jobs.csv:2: duration: expected a number of at"):
        list(read_jobs(path))


def test_fragments_are_those_of_the_papers_definition() -> None:
    def of(free: list[int], cpu: int, *kinds: tuple[int, int, int]) -> float:
        columns = np.array([(c, 0, n, m) for c, n, m in kinds], dtype=np.int64)
        share = np.full(len(kinds), 1 / len(kinds))
        work = Workload(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3], share)
        spare = np.array([cpu], dtype=np.int64)
        return float(fragments(spare, spare * 0, np.array([free], dtype=np.int64), work)[0])

    # One GPU half free: a fragment for whole GPUs, useful for a half.
    assert of([500, 1000], 9, (1, 1, 1000)) == 500
    assert of([500, 1000], 9, (1, 1, 500)) == 0
    assert of([500, 1000], 9, (1, 2, 1000)) == 1500
    # Without CPUs, or for tasks without GPUs, everything free is a fragment.
    assert of([500, 1000], 0, (1, 1, 500)) == 1500
    assert of([500, 1000], 9, (1, 0, 0)) == 1500
    assert of([500, 1000, -1], 9, (1, 1, 1000), (1, 1, 500)) == 250


def test_a_share_goes_where_the_least_stays_free_and_comes_back() -> None:
    nodes = openb.read_nodes(NODES)[:1]
    cluster = Cluster(nodes)
    share = next(p for _, p in openb.read_pods(PODS) if p.gpu and p.gpu.milli == 460)
    first, second = replace(share, name="a"), replace(share, name="b")
    cluster.bind(first, 0)
    cluster.bind(second, 0)
    assert cluster.gpu_free[0].tolist() == [80, 1000]
    cluster.unbind(first.key)
    cluster.unbind(second.key)
    assert cluster.gpu_free[0].tolist() == [1000, 1000]


def test_the_whole_openb_trace_is_placed() -> None:
    summary = traced(*whole_trace()).run()
    assert summary["bound"] == summary["succeeded"] == 8152
    assert summary["pending"] == 0


@pytest.mark.long
def test_fgd_beats_best_fit_and_least_allocated_on_openb() -> None:
    import random

    nodes, pods = whole_trace()
    drawn = [p for _, p in openb.read_pods(pods)]
    kinds = typical(drawn)
    allocated, wasted = {}, {}
    schedulers: tuple[Scheduler, ...] = (Fgd(kinds), BestFit(), KubeScheduler())
    for scheduler in schedulers:
        cluster = Cluster(openb.read_nodes(nodes))
        chance, asked, arrivals = random.Random(0), 0.0, []
        while asked < sum(n.node.devices for n in cluster.nodes()):
            pod = chance.choice(drawn)
            asked += pod.gpu.count * pod.gpu.milli / 1000 if pod.gpu else 0
            arrivals.append(
                (float(len(arrivals)), replace(pod, name=f"p{len(arrivals)}", phases=None))
            )
        sim = Simulation(
            cluster, scheduler, [Replay(arrivals)], Options(until=float(len(arrivals)))
        )
        sim.run()
        allocated[scheduler.name] = sim.books.now["gpu"]
        wasted[scheduler.name] = fragmentation(cluster, kinds)
    assert wasted["fgd"] < min(wasted["best-fit"], wasted["kube-scheduler"])
    assert allocated["fgd"] > max(allocated["best-fit"], allocated["kube-scheduler"])
