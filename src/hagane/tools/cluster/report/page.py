"""A self-contained page about a run: curves, sums, and a timeline that can be replayed."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hagane.tools.cluster.report.series import SERIES, sample
from hagane.tools.cluster.sim.ports import Metrics
from hagane.tools.cluster.sim.shares import GPU_RESOURCES
from hagane.tools.cluster.sim.simulation import Simulation
from hagane.tools.cluster.state import CPU

MAX_FRAMES = 400
MAX_NODES = 600


class Recorder:
    """Keeps the data of the page: metrics, and the fill of each node, at some instants.

    When too many instants have come, every second one is dropped and from then on only every
    second one is kept, so that a long run costs no more than a short one.
    """

    def __init__(self, sim: Simulation):
        self.sim = sim
        self.rows: list[dict[str, float]] = []
        self.frames: list[list[int]] = []
        self.names = [r.node.name for r in sim.cluster.nodes()][:MAX_NODES]
        self.hidden = sim.cluster.node_count - len(self.names)
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
        path.write_text(
            page(self.sim.summary(), self.rows, self.names, self.frames, self.hidden),
            encoding="utf-8",
        )


def page(
    summary: Mapping[str, Any],
    rows: list[dict[str, float]],
    names: list[str],
    frames: list[list[int]],
    hidden: int = 0,
) -> str:
    """Return a page that needs nothing but a browser; ``hidden`` nodes are not drawn."""
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    data = {
        "columns": list(SERIES),
        "rows": [[round(row[c], 6) for c in SERIES] for row in rows],
        "nodes": names,
        "hidden": hidden,
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
            f"scheduler {summary.get('scheduler', '')}, {len(names) + hidden:,} nodes, "
            f"{summary.get('submitted', 0):,} pods, {used.get('gpu', 0.0):.1%} of GPUs and "
            f"{used.get('cpu', 0.0):.1%} of CPU allocated on average"
        ),
        "summary": lines,
        "data": text,
    }
    for name, value in fields.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def flat(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, object]]:
    """Return nested sums as (dotted name, value)."""
    out: list[tuple[str, object]] = []
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            out += flat(inner, f"{prefix}{name}.")
        else:
            out.append((prefix + name, f"{inner:.6g}" if isinstance(inner, float) else inner))
    return out
