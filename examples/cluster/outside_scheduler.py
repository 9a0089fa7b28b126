"""A scheduler in a process of its own, written with the ordinary ``kubernetes`` client.

It binds pods in the order in which they come to the first node with enough CPU and memory. Run it
against ``hagane cluster serve-api``: ``python outside_scheduler.py http://127.0.0.1:8001``.
"""

from __future__ import annotations

import sys

from kubernetes import client, watch
from kubernetes.utils.quantity import parse_quantity


def requests_of(pod: client.V1Pod) -> tuple[int, int]:
    cpu = memory = 0
    for container in pod.spec.containers:
        wanted = (container.resources.requests if container.resources else None) or {}
        cpu += int(parse_quantity(wanted.get("cpu", 0)) * 1000)
        memory += int(parse_quantity(wanted.get("memory", 0)))
    return cpu, memory


def main(url: str, count: int) -> None:
    configuration = client.Configuration()
    configuration.host = url
    api = client.CoreV1Api(client.ApiClient(configuration))
    free = {}
    for node in api.list_node().items:
        offered = node.status.allocatable
        free[node.metadata.name] = [
            int(parse_quantity(offered["cpu"]) * 1000),
            int(parse_quantity(offered["memory"])),
        ]
    seen = set()
    stream = watch.Watch().stream(
        api.list_pod_for_all_namespaces, field_selector="spec.nodeName=", timeout_seconds=60
    )
    for event in stream:
        pod = event["object"]
        key = (pod.metadata.namespace, pod.metadata.name)
        if event["type"] == "DELETED" or key in seen:
            continue
        cpu, memory = requests_of(pod)
        name = next((n for n, f in free.items() if f[0] >= cpu and f[1] >= memory), None)
        if name is None:
            continue
        seen.add(key)
        free[name][0] -= cpu
        free[name][1] -= memory
        target = client.V1ObjectReference(kind="Node", api_version="v1", name=name)
        meta = client.V1ObjectMeta(name=pod.metadata.name)
        # The client cannot read the server's answer, a Status, as a Binding.
        api.create_namespaced_pod_binding(
            pod.metadata.name,
            pod.metadata.namespace,
            client.V1Binding(metadata=meta, target=target),
            _preload_content=False,
        )
        if len(seen) == count:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1)
