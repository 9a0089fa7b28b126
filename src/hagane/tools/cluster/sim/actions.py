"""Orders of submitters and schedulers to the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from hagane.tools.cluster.model.objects import Pod


@dataclass(frozen=True, slots=True)
class Submit:
    """A pod enters the cluster."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Delete:
    """A pod, pending or bound, is deleted by its name ``namespace/name``."""

    key: str


@dataclass(frozen=True, slots=True)
class Update:
    """A pending pod gets another manifest under the same name."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Terminate:
    """The submitter has nothing more to say."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A pending pod goes to a node; ``devices`` chooses among its GPUs."""

    key: str
    node: str
    devices: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Evict:
    """A bound pod is deleted by the scheduler, with its grace period."""

    key: str
    by: str = ""


SubmitterAction = Submit | Delete | Update | Terminate
SchedulerAction = Bind | Evict
