"""A scheduler on the official client's informers, live and as it was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hagane.events import EventLog
from hagane.tools.cluster.link.api.apiserver import ApiServer
from hagane.tools.cluster.link.outside import Outside
from hagane.tools.cluster.model.objects import Node, Phase, Pod
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from tests.cluster.manifests import pod

pytest.importorskip("starlette", reason="needs the extra 'cluster'")

GIB = 1 << 30
# Requests of kubernetes 37.0.2's SharedInformers of nodes and pods, and of one binding, in their
# order; VERSION is the resource version of the list before.
RECORDED = [
    ("GET", "/api/v1/nodes", None, 200),
    ("GET", "/api/v1/pods", None, 200),
    ("GET", "/api/v1/pods?resourceVersion=VERSION&watch=true", None, 200),
    ("GET", "/api/v1/nodes?resourceVersion=VERSION&watch=true", None, 200),
    (
        "POST",
        "/api/v1/namespaces/default/pods/p/binding",
        {
            "metadata": {"name": "p"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-0"},
        },
        201,
    ),
]


@pytest.mark.long
def test_informers_bind_pods_that_wait_for_others_to_end() -> None:
    pytest.importorskip("kubernetes.informer", reason="needs the extra 'cluster'")
    has = {"cpu": 8_000, "memory": 16 * GIB, "pods": 110}
    cluster = Cluster([Node(f"node-{index}", allocatable=has) for index in range(2)])
    wanted = {"cpu": 4_000, "memory": GIB}
    pods = [
        (0.0, Pod(f"pod-{index}", requests=wanted, scored=(0, 0), phases=(Phase(50.0 + index),)))
        for index in range(6)
    ]
    script = Path(__file__).parents[2] / "examples/cluster/informer_scheduler.py"
    log = EventLog()
    with ApiServer() as api:
        # A turn with pods that fit nowhere ends by silence.
        scheduler = Outside(api, quiet=0.5, limit=60)
        scheduler.show_nodes(cluster)
        process = subprocess.Popen([sys.executable, str(script), api.url, "6"])
        try:
            Simulation(cluster, scheduler, [Replay(pods)], log=log).run()
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
    bound = {event["pod"]: event for event in log if event["kind"] == "bind"}
    assert set(bound) == {f"default/pod-{index}" for index in range(6)}
    for one in bound.values():
        beside = [
            other
            for name, other in bound.items()
            if other["node"] == one["node"]
            and 0 <= one["time"] - other["time"] < 50 + int(name.rpartition("-")[2])
        ]
        assert len(beside) <= 2  # of half a node each, those that run when one begins
    assert max(event["time"] for event in bound.values()) >= 50


def test_the_recorded_requests_of_informers_are_answered_as_they_were() -> None:
    versions: dict[str, str] = {}
    watches: dict[str, Any] = {}
    with ApiServer() as api:
        api.store.put("pods", "default/p", pod("p", namespace="default"))
        for method, path, body, status in RECORDED:
            place = path.partition("?")[0]
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(
                api.url + path.replace("VERSION", versions.get(place, "")),
                data,
                {"Content-Type": "application/json"},
                method=method,
            )
            answer = urllib.request.urlopen(request, timeout=20)
            assert answer.status == status
            if "watch" in path:
                watches[place] = answer
                continue
            with answer:
                found = json.loads(answer.read())
            if method == "GET":
                assert found["kind"] in ("NodeList", "PodList")
                versions[place] = found["metadata"]["resourceVersion"]
        with watches.pop("/api/v1/pods") as pods:
            event = json.loads(pods.readline())
        assert (event["type"], event["object"]["spec"]["nodeName"]) == ("MODIFIED", "node-0")
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(versions["/api/v1/pods"])
        for rest in watches.values():
            threading.Thread(target=rest.close).start()
