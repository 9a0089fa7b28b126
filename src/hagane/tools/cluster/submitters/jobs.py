"""Arriving jobs: pods drawn from published distributions, or copies of one manifest.

``openb``: Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), the trace's shares of GPUs and
a lognormal(6.56, 1.88) of seconds. ``philly``: the subset of Microsoft's Philly trace that Gavel
uses (Narayanan et al., OSDI 2020), 1, 2, 4 and 8 GPUs in 76, 2, 9 and 12 % of jobs, lognormal
(9.73, 1.43) seconds for one GPU and (11.07, 1.61) for eight.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from hagane.tools.cluster.model.objects import GpuShare, Phase, Pod
from hagane.tools.cluster.model.read_pod import GPU_MILLI

Maker = Callable[[str], Pod]
GIB = 1024**3

OPENB_GPUS = ((1, 85.7), (0, 13.4), (2, 0.2), (4, 0.18), (8, 0.54))
OPENB_SHARED = 37.8
OPENB_DURATION = (6.56, 1.88)
PHILLY_GPUS = ((1, 76.0), (2, 2.0), (4, 9.0), (8, 12.0))
PHILLY_ONE = (9.73, 1.43)
PHILLY_EIGHT = (11.07, 1.61)


def draw(chance: random.Random, weighted: tuple[tuple[int, float], ...]) -> int:
    """Return a value with a probability in proportion to its weight."""
    values = [v for v, _ in weighted]
    return chance.choices(values, [w for _, w in weighted])[0]


def openb_jobs(chance: random.Random, namespace: str = "default", users: int = 1) -> Maker:
    """Return a maker of pods like those of the openb trace, shares of GPUs included.

    Shared pods are 37.8 % of all; a share is a multiple of 50 thousandths. CPU and memory follow
    the GPUs: 8 cores and 32 GiB for each, which openb's nodes have.
    """
    single = dict(OPENB_GPUS)[1]

    def make(name: str) -> Pod:
        gpus = draw(chance, OPENB_GPUS)
        milli = 1000
        if gpus == 1 and chance.random() * single < OPENB_SHARED:
            milli = chance.randrange(1, 20) * 50
        seconds = chance.lognormvariate(*OPENB_DURATION)
        part = milli / 1000 if gpus else 0.5
        requests = {
            "cpu": max(1000, int(8000 * max(gpus, 1) * part)),
            "memory": int(32 * GIB * max(gpus, 1) * part),
        }
        share = None
        if gpus:
            requests[GPU_MILLI] = gpus * milli
            share = GpuShare(gpus, milli)
        return _pod(name, namespace, requests, seconds, chance, users, share)

    return make


def philly_jobs(
    chance: random.Random,
    namespace: str = "default",
    users: int = 1,
    resource: str = "nvidia.com/gpu",
) -> Maker:
    """Return a maker of pods like Gavel's subset of the Philly trace.

    Durations for 2 and 4 GPUs lie between those for one and eight, by the logarithm of the count.
    """

    def make(name: str) -> Pod:
        gpus = draw(chance, PHILLY_GPUS)
        part = (gpus.bit_length() - 1) / 3
        mean = PHILLY_ONE[0] + part * (PHILLY_EIGHT[0] - PHILLY_ONE[0])
        spread = PHILLY_ONE[1] + part * (PHILLY_EIGHT[1] - PHILLY_ONE[1])
        seconds = chance.lognormvariate(mean, spread)
        requests = {"cpu": 4000 * gpus, "memory": 32 * GIB * gpus, resource: gpus}
        return _pod(name, namespace, requests, seconds, chance, users)

    return make


def copies(template: Pod, draw_seconds: Callable[[], float] | None = None) -> Maker:
    """Return a maker of copies of one pod, each with its own duration if one is drawn."""

    def make(name: str) -> Pod:
        if draw_seconds is None:
            return replace(template, name=name)
        return replace(template, name=name, phases=(Phase(draw_seconds()),))

    return make


def _pod(
    name: str,
    namespace: str,
    requests: dict[str, int],
    seconds: float,
    chance: random.Random,
    users: int,
    share: GpuShare | None = None,
) -> Pod:
    return Pod(
        name,
        namespace,
        requests=requests,
        scored=(requests["cpu"], requests["memory"]),
        phases=(Phase(round(seconds, 3)),),
        restart_policy="Never",
        gpu=share,
        user=f"user-{chance.randrange(users)}" if users > 1 else "",
    )
