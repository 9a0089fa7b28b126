"""How fast ``hagane cluster`` simulates: the openb trace, and large clusters.

``python benchmarks/cluster.py openb NODES.csv PODS.csv`` replays the trace under the default
profile; ``large NODES PODS`` runs a synthetic cluster, in tenths, so that
throughput over time shows whether it depends on the number of finished pods; it is counted in CPU
seconds. Quote figures taken on a quiet machine.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node, Phase, Pod
from hagane.tools.cluster.sim.collection import rare_collection
from hagane.tools.cluster.sim.setup import traced
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay

GIB = 1 << 30


def replay(nodes: Path, pods: Path) -> None:
    started = time.perf_counter()
    summary = traced(nodes, pods).run()
    print(f"openb: {summary['bound']} pods bound in {time.perf_counter() - started:.2f} s")


def stream(count: int, nodes: int) -> Iterator[tuple[float, Pod]]:
    chance = random.Random(1)
    rate = nodes * 8 * 0.7 / 600 / 2
    now = 0.0
    for index in range(count):
        now += chance.expovariate(rate)
        gpus = chance.choice((1, 1, 1, 1, 2, 4))
        requests = {"cpu": 4000 * gpus, "memory": 16 * GIB * gpus, "nvidia.com/gpu": gpus}
        yield (
            now,
            Pod(
                f"p{index}",
                requests=requests,
                scored=(requests["cpu"], requests["memory"]),
                phases=(Phase(chance.expovariate(1 / 600)),),
            ),
        )


def large(nodes: int, pods: int) -> None:
    has = {"cpu": 64_000, "memory": 512 * GIB, "nvidia.com/gpu": 8, "pods": 110}
    cluster = Cluster([Node(f"n{i}", allocatable=has) for i in range(nodes)])
    simulation = Simulation(cluster, KubeScheduler(), [Replay(stream(pods, nodes))])
    with rare_collection():
        simulation.begin()
        started, mark = time.perf_counter(), time.process_time()
        next_mark = pods // 10
        while simulation.step():
            if simulation.books.counts["bound"] >= next_mark:
                now = time.process_time()
                print(f"{next_mark} pods: {pods / 10 / (now - mark):.0f} pods/CPU s", flush=True)
                mark, next_mark = now, next_mark + pods // 10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    used = simulation.summary()["utilisation"]
    spent = time.perf_counter() - started
    print(
        f"{pods} pods on {nodes} nodes: {spent:.1f} s, {time.process_time():.1f} CPU s, "
        f"{peak:.0f} MiB"
    )
    print(used)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind == "large":
        large(int(rest[0]), int(rest[1]))
    else:
        replay(Path(rest[0]), Path(rest[1]))
