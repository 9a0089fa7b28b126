from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from hagane.events import EventLog
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node, Phase, Pod
from hagane.tools.cluster.schedulers.learned import FEATURES, Learned
from hagane.tools.cluster.sim.config import load_config
from hagane.tools.cluster.sim.controllers import Controller
from hagane.tools.cluster.sim.options import Options
from hagane.tools.cluster.sim.setup import prepare
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.manifests import node, objects, pod


def job(name: str, cpu: int, seconds: float | None = 10.0) -> Pod:
    phases = None if seconds is None else (Phase(seconds),)
    return Pod(name, requests={"cpu": cpu}, scored=(cpu, 0), phases=phases)


def policy(path: Path, weights: list[float]) -> Path:
    """A linear model over the features of nodes."""
    column = np.array(weights, dtype=np.float32).reshape(-1, 1)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["nodes", len(weights)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["nodes", 1])],
        [numpy_helper.from_array(column, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(("sign", "chosen"), [(1.0, "empty"), (-1.0, "busy")])
def test_a_policy_read_from_a_model_decides(tmp_path: Path, sign: float, chosen: str) -> None:
    weights = [sign if name == "cpu_free" else 0.0 for name in FEATURES]
    cluster = Cluster([Node("busy", allocatable={"cpu": 8}), Node("empty", allocatable={"cpu": 8})])
    cluster.bind(job("there", 4, None), cluster.rows["busy"])
    log = EventLog()
    scheduler = Learned(policy(tmp_path / "policy.onnx", weights))
    Simulation(cluster, scheduler, [Replay([(0.0, job("p", 1))])], Options(until=50.0), log).run()
    assert [r["node"] for r in log if r["kind"] == "bind"] == [chosen]


def test_a_model_with_other_inputs_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidManifest, match="cpu_free, memory_free"):
        Learned(policy(tmp_path / "policy.onnx", [1.0, 2.0]))


def test_the_replicas_of_a_deployment_are_replaced_when_they_go() -> None:
    known = objects(
        {
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 5,
                        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                    },
                },
            },
        }
    )
    cluster = Cluster([Node("n", allocatable={"cpu": 8000})])
    log = EventLog()
    controllers = [Controller(w) for w in known.workloads]
    simulation = Simulation(cluster, KubeScheduler(), controllers, Options(until=100.0), log)
    simulation.at(20.0, lambda: simulation.delete("default/web-0"))
    simulation.run()
    binds = [(r["time"], r["pod"]) for r in log if r["kind"] == "bind"]
    assert binds == [(0.0, "default/web-0"), (0.0, "default/web-1"), (25.0, "default/web-2")]
    assert len(simulation.life.running) == 2


def test_a_pod_that_waited_says_which_filters_rejected_how_many_nodes() -> None:
    cluster = Cluster(
        [
            Node("small", allocatable={"cpu": 1}),
            Node("shut", allocatable={"cpu": 8}, unschedulable=True),
            Node("large", allocatable={"cpu": 4}),
        ]
    )
    arrivals = [(0.0, job("first", 4)), (1.0, job("second", 4)), (2.0, job("never", 7))]
    log = EventLog()
    simulation = Simulation(cluster, KubeScheduler(), [Replay(arrivals)], Options(until=60.0), log)
    simulation.run()
    why = "0/3 nodes: 1 NodeUnschedulable, 2 NodeResourcesFit"
    binds = {r["pod"]: r.get("waited_for") for r in log if r["kind"] == "bind"}
    assert binds == {"default/first": None, "default/second": why}
    assert [(r["pod"], r["why"]) for r in log if r["kind"] == "pending"] == [("default/never", why)]


def test_a_run_waits_for_the_last_pod_whose_back_off_outlasts_all_others() -> None:
    cluster = Cluster([Node("n", allocatable={"cpu": 3})])
    seconds = (1, 1, 1, 1, 1, 1, 1, 2, 3, 1)
    arrivals = [(0.0, job(f"p{i}", 1, float(s))) for i, s in enumerate(seconds)]
    summary = Simulation(cluster, KubeScheduler(), [Replay(arrivals)]).run()
    assert summary["succeeded"] == 10
    assert summary["seconds"] == 8


def test_the_table_of_pods_says_why_each_waited(tmp_path: Path) -> None:
    def timed(name: str, cpu: int) -> dict[str, Any]:
        seconds = {"hagane.dev/duration-seconds": "10"}
        return pod(name, {"cpu": cpu}, annotations=seconds)

    for_ever = pod("for-ever", {"cpu": 1})
    pods = [timed("first", 3), timed("second", 2), for_ever, timed("too-large", 9)]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    config = {
        "cluster": [node("n", has={"cpu": 4, "memory": "8Gi", "pods": 9})],
        "submitters": [{"kind": "pods", "objects": ["pods.yaml"]}],
        "output": {"directory": "out", "formats": ["csv", "gnuplot"], "every": 5},
        "until": 3600,
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    prepare(load_config(tmp_path / "config.yaml")).run()
    with open(tmp_path / "out" / "pods.csv") as file:
        rows = {row["pod"]: row for row in csv.DictReader(file)}
    assert rows["default/first"]["why"] == ""
    assert rows["default/second"]["why"] == "0/1 nodes: 1 NodeResourcesFit"
    assert float(rows["default/second"]["waiting"]) >= 10
    last, large = rows["default/for-ever"], rows["default/too-large"]
    assert (last["outcome"], last["node"], last["finished"]) == ("running", "n", "nan")
    assert (large["outcome"], large["node"], large["bound"]) == ("pending", "", "nan")
    assert large["why"] == "0/1 nodes: 1 NodeResourcesFit"
    assert float(large["waiting"]) > 0
    assert len(rows) == 4
