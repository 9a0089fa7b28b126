"""Objects of the API server: what belongs together, what is refused, what a row shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.objects.workloads import read_made
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.writes.reports import read_created
from hagane.tools.cluster.sim.ports import Pending, Queue
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, pod
from tests.cluster.test_apiserver_clients import add, ask

pytest.importorskip("starlette", reason="needs the extra 'cluster'")

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def made(api: ApiServer, name: str, **meta: Any) -> dict[str, Any]:
    """Make a configuration map and return it."""
    code, value = ask(api, MAPS, "POST", {"metadata": {"name": name, **meta}})
    assert code == 201, value
    return value


def there(api: ApiServer, *names: str) -> list[str]:
    return [name for name in names if ask(api, f"{MAPS}/{name}")[0] == 200]


def owned_by(*owners: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": m["name"], "uid": m["uid"]}
        for m in (owner["metadata"] for owner in owners)
    ]


def test_what_an_object_alone_owns_goes_with_it(api: ApiServer) -> None:
    first, second = made(api, "first"), made(api, "second")
    child = made(api, "child", ownerReferences=owned_by(first))
    made(api, "grandchild", ownerReferences=owned_by(child))
    made(api, "shared", ownerReferences=owned_by(first, second))
    assert ask(api, f"{MAPS}/first", "DELETE")[0] == 200
    assert there(api, "first", "second", "child", "grandchild", "shared") == ["second", "shared"]
    shared = ask(api, f"{MAPS}/shared")[1]["metadata"]
    assert shared["ownerReferences"] == owned_by(second)


def test_orphans_lose_their_owner_and_stay(api: ApiServer) -> None:
    made(api, "child", ownerReferences=owned_by(made(api, "first")))
    assert ask(api, f"{MAPS}/first?propagationPolicy=Orphan", "DELETE")[0] == 200
    assert "ownerReferences" not in ask(api, f"{MAPS}/child")[1]["metadata"]


def test_a_namespace_is_deleted_with_what_it_holds(api: ApiServer) -> None:
    ask(api, "/api/v1/namespaces", "POST", {"metadata": {"name": "team"}})
    maps = "/api/v1/namespaces/team/configmaps"
    ask(api, maps, "POST", {"metadata": {"name": "m"}})
    kept = made(api, "kept")
    assert ask(api, "/api/v1/namespaces/team", "DELETE")[0] == 200
    assert ask(api, f"{maps}/m")[0] == 404
    assert there(api, kept["metadata"]["name"]) == ["kept"]


def test_a_namespace_has_to_be_there_before_its_objects(api: ApiServer) -> None:
    maps = "/api/v1/namespaces/team/configmaps"
    code, answer = ask(api, maps, "POST", {"metadata": {"name": "m"}})
    assert (code, answer["reason"]) == (404, "NotFound")
    assert answer["message"].startswith('namespaces "team" not found; make it first')
    code, team = ask(api, "/api/v1/namespaces", "POST", {"metadata": {"name": "team"}})
    assert team["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert (team["spec"], team["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert ask(api, maps, "POST", {"metadata": {"name": "m"}})[0] == 201


def test_a_cluster_has_the_namespaces_of_its_files_and_pods(api: ApiServer) -> None:
    cluster = Cluster()
    cluster.namespaces = {"quiet": {"team": "red"}}
    waiting = read_created(pod("p", namespace="busy"), "busy/p")
    scheduler, queue = Outside(api), Queue()
    queue.add(Pending(waiting, 0.0, 0.0))
    scheduler._show(queue, cluster)
    found = ask(api, "/api/v1/namespaces")[1]["items"]
    first = ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert sorted(item["metadata"]["name"] for item in found) == sorted([*first, "busy", "quiet"])
    (red,) = ask(api, "/api/v1/namespaces?labelSelector=team%3Dred")[1]["items"]
    assert red["metadata"]["name"] == "quiet"
    assert ask(api, "/api/v1/namespaces/quiet", "DELETE")[0] == 200
    scheduler._show(queue, cluster)
    assert ask(api, "/api/v1/namespaces/quiet")[0] == 404


def test_a_deletion_of_another_object_or_by_no_policy_is_refused(api: ApiServer) -> None:
    value = made(api, "m")
    uid = value["metadata"]["uid"]
    code, answer = ask(api, f"{MAPS}/m", "DELETE", {"preconditions": {"uid": "other"}})
    assert (code, answer["reason"]) == (409, "Conflict")
    assert answer["message"] == f"preconditions.uid: expected 'other', the object has {uid!r}"
    code, answer = ask(api, f"{MAPS}/m?propagationPolicy=Sideways", "DELETE")
    assert code == 422
    assert "expected Background, Foreground, Orphan, got 'Sideways'" in answer["message"]
    assert ask(api, f"{MAPS}/m", "DELETE", {"preconditions": {"uid": uid}})[0] == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": {"containers": []}}, "expected at least one"),
        ({"spec": {}}, "expected at least one"),
        ({"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}, "a name of its own"),
        ({"spec": {"containers": 3}}, "containers"),
        ({"spec": 3}, "spec"),
        ({"metadata": {"name": "p", "labels": {"a": "b c"}}}, "a='b c' is no label"),
        ({"metadata": {"name": "p", "labels": ["a"]}}, "labels"),
        ({"metadata": {"name": "p", "labels": {"a": 1}}}, "labels"),
    ],
)
def test_pods_that_kubernetes_refuses_are_refused(
    api: ApiServer, body: dict[str, Any], words: str
) -> None:
    whole = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}, **body}
    code, answer = ask(api, PODS, "POST", whole)
    assert (code, answer["reason"]) == (422, "Invalid")
    assert words in answer["message"]


def test_pods_have_the_priority_of_the_class_that_they_name(api: ApiServer) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    assert ask(api, classes, "POST", {"metadata": {"name": "odd"}, "value": "x"})[0] == 422
    high = {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}
    assert ask(api, classes, "POST", high)[0] == 201
    named = pod("named", {"cpu": 1}, namespace="default", priorityClassName="high")
    spec = ask(api, PODS, "POST", named)[1]["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    _, key, told = api.requests.get_nowait()
    assert read_created(told, key).priority == 7
    named["spec"]["priorityClassName"] = "low"
    code, refused = ask(api, PODS, "POST", named)
    assert (code, refused["message"]) == (
        403,
        "no PriorityClass with name low was found: make it first; known are high, "
        "system-cluster-critical, system-node-critical",
    )
    usual = {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True}
    assert ask(api, classes, "POST", usual)[0] == 201
    spec = ask(api, PODS, "POST", pod("plain", {}, namespace="default"))[1]["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (3, "usual")
    template = {"spec": {**named["spec"], "priorityClassName": "high"}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    assert ask(api, "/apis/batch/v1/namespaces/default/jobs", "POST", job)[0] == 201
    while not api.requests.empty():
        _, key, told = api.requests.get_nowait()
    assert read_made(told, key).template.priority == 7


def test_labels_are_checked_when_they_change(api: ApiServer) -> None:
    made(api, "m")
    code, answer = ask(api, f"{MAPS}/m", "PATCH", {"metadata": {"labels": {"a": "-"}}}, kind=MERGE)
    assert code == 422
    assert "a='-' is no label" in answer["message"]


def test_the_fields_of_a_new_pod_that_selectors_name_are_filled_in(api: ApiServer) -> None:
    ask(api, PODS, "POST", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    for field in ("spec.restartPolicy=Always", "spec.schedulerName=default-scheduler"):
        found = ask(api, f"{PODS}?fieldSelector={quote(field)}")[1]["items"]
        assert [each["metadata"]["name"] for each in found] == ["p"], field


def test_labels_are_selected_by_order(api: ApiServer) -> None:
    for number in ("3", "12", "x"):
        made(api, f"m{number}", labels={"n": number})
    for selector, names in (("n>3", ["m12"]), ("n < 12", ["m3"]), ("n>-1", ["m12", "m3"])):
        found = ask(api, f"{MAPS}?labelSelector={quote(selector)}")[1]["items"]
        assert [each["metadata"]["name"] for each in found] == names, selector


def test_a_patch_of_another_kind_is_refused(api: ApiServer) -> None:
    made(api, "m")
    code, answer = ask(api, f"{MAPS}/m", "PATCH", {}, kind="application/xml")
    assert (code, answer["reason"]) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in answer["message"]


def test_what_is_applied_to_a_pod_is_its_managers(api: ApiServer) -> None:
    add(api, "p")
    label = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "1"}}}
    assert ask(api, f"{PODS}/p?fieldManager=me", "PATCH", label, kind=APPLY)[0] == 200
    # As the simulation says it, from the manifest that it read before.
    api.store.show("pods", "default/p", pod("p", namespace="default", labels={"a": "1"}))
    label["metadata"] = {"name": "p", "labels": {"a": "2"}}
    code, answer = ask(api, f"{PODS}/p?fieldManager=you", "PATCH", label, kind=APPLY)
    assert code == 409
    assert 'conflict with "me"' in answer["message"]


def test_versions_of_another_server_are_answered(api: ApiServer) -> None:
    code, answer = ask(api, f"{PODS}?resourceVersion=999999")
    assert (code, answer["reason"]) == (504, "Timeout")
    assert answer["message"].startswith("Too large resource version: 999999, current: ")
    code, answer = ask(api, f"{PODS}?watch=1&resourceVersion=999999")
    assert (code, answer["reason"]) == (410, "Expired")


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [("", "PartialObjectMetadata"), ("Object", "ConfigMap"), ("None", None)],
)
def test_the_rows_of_a_table_have_the_object_that_is_asked_for(
    api: ApiServer, wanted: str, kind: str | None
) -> None:
    made(api, "m")
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    with urlopen(Request(f"{api.url}{MAPS}?includeObject={wanted}", None, accept)) as answer:
        (row,) = json.loads(answer.read())["rows"]
    assert row.get("object", {}).get("kind") == kind


def test_resizes_in_place_are_refused_by_name(api: ApiServer) -> None:
    add(api, "p")
    code, answer = ask(api, f"{PODS}/p/resize", "PATCH", {}, kind=MERGE)
    assert code == 405
    assert "resizes in place are not simulated" in answer["message"]


def test_a_binding_is_shown_although_nothing_else_happens() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": {"a": "1"}}},
    }
    known = objects(node("n"), pod("p", {"cpu": "1"}, labels={"a": "1"}), budget)
    with ApiServer() as api:
        outside = Outside(api, quiet=0.05)
        sim = Simulation(Cluster.of(known), outside)
        for each in known.pods:
            sim.submit(each)
        api.requests.put(("bind", "default/p", "n"))
        sim.run()
        shown = ask(api, f"{PODS}/p")[1]
        assert (shown["spec"]["nodeName"], shown["status"]["phase"]) == ("n", "Running")
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        assert ask(api, f"{budgets}/b")[1]["status"]["disruptionsAllowed"] == 1
