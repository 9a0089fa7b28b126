"""A scheduler on informers of the ordinary ``kubernetes`` client, in a process of its own.

Informers list once, watch from there and keep a copy of what they saw, as kube-scheduler's do. Each
pending pod goes to the node of which the least is taken. Run it against
``hagane cluster serve-api``: ``python informer_scheduler.py http://127.0.0.1:8001``.
"""

from __future__ import annotations

import queue
import sys

from kubernetes import client
from kubernetes.informer import SharedInformer
from kubernetes.utils.quantity import parse_quantity


def requests_of(pod: client.V1Pod) -> tuple[int, int]:
    cpu = memory = 0
    for container in pod.spec.containers:
        wanted = (container.resources.requests if container.resources else None) or {}
        cpu += int(parse_quantity(wanted.get("cpu", 0)) * 1000)
        memory += int(parse_quantity(wanted.get("memory", 0)))
    return cpu, memory


def key_of(pod: client.V1Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


class Scheduler:
    """Decides on what the informers have seen, and on what it has itself decided since."""

    def __init__(self, api: client.CoreV1Api):
        self.api = api
        self.nodes = SharedInformer(list_func=api.list_node)
        self.pods = SharedInformer(list_func=api.list_pod_for_all_namespaces)
        self.changed: queue.Queue[None] = queue.Queue()
        self.assumed: dict[str, str] = {}  # where pods were sent that the watch has not shown there
        for informer in (self.nodes, self.pods):
            for kind in ("ADDED", "MODIFIED", "DELETED"):
                informer.add_event_handler(kind, lambda _: self.changed.put(None))

    def run(self, count: int) -> None:
        """Bind pods as they come, so many in all (-1: for ever).

        The informers' threads end with the process: to stop one is to wait for its next event.
        """
        self.nodes.start()
        self.pods.start()
        bound = 0
        while bound != count:
            self.changed.get(timeout=120)
            bound += self.turn()

    def turn(self) -> int:
        """Bind what fits now; return how many."""
        pods = {key_of(pod): pod for pod in self.pods.cache.list()}
        free = {}
        for node in self.nodes.cache.list():
            if not node.spec or not node.spec.unschedulable:
                offered = node.status.allocatable
                free[node.metadata.name] = [
                    int(parse_quantity(offered["cpu"]) * 1000),
                    int(parse_quantity(offered["memory"])),
                ]
        for key, pod in pods.items():
            name = pod.spec.node_name or self.assumed.get(key)
            if pod.spec.node_name:
                self.assumed.pop(key, None)
            running = not pod.status or pod.status.phase not in ("Succeeded", "Failed")
            if name in free and running:
                for place, amount in enumerate(requests_of(pod)):
                    free[name][place] -= amount
        bound = 0
        waiting = [k for k, p in pods.items() if not p.spec.node_name and k not in self.assumed]
        for key in sorted(waiting):
            cpu, memory = requests_of(pods[key])
            fitting = [n for n, left in free.items() if left[0] >= cpu and left[1] >= memory]
            if not fitting:
                continue
            name = max(sorted(fitting), key=lambda n: free[n])
            free[name][0] -= cpu
            free[name][1] -= memory
            self.assumed[key] = name
            self.bind(pods[key], name)
            bound += 1
        return bound

    def bind(self, pod: client.V1Pod, name: str) -> None:
        """Tell the server where a pod goes."""
        meta = client.V1ObjectMeta(name=pod.metadata.name)
        target = client.V1ObjectReference(kind="Node", api_version="v1", name=name)
        # The client cannot read the server's answer, a Status, as a Binding.
        self.api.create_namespaced_pod_binding(
            pod.metadata.name,
            pod.metadata.namespace,
            client.V1Binding(metadata=meta, target=target),
            _preload_content=False,
        )


def main(url: str, count: int) -> None:
    configuration = client.Configuration()
    configuration.host = url
    Scheduler(client.CoreV1Api(client.ApiClient(configuration))).run(count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else -1)
