"""The settings of a simulation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How a simulation runs.

    Attributes:
        tick: seconds of the original's loop: submitters and the scheduler act at its multiples
            only; None acts whenever something happens.
        poll: how often submitters without a time of their own are asked, where there is no tick.
        start: the start of simulated time, in seconds since 1970.
        zone: the time zone of clocks in metrics, in seconds east of Greenwich.
        until: where to stop, in seconds after the start.
        metrics_every: seconds between metrics; None writes none.
        resubmit: pods that lose their node, by failure or preemption, wait for another.
        overcommit: the effect of a full node: "fault" stops the run, "fail" fails the pod.
    """

    tick: float | None = None
    poll: float = 10.0
    start: float = 0.0
    zone: int = 0
    until: float | None = None
    metrics_every: float | None = None
    resubmit: bool = True
    overcommit: str = "fault"
