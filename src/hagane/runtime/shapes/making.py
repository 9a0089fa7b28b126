"""The process that makes a program for one shape, beside the runs of a session (``beside.py``)."""

from __future__ import annotations

import ctypes
import fcntl
import logging
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hagane.native.ready.mapped import Packed, WeightStore
from hagane.runtime.shapes.beside import NOTHING, Order

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Read an order from the standard input and carry it out."""
    order: Order = pickle.load(sys.stdin.buffer)
    end_with(order.parent)
    with _one_at_a_time():
        sys.exit(0 if make(order) else NOTHING)


def end_with(parent: int) -> None:
    """End when the process that asked does."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(NOTHING)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait until no other such process of the user is at work."""
    path = os.path.join(tempfile.gettempdir(), f"hagane-beside-{os.getuid()}.lock")
    try:
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def make(order: Order) -> bool:
    """Write the model of an order into its folder; whether it is one part that can be written."""
    from hagane.native.run.kept import may_be_kept, write_loaded
    from hagane.ops import infer_types
    from hagane.runtime.backends.native import NativeBackend, NativePart
    from hagane.runtime.execute import whole_of
    from hagane.runtime.options import SessionOptions
    from hagane.runtime.pipeline import build, read
    from hagane.runtime.settings import settings_of

    os.environ["HAGANE_JOBS"] = "1"
    options = SessionOptions(**order.options)
    named, denoted, entries = order.settings
    for name, size in named.items():
        options.add_free_dimension_override_by_name(name, size)
    for name, size in denoted.items():
        options.add_free_dimension_override_by_denotation(name, size)
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    settings = settings_of(options, logging.getLogger("hagane.runtime"))
    store = WeightStore()
    elsewhere = [(mark, Packed(None, 0)) for mark in order.marks]
    for mark, packed in elsewhere:
        store.put(mark, packed)
    backends = tuple(
        replace(each, store=store) if isinstance(each, NativeBackend) else each
        for each in settings.backends
    )
    settings = replace(settings, backends=backends)
    found = read(order.path, settings)
    inputs = [str(value.name) for value in found.model.graph.inputs]
    types = infer_types(found.model, shapes=dict(order.shapes), lenient=True)
    built = build(found.model, types, settings)
    whole = whole_of(built.program, [inputs.index(name) for name in order.fed])
    if built.obstacle is not None or whole is None:
        return False
    part = whole.part
    if not isinstance(part, NativePart) or not may_be_kept(part.segment, in_part=True):
        return False
    write_loaded(part.segment, Path(order.folder), {"own": whole.own, "order": whole.order})
    return True
