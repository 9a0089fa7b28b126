"""Plugins: filters and scores over many nodes at once.

Source: the scheduling framework of kube-scheduler (``pkg/scheduler/framework``). A filter answers
for an array of rows with a mask, a score with an array of integers; values that a plugin computes
once per pod (PreFilter, PreScore) it keeps in the cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hagane.tools.cluster.model.objects import Node, Pod
from hagane.tools.cluster.state import Cluster, Ints, Mask, Rows

MAX_SCORE = 100
DEFAULT_VERSION = (1, 34)


@dataclass(slots=True)
class Cycle:
    """One attempt to place one pod.

    Attributes:
        store: results of plugins for this pod, by plugin.
    """

    pod: Pod
    cluster: Cluster
    version: tuple[int, int] = DEFAULT_VERSION
    store: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the result of the first call of ``compute``."""
        if name not in self.store:
            self.store[name] = compute()
        return self.store[name]


class Filter:
    """A rule that nodes must meet.

    Attributes:
        name: as Kubernetes' configuration names it.
        resolvable: whether removing pods from a node can make it pass.
    """

    name = ""
    resolvable = False

    def skip(self, cycle: Cycle) -> bool:
        """Return whether the filter passes every node for this pod."""
        return False

    def mask(self, cycle: Cycle, rows: Rows) -> Mask:
        """Return which rows pass."""
        raise NotImplementedError

    def reason(self, cycle: Cycle, row: int) -> str:
        """Return why a row that does not pass does not."""
        raise NotImplementedError

    def may_resolve(self, cycle: Cycle, row: int) -> bool:
        """Return whether evicting pods could make a failing row pass."""
        return self.resolvable


class Score:
    """A preference among the nodes that passed every filter."""

    name = ""

    def constant(self, cycle: Cycle) -> int | None:
        """Return the normalised score if it is the same on every node, else None."""
        return None

    def raw(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return the raw scores of rows, or None where the plugin skips this pod."""
        raise NotImplementedError

    def normalise(self, cycle: Cycle, raw: Ints) -> Ints:
        """Return scores from 0 to 100."""
        return raw


def count_of(rows: Rows) -> int:
    """Return how many rows there are."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def everywhere(rows: Rows) -> Mask:
    """Return a mask that passes all rows."""
    return np.ones(count_of(rows), dtype=bool)


def static_mask(cluster: Cluster, key: Hashable, predicate: Callable[[Node], bool]) -> Mask:
    """Return a predicate of nodes over all rows, remembered until some node changes."""
    found = cluster.caches.get(key)
    if found is None:
        size = cluster.alive.shape[0]
        mask = np.zeros(size, dtype=bool)
        for record in cluster.nodes():
            mask[record.row] = predicate(record.node)
        cluster.caches[key] = found = mask
    assert isinstance(found, np.ndarray)
    return found


def static_scores(cluster: Cluster, key: Hashable, score: Callable[[Node], int]) -> Ints:
    """Return a score of nodes over all rows, remembered until some node changes."""
    found = cluster.caches.get(key)
    if found is None:
        scores = np.zeros(cluster.alive.shape[0], dtype=np.int64)
        for record in cluster.nodes():
            scores[record.row] = score(record.node)
        cluster.caches[key] = found = scores
    assert isinstance(found, np.ndarray)
    return found


def default_normalise(raw: Ints, reverse: bool = False) -> Ints:
    """Scale scores so that the largest becomes 100; reversed, so that it becomes 0.

    Source: ``plugins/helper/normalize_score.go``, with its integer division.
    """
    largest = int(raw.max(initial=0))
    if largest == 0:
        return np.full_like(raw, MAX_SCORE if reverse else 0)
    scaled = MAX_SCORE * raw // largest
    return MAX_SCORE - scaled if reverse else scaled
