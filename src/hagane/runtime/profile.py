"""Times of single nodes, in the Chrome trace format."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from hagane.ops.definition import RuntimeValue
from hagane.ops.values import describe_value
from hagane.runtime.program import AnyStep, NativeStep


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
        times: Sequence[int],
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

    def _kernels(self, step: NativeStep, times: Sequence[int], end: int) -> list[dict[str, Any]]:
        at = end - sum(times)
        events: list[dict[str, Any]] = []
        for kernel, duration in zip(step.part.segment.kernels, times, strict=True):
            operator, _, name = kernel.label.partition(" ")
            shown = {"flops": kernel.flops, "engine": "native"}
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
