"""How fast ``hagane cluster`` simulates: the openb trace, and large clusters.

``python benchmarks/cluster.py openb NODES.csv PODS.csv`` replays the trace under the default
profile; ``fgd`` fills the cluster up to its size under three policies and prints how many GPUs
each allocates and fragments; ``large NODES PODS`` runs a synthetic cluster, in tenths, so that
throughput over time shows whether it depends on the number of finished pods; it is counted in CPU
seconds. Quote figures taken on a quiet machine.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hagane.tools.cluster.fragmentation import fragmentation, typical
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Node, Phase, Pod
from hagane.tools.cluster.schedulers.fgd import Fgd
from hagane.tools.cluster.schedulers.greedy import BestFit
from hagane.tools.cluster.sim.collection import rare_collection
from hagane.tools.cluster.sim.ports import Scheduler
from hagane.tools.cluster.sim.setup import traced
from hagane.tools.cluster.sim.simulation import Options, Simulation
from hagane.tools.cluster.state import Cluster
from hagane.tools.cluster.submitters.replay import Replay
from hagane.tools.cluster.trace import openb

GIB = 1 << 30


def replay(nodes: Path, pods: Path) -> None:
    started = time.perf_counter()
    summary = traced(nodes, pods).run()
    print(f"openb: {summary['bound']} pods bound in {time.perf_counter() - started:.2f} s")


def fill(nodes: Path, pods: Path, load: float = 1.0, seed: int = 0) -> None:
    """Submit pods drawn from the trace that never end, up to a load, and see what fits."""
    drawn = [p for _, p in openb.read_pods(pods)]
    schedulers: dict[str, Scheduler] = {
        "FGD": Fgd(typical(drawn)),
        "best-fit": BestFit(),
        "LeastAllocated": KubeScheduler(),
    }
    for name, scheduler in schedulers.items():
        cluster = Cluster(openb.read_nodes(nodes))
        total = sum(r.node.devices for r in cluster.nodes())
        arrivals, asked, chance = [], 0.0, random.Random(seed)
        while asked < load * total:
            pod = chance.choice(drawn)
            asked += pod.gpu.count * pod.gpu.milli / 1000 if pod.gpu else 0
            number = len(arrivals)
            arrivals.append((float(number), replace(pod, name=f"p{number}", phases=None)))
        started = time.perf_counter()
        simulation = Simulation(
            cluster, scheduler, [Replay(arrivals)], Options(until=float(len(arrivals)))
        )
        simulation.run()
        wasted = fragmentation(cluster, typical(drawn))
        print(
            f"{name}: {simulation.books.now['gpu']:.0f} of {total} GPUs allocated, "
            f"{wasted:.0f} fragmented, {time.perf_counter() - started:.1f} s"
        )


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
        {"openb": replay, "fgd": fill}[kind](Path(rest[0]), Path(rest[1]))
