"""The API server as informers, schedulers and kubectl use it, and as nobody should."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.objects import resources
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.serve import ExtenderService, serve_extender
from hagane.tools.cluster.link.writes.patching import BadPatch, json_patched
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, pod

pytest.importorskip("starlette", reason="needs the extra 'cluster'")


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def ask(
    api: ApiServer, path: str, method: str = "GET", body: Any = None, kind: str = "application/json"
) -> tuple[int, Any]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(api.url + path, data, {"Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def events(api: ApiServer, path: str) -> list[tuple[str, str]]:
    with urllib.request.urlopen(api.url + path, timeout=20) as answer:
        found = [json.loads(line) for line in answer]
    return [(e["type"], e["object"]["metadata"].get("name", "")) for e in found]


def add(api: ApiServer, name: str, **meta: Any) -> None:
    value = pod(name, namespace="default")
    value["metadata"].update(meta)
    api.store.put("pods", f"default/{name}", value)


def test_clients_discover_every_resource(api: ApiServer) -> None:
    assert ask(api, "/version")[1]["gitVersion"] == "v1.34.0"
    assert ask(api, "/api")[1]["versions"] == ["v1"]
    groups = [g["name"] for g in ask(api, "/apis")[1]["groups"]]
    assert groups[:4] == ["apps", "batch", "policy", "scheduling.k8s.io"]
    for item in resources.RESOURCES:
        base = f"/apis/{item.group}/{item.version}" if item.group else "/api/v1"
        code, listed = ask(api, base)
        assert code == 200
        (own,) = [r for r in listed["resources"] if r["name"] == item.plural]
        assert (own["kind"], own["namespaced"]) == (item.kind, item.namespaced)
        code, found = ask(api, f"{base}/{item.plural}")
        assert (code, found["kind"]) == (200, f"{item.kind}List")
    assert ask(api, "/apis/apps")[1]["preferredVersion"]["groupVersion"] == "apps/v1"
    assert ask(api, "/apis/nonsense")[0] == 404


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("labelSelector=app%3Dx", ["a"]),
        ("labelSelector=app!%3Dx", ["b", "c"]),
        ("labelSelector=app%20in%20(x,y)", ["a", "b"]),
        ("labelSelector=app%20notin%20(x),!z", ["b", "c"]),
        ("labelSelector=app", ["a", "b"]),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=spec.nodeName%3D,metadata.name!%3Dc", ["a", "b"]),
    ],
)
def test_selectors_choose_as_kubernetes_does(
    api: ApiServer, selector: str, names: list[str]
) -> None:
    add(api, "a", labels={"app": "x"})
    add(api, "b", labels={"app": "y"})
    add(api, "c")
    found = ask(api, f"/api/v1/pods?{selector}")[1]["items"]
    assert [o["metadata"]["name"] for o in found] == names


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("labelSelector=a%20b", "unable to parse requirement: 'a b': expected KEY=VALUE"),
        ("labelSelector=a%20in%20(!)", "unable to parse requirement: invalid value"),
        ("fieldSelector=nonsense", "invalid selector: 'nonsense': expected FIELD=VALUE"),
        ("fieldSelector=spec.colour%3Dred", "field label not supported: spec.colour"),
        ("limit=many", "limit: expected a whole number below 10^18, got 'many'"),
        ("continue=x", "continue: not a token of this server"),
        ("watch=1&timeoutSeconds=soon", "timeoutSeconds: expected a whole number below 10^18"),
    ],
)
def test_bad_queries_are_answered_with_400(api: ApiServer, query: str, message: str) -> None:
    code, answer = ask(api, f"/api/v1/pods?{query}")
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert message in answer["message"]


def test_lists_come_in_pages(api: ApiServer) -> None:
    for index in range(5):
        add(api, f"p{index}")
    names: list[str] = []
    token, pages = "", 0
    while True:
        found = ask(api, f"/api/v1/namespaces/default/pods?limit=2&continue={token}")[1]
        names += [o["metadata"]["name"] for o in found["items"]]
        token, pages = found["metadata"].get("continue", ""), pages + 1
        if not token:
            break
    assert (names, pages) == ([f"p{i}" for i in range(5)], 3)


def test_a_watch_begins_with_what_is_there_and_ends_with_a_bookmark(api: ApiServer) -> None:
    add(api, "a")
    query = "watch=1&timeoutSeconds=0&allowWatchBookmarks=true"
    assert events(api, f"/api/v1/pods?{query}") == [("ADDED", "a"), ("BOOKMARK", "")]
    query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    with urllib.request.urlopen(f"{api.url}/api/v1/pods?{query}") as answer:
        found = [json.loads(line) for line in answer]
    marks = [e["object"]["metadata"].get("annotations") for e in found if e["type"] == "BOOKMARK"]
    assert marks[0] == {"k8s.io/initial-events-end": "true"}
    assert int(found[1]["object"]["metadata"]["resourceVersion"]) == api.store.version


def test_a_watch_of_chosen_objects_sees_them_come_and_go(api: ApiServer) -> None:
    start = api.store.version
    add(api, "a")
    add(api, "a", labels={"app": "x"})
    add(api, "a", labels={"app": "x", "more": "y"})
    add(api, "a", labels={"app": "z"})
    add(api, "b", labels={"app": "x"})
    api.store.drop("pods", "default/b")
    query = f"watch=1&timeoutSeconds=0&resourceVersion={start}&labelSelector=app%3Dx"
    assert events(api, f"/api/v1/pods?{query}") == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "b"),
        ("DELETED", "b"),
    ]


def test_objects_of_other_kinds_are_kept_as_they_come(api: ApiServer) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    code, lease = ask(
        api, leases, "POST", {"metadata": {"name": "s"}, "spec": {"holderIdentity": "a"}}
    )
    assert (code, lease["kind"], lease["metadata"]["namespace"]) == (201, "Lease", "kube-system")
    assert lease["metadata"]["uid"]
    assert lease["metadata"]["creationTimestamp"].endswith("Z")
    assert ask(api, leases, "POST", lease)[1]["reason"] == "AlreadyExists"
    lease["spec"]["holderIdentity"] = "b"
    assert ask(api, f"{leases}/s", "PUT", lease)[0] == 200
    code, answer = ask(api, f"{leases}/s", "PUT", lease)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer["message"]
    patch = [{"op": "replace", "path": "/spec/holderIdentity", "value": "c"}]
    code, found = ask(api, f"{leases}/s", "PATCH", patch, "application/json-patch+json")
    assert (code, found["spec"]) == (200, {"holderIdentity": "c"})
    patch = [{"op": "test", "path": "/spec/holderIdentity", "value": "other"}]
    assert ask(api, f"{leases}/s", "PATCH", patch, "application/json-patch+json")[0] == 422
    assert ask(api, f"{leases}/s", "DELETE")[0] == 200
    assert ask(api, f"{leases}/s")[1]["message"] == 'leases "s" not found'


def test_a_pod_may_be_bound_as_soon_as_it_is_created(api: ApiServer) -> None:
    sim = Simulation(Cluster.of(objects(node("n"))), Outside(api, quiet=0.01, limit=0.01))
    pods = "/api/v1/namespaces/default/pods"
    manifest = pod("x", {"cpu": "1"})
    manifest["metadata"] = {"generateName": "x-"}
    code, made = ask(api, pods, "POST", manifest)
    assert (code, made["status"]["phase"]) == (201, "Pending")
    name = made["metadata"]["name"]
    assert name.startswith("x-")
    assert ask(api, f"{pods}/{name}/binding", "POST", {"target": {"name": "n"}})[0] == 201
    assert ask(api, f"{pods}/{name}/binding", "POST", {"target": {"name": "n"}})[0] == 409
    taken = iter([True, False])
    sim.run(more=lambda: next(taken))
    assert set(sim.cluster.where) == {f"default/{name}"}


def test_nodes_are_created_while_the_simulation_waits(api: ApiServer) -> None:
    outside = Outside(api, quiet=0.01, limit=None)
    sim = Simulation(Cluster.of(objects(node("n"))), outside)
    assert ask(api, "/api/v1/nodes", "POST", node("more"))[0] == 201
    assert ask(api, "/api/v1/nodes", "POST", {"metadata": {"name": "N!"}})[0] == 422
    taken = iter([outside.wait, lambda: False])
    sim.run(more=lambda: next(taken)())
    assert set(sim.cluster.rows) == {"n", "more"}
    assert {o["metadata"]["name"] for o in ask(api, "/api/v1/nodes")[1]["items"]} == {"n", "more"}


def test_evictions_keep_to_budgets(api: ApiServer) -> None:
    add(api, "a", labels={"app": "x"})
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 0},
    }
    api.store.put("poddisruptionbudgets", "default/b", budget)
    path = "/api/v1/namespaces/default/pods/a/eviction"
    code, answer = ask(api, path, "POST", {"kind": "Eviction", "metadata": {"name": "a"}})
    assert (code, answer["reason"]) == (429, "TooManyRequests")
    assert 'violate the pod\'s disruption budget "b"' in answer["message"]
    api.store.put(
        "poddisruptionbudgets", "default/b", {**budget, "status": {"disruptionsAllowed": 1}}
    )
    assert ask(api, path, "POST", {})[0] == 201
    assert api.requests.get_nowait() == ("delete", "default/a", None)


@pytest.mark.parametrize(
    ("body", "kind", "code", "message"),
    [
        (b"k8s\x00", "application/vnd.kubernetes.protobuf", 415, "contentType is application/json"),
        (b"[" * 100_000, "application/json", 400, "the body is not JSON: it nests too deep"),
        (b"{", "application/json", 400, "the body is not JSON"),
        (b" " * (4 << 20), "application/json", 413, "over 3,145,728 bytes, the most allowed"),
        (b'{"kind": "Node"}', "application/json", 400, "expected a Pod, got a Node"),
        (b'{"metadata": {"name": "A b"}}', "application/json", 422, "expected lower-case letters"),
    ],
    ids=["protobuf", "deep", "broken", "large", "kind", "name"],
)
def test_bodies_that_cannot_be_taken_are_refused(
    api: ApiServer, body: bytes, kind: str, code: int, message: str
) -> None:
    found, answer = ask(api, "/api/v1/namespaces/default/pods", "POST", body, kind)
    assert (found, answer["kind"]) == (code, "Status")
    assert message in answer["message"]
    assert ask(api, "/healthz-not")[0] == 404


@pytest.mark.parametrize("length", ["-1", "many"])
def test_a_malformed_length_ends_the_connection_and_nothing_else(length: str) -> None:
    with serve_extender(ExtenderService()) as server:
        port = server.socket.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(
                f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()
            )
            assert b"400" in line.recv(1000).split(b"\r\n")[0]
        request = urllib.request.Request(server.url + "/filter", b'{"Pod": 3}', method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert "Pod: expected dict, got 3" in json.loads(answer.read())["Error"]


def test_two_hundred_clients_at_once_are_answered(api: ApiServer) -> None:
    lines = [
        socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), timeout=20)
        for _ in range(200)
    ]
    for line in lines:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert all(b"200 OK" in line.recv(100) for line in lines)
    for line in lines:
        line.close()
    with ThreadPoolExecutor(8) as pool:
        codes = pool.map(lambda i: ask(api, "/api/v1/nodes", "POST", node(f"n{i}"))[0], range(40))
        assert set(codes) == {201}


def test_a_json_patch_adds_moves_and_removes() -> None:
    value = {"a": {"b": [1, 2]}, "c~d": 3, "e/f": 4}
    patch = [
        {"op": "add", "path": "/a/b/-", "value": 5},
        {"op": "add", "path": "/a/b/0", "value": 0},
        {"op": "move", "from": "/c~0d", "path": "/a/g"},
        {"op": "copy", "from": "/e~1f", "path": "/h"},
        {"op": "remove", "path": "/a/b/1"},
    ]
    assert json_patched(value, patch) == {"a": {"b": [0, 2, 5], "g": 3}, "e/f": 4, "h": 4}
    assert value["a"] == {"b": [1, 2]}
    for bad in ("/a/x/y", "/a/b/9", "a"):
        with pytest.raises(BadPatch):
            json_patched(value, [{"op": "replace", "path": bad, "value": 1}])


def test_the_server_lives_until_it_is_told_to_end(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(
        json.dumps({"cluster": [node("n")], "submitters": [], "scheduler": {"kind": "fifo"}})
    )
    command = [sys.executable, "-m", "hagane", "cluster", "serve-api", str(config), "--port", "0"]
    with subprocess.Popen(
        [*command, "--quiet", "0.05", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        for name in ("a", "b"):
            body = json.dumps(pod(name, {"cpu": "1"})).encode()
            path = f"{url}/api/v1/namespaces/default/pods"
            urllib.request.urlopen(urllib.request.Request(path, body, method="POST")).close()
            body = json.dumps({"target": {"name": "n"}}).encode()
            request = urllib.request.Request(f"{path}/{name}/binding", body, method="POST")
            urllib.request.urlopen(request).close()
        process.send_signal(signal.SIGTERM)
        summary = json.loads(process.stdout.read())
        assert process.wait(20) == 0
    assert summary["scheduler"] == "outside"


def test_a_pod_that_is_deleted_is_bound_no_more(api: ApiServer) -> None:
    sim = Simulation(Cluster.of(objects(node("n"))), Outside(api, quiet=0.01, limit=0.01))
    pods = "/api/v1/namespaces/default/pods"
    for name in ("a", "b"):
        assert ask(api, pods, "POST", pod(name, {"cpu": "1"}))[0] == 201
    code, leaving = ask(api, f"{pods}/a", "DELETE")
    assert code == 200
    assert leaving["metadata"]["deletionTimestamp"]
    code, answer = ask(api, f"{pods}/a/binding", "POST", {"target": {"name": "n"}})
    assert (code, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == ('pod default/a is being deleted, cannot be assigned to node "n"')
    assert ask(api, f"{pods}/b/binding", "POST", {"target": {"name": "n"}})[0] == 201
    # A binding that was taken before the simulation ended its pod.
    api.requests.put(("bind", "default/a", "n"))
    taken = iter([True, False])
    sim.run(more=lambda: next(taken))
    assert set(sim.cluster.where) == {"default/b"}
    assert ask(api, f"{pods}/a")[0] == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"spec": {"priority": ' + b"9" * 9000 + b"}}", "a number of more digits than are read"),
        (b'{"spec": {"priority": NaN}}', "the body is not JSON: NaN is no JSON"),
    ],
)
def test_numbers_that_json_has_not_are_refused(api: ApiServer, body: bytes, message: str) -> None:
    code, answer = ask(api, "/api/v1/namespaces/default/pods", "POST", body)
    assert code == 400
    assert message in answer["message"]


def test_other_methods_are_refused(api: ApiServer) -> None:
    code, answer = ask(api, "/api", "OPTIONS")
    assert code == 405
    assert "expected one of GET, POST, PUT, PATCH, DELETE, got OPTIONS" in answer["message"]


def test_a_binding_may_name_the_pod_in_its_body(api: ApiServer) -> None:
    add(api, "x")
    body = {"metadata": {"name": "x"}, "target": {"name": "n"}}
    assert ask(api, "/api/v1/namespaces/default/bindings", "POST", body)[0] == 201
    assert ask(api, "/api/v1/namespaces/default/pods/x")[1]["spec"]["nodeName"] == "n"


def test_a_binding_to_a_node_that_is_not_there_is_undone(api: ApiServer) -> None:
    sim = Simulation(Cluster.of(objects(node("n"))), Outside(api, quiet=0.01, limit=0.01))
    pods = "/api/v1/namespaces/default/pods"
    assert ask(api, pods, "POST", pod("x", {"cpu": "1"}))[0] == 201
    assert ask(api, f"{pods}/x/binding", "POST", {"target": {"name": "other"}})[0] == 201
    taken = iter([True, False])
    sim.run(more=lambda: next(taken))
    assert "nodeName" not in ask(api, f"{pods}/x")[1]["spec"]
    pending = sim.queue.get("default/x")
    assert pending is not None
    assert pending.why == "there is no node 'other', to which it was bound"


def test_nodes_are_changed_to_nodes_only(api: ApiServer) -> None:
    assert ask(api, "/api/v1/nodes", "POST", node("n"))[0] == 201
    for change, message in (
        ({"status": {"allocatable": {"cpu": "abc"}}}, "'abc' is malformed"),
        ({"spec": {"taints": [{"key": "k", "effect": "Never"}]}}, "unsupported value 'Never'"),
    ):
        code, answer = ask(api, "/api/v1/nodes/n", "PATCH", change, "application/merge-patch+json")
        assert (code, answer["reason"]) == (422, "Invalid")
        assert message in answer["message"]


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
def test_sets_of_replicas_have_a_scale(api: ApiServer, plural: str) -> None:
    path = f"/apis/apps/v1/namespaces/default/{plural}"
    template = {"metadata": {"labels": {"app": "web"}}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    assert ask(api, path, "POST", {"metadata": {"name": "web"}, "spec": spec})[0] == 201
    code, found = ask(api, f"{path}/web/scale")
    assert (code, found["kind"], found["spec"]) == (200, "Scale", {"replicas": 2})
    assert found["status"]["selector"] == "app=web"
    patch = {"spec": {"replicas": 5}}
    merge = "application/merge-patch+json"
    assert ask(api, f"{path}/web/scale", "PATCH", patch, merge)[1]["spec"] == {"replicas": 5}
    assert ask(api, f"{path}/web")[1]["spec"] == {**spec, "replicas": 5}
    found["spec"] = {"replicas": 0}
    assert ask(api, f"{path}/web/scale", "PUT", found)[1]["spec"] == {"replicas": 0}
    code, answer = ask(api, f"{path}/web/scale", "PATCH", {"spec": {"replicas": -1}}, merge)
    assert (code, answer["message"]) == (
        422, "spec.replicas: expected a number of pods from 0 on, got -1",
    )  # fmt: skip
    resources = ask(api, "/apis/apps/v1")[1]["resources"]
    (listed,) = [each for each in resources if each["name"] == f"{plural}/scale"]
    assert (listed["kind"], listed["group"], listed["verbs"]) == (
        "Scale", "autoscaling", ["get", "patch", "update"],
    )  # fmt: skip


def test_collections_are_deleted_by_selector(api: ApiServer) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        body = {"metadata": {"name": name, "labels": {"tier": tier}}}
        assert ask(api, maps, "POST", body)[0] == 201
    other = "/api/v1/namespaces/kube-system/configmaps"
    body = {"metadata": {"name": "a", "labels": {"tier": "x"}}}
    assert ask(api, other, "POST", body)[0] == 201
    trial = f"{maps}?labelSelector=tier%3Dx&dryRun=All"
    assert [e["metadata"]["name"] for e in ask(api, trial, "DELETE")[1]["items"]] == ["a", "c"]
    assert len(ask(api, maps)[1]["items"]) == 3
    code, gone = ask(api, f"{maps}?labelSelector=tier%3Dx", "DELETE")
    assert (code, gone["kind"]) == (200, "ConfigMapList")
    assert [each["metadata"]["name"] for each in gone["items"]] == ["a", "c"]
    assert [each["metadata"]["name"] for each in ask(api, maps)[1]["items"]] == ["b"]
    assert [each["metadata"]["name"] for each in ask(api, other)[1]["items"]] == ["a"]
    assert ask(api, f"{maps}?labelSelector=tier%20in%20x", "DELETE")[0] == 400


def test_pods_deleted_as_a_collection_leave_the_simulation(api: ApiServer) -> None:
    add(api, "p", labels={"app": "web"})
    add(api, "q")
    pods = "/api/v1/namespaces/default/pods"
    assert ask(api, f"{pods}?labelSelector=app%3Dweb", "DELETE")[0] == 200
    assert api.requests.get_nowait() == ("delete", "default/p", None)
    assert api.requests.empty()
    assert "deletionTimestamp" in ask(api, f"{pods}/p")[1]["metadata"]
    for path, name in (("/api/v1/namespaces", "namespaces"), (f"{pods[:-4]}services", "services")):
        code, answer = ask(api, path, "DELETE")
        assert (code, answer["message"]) == (405, f"{name} are deleted one by one")
    listed = {each["name"]: each["verbs"] for each in ask(api, "/api/v1")[1]["resources"]}
    assert "deletecollection" in listed["pods"]
    assert "deletecollection" not in listed["services"]


@pytest.mark.parametrize("plural", ["resourcequotas", "limitranges", "daemonsets"])
def test_what_is_not_simulated_is_refused_by_name(api: ApiServer, plural: str) -> None:
    group = "apis/apps/v1" if plural == "daemonsets" else "api/v1"
    path = f"/{group}/namespaces/default/{plural}"
    assert ask(api, path)[1]["items"] == []
    code, answer = ask(api, path, "POST", {"metadata": {"name": "q"}, "spec": {}})
    assert (code, answer["reason"]) == (405, "MethodNotAllowed")
    reason = f"{plural} cannot be made here, as they are not simulated: the"
    assert answer["message"].startswith(reason)


def test_finalizers_keep_an_object_until_they_are_taken_away(api: ApiServer) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    made = {"metadata": {"name": "c", "finalizers": ["example.org/hold"]}, "data": {"a": "1"}}
    assert ask(api, path, "POST", made)[0] == 201
    code, held = ask(api, f"{path}/c", "DELETE")
    assert code == 200
    since = held["metadata"]["deletionTimestamp"]
    assert ask(api, f"{path}/c", "DELETE")[1]["metadata"]["deletionTimestamp"] == since
    taken = {"metadata": {"finalizers": None}}
    merge = "application/merge-patch+json"
    assert ask(api, f"{path}/c", "PATCH", taken, merge)[0] == 200
    assert ask(api, f"{path}/c")[0] == 404


def test_texts_of_a_secret_become_its_data(api: ApiServer) -> None:
    path = "/api/v1/namespaces/default/secrets"
    made = {"metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"p": "word"}}
    assert ask(api, path, "POST", made)[0] == 201
    found = ask(api, f"{path}/s")[1]
    assert found["data"] == {"a": "eA==", "p": "d29yZA=="}
    assert (found["type"], "stringData" in found) == ("Opaque", False)
    more = {"stringData": {"p": "other"}}
    merge = "application/merge-patch+json"
    assert ask(api, f"{path}/s", "PATCH", more, merge)[1]["data"]["p"] == "b3RoZXI="


@pytest.mark.parametrize("form", ["put", "json", "merge"])
def test_a_node_loses_what_a_change_takes_away(api: ApiServer, form: str) -> None:
    cluster = Cluster.of(objects(node("n", labels={"disk": "ssd", "zone": "a"})))
    outside = Outside(api, quiet=0.01, limit=0.01)
    sim = Simulation(cluster, outside)
    outside.show_nodes(cluster)
    path = "/api/v1/nodes/n"
    cordon = {"spec": {"unschedulable": True}}
    assert ask(api, path, "PATCH", cordon, "application/merge-patch+json")[0] == 200
    if form == "put":
        whole = ask(api, path)[1]
        del whole["metadata"]["labels"]["disk"], whole["spec"]["unschedulable"], whole["status"]
        assert ask(api, path, "PUT", whole)[0] == 200
    elif form == "json":
        gone = ("/metadata/labels/disk", "/spec/unschedulable")
        steps = [{"op": "remove", "path": each} for each in gone]
        assert ask(api, path, "PATCH", steps, "application/json-patch+json")[0] == 200
    else:
        patch = {"metadata": {"labels": {"disk": None}}, "spec": {"unschedulable": None}}
        assert ask(api, path, "PATCH", patch, "application/merge-patch+json")[0] == 200
    taken = iter([True, False])
    sim.run(more=lambda: next(taken))
    record = cluster.record("n").node
    assert (dict(record.labels), record.unschedulable) == ({"zone": "a"}, False)
    assert record.allocatable["cpu"] > 0
    assert ask(api, path)[1]["metadata"]["labels"] == {"zone": "a"}


def test_pages_of_a_list_are_of_one_version(api: ApiServer) -> None:
    for name in ("a", "b", "c", "d"):
        add(api, name)
    path = "/api/v1/namespaces/default/pods?limit=2"
    first = ask(api, path)[1]
    token = first["metadata"]["continue"]
    add(api, "e")
    add(api, "d", labels={"later": "yes"})
    api.store.drop("pods", "default/c")
    _, second = ask(api, f"{path}&continue={token}")
    assert [item["metadata"]["name"] for item in second["items"]] == ["c", "d"]
    assert "labels" not in second["items"][1]["metadata"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    api.store.history = 1
    add(api, "f")
    code, told = ask(api, f"{path}&continue={token}")
    assert (code, told["reason"]) == (410, "Expired")
