"""Scores by resources: least, most, to a shape, balanced; in Kubernetes' integers.

Source: ``plugins/noderesources`` (``least_allocated.go``, ``most_allocated.go``,
``requested_to_capacity_ratio.go``, ``balanced_allocation.go``, ``resource_allocation.go``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hagane.tools.cluster.kube.framework import MAX_SCORE, Cycle, Score
from hagane.tools.cluster.state import CPU, MEMORY, Ints

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Weighted:
    """A resource and its weight in a score."""

    name: str
    weight: int = 1


DEFAULT_RESOURCES = (Weighted("cpu"), Weighted("memory"))


@dataclass(frozen=True, slots=True)
class Strategy:
    """How NodeResourcesFit scores.

    Attributes:
        kind: LeastAllocated, MostAllocated or RequestedToCapacityRatio.
        shape: (utilization from 0 to 100, score from 0 to 10), ascending, for the last.
    """

    kind: str = "LeastAllocated"
    resources: tuple[Weighted, ...] = DEFAULT_RESOURCES
    shape: tuple[tuple[int, int], ...] = ()


def broken_linear(shape: Sequence[tuple[int, int]], at: int) -> int:
    """Return the value at a point of a line through points, in truncating integer division."""
    for index, (x, y) in enumerate(shape):
        if at <= x:
            if index == 0:
                return y
            x0, y0 = shape[index - 1]
            product = (y - y0) * (at - x0)
            quotient = abs(product) // (x - x0)
            return y0 + (quotient if product >= 0 else -quotient)
    return shape[-1][1]


def demand(cycle: Cycle, resource: str, rows: Ints, plain: bool) -> tuple[Ints, Ints, Ints] | None:
    """Return (allocatable, requested with the pod, requested without) of rows.

    None where the resource does not count: from 1.22, an extended resource that the pod does not
    request.

    Args:
        cycle: the attempt.
        resource: the resource.
        rows: the rows.
        plain: count real requests only, not 100m and 200Mi for silent containers.
    """
    cluster, pod = cycle.cluster, cycle.pod
    index = cluster.resources.get(resource)
    if index is None:
        index = cluster.resource(resource)
    core = index in (CPU, MEMORY)
    request = pod.scored[index] if core and not plain else pod.requests.get(resource, 0)
    if cycle.version >= (1, 22) and request == 0 and not core and resource != "ephemeral-storage":
        return None
    # A row of the table first, then take: several times as fast as indexing both at once.
    before = (cluster.scored if core and not plain else cluster.requested)[index].take(rows)
    return cluster.allocatable[index].take(rows), before + request, before


def _everywhere(cycle: Cycle, resource: str) -> bool:
    """Return whether every node offers a resource, remembered until some node changes."""
    cluster = cycle.cluster
    key = ("offered", resource)
    found = cluster.caches.get(key)
    if found is None:
        offered = cluster.allocatable[cluster.resource(resource), cluster.alive]
        cluster.caches[key] = found = bool((offered > 0).all())
    return bool(found)


class FitScore(Score):
    """NodeResourcesFit as a score, by its strategy."""

    name = "NodeResourcesFit"

    def __init__(self, strategy: Strategy = Strategy()):
        self.strategy = strategy
        if strategy.kind == "RequestedToCapacityRatio":
            shape = [(x, y * (MAX_SCORE // 10)) for x, y in strategy.shape]
            self._table = np.array([broken_linear(shape, p) for p in range(101)], dtype=np.int64)

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return scores from 0 to 100."""
        total = np.zeros(len(rows), dtype=np.int64)
        weights = np.zeros(len(rows), dtype=np.int64)
        kind = self.strategy.kind
        for resource in self.strategy.resources:
            found = demand(cycle, resource.name, rows, plain=False)
            if found is None:
                continue
            capacity, requested, _ = found
            everywhere = _everywhere(cycle, resource.name)
            # Up to 1.21 a resource that a node lacks weighs all the same.
            there = (capacity > 0) | (cycle.version < (1, 22))
            # Rows without the resource divide by one, and their result is dropped.
            safe = capacity if everywhere else np.maximum(capacity, 1)
            if kind == "LeastAllocated":
                score = np.maximum(capacity - requested, 0) * MAX_SCORE // safe
            elif kind == "MostAllocated":
                score = np.minimum(requested, capacity) * MAX_SCORE // safe
                if cycle.version < (1, 22):
                    score[requested > capacity] = 0
            else:
                if cycle.version < (1, 22):
                    used = 100 - np.maximum(capacity - requested, 0) * 100 // safe
                else:
                    used = np.minimum(requested, capacity) * 100 // safe
                score = self._table[used]
                there = there & (score > 0)
            if everywhere and kind != "RequestedToCapacityRatio":
                total += score if resource.weight == 1 else score * resource.weight
                weights += resource.weight
            else:
                total += np.where(there, score * resource.weight, 0)
                weights += np.where(there, resource.weight, 0)
        if kind == "RequestedToCapacityRatio":
            # Go rounds halves away from zero; all is positive here.
            return (2 * total + weights) // np.maximum(2 * weights, 1)
        return total // np.maximum(weights, 1)


class BalancedScore(Score):
    """NodeResourcesBalancedAllocation: the shares of a node's resources should be alike.

    Three forms have existed. Up to Kubernetes 1.21, ``100 (1 - |cpu - memory|)``, and 0 for a full
    node. From 1.22, ``100 (1 - standard deviation)``. From 1.36, that score with the pod against
    the one without it, brought to 50 (balance lost) to 100 (balance gained).
    """

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, resources: tuple[Weighted, ...] = DEFAULT_RESOURCES):
        self.resources = resources

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return scores from 0 to 100; None for a pod without requests (from 1.33)."""
        pod = cycle.pod
        if cycle.version < (1, 22):
            return self._difference(cycle, rows)
        if cycle.version >= (1, 33) and not any(
            pod.requests.get(r.name, 0) for r in self.resources
        ):
            return None
        after, before, there = [], [], []
        for resource in self.resources:
            found = demand(cycle, resource.name, rows, plain=True)
            if found is None:
                continue
            capacity, requested, bound = found
            everywhere = _everywhere(cycle, resource.name)
            safe = capacity if everywhere else np.maximum(capacity, 1)
            there.append(capacity > 0)
            after.append(np.minimum(requested / safe, 1.0))
            if cycle.version >= (1, 36):
                before.append(np.minimum(bound / safe, 1.0))
        with_pod = _balance(after, there, len(rows))
        if cycle.version < (1, 36):
            return with_pod
        change = MAX_SCORE // 2 + with_pod - _balance(before, there, len(rows))
        return MAX_SCORE // 2 + change // 2

    def _difference(self, cycle: Cycle, rows: Ints) -> Ints:
        shares = []
        for name in ("cpu", "memory"):
            found = demand(cycle, name, rows, plain=False)
            assert found is not None
            capacity, requested, _ = found
            shares.append(np.where(capacity > 0, requested / np.maximum(capacity, 1), 1.0))
        cpu, memory = shares
        score: Ints = ((1 - np.abs(cpu - memory)) * MAX_SCORE).astype(np.int64)
        score[(cpu >= 1) | (memory >= 1)] = 0
        return score


def _balance(shares: list[Floats], there: list[npt.NDArray[np.bool_]], size: int) -> Ints:
    """Return 100 (1 - standard deviation) of the shares that are there."""
    if not shares:
        return np.full(size, MAX_SCORE, dtype=np.int64)
    if len(shares) == 2 and there[0].all() and there[1].all():
        # The usual case, CPU and memory on every node: the same numbers by a shorter way.
        even: Ints = ((1 - np.abs((shares[0] - shares[1]) / 2)) * MAX_SCORE).astype(np.int64)
        return even
    present = np.stack(there)
    values = np.where(present, np.stack(shares), 0.0)
    count = present.sum(axis=0)
    mean = values.sum(axis=0) / np.maximum(count, 1)
    squares = np.where(present, (values - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.sqrt(squares / np.maximum(count, 1))
    # Two shares: half their difference, exactly, as kube-scheduler has it.
    two = count == 2
    if two.any():
        high = np.where(present, values, -np.inf).max(axis=0)
        low = np.where(present, values, np.inf).min(axis=0)
        deviation = np.where(two, np.abs((high - low) / 2), deviation)
    deviation = np.where(count < 2, 0.0, deviation)
    scores: Ints = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return scores
