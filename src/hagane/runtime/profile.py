"""Times of single nodes: of one run after another as a Chrome trace, and summed up."""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hagane.native import Mark, Spent
from hagane.ops.definition import RuntimeValue
from hagane.ops.values import describe_value
from hagane.runtime.program import AnyStep, NativeStep, Observer


class Profile:
    """Collects one event for each node that ran; threads may record at once."""

    def __init__(self) -> None:
        self.start_ns = time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._last = threading.local()

    def start_run(self) -> None:
        """Note the time before the first node of a run of this thread."""
        self._last.ns = time.perf_counter_ns()

    def record(
        self,
        step: AnyStep,
        inputs: Sequence[RuntimeValue],
        outputs: Sequence[RuntimeValue],
        times: Sequence[Spent],
    ) -> None:
        """Add an event for a node, or for each kernel of a compiled part, that ended just now."""
        now = time.perf_counter_ns()
        begun = getattr(self._last, "ns", now)
        self._last.ns = now
        if isinstance(step, NativeStep):
            events = self._kernels(step, times, now)
        else:
            shown = {
                "inputs": [describe_value(value) for value in inputs],
                "outputs": [describe_value(value) for value in outputs],
            }
            name = step.node.name or step.op.name
            events = [self._event(name, step.op.name, begun, now - begun, shown)]
        with self._lock:
            self._events.extend(events)

    def _kernels(self, step: NativeStep, times: Sequence[Spent], end: int) -> list[dict[str, Any]]:
        at = end - sum(spent.nanoseconds for spent in times)
        events: list[dict[str, Any]] = []
        for kernel, (duration, runs) in zip(step.part.segment.kernels, times, strict=True):
            if isinstance(kernel.control, Mark):
                continue
            operator, _, name = kernel.label.partition(" ")
            shown = {"flops": kernel.flops * runs, "engine": "native"}
            events.append(self._event(name.strip("'") or operator, operator, at, duration, shown))
            at += duration
        return events

    def _event(
        self, name: str, operator: str, begun: int, duration: int, shown: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "cat": "Node",
            "name": f"{name}_kernel_time",
            "ph": "X",
            "pid": os.getpid(),
            "tid": threading.get_ident(),
            "ts": (begun - self.start_ns) / 1000,
            "dur": duration / 1000,
            "args": {"op_name": operator, "provider": "CPUExecutionProvider", **shown},
        }

    def trace(self) -> list[dict[str, Any]]:
        """Return all events; times are microseconds since the session was made."""
        with self._lock:
            return list(self._events)


@dataclass(frozen=True, slots=True)
class KernelTime:
    """What a kernel took.

    Attributes:
        name: The nodes that it computes.
        engine: ``native`` or ``reference``.
        seconds: The median over the runs.
        flops: Its floating-point operations, 0 where they are not counted.
        share: Operations a second over the machine's peak; below 1 but for algorithms that do
            with fewer operations than were counted, and for narrow numbers.
    """

    name: str
    engine: str
    seconds: float
    flops: float
    share: float


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Where the time of a model goes.

    Attributes:
        kernels: In the order in which they run.
        seconds: The median of a whole run, calls included.
        peak: Operations a second of float32 that the session's threads do at most, measured.
        runs: How many runs were measured.
    """

    kernels: tuple[KernelTime, ...]
    seconds: float
    peak: float
    runs: int

    def trace(self) -> list[dict[str, Any]]:
        """Return the kernels as events of the Chrome trace format, one after the other."""
        at, events = 0.0, []
        for kernel in self.kernels:
            shown = {"flops": kernel.flops, "engine": kernel.engine, "share of peak": kernel.share}
            events.append(
                {
                    "cat": "Kernel", "name": kernel.name, "ph": "X", "pid": 0, "tid": 0,
                    "ts": at, "dur": kernel.seconds * 1e6, "args": shown,
                }
            )  # fmt: skip
            at += kernel.seconds * 1e6
        return events

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that Perfetto and ``chrome://tracing`` show."""
        Path(path).write_text(json.dumps(self.trace()), encoding="utf-8")

    def __str__(self) -> str:
        """Return a table, longest first."""
        total = sum(kernel.seconds for kernel in self.kernels) or 1.0
        lines = [
            f"{self.seconds * 1e3:.3f} ms a run, median of {self.runs}; "
            f"peak {self.peak / 1e9:.0f} GFLOP/s",
            f"{'ms':>9} {'time':>6} {'GFLOP/s':>8} {'of peak':>7}  kernel",
        ]
        for kernel in sorted(self.kernels, key=lambda kernel: -kernel.seconds):
            rate = kernel.flops / kernel.seconds / 1e9 if kernel.seconds else 0.0
            engine = "" if kernel.engine == "native" else f" ({kernel.engine})"
            lines.append(
                f"{kernel.seconds * 1e3:9.3f} {kernel.seconds / total:6.1%} {rate:8.1f} "
                f"{kernel.share:7.0%}  {kernel.name}{engine}"
            )
        return "\n".join(lines)


class _Recorder:
    """Notes what the kernels of one run took."""

    stop = None

    def __init__(self) -> None:
        self.labels: list[tuple[str, str, float]] = []
        self.seconds: list[float] = []
        self._last = time.perf_counter()

    def __call__(
        self,
        step: AnyStep,
        inputs: Sequence[RuntimeValue],
        outputs: Sequence[RuntimeValue],
        times: Sequence[Spent],
    ) -> None:
        now = time.perf_counter()
        if isinstance(step, NativeStep):
            for kernel, taken in zip(step.part.segment.kernels, times, strict=True):
                if isinstance(kernel.control, Mark):
                    continue
                self.labels.append((kernel.label, "native", kernel.flops * taken.runs))
                self.seconds.append(taken.nanoseconds * 1e-9)
        else:
            self.labels.append((f"{step.op.name} '{step.node.name}'", "reference", 0.0))
            self.seconds.append(now - self._last)
        self._last = time.perf_counter()


def measure(run: Callable[[Observer], Any], peak: float, runs: int) -> ProfileReport:
    """Return what the kernels of a model take.

    Args:
        run: Runs the model once, and calls what it is given after each step.
        peak: The machine's operations a second.
        runs: How many runs to measure, after one that is not.
    """
    run(_Recorder())
    recorders: list[_Recorder] = []
    wholes: list[float] = []
    for _ in range(runs):
        recorders.append(_Recorder())
        started = time.perf_counter()
        run(recorders[-1])
        wholes.append(time.perf_counter() - started)
    # Loops may take another number of turns in each run.
    longest = max(recorders, key=lambda recorder: len(recorder.labels))
    kernels = []
    for index, (name, engine, work) in enumerate(longest.labels):
        found = [each.seconds[index] for each in recorders if index < len(each.seconds)]
        seconds = statistics.median(found)
        share = work / seconds / peak if seconds > 0 else 0.0
        kernels.append(KernelTime(name, engine, seconds, work, share))
    return ProfileReport(tuple(kernels), statistics.median(wholes), peak, runs)
