"""Fragmentation gradient descent against its baselines, by the protocol of its publication.

``python benchmarks/cluster_fgd.py NODES.csv PODS.csv [--seeds 10] [--ratio 1.3]`` repeats what the
simulator of Weng et al. (USENIX ATC 2023) does with the openb trace: all pods of the trace in a
random order, then pods drawn from it until their GPUs are ``ratio`` times those of the cluster.
Every pod is tried once, in order; one that does not fit is gone, and none ever ends. The medians
over seeds of allocated and of fragmented GPUs are printed, in percent of the cluster's, at levels
of load that has come. Two more rows are the policies as the publication's simulator codes them:
scores cut to whole numbers from 0 to 100, ties to the node whose name is first, memory left out.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hagane.tools.cluster.fragmentation import Workload, fragmentation, typical
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.model.read_pod import GPU_MILLI
from hagane.tools.cluster.schedulers.fgd import Fgd, first_by_name
from hagane.tools.cluster.schedulers.greedy import BestFit, Greedy
from hagane.tools.cluster.state import CPU, Cluster, Ints
from hagane.tools.cluster.trace import openb

LEVELS = (50, 90, 95, 100, 105, 110, 120, 130)
Placement = tuple[int, tuple[int, ...] | None]
Place = Callable[[Cycle], Placement | None]


class CodedBestFit(Greedy):
    """Best fit of CPU and GPUs by shares of a node of 128 cores and 8 GPUs."""

    name = "best-fit as coded"

    def pick(self, cycle: Cycle, rows: Ints) -> Placement:
        """Return the first of the rows with the best whole score."""
        cluster, pod = cycle.cluster, cycle.pod
        rest = np.zeros(rows.size)
        for index, name, most in ((CPU, "cpu", 128_000), (cluster.resource(GPU_MILLI), "", 8_000)):
            left = cluster.allocatable[index, rows] - cluster.requested[index, rows]
            rest += (left - pod.requests.get(name or GPU_MILLI, 0)) / most / 2
        scores = ((1 - rest) * 100).astype(np.int64)
        return first_by_name(cluster, rows[scores == scores.max()]), None


def least_allocated(seed: int) -> Place:
    scheduler = KubeScheduler(seed=seed)

    def place(cycle: Cycle) -> Placement | None:
        row = scheduler.place(cycle)
        return None if row is None else (row, None)

    return place


def gpus(pod: Pod) -> float:
    return pod.gpu.count * pod.gpu.milli / 1000 if pod.gpu else 0.0


def arrivals(pods: Sequence[Pod], capacity: float, seed: int) -> list[Pod]:
    """Return the trace in a random order, and pods drawn from it up to a number of GPUs."""
    chance = random.Random(seed)
    out = sorted(pods, key=lambda p: p.name)
    chance.shuffle(out)
    asked = sum(map(gpus, out))
    while True:
        drawn = chance.choice(pods)
        # The published code compares with the share of one device and adds them all.
        if asked + (drawn.gpu.milli / 1000 if drawn.gpu else 0.0) > capacity:
            return out
        asked += gpus(drawn)
        out.append(replace(drawn, name=f"{drawn.name}-{len(out)}"))


def run(
    place: Place, cluster: Cluster, pods: Sequence[Pod], seen: Workload
) -> dict[int, tuple[float, float]]:
    """Return (allocated, fragmented) percent of the cluster's GPUs by percent that have come."""
    total = sum(r.node.devices for r in cluster.nodes())
    come = held = 0.0
    out: dict[int, tuple[float, float]] = {}
    levels = list(LEVELS)
    for pod in pods:
        come += gpus(pod)
        found = place(Cycle(pod, cluster))
        if found is not None:
            cluster.bind(pod, *found)
            held += gpus(pod)
        while levels and 100 * come >= (levels[0] - 0.05) * total:
            wasted = fragmentation(cluster, seen)
            out[levels.pop(0)] = (100 * held / total, 100 * wasted / total)
    return out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=Path)
    parser.add_argument("pods", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--ratio", type=float, default=1.3)
    asked = parser.parse_args()
    trace = [replace(p, phases=None) for _, p in openb.read_pods(asked.pods)]
    nodes = openb.read_nodes(asked.nodes)
    capacity = asked.ratio * sum(n.devices for n in nodes)
    whole = typical(trace)
    coded = typical(replace(p, requests={**p.requests, "memory": 0}) for p in trace)
    policies: dict[str, Callable[[int], Place]] = {
        "FGD": lambda seed: Fgd(whole, seed=seed).place,
        "best-fit": lambda seed: BestFit(seed=seed).place,
        "LeastAllocated": least_allocated,
        CodedBestFit.name: lambda seed: CodedBestFit(seed=seed).place,
    }
    print("load".ljust(18), *(f"{level:>12}" for level in LEVELS))
    for name, policy in policies.items():
        found = [
            run(policy(seed), Cluster(nodes), arrivals(trace, capacity, seed), coded)
            for seed in range(42, 42 + asked.seeds)
        ]
        cells = []
        for level in LEVELS:
            pairs = [f[level] for f in found if level in f]
            if not pairs:
                cells.append("")
                continue
            held, wasted = (statistics.median(values) for values in zip(*pairs, strict=True))
            cells.append(f"{held:5.2f} {wasted:5.2f}")
        print(name.ljust(18), *(f"{cell:>12}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
