"""Tables, as kubectl prints them, and the descriptions of pods that it changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hagane.tools.cluster.link.api.accepting import wants_table
from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.objects.refusal import Refused
from hagane.tools.cluster.link.objects.resources import RESOURCES
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.reads.tables import age
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


PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    ("accept", "table"),
    [
        ("", False), ("*/*", False), (TABLE, True), (f"{PROTOBUF},application/json", False),
        (f"{PROTOBUF}, */*", False), ("application/json;stream=watch", False),
        ("application/json, application/json;as=Table", False),
        ("application/json;q=0.5, application/json;as=Table;q=0.9", True),
        ("application/json;as=Table;q=0, application/json", False),
        ("*/*, application/json;as=Table", True),
        (f"{PROTOBUF};as=Table,application/json;as=Table,application/json", True),
        ("application/json;as=PartialObjectMetadata;v=v1,application/json", False),
    ],
)  # fmt: skip
def test_a_table_is_given_to_those_that_prefer_one(accept: str, table: bool) -> None:
    assert wants_table(accept) is table


@pytest.mark.parametrize(
    "accept",
    [PROTOBUF, f"{PROTOBUF};as=Table;v=v1", "application/yaml, text/html", "application/json;q=0",
     "application/json;as=PartialObjectMetadata"],
)  # fmt: skip
def test_clients_that_accept_nothing_served_are_refused(accept: str) -> None:
    with pytest.raises(Refused, match="only the following media types are accepted: .*; got appl"):
        wants_table(accept)


def test_nothing_is_created_for_a_client_that_could_not_read_the_answer(api: ApiServer) -> None:
    path = f"{api.url}/api/v1/namespaces/default/pods"
    body = json.dumps(pod("c", namespace="default")).encode()
    headers = {"Accept": PROTOBUF, "Content-Type": "application/json"}
    for data in (None, body):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(path, data, headers), timeout=20)
        with caught.value as error:
            assert (error.code, json.loads(error.read())["reason"]) == (406, "NotAcceptable")
    assert api.store.get("pods", "default/c") is None
    assert api.requests.empty()


@pytest.mark.parametrize("name", ["a", "b"])
def test_pods_take_labels_and_annotations_and_other_changes_are_refused(
    api: ApiServer, name: str
) -> None:
    path = f"/api/v1/namespaces/default/pods/{name}"
    patch = {"metadata": {"labels": {"app": "x"}, "annotations": {"k": "v"}}}
    code, found = ask(api, path, "PATCH", patch)
    assert (code, found["metadata"]["labels"]["app"]) == (200, "x")
    _, _, body = api.requests.get_nowait()
    assert body["metadata"]["annotations"] == {"k": "v"}
    changed = {"spec": {"containers": [{"name": "c", "image": "z"}]}}
    code, refused = ask(api, path, "PATCH", changed)
    assert (code, refused["message"].partition(": of")[0]) == (
        422,
        f"pod default/{name}: spec.containers",
    )
    assert "of a pod the status, labels and annotations may change here" in refused["message"]
    moved = {**found, "spec": {**found["spec"], "nodeName": "m"}}
    code, refused = ask(api, path, "PUT", moved)
    assert code == 422
    assert "spec.nodeName" in refused["message"]
    assert api.requests.empty()


def test_a_pod_is_put_as_a_client_of_go_writes_it(api: ApiServer) -> None:
    path = "/api/v1/namespaces/default/pods/b"
    _, found = ask(api, path)
    (container,) = found["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {}}
    found["spec"] |= {"hostIPC": False, "volumes": []}
    del found["spec"]["nodeName"]
    found["metadata"]["labels"] = {"app": "x"}
    code, after = ask(api, path, "PUT", found)
    assert (code, after["metadata"]["labels"]) == (200, {"app": "x"})


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


def test_a_pod_on_a_node_has_its_labels_changed_for_affinities_too(api: ApiServer) -> None:
    scheduler = Outside(api, quiet=0.2)
    bound = [pod(name, {"cpu": 1}, namespace="default", nodeName="n") for name in ("a", "b")]
    cluster = Cluster.of(objects(node("n"), *bound))
    sim = Simulation(cluster, scheduler)
    scheduler.attach(sim)
    sim.begin()
    body = {"status": {}, "metadata": {"labels": {"app": "y"}}}
    scheduler._report("pods", "default/a", body)
    scheduler._show(sim.queue, cluster)
    stored = api.store.get("pods", "default/a")
    assert stored is not None
    assert stored["metadata"]["labels"] == {"app": "y"}
    on_node = cluster.record("n").pods
    assert [(key, dict(each.labels)) for key, each in on_node.items()] == [
        ("default/a", {"app": "y"}),
        ("default/b", {}),
    ]
    taken = {"metadata": {"labels": {"hagane.dev/user": "me"}}}
    code, refused = ask(api, "/api/v1/namespaces/default/pods/a", "PATCH", taken)
    assert code == 422
    assert "hagane.dev/user stays as it is once a pod is bound" in refused["message"]


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


MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_applies_manifests_and_tries_them(api: ApiServer, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        command = ["kubectl", "--server", api.url, "--cache-dir", str(tmp_path), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env={"HOME": str(tmp_path)}
        )
        return done.stdout + done.stderr

    path = tmp_path / "all.yaml"
    path.write_text(MANIFESTS)
    assert "pod/web created (server dry run)" in said("apply", "--dry-run=server", "-f", str(path))
    assert api.store.get("pods", "default/web") is None
    assert "configmap/settings created" in said("apply", "-f", str(path))
    assert "pod/web unchanged" in said("apply", "-f", str(path))
    assert "has no log" in said("logs", "web")


def test_what_is_tried_is_checked_and_not_made(api: ApiServer) -> None:
    pods, web = "/api/v1/namespaces/default/pods", made("web", "Pending")
    version = api.store.version
    assert ask(api, f"{pods}?dryRun=All", "POST", web)[0] == 201
    assert ask(api, f"{pods}?dryRun=All", "POST", made("a", "Pending"))[0] == 409
    assert ask(api, f"{pods}?dryRun=some", "POST", web)[0] == 400
    merge = "application/merge-patch+json"
    label = {"metadata": {"labels": {"app": "x"}}}
    code, answer = ask(api, f"{pods}/b?dryRun=All", "PATCH", label, merge)
    assert (code, answer["metadata"]["labels"]["app"]) == (200, "x")
    assert ask(api, f"{pods}/b", "DELETE", {"dryRun": ["All"]})[0] == 200
    binding = {"target": {"name": "n"}}
    assert ask(api, f"{pods}/b/binding?dryRun=All", "POST", binding)[0] == 201
    assert ask(api, f"{pods}/b/eviction?dryRun=All", "POST", {})[0] == 201
    assert api.store.version == version
    assert api.requests.empty()


@pytest.mark.parametrize("sub", ["log", "exec", "attach", "portforward"])
def test_what_needs_containers_is_refused_by_name(api: ApiServer, sub: str) -> None:
    code, answer = ask(api, f"/api/v1/namespaces/default/pods/a/{sub}")
    assert (code, answer["reason"]) == (405, "MethodNotAllowed")
    assert f"default/a has no {sub}" in answer["message"]
    assert ask(api, f"/api/v1/namespaces/default/pods/none/{sub}")[0] == 404


def test_every_kind_is_described_with_the_parameters_of_its_changes(api: ApiServer) -> None:
    described = set()
    for place in ask(api, "/openapi/v3")[1]["paths"].values():
        for operations in ask(api, place["serverRelativeURL"])[1]["paths"].values():
            if (patch := operations.get("patch")) is not None:
                kind = patch["x-kubernetes-group-version-kind"]
                assert {"dryRun", "fieldValidation"} <= {p["name"] for p in patch["parameters"]}
                described.add((kind["group"], kind["version"], kind["kind"]))
    writable = {(r.group, r.version, r.kind) for r in RESOURCES if "patch" in r.verbs}
    assert described == writable
    assert ask(api, "/openapi/v3/apis/none/v1")[0] == 404
