"""Times of single nodes: of one run after another as a Chrome trace, and summed up."""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.graph.types import TensorType
from hagane.machine.whole_files import write_whole
from hagane.ops.schema import type_string
from hagane.ops.values import array_dtype, describe_value
from hagane.runtime.backends.reference import ReferencePart
from hagane.runtime.device import Value
from hagane.runtime.port import Observer, Part, Timed


class Profile:
    """Collects an event for each node that ran and one for each run; threads may record at once."""

    def __init__(self) -> None:
        self.start_ns = time.perf_counter_ns()
        self._events: list[dict[str, Any]] = []
        self._runs: list[_Run] = []
        self._lock = threading.Lock()
        self._last = threading.local()
        self._ready: _Run | None = None  # the time until the session was there

    def opened(self) -> None:
        """Note that the session is ready."""
        self._ready = _Run(self.start_ns, time.perf_counter_ns(), threading.get_ident())

    def start_run(self) -> None:
        """Note the time before the first node of a run of this thread."""
        self._last.ns = time.perf_counter_ns()
        self._last.run = _Run(self._last.ns, self._last.ns, threading.get_ident())
        with self._lock:
            self._runs.append(self._last.run)

    def record(
        self,
        part: Part,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        records: Sequence[Timed],
    ) -> None:
        """Add an event for each kernel of a part that ended just now, or for the part itself."""
        now = time.perf_counter_ns()
        begun = getattr(self._last, "ns", now)
        self._last.ns = now
        run = getattr(self._last, "run", None) or _Run(begun, now, threading.get_ident())
        run.ended = now
        if records:
            at = now - sum(timed.nanoseconds for timed in records)
            events: list[dict[str, Any]] = []
            for timed in records:
                shown: dict[str, Any] = {"flops": timed.flops, "engine": part.backend}
                if timed.place:
                    shown["place"] = timed.place
                name = timed.name or timed.operator
                events.append(self._event(name, timed.operator, at, timed.nanoseconds, shown, run))
                at += timed.nanoseconds
        else:
            described: dict[str, Any] = {
                "inputs": [describe_value(value) for value in inputs],
                "outputs": [describe_value(value) for value in outputs],
                "input_type_shape": _types_and_shapes(inputs),
                "output_type_shape": _types_and_shapes(outputs),
            }
            operator, name, place = _label(part)
            if place:
                described["place"] = place
            events = [self._event(name or operator, operator, begun, now - begun, described, run)]
        with self._lock:
            self._events.extend(events)

    def _event(
        self,
        name: str,
        operator: str,
        begun: int,
        duration: int,
        shown: dict[str, Any],
        run: _Run,
    ) -> dict[str, Any]:
        about = {
            "op_name": operator, "provider": "CPUExecutionProvider", "node_index": str(run.nodes),
            **shown,
        }  # fmt: skip
        run.nodes += 1
        thread = threading.get_ident()
        return self._span("Node", f"{name}_kernel_time", begun, duration, thread, about)

    def _span(
        self, kind: str, name: str, begun: int, duration: int, thread: int, about: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "cat": kind,
            "name": name,
            "ph": "X",
            "pid": os.getpid(),
            "tid": thread,
            "ts": (begun - self.start_ns) / 1000,
            "dur": duration / 1000,
            "args": about,
        }

    def trace(self) -> list[dict[str, Any]]:
        """Return all events; times are microseconds since the session was made."""
        with self._lock:
            ready = [] if self._ready is None else [("session_initialization", self._ready)]
            names = ("model_run", "SequentialExecutor::Execute")
            spans = [*ready, *((name, run) for run in self._runs for name in names)]
            runs = [
                self._span("Session", name, run.begun, run.ended - run.begun, run.thread, {})
                for name, run in spans
            ]
            return [*runs, *self._events]


def _types_and_shapes(values: Sequence[Value]) -> list[dict[str, list[int]]]:
    """Return the types and shapes of tensors as ONNX Runtime's profiles have them."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    types = [TensorType(array_dtype(value), value.shape) for value in arrays]
    return [
        {type_string(type_).removeprefix("tensor(").rstrip(")"): list(value.shape)}
        for type_, value in zip(types, arrays, strict=True)
    ]


@dataclass(slots=True)
class _Run:
    """A run of a session: when its first node began and its last one ended, and the thread."""

    begun: int
    ended: int
    thread: int
    nodes: int = 0  # that ran so far


@dataclass(frozen=True, slots=True)
class KernelTime:
    """The time of a kernel.

    Attributes:
        name: The nodes that it computes.
        engine: The backend: ``native``, ``reference`` or one of the caller's.
        seconds: The mean over the faster half of the runs.
        flops: The multiplications and additions that it does, 0 where they are not counted.
        share: Operations a second over ``ProfileReport.peak``.
        place: Where in a program's source the first of the nodes came from, with the calls that
            led there; empty if that is not known.
    """

    name: str
    engine: str
    seconds: float
    flops: float
    share: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Where the time of a model goes.

    Attributes:
        kernels: In the order in which they run.
        seconds: The mean of a whole run over the faster half of the runs, calls included.
        peak: Operations a second that the session's threads do at most: of float32 in registers,
            measured before and after, or of the kernel that did more.
        runs: How many runs were measured.
    """

    kernels: tuple[KernelTime, ...]
    seconds: float
    peak: float
    runs: int

    @property
    def rest(self) -> float:
        """Seconds of a run outside the kernels: the call, and the time between them."""
        return max(0.0, self.seconds - sum(kernel.seconds for kernel in self.kernels))

    def trace(self) -> list[dict[str, Any]]:
        """Return the kernels as events of the Chrome trace format, one after the other."""
        at, events = 0.0, []
        for kernel in self.kernels:
            shown = {
                "flops": kernel.flops, "engine": kernel.engine, "share of peak": kernel.share,
                **({"place": kernel.place} if kernel.place else {}),
            }  # fmt: skip
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
        write_whole(path, json.dumps(self.trace()))

    def __str__(self) -> str:
        """Return a table, longest first."""
        from hagane.graph.places import short

        total = sum((kernel.seconds for kernel in self.kernels), self.rest) or 1.0
        lines = [
            f"{self.seconds * 1e3:.3f} ms a run, mean of the faster half of {self.runs}; "
            f"peak {self.peak / 1e9:.0f} GFLOP/s",
            f"{'ms':>9} {'time':>6} {'GFLOP/s':>8} {'of peak':>7}  kernel",
        ]
        for kernel in sorted(self.kernels, key=lambda kernel: -kernel.seconds):
            rate = kernel.flops / kernel.seconds / 1e9 if kernel.seconds else 0.0
            engine = "" if kernel.engine == "native" else f" ({kernel.engine})"
            place = short(kernel.place.partition(", called from ")[0]) if kernel.place else ""
            lines.append(
                f"{kernel.seconds * 1e3:9.3f} {kernel.seconds / total:6.1%} {rate:8.1f} "
                f"{kernel.share:7.0%}  {kernel.name}{engine}{place and f'  {place}'}"
            )
        rest = f"{self.rest * 1e3:9.3f} {self.rest / total:6.1%} {'':8} {'':7}  between kernels"
        return "\n".join([*lines, rest])


class _Recorder:
    """Notes the times of one run's kernels."""

    stop = None

    def __init__(self) -> None:
        self.labels: list[tuple[str, str, float, str]] = []
        self.seconds: list[float] = []
        self._last = time.perf_counter()

    def __call__(
        self,
        part: Part,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        records: Sequence[Timed],
    ) -> None:
        now = time.perf_counter()
        for timed in records:
            label = f"{timed.operator} '{timed.name}'" if timed.name else timed.operator
            self.labels.append((label, part.backend, timed.flops, timed.place))
            self.seconds.append(timed.nanoseconds * 1e-9)
        if not records:
            operator, name, place = _label(part)
            self.labels.append((f"{operator} '{name}'", part.backend, 0.0, place))
            self.seconds.append(now - self._last)
        self._last = time.perf_counter()


def _label(part: Part) -> tuple[str, str, str]:
    """Return the operators of a part, and the name and place of its first node."""
    from hagane.graph.places import place_of

    if not part.nodes:
        return part.backend, "", ""
    operators = "+".join(dict.fromkeys(node.op_type for node in part.nodes))
    operators = part.op.name if isinstance(part, ReferencePart) else operators
    return operators, str(part.nodes[0].name or ""), place_of(part.nodes[0])


def measure(run: Callable[[Observer], Any], peak: Callable[[], float], runs: int) -> ProfileReport:
    """Return the times of the kernels of a model: means over the faster half of the runs.

    Args:
        run: Runs the model once, and calls the given function after each step.
        peak: Measures the machine's operations a second; is called before and after.
        runs: How many runs to measure, after one that is not.
    """
    most = peak()
    run(_Recorder())
    recorders: list[_Recorder] = []
    wholes: list[float] = []
    for _ in range(runs):
        recorders.append(_Recorder())
        started = time.perf_counter()
        run(recorders[-1])
        wholes.append(time.perf_counter() - started)
    order = sorted(range(runs), key=lambda i: wholes[i])[: (runs + 1) // 2]
    # Loops may take another number of turns in each run.
    longest = max((recorders[i] for i in order), key=lambda recorder: len(recorder.labels))
    rows = []
    for index, (name, engine, work, place) in enumerate(longest.labels):
        each = [recorders[i].seconds[index : index + 1] for i in order]
        rows.append((name, engine, sum(map(sum, each)) / len(order), work, place))
    # A machine that was busy as the peak was measured does more than that, and so do matrix tiles.
    rates = [work / seconds for _, _, seconds, work, _ in rows if seconds > 0]
    most = max(most, peak(), *rates)
    kernels = tuple(
        KernelTime(
            name, engine, seconds, work, work / seconds / most if seconds > 0 else 0.0, place
        )
        for name, engine, seconds, work, place in rows
    )
    whole = statistics.fmean(wholes[i] for i in order)
    return ProfileReport(kernels, whole, most, runs)
