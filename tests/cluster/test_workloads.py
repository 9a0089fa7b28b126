"""Jobs and sets of replicas that clients make, scale, roll and delete, and nodes that are full."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.wire import workload_object
from hagane.tools.cluster.sim.controllers import Controller
from tests.cluster.manifests import node, objects, pod
from tests.cluster.test_apiserver import JOB, refused, run

client = pytest.importorskip("kubernetes.client", reason="needs the extra 'cluster'")


def replicas(kind: str, name: str, number: int, cpu: str = "100m") -> dict[str, Any]:
    container = {"name": "c", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": number,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


def names(connection: Any, label: str) -> list[str]:
    found = client.CoreV1Api(connection).list_namespaced_pod("default", label_selector=label)
    return [each.metadata.name for each in found.items]


def bind(connection: Any, name: str, to: str = "n") -> None:
    target = client.V1ObjectReference(kind="Node", name=to)
    body = client.V1Binding(metadata=client.V1ObjectMeta(name=name), target=target)
    pods = client.CoreV1Api(connection)
    pods.create_namespaced_pod_binding(name, "default", body, _preload_content=False)


def test_sets_of_replicas_are_made_scaled_and_deleted() -> None:
    seen: list[list[str]] = []
    statuses: list[tuple[int, int]] = []
    apps: Callable[[Any], Any] = client.AppsV1Api

    def make(connection: Any) -> None:
        apps(connection).create_namespaced_deployment("default", replicas("Deployment", "web", 3))

    def look(connection: Any) -> None:
        seen.append(names(connection, "app=web"))
        for each in apps(connection).list_namespaced_deployment("default").items:
            statuses.append((each.status.replicas, each.status.ready_replicas))

    def place(connection: Any) -> None:
        bind(connection, "web-0")

    def scale(number: int) -> Callable[[Any], None]:
        def act(connection: Any) -> None:
            body = {"spec": {"replicas": number}}
            apps(connection).patch_namespaced_deployment_scale("web", "default", body)

        return act

    def delete(connection: Any) -> None:
        apps(connection).delete_namespaced_deployment("web", "default")

    with ApiServer() as api:
        sim, _ = run(
            api,
            [node("n")],
            (1.0, make), (2.0, look), (3.0, place), (4.0, scale(1)), (5.0, look),
            (6.0, scale(2)), (7.0, look), (8.0, delete), (40.0, look),
        )  # fmt: skip
    # The latest go first; numbers are not used again.
    assert seen == [["web-0", "web-1", "web-2"], ["web-0"], ["web-0", "web-3"], []]
    assert statuses == [(3, 0), (1, 1), (2, 1)]
    assert sim.cluster.workloads == ()


@pytest.mark.parametrize("selector", [None, {"matchLabels": {"app": "other"}}])
def test_a_set_of_replicas_that_does_not_select_its_pods_is_refused(selector: Any) -> None:
    body = replicas("Deployment", "web", 1)
    body["spec"]["selector"] = selector
    with ApiServer() as api:
        url = f"{api.url}/apis/apps/v1/namespaces/default/deployments"
        code, message = refused(url, "POST", json.dumps(body).encode())
    assert code == 422
    assert "`selector` does not match template `labels` ({'app': 'web'})" in message


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_another_template_replaces_the_pods_of_a_deployment(kind: str) -> None:
    seen: list[list[str]] = []

    def make(connection: Any) -> None:
        create = getattr(apps(connection), f"create_namespaced_{plural}")
        create("default", replicas(kind, "web", 2))

    def change(connection: Any) -> None:
        image = {"template": {"spec": {"containers": [{"name": "c", "image": "x:2"}]}}}
        getattr(apps(connection), f"patch_namespaced_{plural}")("web", "default", {"spec": image})

    def look(connection: Any) -> None:
        seen.append(names(connection, "app=web"))

    apps: Callable[[Any], Any] = client.AppsV1Api
    plural = {"Deployment": "deployment", "ReplicaSet": "replica_set"}[kind]
    with ApiServer() as api:
        run(api, [node("n")], (1.0, make), (2.0, change), (3.0, look))
    assert seen == [["web-2", "web-3"] if kind == "Deployment" else ["web-0", "web-1"]]


def test_a_job_of_a_client_runs_and_leaves_its_pods_if_told_so() -> None:
    seen: list[Any] = []

    def make(connection: Any) -> None:
        client.BatchV1Api(connection).create_namespaced_job("default", JOB)

    def succeed(connection: Any) -> None:
        bind(connection, "j-0")
        body = {"status": {"phase": "Succeeded"}}
        client.CoreV1Api(connection).patch_namespaced_pod_status("j-0", "default", body)

    def look(connection: Any) -> None:
        job = client.BatchV1Api(connection).read_namespaced_job("j", "default")
        seen.append((job.status.active, job.status.succeeded, job.spec.completions))

    def delete(connection: Any) -> None:
        jobs = client.BatchV1Api(connection)
        jobs.delete_namespaced_job("j", "default", propagation_policy="Orphan")

    with ApiServer() as api:
        sim, _ = run(api, [node("n")], (1.0, make), (2.0, succeed), (3.0, look), (4.0, delete))
    assert seen == [(2, 1, 3)]
    assert {each.key for each in sim.queue if each.labels.get("app") == "j"} == {
        "default/j-1",
        "default/j-2",
    }


def test_a_suspended_job_has_no_pods_until_it_goes_on() -> None:
    seen: list[list[str]] = []

    def make(connection: Any) -> None:
        held = {**JOB, "spec": {**JOB["spec"], "suspend": True}}
        client.BatchV1Api(connection).create_namespaced_job("default", held)

    def look(connection: Any) -> None:
        seen.append(names(connection, "job-name=j"))

    def suspend(connection: Any, suspended: bool) -> None:
        body = {"spec": {"suspend": suspended}}
        client.BatchV1Api(connection).patch_namespaced_job("j", "default", body)

    acts = [make, look, partial(suspend, suspended=False), look]
    acts += [partial(suspend, suspended=True), look]
    with ApiServer() as api:
        run(api, [node("n")], *((float(time), act) for time, act in enumerate(acts)))
    assert seen == [[], ["j-0", "j-1"], []]


def test_workloads_of_manifests_are_there_and_scaled_as_those_of_clients() -> None:
    seen: list[Any] = []

    def scale(connection: Any) -> None:
        apps = client.AppsV1Api(connection)
        seen.append(apps.read_namespaced_stateful_set("db", "default").spec.replicas)
        apps.patch_namespaced_stateful_set_scale("db", "default", {"spec": {"replicas": 1}})

    def look(connection: Any) -> None:
        seen.append(names(connection, "app=db"))

    with ApiServer() as api:
        run(api, [node("n"), replicas("StatefulSet", "db", 2)], (1.0, scale), (2.0, look))
    assert seen == [2, ["db-0"]]


def test_what_another_controller_owns_makes_no_pods() -> None:
    owned = replicas("ReplicaSet", "web-1", 2)
    owner = {"kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    owned["metadata"]["ownerReferences"] = [{**owner, "apiVersion": "apps/v1"}]

    def make(connection: Any) -> None:
        client.AppsV1Api(connection).create_namespaced_replica_set("default", owned)

    with ApiServer() as api:
        sim, _ = run(api, [node("n")], (1.0, make))
    assert not [each for each in sim.queue if each.labels.get("app")]


def test_pods_of_two_controllers_and_of_a_client_have_names_of_their_own() -> None:
    seen: list[list[str]] = []

    def make(connection: Any) -> None:
        body = pod("late-1", {}, labels={"app": "late"})
        client.CoreV1Api(connection).create_namespaced_pod("default", body)
        late = replicas("Deployment", "late", 2)
        client.AppsV1Api(connection).create_namespaced_deployment("default", late)

    def look(connection: Any) -> None:
        seen.append(names(connection, "app=web"))
        seen.append(names(connection, "app=late"))

    made = [replicas("Deployment", "web", 2), replicas("StatefulSet", "web", 2)]
    with ApiServer() as api:
        run(api, [node("n"), *made], (1.0, make), (2.0, look))
    assert seen == [["web-0", "web-1", "web-2", "web-3"], ["late-0", "late-1", "late-2"]]


def test_a_pod_bound_to_a_full_node_fails_and_the_server_goes_on() -> None:
    def crowd(connection: Any) -> None:
        for name in "ab":
            body = pod(name, {"cpu": "3"})
            client.CoreV1Api(connection).create_namespaced_pod("default", body)
            bind(connection, name)

    full = node("n", has={"cpu": "4", "pods": 9})
    with ApiServer() as api:
        sim, log = run(api, [full], (1.0, crowd), (2.0, lambda _: None))
        changes, _ = api.store.since("pods", 0)
    assert (1.0, "fail", "default/b") in log
    assert "default/a" in sim.cluster.where
    states = [c.object["status"] for c in changes if c.object["metadata"]["name"] == "b"]
    failed = next(each for each in states if each.get("phase") == "Failed")
    assert failed["reason"] == "OutOfResources"
    assert failed["message"] == "node 'n' is full: cpu: 3000 requested, 1000 free"


def test_what_makes_no_pods_is_refused() -> None:
    bad = {**JOB, "apiVersion": "batch/v1", "spec": {**JOB["spec"], "completions": -1}}
    with ApiServer() as api:
        url = f"{api.url}/apis/batch/v1/namespaces/default/jobs"
        code, message = refused(url, "POST", json.dumps(bad).encode())
    assert code == 422
    assert "Job 'default/j'" in message
    assert "completions" in message


def test_a_workload_is_written_as_clients_know_it() -> None:
    (workload,) = objects(replicas("Deployment", "web", 2)).workloads
    found = workload_object(Controller(workload))
    assert (found["apiVersion"], found["kind"]) == ("apps/v1", "Deployment")
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["template"]["metadata"]["labels"] == {"app": "web"}
    assert found["status"] == {
        "replicas": 0,
        "readyReplicas": 0,
        "updatedReplicas": 0,
        "availableReplicas": 0,
    }
