"""Programs for single shapes, made in a process of their own, in the idle time of the machine.

A process has an interpreter of its own: runs of the session wait neither for its lock nor for a
core. It reads the model again, compiles the kernels and writes them, with the weights that the
session lacks, into a folder, from which they are mapped (`native/run/kept.py`). ``making.py`` is
its program.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hagane.errors import HaganeError
from hagane.native.ready.mapped import WeightStore
from hagane.native.run.kept import read_about, read_loaded
from hagane.native.run.loaded import Loaded
from hagane.runtime.chosen import can_repeat, threads_of
from hagane.runtime.kept import key_of
from hagane.runtime.options import SessionOptions

# For so many seconds the process takes idle time alone. A session that has run for as long without
# a pause gains more by the result than it then loses to a process of low priority.
_PATIENCE, _NICE, _IDLE = 30.0, 15, True
# The status of a process that found that the model is not one native part at these sizes.
NOTHING = 3
# (Its modules take a core for half a second: it steps back before it looks for them.)
_PROGRAM = """
import contextlib, os, sys
with contextlib.suppress(OSError, AttributeError):
    os.nice(max(0, {nice} - os.nice(0)))
    if {idle}:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
sys.path[:] = {path!r}
from hagane.runtime.shapes.making import main
main()
"""


@dataclass(frozen=True, slots=True)
class Order:
    """The instructions of the process.

    Attributes:
        path: The model's file.
        options: The session's, by name.
        settings: Dimensions by name, by denotation, and entries.
        shapes: Sizes of inputs by name.
        fed: The inputs of each run.
        marks: Those of the packed weights that the session has.
        folder: Where to write.
        parent: The process that asks.
        nice: How far the process is put behind others, at least.
        idle: Whether it takes the time of idle cores alone.
    """

    path: str
    options: Mapping[str, Any]
    settings: tuple[Mapping[str, int], Mapping[str, int], Mapping[str, str]]
    shapes: Mapping[str, tuple[int, ...]]
    fed: tuple[str, ...]
    marks: tuple[str, ...]
    folder: str
    parent: int
    nice: int
    idle: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A part that is the model at some sizes, the inputs that it reads, and the model's outputs."""

    loaded: Loaded
    own: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The memory that it takes for itself."""
        return sum(self.loaded.memory({}))


@dataclass(frozen=True, slots=True)
class Beside:
    """Makes programs of a session's model in other processes.

    Attributes:
        source: The path of the model's file, or its bytes.
        options: The session's; ``chosen.can_repeat`` holds for them.
        fed: The inputs of each run.
        is_same: Whether the file is as it was when the session was made.
    """

    source: str | bytes
    options: SessionOptions
    fed: tuple[str, ...]
    is_same: Callable[[], bool]

    def make(self, shapes: Mapping[str, tuple[int, ...]], store: WeightStore) -> Made | None:
        """Return the model for inputs of some shapes; None if it is not one native part.

        Args:
            shapes: By the names of inputs.
            store: The session's packed weights.

        Raises:
            HaganeError: The process failed.
        """
        if not self.is_same():
            return None
        with tempfile.TemporaryDirectory(prefix="hagane-beside-") as folder:
            order = self._order(shapes, store, folder)
            status, message = _run(order, _PATIENCE) or _run(replace(order, idle=False)) or (1, "")
            if status == NOTHING or not self.is_same():
                return None
            if status != 0:
                raise HaganeError(f"a process that compiles ended with {status}: {message}")
            about, tables = read_about(Path(folder))
            loaded = read_loaded(Path(folder), tables, store)
        if loaded is None:
            return None
        return Made(loaded, tuple(about["own"]), tuple(about["order"]))

    def _order(
        self, shapes: Mapping[str, tuple[int, ...]], store: WeightStore, folder: str
    ) -> Order:
        options = self.options
        chosen = {
            each.name: getattr(options, each.name)
            for each in dataclasses.fields(SessionOptions)
            if not each.name.startswith("_") and each.name != "backends"
        }
        chosen["intra_op_num_threads"] = threads_of(options)
        settings = options.dimension_overrides, options.denotation_overrides, options.entries
        if isinstance(self.source, bytes):
            path = os.path.join(folder, "model.onnx")
            Path(path).write_bytes(self.source)
        else:
            path = os.path.abspath(self.source)
        marks = tuple(store.marks())
        asked = path, chosen, settings, shapes, self.fed, marks, folder, os.getpid()
        return Order(*asked, _NICE, _IDLE)


def _run(order: Order, limit: float | None = None) -> tuple[int, str] | None:
    """Return the status of the process and the end of its messages; None if it took too long.

    Args:
        order: Its instructions.
        limit: Seconds, if there is one.
    """
    program = _PROGRAM.format(nice=order.nice, idle=order.idle, path=sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Not a session of its own: some systems share the cores between sessions, not processes.
        process_group=0,
    ) as process:
        try:
            _, said = process.communicate(pickle.dumps(order), limit)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)  # its compiler too
            process.communicate()
            return None
        return process.returncode, said.decode(errors="replace").strip()[-2000:]


def beside_of(
    path: str, source: object, options: SessionOptions, key: str | None, fed: tuple[str, ...]
) -> Beside | None:
    """Return the way to compile a session's model in other processes, if there is one.

    Args:
        path: The model's file, if it has one.
        source: The source of the session.
        options: The session's.
        key: Of the session in the cache.
        fed: The inputs of each run.
    """
    # (In a frozen program the executable called Python is the program itself.)
    if not sys.executable or getattr(sys, "frozen", False) or not can_repeat(options):
        return None
    if isinstance(source, bytes):
        return Beside(source, options, fed, lambda: True)
    if key is None:
        return None  # nobody would know that it has changed
    return Beside(path, options, fed, lambda: key_of(path, options) == key)
