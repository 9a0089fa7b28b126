"""Metrics over time and by pod as CSV, Parquet and columns for gnuplot."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from hagane.errors import MissingExtra
from hagane.tools.cluster.fragmentation import Workload, fragmentation
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.sim.shares import gpus_of
from hagane.tools.cluster.sim.simulation import Simulation

SERIES = (
    "time",
    "queue_length",
    "running",
    "gpu_allocated",
    "gpu_total",
    "gpu_utilisation",
    "cpu_utilisation",
    "memory_utilisation",
    "fragmentation",
    "dominant_share",
    "preemptions",
    "succeeded",
    "failed",
    "lost_gpu_hours",
    "nodes",
)
PODS = (
    "pod",
    "user",
    "outcome",
    "node",
    "submitted",
    "bound",
    "finished",
    "waiting",
    "completion",
    "work",
    "slowdown",
    "gpu",
    "cpu",
    "memory",
    "priority",
    "why",
)
USERS = (
    "user",
    "pods",
    "gpu_hours",
    "dominant_share",
    "largest_share",
    "finish_time_ratio",
)
_ROWS_AT_ONCE = 50_000


def sample(sim: Simulation, workload: Workload | None = None) -> dict[str, float]:
    """Return one row of metrics over time."""
    books = sim.books
    total = books.total
    return {
        "time": sim.clock,
        "queue_length": len(sim.queue),
        "running": len(sim.life.running),
        "gpu_allocated": round(books.now["gpu"], 6),
        "gpu_total": total["gpu"],
        "gpu_utilisation": books.now["gpu"] / total["gpu"] if total["gpu"] else 0.0,
        "cpu_utilisation": books.now["cpu"] / total["cpu"] if total["cpu"] else 0.0,
        "memory_utilisation": books.now["memory"] / total["memory"] if total["memory"] else 0.0,
        "fragmentation": fragmentation(sim.cluster, workload) if workload else 0.0,
        "dominant_share": max((u.share for u in books.users.values()), default=0.0),
        "preemptions": books.counts["preempted"],
        "succeeded": books.counts["succeeded"],
        "failed": books.counts["failed"],
        "lost_gpu_hours": books.lost_gpu_seconds / 3600,
        "nodes": sim.cluster.node_count,
    }


def pod_row(pod: Pod, outcome: str, times: Mapping[str, float], why: str = "") -> dict[str, object]:
    """Return one row on the fate of a pod; ``why`` is the reason of its last failure."""
    spent = times["finished"] - times["submitted"]
    return {
        "pod": pod.key,
        "user": pod.user,
        "outcome": outcome,
        "node": pod.node_name,
        "submitted": times["submitted"],
        "bound": times["bound"],
        "finished": times["finished"],
        "waiting": times["bound"] - times["submitted"],
        "completion": spent,
        "work": times["work"],
        "slowdown": max(1.0, spent / max(times["work"], 10.0)),
        "gpu": gpus_of(pod.requests),
        "cpu": pod.requests.get("cpu", 0) / 1000,
        "memory": pod.requests.get("memory", 0),
        "priority": pod.priority,
        "why": why,
    }


def unfinished_rows(sim: Simulation) -> Iterator[dict[str, object]]:
    """Yield the rows of pods that run at the end, or wait; times that are not known are NaN."""
    unknown = {"finished": math.nan, "completion": math.nan, "slowdown": math.nan}
    for running in sim.life.running.values():
        times = {
            "submitted": running.submitted,
            "bound": running.bound,
            "finished": math.nan,
            "work": running.work,
        }
        why = sim.reasons.get(running.pod.key, "")
        yield {**pod_row(running.pod, "running", times, why), **unknown}
    for pending in sim.queue.entries():
        times = {
            "submitted": pending.submitted,
            "bound": sim.clock,
            "finished": math.nan,
            "work": pending.pod.duration or 0.0,
        }
        row = pod_row(pending.pod, "pending", times, pending.why)
        yield {**row, **unknown, "bound": math.nan}


def user_rows(sim: Simulation) -> list[dict[str, object]]:
    """Return one row a user: the work done, and the dominant share (mean, largest)."""
    means = sim.books.dominant_shares(sim.clock)
    return [
        {
            "user": name,
            "pods": user.pods,
            "gpu_hours": user.gpu_seconds / 3600,
            "dominant_share": means[name],
            "largest_share": user.peak,
            "finish_time_ratio": user.spent / user.ideal if user.ideal else 1.0,
        }
        for name, user in sorted(sim.books.users.items())
    ]


class TableWriter:
    """Rows of fixed columns into files of several formats at once.

    Args:
        base: the path without its ending.
        columns: the columns.
        formats: any of csv, parquet, gnuplot.
    """

    def __init__(self, base: Path, columns: Sequence[str], formats: Sequence[str]):
        self.base = base
        self.columns = tuple(columns)
        self._files: list[IO[str]] = []
        self._csv: Any = None
        self._gnuplot: IO[str] | None = None
        self._parquet: Any = None
        self._rows: list[Mapping[str, object]] = []
        self._wants_parquet = "parquet" in formats
        base.parent.mkdir(parents=True, exist_ok=True)
        if "csv" in formats:
            file = self._open(".csv")
            self._csv = csv.writer(file, lineterminator="\n")
            self._csv.writerow(self.columns)
        if "gnuplot" in formats:
            self._gnuplot = self._open(".dat")
            self._gnuplot.write("# " + " ".join(self.columns) + "\n")

    def write(self, row: Mapping[str, object]) -> None:
        """Append a row."""
        values = [row[c] for c in self.columns]
        if self._csv is not None:
            self._csv.writerow(values)
        if self._gnuplot is not None:
            self._gnuplot.write(" ".join(_column(v) for v in values) + "\n")
        if self._wants_parquet:
            self._rows.append(row)
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._flush()

    def close(self) -> None:
        """Finish all files."""
        if self._wants_parquet:
            self._flush()
            if self._parquet is not None:
                self._parquet.close()
        for file in self._files:
            file.close()

    def _open(self, ending: str) -> IO[str]:
        path = self.base.with_name(self.base.name + ending)
        file = open(path, "w", encoding="utf-8", newline="\n")  # noqa: SIM115
        self._files.append(file)
        return file

    def _flush(self) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise MissingExtra("writing Parquet", "cluster") from None
        if not self._rows:
            return
        columns = {c: [row[c] for row in self._rows] for c in self.columns}
        schema = self._parquet.schema if self._parquet is not None else None
        table = pyarrow.table(columns, schema=schema)
        if self._parquet is None:
            path = self.base.with_name(self.base.name + ".parquet")
            self._parquet = pyarrow.parquet.ParquetWriter(path, table.schema)
        self._parquet.write_table(table)
        self._rows = []


def _column(value: object) -> str:
    text = str(value)
    return text.replace(" ", "_") if text else "-"
