"""A self-contained page about a run: curves, sums, and a timeline that can be replayed."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hagane.machine.whole_files import write_whole
from hagane.tools.cluster.report.series import SERIES, sample
from hagane.tools.cluster.sim.ports import Metrics
from hagane.tools.cluster.sim.shares import GPU_RESOURCES
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import CPU

MAX_FRAMES = 400
MAX_NODES = 600
MAX_REASONS = 20


class Recorder:
    """Keeps the data of the page: metrics, and the fill of each node, at some instants.

    When too many instants have come, every second one is dropped and from then on only every
    second one is kept, so that a long run costs no more than a short one.
    """

    def __init__(self, sim: Simulation):
        self.sim = sim
        self.rows: list[dict[str, float]] = []
        self.frames: list[list[int]] = []
        self.names = [r.node.name for r in sim.cluster.nodes()]
        self.stride = 1
        self.seen = 0
        sim.on_metrics = [*sim.on_metrics, self._record]

    def _record(self, clock: float, metrics: Metrics) -> None:
        if self.seen % self.stride == 0:
            self.rows.append(sample(self.sim, self.sim.workload()))
            self.frames.append(self._fullness())
            if len(self.rows) >= MAX_FRAMES:
                self.rows, self.frames = self.rows[::2], self.frames[::2]
                self.stride *= 2
        self.seen += 1

    def _fullness(self) -> list[int]:
        """Return how full each square's nodes are in percent, on average; -1 if all are gone."""
        each = self._of_nodes()
        size = group_size(len(each))
        if size == 1:
            return each
        found = []
        for first in range(0, len(each), size):
            there = [part for part in each[first : first + size] if part >= 0]
            found.append(round(sum(there) / len(there)) if there else -1)
        return found

    def _of_nodes(self) -> list[int]:
        """Return how full each node is in percent, by GPU where there are any; -1 if it is gone."""
        cluster = self.sim.cluster
        index = next((cluster.resources[n] for n in GPU_RESOURCES if n in cluster.resources), CPU)
        out = []
        for name in self.names:
            row = cluster.rows.get(name)
            if row is None:
                out.append(-1)
                continue
            column = index if cluster.allocatable[index, row] else CPU
            offered = max(int(cluster.allocatable[column, row]), 1)
            out.append(int(np.ceil(100 * int(cluster.requested[column, row]) / offered)))
        return out

    def write(self, path: Path) -> None:
        """Write the page."""
        found = reasons(self.sim)
        write_whole(path, page(self.sim.summary(), self.rows, self.names, self.frames, found))


def group_size(nodes: int) -> int:
    """Return how many nodes one square of the page stands for."""
    return max(1, -(-nodes // MAX_NODES))


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for waiting.

    Attributes:
        text: The filters that no node passed.
        waiting: How many pods wait for it at the end.
        started: How many pods started after waiting for it.
        seconds: How long these waited, on average.
    """

    text: str
    waiting: int
    started: int
    seconds: float


def reasons(sim: Simulation) -> list[Reason]:
    """Return why pods waited, the most frequent reason first; numbers of nodes are left out."""
    waiting: Counter[str] = Counter()
    for pod in sim.queue:
        pending = sim.queue.get(pod.key)
        if pending is not None:
            waiting[_kind(pending.why) if pending.why else "not tried yet"] += 1
    waits: dict[str, list[float]] = {}
    for why, seconds in sim.waits.items():
        waits.setdefault(_kind(why), []).extend(seconds)
    found = [
        Reason(text, waiting[text], len(each), sum(each) / len(each) if each else 0.0)
        for text in waiting.keys() | waits.keys()
        for each in (waits.get(text, []),)
    ]
    return sorted(found, key=lambda reason: (-reason.waiting - reason.started, reason.text))


def _kind(why: str) -> str:
    """Return the filters of ``0/10 nodes: 4 NodeResourcesFit, 6 TaintToleration``."""
    _, colon, listed = why.partition(" nodes: ")
    if not colon:
        return why
    return ", ".join(sorted(part.partition(" ")[2] or part for part in listed.split(", ")))


def page(
    summary: Mapping[str, Any],
    rows: list[dict[str, float]],
    names: list[str],
    frames: list[list[int]],
    waited: Sequence[Reason] = (),
) -> str:
    """Return a page that needs nothing but a browser.

    Of many nodes, neighbours share a square.
    """
    size = group_size(len(names))
    squares = [names[first : first + size] for first in range(0, len(names), size)]
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    data = {
        "columns": list(SERIES),
        "rows": [[round(row[c], 6) for c in SERIES] for row in rows],
        "nodes": [_square(square) for square in squares],
        "each": size,
        "frames": frames,
    }
    # "</" would end the script early.
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    lines = "".join(
        f"<div><span>{html.escape(name.replace('_', ' ').replace('.', ': '))}</span>"
        f"<span class=value>{html.escape(str(value))}</span></div>"
        for name, value in flat(summary)
    )
    used = summary.get("utilisation", {})
    fields = {
        "scheduler": html.escape(str(summary.get("scheduler", ""))),
        "headline": html.escape(
            f"scheduler {summary.get('scheduler', '')}, {len(names):,} nodes, "
            f"{summary.get('submitted', 0):,} pods, {used.get('gpu', 0.0):.1%} of GPUs and "
            f"{used.get('cpu', 0.0):.1%} of CPU allocated on average"
        ),
        "summary": lines,
        "reasons": _table(waited),
        "data": text,
    }
    for name, value in fields.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def _square(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _table(waited: Sequence[Reason]) -> str:
    if not waited:
        return "<p>No pod had to wait because no node fitted.</p>"
    rows = "".join(
        f"<tr><td>{html.escape(reason.text)}</td><td>{reason.waiting:,}</td>"
        f"<td>{reason.started:,}</td><td>{reason.seconds:,.0f}</td></tr>"
        for reason in waited[:MAX_REASONS]
    )
    more = len(waited) - MAX_REASONS
    rest = f"<p class=faint>and {more:,} more reasons</p>" if more > 0 else ""
    return (
        "<table><tr><th>no node passed<th>still waiting<th>started later<th>after seconds, "
        f"on average</tr>{rows}</table>{rest}"
    )


def flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """Return nested sums as (dotted name, value)."""
    out: list[tuple[str, object]] = []
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            out += flat(inner, f"{prefix}{name}.")
        else:
            out.append((prefix + name, f"{inner:.6g}" if isinstance(inner, float) else inner))
    return out
