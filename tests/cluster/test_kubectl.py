"""Tables, as kubectl prints them, and the descriptions of pods that it changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hagane.tools.cluster.link.apiserver import ApiServer
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.tables import age, is_wanted
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, pod
from tests.cluster.test_apiserver_clients import ask

pytest.importorskip("starlette", reason="needs the extra 'cluster'")

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.clock = lambda: 7200.0
        server.store.put("pods", "default/a", made("a", "Running", node="n"))
        server.store.put("pods", "default/b", made("b", "Pending"))
        server.store.put("nodes", "n", {**node("n"), "spec": {"unschedulable": True}})
        yield server


def made(name: str, phase: str, **spec: str) -> dict[str, Any]:
    value = pod(name, {"cpu": 1}, namespace="default")
    value["metadata"]["creationTimestamp"] = "1970-01-01T00:30:00Z"
    value["spec"]["nodeName"] = spec.get("node", "")
    return {**value, "status": {"phase": phase}}


def tables(api: ApiServer, path: str) -> list[Any]:
    request = urllib.request.Request(api.url + path, headers={"Accept": TABLE})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return [json.loads(line) for line in answer]


def test_lists_objects_and_watches_come_as_tables(api: ApiServer) -> None:
    (found,) = tables(api, "/api/v1/pods")
    names = [(c["name"], c["priority"]) for c in found["columnDefinitions"]]
    assert names[:5] == [(n, 0) for n in ("Name", "Ready", "Status", "Restarts", "Age")]
    assert ("Node", 1) in names
    cells = [row["cells"] for row in found["rows"]]
    assert [row[:5] for row in cells] == [
        ["a", "1/1", "Running", 0, "90m"],
        ["b", "0/1", "Pending", 0, "90m"],
    ]
    assert cells[0][5] == "n"
    assert found["rows"][0]["object"]["metadata"]["name"] == "a"
    (one,) = tables(api, "/api/v1/nodes/n")
    assert one["rows"][0]["cells"][1] in (
        "Ready,SchedulingDisabled", "Unknown,SchedulingDisabled"
    )  # fmt: skip
    seen = tables(api, "/api/v1/pods?watch=1&timeoutSeconds=0")
    assert [(e["type"], e["object"]["kind"]) for e in seen] == [("ADDED", "Table")] * 2
    assert ask(api, "/api/v1/pods")[1]["kind"] == "PodList"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (125, "2m5s"), (600, "10m"), (3 * 3600 + 60, "3h1m"),
     (40 * 3600, "40h"), (50 * 3600, "2d2h"), (9 * 86400, "9d")],
)  # fmt: skip
def test_ages_have_the_largest_units(seconds: int, text: str) -> None:
    value = {"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}}
    assert age(value, float(seconds)) == text
    assert age({"metadata": {}}, 5.0) == "<unknown>"


def test_a_table_is_given_to_those_that_prefer_one() -> None:
    assert is_wanted(TABLE)
    assert not is_wanted("application/json, application/json;as=Table")
    assert not is_wanted("application/vnd.kubernetes.protobuf;as=Table;v=v1")


def test_a_pod_that_waits_takes_labels_and_annotations_and_others_are_refused(
    api: ApiServer,
) -> None:
    patch = {"metadata": {"labels": {"app": "x"}, "annotations": {"k": "v"}}}
    code, found = ask(api, "/api/v1/namespaces/default/pods/b", "PATCH", patch)
    assert (code, found["metadata"]["labels"]["app"]) == (200, "x")
    _, _, body = api.requests.get_nowait()
    assert body["metadata"]["annotations"] == {"k": "v"}
    for path, changed in (
        ("a", patch),
        ("b", {"spec": {"containers": [{"name": "c", "image": "z"}]}}),
    ):
        code, found = ask(api, f"/api/v1/namespaces/default/pods/{path}", "PATCH", changed)
        assert code == 422
        assert "of a pod the status may change here" in found["message"]
    assert api.requests.empty()


def test_the_simulation_keeps_the_labels_of_a_pod(api: ApiServer) -> None:
    scheduler = Outside(api, quiet=0.2)
    cluster = Cluster(objects(node("n")).nodes)
    sim = Simulation(cluster, scheduler)
    scheduler.attach(sim)
    (waiting,) = objects(pod("w", namespace="default")).pods
    sim.submit(waiting)
    body = {"status": {}, "metadata": {"labels": {"app": "y"}, "annotations": {}}}
    scheduler._report("pods", "default/w", body)
    scheduler._show(sim.queue, cluster)
    stored = api.store.get("pods", "default/w")
    assert stored is not None
    assert stored["metadata"]["labels"] == {"app": "y"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_prints_them(api: ApiServer, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        command = ["kubectl", "--server", api.url, "--cache-dir", str(tmp_path), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={"HOME": str(tmp_path)}
        )
        return done.stdout + done.stderr

    assert said("get", "pods").split("\n")[1].split()[:3] == ["a", "1/1", "Running"]
    assert "pod/b" in said("get", "all")
    assert "SchedulingDisabled" in said("get", "nodes")
    assert said("label", "pod", "b", "app=x").strip() == "pod/b labeled"
    assert "may change here" in said("set", "image", "pod/b", "c0=z")
