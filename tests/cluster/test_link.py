"""Other processes: extenders, an API server with the real client, submitters over RPC."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.errors import ClusterError, ExtenderFault
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.preemption import Candidate
from hagane.tools.cluster.kube.profile import ExtenderConfig
from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.extender import Extender
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.link.rpc import RemoteSubmitter, serve_submitter
from hagane.tools.cluster.link.serve import ExtenderService, serve_extender
from hagane.tools.cluster.link.wire import priority_class_object
from hagane.tools.cluster.model.objects import Node, Phase, Pod, PriorityClass
from hagane.tools.cluster.sim.actions import Bind
from hagane.tools.cluster.sim.ports import Queue, Scheduler
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.manifests import node, objects, one, pod
from tests.cluster.servers import Asked, answering, serving

GIB = 1 << 30


@contextmanager
def extender(answers: dict[str, Any], **config: Any) -> Iterator[tuple[Extender, Asked]]:
    verbs = {f"{verb}_verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    with answering(answers) as (url, asked):
        yield Extender(ExtenderConfig(url, **{**verbs, **config})), asked


def three() -> tuple[Cycle, Any]:
    known = objects(node("a"), node("b"), node("c"))
    cluster = Cluster.of(known)
    cycle = Cycle(one(pod("p", {"cpu": 1})), cluster)
    import numpy as np

    return cycle, np.arange(3)


def test_an_extender_is_asked_in_go_field_names_and_its_filter_counts() -> None:
    cycle, rows = three()
    answer = {
        "Nodes": None,
        "NodeNames": ["a", "c"],
        "FailedNodes": {"b": "busy"},
        "FailedAndUnresolvableNodes": None,
        "Error": "",
    }
    with extender({"filter": answer}, names_only=True) as (ext, asked):
        left, reasons = ext.filter(cycle, rows)
    assert [cycle.cluster.records[r].node.name for r in left] == ["a", "c"]
    assert reasons == {"b": "busy"}
    verb, body = asked[0]
    assert verb == "filter"
    assert set(body) == {"Pod", "Nodes", "NodeNames"}
    assert body["Nodes"] is None
    assert body["NodeNames"] == ["a", "b", "c"]
    assert body["Pod"]["metadata"]["name"] == "p"
    assert body["Pod"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_an_extender_without_a_cache_gets_whole_nodes() -> None:
    cycle, rows = three()
    answer = {
        "Nodes": {"items": [{"metadata": {"name": "b"}}]},
        "NodeNames": None,
        "FailedNodes": {},
        "Error": "",
    }
    with extender({"filter": answer}) as (ext, asked):
        left, _ = ext.filter(cycle, rows)
    assert [cycle.cluster.records[r].node.name for r in left] == ["b"]
    items = asked[0][1]["Nodes"]["items"]
    assert [i["metadata"]["name"] for i in items] == ["a", "b", "c"]
    assert items[0]["status"]["allocatable"]["cpu"] == "8"


def test_an_extenders_scores_count_its_weight_times_ten() -> None:
    import numpy as np

    cycle, rows = three()
    answer = [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 3}]
    with extender({"prioritize": answer}, weight=2) as (ext, _):
        totals = ext.prioritize(cycle, rows, np.array([1, 2, 3]))
    assert totals.tolist() == [201, 62, 3]


def test_an_extender_may_drop_candidates_for_preemption() -> None:
    cluster = Cluster.of(
        objects(node("a"), node("b"), pod("v", nodeName="a"), pod("w", nodeName="b"))
    )
    victims = {n: tuple(cluster.record(n).pods.values()) for n in "ab"}
    candidates = [Candidate(n, victims[n], 1) for n in "ab"]
    answer = {
        "NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "default/w"}], "NumPDBViolations": 0}}
    }
    with extender({"preempt": answer}) as (ext, asked):
        left = ext.preempt(one(pod("p")), candidates, cluster)
    assert [(c.node, [v.name for v in c.victims], c.violations) for c in left] == [("b", ["w"], 0)]
    assert set(asked[0][1]) == {"Pod", "NodeNameToVictims"}
    assert asked[0][1]["NodeNameToVictims"]["a"]["NumPDBViolations"] == 1


def test_an_extender_that_binds_gets_the_binding() -> None:
    with extender({"bind": {"Error": ""}}) as (ext, asked):
        assert ext.bind(one(pod("p")), "a")
    assert asked == [
        ("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "default/p", "Node": "a"})
    ]
    with extender({"bind": {"Error": "no"}}) as (ext, _), pytest.raises(ExtenderFault, match="no"):
        ext.bind(one(pod("p")), "a")


def test_a_failing_extender_is_an_error_unless_it_is_ignorable() -> None:
    cycle, rows = three()
    answer = {"Error": "out of order"}
    with (
        extender({"filter": answer}) as (ext, _),
        pytest.raises(ExtenderFault, match="out of order"),
    ):
        ext.filter(cycle, rows)
    with extender({"filter": answer}, ignorable=True) as (ext, _):
        assert ext.filter(cycle, rows)[0].tolist() == [0, 1, 2]
    gone = Extender(ExtenderConfig("http://127.0.0.1:9/x", filter_verb="f", timeout=0.2))
    with pytest.raises(ExtenderFault, match=r"no answer within 0.2 s"):
        gone.filter(cycle, rows)


def test_an_extender_is_not_asked_about_pods_without_its_resources() -> None:
    cycle, rows = three()
    config = ExtenderConfig("http://127.0.0.1:9", filter_verb="f", resources=("example.com/x",))
    assert Extender(config).filter(cycle, rows)[0].tolist() == [0, 1, 2]


def ask(url: str, value: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(value).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.loads(answer.read())


def test_a_profile_served_as_an_extender_answers_like_kube_schedulers_extenders() -> None:
    items = [
        node("small", has={"cpu": 1, "memory": "1Gi"}),
        node("large"),
        node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
    ]
    args = {"Pod": pod("p", {"cpu": 2}), "Nodes": {"items": items}, "NodeNames": None}
    with serve_extender(ExtenderService()) as server:
        url = server.url
        found = ask(url + "/filter", args)
        scores = ask(url + "/prioritize", {**args, "Nodes": {"items": items[1:2]}})
        assert ask(
            url + "/bind",
            {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "large"},
        ) == {"Error": ""}
        again = ask(
            url + "/bind",
            {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "large"},
        )
        broken = ask(url + "/filter", {"Pod": 3})
    assert [n["metadata"]["name"] for n in found["Nodes"]["items"]] == ["large"]
    assert found["NodeNames"] is None
    assert found["Error"] == ""
    unresolvable = found["FailedAndUnresolvableNodes"]
    # No eviction makes one core into two.
    assert unresolvable == {
        "small": "Insufficient cpu",
        "tainted": "node(s) had untolerated taint {k: v}",
    }
    assert scores == [{"Host": "large", "Score": 10}]
    assert again == {"Error": "pod 'default/p' is bound already"}
    assert "Pod: expected dict, got 3" in broken["Error"]


def test_the_client_and_the_server_of_extenders_understand_each_other() -> None:
    cycle, rows = three()
    service = ExtenderService(
        Cluster.of(objects(node("a"), node("b", unschedulable=True), node("c")))
    )
    with serve_extender(service) as server:
        url = server.url
        config = ExtenderConfig(
            url, filter_verb="filter", prioritize_verb="prioritize", names_only=True
        )
        left, reasons = Extender(config).filter(cycle, rows)
    assert left.tolist() == [0, 2]
    assert reasons == {"b": "node(s) were unschedulable"}


class FirstFit(Scheduler):
    """What examples/cluster/outside_scheduler.py does, in this process."""

    name = "first-fit"

    def schedule(self, clock: float, queue: Queue, nodes: Cluster) -> Iterator[Bind]:
        for waiting in queue:
            for record in nodes.nodes():
                free = nodes.allocatable[:2, record.row] - nodes.requested[:2, record.row]
                if all(free[i] >= waiting.requests[n] for i, n in ((0, "cpu"), (1, "memory"))):
                    yield Bind(waiting.key, record.node.name)
                    break


def cluster_of_100() -> Cluster:
    has = {"cpu": 64_000, "memory": 256 * GIB, "pods": 110}
    return Cluster([Node(f"node-{i:03}", allocatable=has) for i in range(100)])


def thousand() -> list[tuple[float, Pod]]:
    out = []
    for index in range(1000):
        requests = {"cpu": 1000 * (1 + index % 7), "memory": (1 + index % 5) * GIB}
        out.append(
            (
                0.0,
                Pod(
                    f"pod-{index:04}",
                    requests=requests,
                    scored=(0, 0),
                    phases=(Phase(50.0 + index),),
                ),
            )
        )
    return out


@pytest.mark.long
def test_an_outside_process_binds_1000_pods_as_the_same_policy_inside_does() -> None:
    pytest.importorskip("kubernetes", reason="needs the extra 'cluster'")
    inside = EventLog()
    Simulation(cluster_of_100(), FirstFit(), [Replay(thousand())], log=inside).run()
    script = Path(__file__).parents[2] / "examples/cluster/outside_scheduler.py"
    outside = EventLog()
    with ApiServer() as api:
        scheduler = Outside(api, quiet=20, limit=60)
        cluster = cluster_of_100()
        scheduler.show_nodes(cluster)
        process = subprocess.Popen([sys.executable, str(script), api.url, "1000"])
        try:
            Simulation(cluster, scheduler, [Replay(thousand())], log=outside).run()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    assert sum(e["kind"] == "bind" for e in inside) == 1000
    assert outside.digest() == inside.digest()


def test_the_api_server_lists_filters_and_refuses_a_second_binding() -> None:
    with ApiServer() as api:
        api.store.put("pods", "default/p", pod("p", namespace="default"))
        target = {"target": {"kind": "Node", "name": "n"}}
        url = api.url + "/api/v1/namespaces/default/pods/p/binding"
        ask(url, target)
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(url, target)
        message = json.loads(refused.value.read())["message"]
        refused.value.close()
        assert message == 'pod default/p is already assigned to node "n"'
        for query, count in (("spec.nodeName%3D", 0), ("spec.nodeName%3Dn", 1)):
            with urllib.request.urlopen(f"{api.url}/api/v1/pods?fieldSelector={query}") as answer:
                assert len(json.loads(answer.read())["items"]) == count
        assert api.requests.get_nowait() == ("bind", "default/p", "n")


def test_a_priority_class_is_written_as_kubernetes_writes_it() -> None:
    out = priority_class_object(PriorityClass("high", 100))
    assert (out["kind"], out["metadata"]["name"], out["value"]) == ("PriorityClass", "high", 100)


def test_a_status_patch_is_kept_and_forgotten_changes_answer_410() -> None:
    with ApiServer() as api:
        api.store.history = 4
        for index in range(12):
            api.store.put("pods", f"default/p{index}", pod(f"p{index}", namespace="default"))
        assert len(api.store.changes) <= 4
        url = f"{api.url}/api/v1/namespaces/default/pods/p1"
        body = json.dumps({"status": {"phase": "Running"}}).encode()
        request = urllib.request.Request(f"{url}/status", body, method="PATCH")
        urllib.request.urlopen(request).close()
        with urllib.request.urlopen(url) as answer:
            assert json.loads(answer.read())["status"]["phase"] == "Running"
        query = "watch=1&timeoutSeconds=5&resourceVersion=2"
        with urllib.request.urlopen(f"{api.url}/api/v1/pods?{query}") as answer:
            event = json.loads(answer.readline())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_submitter_in_another_process_sends_the_same_pods() -> None:
    def pods() -> list[tuple[float, Pod]]:
        return [
            (
                float(t),
                one(
                    pod(
                        f"p{t}",
                        {"cpu": 1, "memory": "1Gi"},
                        annotations={"hagane.dev/duration-seconds": "5"},
                    )
                ),
            )
            for t in (0, 3, 7)
        ]

    here, there = EventLog(), EventLog()
    Simulation(cluster_of_100(), FirstFit(), [Replay(pods(), "replay")], log=here).run()
    with serving(serve_submitter(Replay(pods(), "replay"))) as url:
        remote = RemoteSubmitter(url, 5.0, "replay")
        Simulation(cluster_of_100(), FirstFit(), [remote], log=there).run()
    assert here.digest() == there.digest()


def test_a_submitter_that_does_not_answer_is_named() -> None:
    remote = RemoteSubmitter("http://127.0.0.1:9", 0.2)
    with pytest.raises(ClusterError, match=r"submitter http://127.0.0.1:9/submit: no answer"):
        list(remote.submit(0.0, Cluster(), {}))
