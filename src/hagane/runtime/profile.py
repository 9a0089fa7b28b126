"""Times of single nodes, in the Chrome trace format."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from hagane.ops.definition import RuntimeValue
from hagane.ops.values import describe_value
from hagane.runtime.program import Step


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
        self, step: Step, inputs: Sequence[RuntimeValue], outputs: Sequence[RuntimeValue]
    ) -> None:
        """Add an event from the end of the previous node to now."""
        now = time.perf_counter_ns()
        begun = getattr(self._last, "ns", now)
        self._last.ns = now
        event = {
            "cat": "Node",
            "name": f"{step.node.name or step.op.name}_kernel_time",
            "ph": "X",
            "pid": os.getpid(),
            "tid": threading.get_ident(),
            "ts": (begun - self.start_ns) / 1000,
            "dur": (now - begun) / 1000,
            "args": {
                "op_name": step.op.name,
                "provider": "CPUExecutionProvider",
                "inputs": [describe_value(value) for value in inputs],
                "outputs": [describe_value(value) for value in outputs],
            },
        }
        with self._lock:
            self._events.append(event)

    def trace(self) -> list[dict[str, Any]]:
        """Return all events; times are microseconds since the session was made."""
        with self._lock:
            return list(self._events)
