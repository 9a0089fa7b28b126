"""Strategic merge patches and server-side apply, as kubectl and clients of Kubernetes send them."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.writes.applying import Conflict, applied
from hagane.tools.cluster.link.writes.fields import leaves, read_managed, with_managed, written
from hagane.tools.cluster.link.writes.strategic import BadStrategicPatch, patched_strategically

client = pytest.importorskip("kubernetes.client", reason="needs the extra 'cluster'")

WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "nginx:1",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}],
                    },
                    {"name": "log", "image": "fluent:1"},
                ],
                "tolerations": [{"key": "x", "operator": "Exists"}],
            },
        },
    },
}
OF_APPS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def connected(api: ApiServer) -> Any:
    configuration = client.Configuration()
    configuration.host = api.url
    return client.ApiClient(configuration)


def ask(
    api: ApiServer, path: str, body: Any, kind: str = "apply-patch+yaml", method: str = "PATCH"
) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": f"application/{kind}", "User-Agent": "somebody/1.0"}
    request = urllib.request.Request(api.url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def pod_spec(value: Any) -> Any:
    return value["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        ([{"name": "log", "image": "fluent:2"}], ["web", "log"]),
        # Without an order, new items come before those that the patch does not name.
        ([{"name": "new"}], ["new", "web", "log"]),
        ([{"name": "log", "$patch": "delete"}], ["web"]),
        ([{"name": "only"}, {"$patch": "replace"}], ["only"]),
        ([], ["web", "log"]),
    ],
)
def test_a_patch_names_items_of_lists_by_their_key(patch: Any, names: list[str]) -> None:
    out = patched_strategically(pod_spec(WEB), {"containers": patch})
    assert [each["name"] for each in out["containers"]] == names
    if "web" in names:
        web = next(each for each in out["containers"] if each["name"] == "web")
        assert web == pod_spec(WEB)["containers"][0]
    assert out["tolerations"] == [{"key": "x", "operator": "Exists"}]


def test_an_order_of_items_holds_and_others_keep_their_place() -> None:
    value = {"containers": [{"name": name} for name in "abcd"]}
    patch = {
        "containers": [{"name": "e"}, {"name": "b", "image": "x"}],
        "$setElementOrder/containers": [{"name": "d"}, {"name": "b"}, {"name": "e"}],
    }
    out = patched_strategically(value, patch)["containers"]
    # a and c stand before d, as they did.
    assert [each["name"] for each in out] == ["a", "c", "d", "b", "e"]
    assert out[3] == {"name": "b", "image": "x"}


def test_directives_of_objects_and_of_lists_without_keys() -> None:
    value = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "a": {"b": 1}}
    patch = {
        "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
        "a": {"$patch": "replace", "c": 2},
    }
    assert patched_strategically(value, patch) == {"strategy": {"type": "Recreate"}, "a": {"c": 2}}
    assert patched_strategically(value, {"a": {"$patch": "delete"}}).keys() == {"strategy"}
    finalizers = {"finalizers": ["one", "two"]}
    assert patched_strategically(finalizers, {"finalizers": ["three", "one"]}) == {
        "finalizers": ["three", "one", "two"]
    }
    removed = {"$deleteFromPrimitiveList/finalizers": ["two"]}
    assert patched_strategically(finalizers, removed) == {"finalizers": ["one"]}
    taints = {"taints": [{"key": "a"}]}
    assert patched_strategically(taints, {"taints": [{"key": "b"}]}) == {"taints": [{"key": "b"}]}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"containers": [{"image": "x"}]}, "containers: expected items with the key 'name'"),
        ({"containers": ["x"]}, "containers: expected items with the key 'name', got x"),
        ({"$patch": "remove"}, r"\$patch: expected merge, replace or delete, got 'remove'"),
        ({"containers": [{"name": "a", "$patch": "drop"}]}, "expected merge, replace or delete"),
        ({"tolerations": [{"$patch": "delete"}]}, "the items of this list have no key"),
        ({"$retainKeys": 3}, r"\$retainKeys: expected a list of names, got 3"),
        ({"$sort": []}, r"\$sort: there is no such directive"),
        ({"$setElementOrder/containers": 3}, "expected a list, got 3"),
        ({"$deleteFromPrimitiveList/finalizers": 3}, "expected a list, got 3"),
    ],
)
def test_patches_that_do_not_fit_are_refused(patch: Any, message: str) -> None:
    with pytest.raises(BadStrategicPatch, match=message):
        patched_strategically(pod_spec(WEB), patch)


def test_the_clients_patch_is_strategic_and_a_merge_patch_replaces_lists(api: ApiServer) -> None:
    apps = client.AppsV1Api(connected(api))
    apps.create_namespaced_deployment("default", WEB)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}
    new = apps.patch_namespaced_deployment("web", "default", image)
    assert [c.image for c in new.spec.template.spec.containers] == ["nginx:2", "fluent:1"]
    assert [e.name for e in new.spec.template.spec.containers[0].env] == ["A", "B"]
    code, merged = ask(api, f"{OF_APPS}/web", image, "merge-patch+json")
    assert (code, len(pod_spec(merged)["containers"])) == (200, 1)
    stale = {"metadata": {"resourceVersion": "1"}, **image}
    code, answer = ask(api, f"{OF_APPS}/web", stale, "strategic-merge-patch+json")
    assert (code, answer["reason"]) == (409, "Conflict")


def test_a_write_that_changes_nothing_makes_no_version(api: ApiServer) -> None:
    apps = client.AppsV1Api(connected(api))
    made = apps.create_namespaced_deployment("default", WEB)
    same = apps.patch_namespaced_deployment("web", "default", {"spec": {"replicas": 2}})
    assert same.metadata.resource_version == made.metadata.resource_version


def test_managers_apply_their_fields_and_those_of_others_are_conflicts(api: ApiServer) -> None:
    path = f"{OF_APPS}/web?fieldManager="
    assert ask(api, f"{path}one", WEB)[0] == 201
    code, same = ask(api, f"{path}one", WEB)
    assert code == 200
    version = same["metadata"]["resourceVersion"]
    assert ask(api, f"{path}one", WEB)[1]["metadata"]["resourceVersion"] == version

    scaled = {**WEB, "spec": {"replicas": 5}}
    code, answer = ask(api, f"{path}two", scaled)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert 'Apply failed with 1 conflict: conflict with "one": .spec.replicas' in answer["message"]
    code, forced = ask(api, f"{path}two&force=true", scaled)
    assert (code, forced["spec"]["replicas"]) == (200, 5)
    held = {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in managed(forced)}
    assert held["two"] == {"f:replicas": {}}
    assert "f:replicas" not in held["one"]
    containers = held["one"]["f:template"]["f:spec"]["f:containers"]
    assert containers['k:{"name":"web"}']["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }
    # What the first one no longer sends is gone, but what the second one has.
    without = json.loads(json.dumps(WEB))
    del without["spec"]["replicas"], pod_spec(without)["containers"][1]
    del pod_spec(without)["containers"][0]["env"][0], pod_spec(without)["tolerations"]
    code, left = ask(api, f"{path}one", without)
    assert (code, left["spec"]["replicas"]) == (200, 5)
    assert pod_spec(left)["containers"] == pod_spec(without)["containers"]
    assert "tolerations" not in pod_spec(left)


def managed(value: Any) -> Any:
    return value["metadata"]["managedFields"]


def test_other_writes_have_managers_too(api: ApiServer) -> None:
    assert ask(api, OF_APPS, WEB, "json", "POST")[0] == 201
    code, answer = ask(api, f"{OF_APPS}/web?fieldManager=ci", {**WEB, "spec": {"replicas": 3}})
    assert code == 409
    assert 'conflict with "somebody": .spec.replicas' in answer["message"]
    patch = {"spec": {"replicas": 3}}
    url = f"{OF_APPS}/web?fieldManager=kubectl-scale"
    _, scaled = ask(api, url, patch, "merge-patch+json")
    held = {each.manager: {written(path) for path in each.fields} for each in read_managed(scaled)}
    assert held["kubectl-scale"] == {".spec.replicas"}
    assert ".spec.replicas" not in held["somebody"]
    assert {entry["operation"] for entry in managed(scaled)} == {"Update"}
    # The same value is no conflict: both manage the field.
    assert ask(api, f"{OF_APPS}/web?fieldManager=ci", {**WEB, **patch})[0] == 200


@pytest.mark.parametrize(
    ("query", "body", "code", "message"),
    [
        ("", WEB, 422, "fieldManager: a name is needed to apply"),
        ("?fieldManager=a", {**WEB, "kind": "Job"}, 400, "kind: expected 'Deployment', got 'Job'"),
        (
            "?fieldManager=a",
            {**WEB, "metadata": {"name": "other"}},
            400,
            "metadata.name: expected 'web', got 'other'",
        ),
        (
            "?fieldManager=a",
            {**WEB, "metadata": {"name": "web", "managedFields": [{}]}},
            400,
            "metadata.managedFields: expected none",
        ),
        (
            "?fieldManager=a",
            {**WEB, "spec": {"env": [{"name": "A"}, {"name": "A"}]}},
            400,
            '.spec.env: two items of the keys [name="A"]',
        ),
        ("?fieldManager=a", b"a: &x [1]\nb: *x\n", 400, "aliases are not read here, got '*x'"),
        ("?fieldManager=a", b"a: [", 400, "the body is not YAML"),
        ("?fieldManager=a", b"- 1\n", 400, "the body is not a JSON object"),
        ("?fieldManager=a", b"a: 1\n---\nb: 1\n", 400, "the body is not one object in YAML"),
    ],
)
def test_configurations_that_cannot_be_applied_are_refused(
    api: ApiServer, query: str, body: Any, code: int, message: str
) -> None:
    found, answer = ask(api, f"{OF_APPS}/web{query}", body)
    assert (found, answer["kind"]) == (code, "Status")
    assert message in answer["message"]


def test_configurations_come_as_yaml_and_dry(api: ApiServer) -> None:
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: x\n"
    path = "/api/v1/namespaces/default/configmaps/c?fieldManager=me"
    assert ask(api, f"{path}&dryRun=All", yaml)[0] == 201
    assert api.store.get("configmaps", "default/c") is None
    code, made = ask(api, path, yaml)
    assert (code, made["data"], made["metadata"]["namespace"]) == (201, {"a": "x"}, "default")


def drawn(random: random.Random, depth: int = 0) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in random.sample(("a", "b", "containers", "env", "finalizers", "plain"), 3):
        if name in ("containers", "env"):
            names = random.sample("pqrs", random.randint(1, 3))
            out[name] = [
                {"name": each, **(drawn(random, 2) if depth < 2 else {})} for each in names
            ]
        elif name == "finalizers":
            out[name] = random.sample(["x", "y", "z"], random.randint(1, 3))
        elif name == "plain" or depth > 1:
            out[name] = random.choice([1, 2, "three", [1, 2], [{"q": 1}]])
        else:
            out[name] = drawn(random, depth + 1)
    return out


def plain(value: Any) -> Any:
    """Return an object without its metadata; lists of items with keys in any order are one."""
    return {path: each for path, each in leaves(value).items() if path[0] != "metadata"}


@pytest.mark.parametrize("seed", range(60))
def test_drawn_configurations_add_up_and_leave_nothing_behind(seed: int) -> None:
    choose = random.Random(seed)
    one, two, three = ({"spec": drawn(choose)} for _ in range(3))
    empty: dict[str, Any] = {"metadata": {}}

    def apply(value: Any, wanted: Any, manager: str, force: bool = True) -> Any:
        return applied(value, wanted, manager, "", "", force)

    first = apply(empty, one, "one")
    assert plain(first) == leaves(one)
    assert apply(first, one, "one", force=False) == first
    # Nothing of an earlier configuration is left when another takes its place.
    assert plain(apply(first, two, "one")) == leaves(two)
    both = apply(first, two, "two")
    assert all(plain(both)[path] == each for path, each in leaves(two).items())
    # A conflict is a field of another manager that has another value, or is gone, afterwards.
    lost = {path for path, each in leaves(one).items() if plain(both).get(path, one) != each}
    if lost:
        with pytest.raises(Conflict) as conflict:
            apply(first, two, "two", force=False)
        assert {path for path, _ in conflict.value.fields} == {written(path) for path in lost}
    else:
        assert apply(first, two, "two", force=False) == both
    # Managers survive the way through metadata.
    assert with_managed(both, read_managed(both)) == both
    # When both take everything back, nothing is left.
    last = apply(apply(both, {}, "one"), {}, "two")
    assert plain(last) == {}
    assert plain(apply(apply(both, three, "one"), three, "two")) == leaves(three)
