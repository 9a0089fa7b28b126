"""The API server as the ordinary ``kubernetes`` client sees it, and what the client changes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.writes.patching import merged
from hagane.tools.cluster.sim.actions import Submit, SubmitterAction, Terminate
from hagane.tools.cluster.sim.controllers import Controller
from hagane.tools.cluster.sim.ports import Metrics, Submitter
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from tests.cluster.manifests import node, objects, one, pod

client = pytest.importorskip("kubernetes.client", reason="needs the extra 'cluster'")
BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
}
JOB = {
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {
        "completions": 3,
        "parallelism": 2,
        "template": {
            "metadata": {"labels": {"app": "j"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]},
        },
    },
}


class At(Submitter):
    """Does something at a time, and submits a pod, so that the scheduler is asked."""

    name = "at"

    def __init__(self, time: float, act: Callable[[], None]):
        self.time = time
        self.act = act

    def submit(self, clock: float, nodes: Cluster, metrics: Metrics) -> Iterator[SubmitterAction]:
        if clock >= self.time:
            self.act()
            yield Submit(one(pod(f"news-{clock:g}", {"cpu": 99})))
            yield Terminate()

    def next_time(self, clock: float) -> float | None:
        return self.time


def run(
    api: ApiServer, manifests: list[dict[str, Any]], *acts: tuple[float, Callable[[Any], None]]
) -> tuple[Simulation, list[tuple[float, str, str]]]:
    """Run manifests, a client acting at times; returns (time, kind, pod or node) of events."""
    known = objects(*manifests)
    configuration = client.Configuration()
    configuration.host = api.url
    connection = client.ApiClient(configuration)
    log = EventLog()
    sim = Simulation(
        Cluster.of(known),
        Outside(api, quiet=0.05, limit=0.05),
        [
            *(Controller(w) for w in known.workloads),
            *(At(time, lambda act=act: act(connection)) for time, act in acts),  # type: ignore[misc]
        ],
        log=log,
    )
    scheduler = sim.scheduler
    assert isinstance(scheduler, Outside)
    scheduler._heard = True
    sim.run()
    return sim, [(e["time"], e["kind"], e.get("pod", e.get("node", ""))) for e in log]


def test_budgets_are_listed_with_what_they_allow() -> None:
    seen: list[Any] = []

    def look(connection: Any) -> None:
        found = client.PolicyV1Api(connection)
        seen.extend(found.list_pod_disruption_budget_for_all_namespaces().items)

    bound = [pod(f"p{i}", nodeName="n", labels={"app": "x"}) for i in range(3)]
    with ApiServer() as api:
        run(api, [node("n"), BUDGET, *bound], (5.0, look))
    (budget,) = seen
    assert (budget.metadata.namespace, budget.metadata.name) == ("default", "b")
    assert budget.spec.min_available == "1"
    (expression,) = budget.spec.selector.match_expressions
    assert (expression.key, expression.operator, expression.values) == ("app", "In", ["x"])
    status = budget.status
    assert (status.disruptions_allowed, status.current_healthy) == (2, 3)
    assert (status.desired_healthy, status.expected_pods) == (1, 3)


@pytest.mark.long
def test_jobs_are_listed_with_what_has_become_of_their_pods() -> None:
    seen: list[Any] = []

    def end_one(connection: Any) -> None:
        pods = client.CoreV1Api(connection)
        target = client.V1ObjectReference(kind="Node", api_version="v1", name="n")
        body = client.V1Binding(metadata=client.V1ObjectMeta(name="j-0"), target=target)
        pods.create_namespaced_pod_binding("j-0", "default", body, _preload_content=False)

    def succeed(connection: Any) -> None:
        body = {"status": {"phase": "Succeeded"}}
        client.CoreV1Api(connection).patch_namespaced_pod_status("j-0", "default", body)

    def look(connection: Any) -> None:
        seen.extend(client.BatchV1Api(connection).list_job_for_all_namespaces().items)

    with ApiServer() as api:
        _, events = run(api, [node("n"), JOB], (1.0, end_one), (2.0, succeed), (3.0, look))
    assert (1.0, "bind", "default/j-0") in events
    assert (2.0, "finish", "default/j-0") in events
    (job,) = seen
    assert (job.metadata.name, job.spec.completions, job.spec.parallelism) == ("j", 3, 2)
    named = {"batch.kubernetes.io/job-name": "j", "job-name": "j"}
    assert job.spec.template.metadata.labels == {"app": "j", **named}
    # One has succeeded, its successor and the other of the first two are there.
    assert (job.status.succeeded, job.status.failed or 0, job.status.active) == (1, 0, 2)


@pytest.mark.parametrize(("phase", "kind"), [("Succeeded", "finish"), ("Failed", "fail")])
def test_a_phase_that_is_patched_ends_the_pod(phase: str, kind: str) -> None:
    def patch(connection: Any) -> None:
        body = {"status": {"phase": phase, "reason": "Said"}}
        client.CoreV1Api(connection).patch_namespaced_pod_status("p", "default", body)

    with ApiServer() as api:
        sim, events = run(api, [node("n"), pod("p", nodeName="n")], (5.0, patch))
    assert (5.0, kind, "default/p") in events
    assert sim.books.counts["succeeded" if phase == "Succeeded" else "failed"] == 1
    assert not sim.cluster.where


def test_a_condition_says_why_a_pod_waits_and_a_nomination_is_kept() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    }

    def patch(connection: Any) -> None:
        status = {"conditions": [condition], "nominatedNodeName": "n"}
        body = {"status": status}
        client.CoreV1Api(connection).patch_namespaced_pod_status("news-1", "default", body)

    with ApiServer() as api:
        sim, _ = run(api, [node("n")], (1.0, lambda _: None), (2.0, patch))
    pending = sim.queue.get("default/news-1")
    assert pending is not None
    assert pending.why == "0/1 nodes are available: 1 Insufficient cpu."
    assert pending.pod.nominated == "n"


def test_a_pod_that_is_declared_unschedulable_ends_the_turn() -> None:
    """Simulated time goes on at once, although the server would wait for a minute of silence."""
    known = objects(node("n"))
    message = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    with ApiServer() as api:
        scheduler = Outside(api, quiet=60, limit=60)
        sim = Simulation(Cluster.of(known), scheduler)
        sim.submit(one(pod("p")))
        api.requests.put(("pods", "default/p", {"status": {"conditions": [message]}}))
        assert list(scheduler.schedule(0.0, sim.queue, sim.cluster)) == []
    pending = sim.queue.get("default/p")
    assert pending is not None
    assert pending.why == "Unschedulable"


def test_a_node_that_is_cordoned_tainted_or_resized_is_so_in_the_simulation() -> None:
    def patch(connection: Any) -> None:
        nodes = client.CoreV1Api(connection)
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        nodes.patch_node("n", {"spec": {"unschedulable": True, "taints": [taint]}})
        nodes.patch_node_status("n", {"status": {"allocatable": {"cpu": "2"}}})

    with ApiServer() as api:
        sim, events = run(api, [node("n", {"a": "b"})], (5.0, patch))
    changed = sim.cluster.record("n").node
    assert changed.unschedulable
    assert [t.key for t in changed.taints] == ["k"]
    assert changed.allocatable["cpu"] == 2000
    assert dict(changed.labels) == {"a": "b"}
    assert (5.0, "node-changed", "n") in events


def test_the_disruptions_that_a_status_allows_bind_preemption() -> None:
    def patch(connection: Any) -> None:
        policy = client.PolicyV1Api(connection)
        body = {"status": {"disruptionsAllowed": 0}}
        policy.patch_namespaced_pod_disruption_budget_status("b", "default", body)

    bound = [pod(f"p{i}", nodeName="n", labels={"app": "x"}) for i in range(3)]
    with ApiServer() as api:
        sim, _ = run(api, [node("n"), BUDGET, *bound], (5.0, patch))
    assert sim.cluster.budgets[0].allowed == 0


def test_pods_are_created_and_deleted_through_the_server() -> None:
    def create(connection: Any) -> None:
        pods = client.CoreV1Api(connection)
        container = client.V1Container(name="c")
        body = client.V1Pod(
            metadata=client.V1ObjectMeta(name="made"),
            spec=client.V1PodSpec(containers=[container]),
        )
        pods.create_namespaced_pod("default", body)

    def delete(connection: Any) -> None:
        client.CoreV1Api(connection).delete_namespaced_pod("made", "default")

    with ApiServer() as api:
        _, events = run(api, [node("n")], (1.0, create), (2.0, delete))
    assert (1.0, "submit", "default/made") in events
    assert (2.0, "delete", "default/made") in events


@pytest.mark.parametrize("preempted", [False, True])
def test_a_bound_pod_of_a_client_is_gone_unless_it_made_room_for_another(preempted: bool) -> None:
    def create(connection: Any) -> None:
        pods = client.CoreV1Api(connection)
        container = client.V1Container(name="c")
        body = client.V1Pod(
            metadata=client.V1ObjectMeta(name="made"),
            spec=client.V1PodSpec(containers=[container]),
        )
        pods.create_namespaced_pod("default", body)
        target = client.V1ObjectReference(kind="Node", name="n")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name="made"), target=target)
        pods.create_namespaced_pod_binding("made", "default", binding, _preload_content=False)

    def delete(connection: Any) -> None:
        pods = client.CoreV1Api(connection)
        if preempted:
            condition = {"type": "DisruptionTarget", "status": "True"}
            body = {"status": {"conditions": [condition]}}
            pods.patch_namespaced_pod_status("made", "default", body)
        pods.delete_namespaced_pod("made", "default")

    with ApiServer() as api:
        sim, events = run(api, [node("n")], (1.0, create), (2.0, delete))
    assert (1.0, "bind", "default/made") in events
    assert (2.0, "evict" if preempted else "delete", "default/made") in events
    assert ("default/made" in sim.queue) == preempted


def refused(url: str, method: str, body: bytes) -> tuple[int, str]:
    request = urllib.request.Request(url, body, method=method)
    with pytest.raises(urllib.error.HTTPError) as failure:
        urllib.request.urlopen(request)
    message = json.loads(failure.value.read())["message"]
    failure.value.close()
    return failure.value.code, message


def test_what_cannot_be_changed_is_refused() -> None:
    with ApiServer() as api:
        quotas = f"{api.url}/api/v1/namespaces/default/resourcequotas/q"
        code, message = refused(quotas, "PATCH", b"{}")
        assert code == 405
        assert "resourcequotas cannot be made here, as they are not simulated" in message
        pods = f"{api.url}/api/v1/namespaces/default/pods"
        bad = json.dumps({"metadata": {"name": "p"}, "spec": {"containers": 3}}).encode()
        code, message = refused(pods, "POST", bad)
        assert code == 422
        assert "POST of pod 'default/p'" in message
        assert "containers" in message
        assert refused(f"{pods}/p", "PATCH", b"[]") == (
            400,
            "the body is not a JSON object; patches are merge patches",
        )


def test_a_merge_patch_removes_with_null_and_replaces_lists() -> None:
    value = {"a": {"b": 1, "c": 2}, "conditions": [{"type": "x", "n": 1}, {"type": "y"}]}
    patch = {"a": {"b": None}, "conditions": [{"type": "x", "n": 2}], "d": 3}
    assert merged(value, patch) == {
        "a": {"c": 2},
        "conditions": [{"type": "x", "n": 2}],
        "d": 3,
    }


def test_a_node_that_a_client_deletes_is_gone_with_what_ran_on_it() -> None:
    def delete(connection: Any) -> None:
        nodes = client.CoreV1Api(connection)
        answer = json.loads(nodes.delete_node("n", _preload_content=False).data)
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        assert answer["details"]["name"] == "n"
        with pytest.raises(client.ApiException, match="NotFound"):
            nodes.read_node("n")

    bound = pod("p", nodeName="n")
    with ApiServer() as api:
        sim, events = run(api, [node("n"), node("m"), bound], (5.0, delete))
    assert (5.0, "remove", "n") in events
    assert set(sim.cluster.rows) == {"m"}
    assert "default/p" in sim.queue  # it waits for another node


def test_budgets_are_made_and_deleted() -> None:
    seen: list[Any] = []

    def make(connection: Any) -> None:
        policy = client.PolicyV1Api(connection)
        made = policy.create_namespaced_pod_disruption_budget("default", BUDGET)
        assert made.spec.min_available is not None

    def look(connection: Any) -> None:
        policy = client.PolicyV1Api(connection)
        seen.append(policy.read_namespaced_pod_disruption_budget("b", "default").status)

    def delete(connection: Any) -> None:
        policy = client.PolicyV1Api(connection)
        policy.delete_namespaced_pod_disruption_budget("b", "default")

    bound = [pod(f"p{i}", nodeName="n", labels={"app": "x"}) for i in range(3)]
    with ApiServer() as api:
        sim, _ = run(api, [node("n"), *bound], (1.0, make), (2.0, look), (3.0, delete))
    assert seen[0].disruptions_allowed == 2
    assert sim.cluster.budgets == ()
