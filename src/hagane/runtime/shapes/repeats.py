"""Shapes that come again and again: programs of their own, made beside the runs.

The part of this that a session from the cache needs loads nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from hagane.machine import Lock

Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
T = TypeVar("T")

# The run of a shape at which a program of its own is begun.
RUNS = 8
# For how many runs a short way of the program for all shapes is not asked for again, so that the
# run at which another one is begun is counted.
LEASE = RUNS - 1
# The same where no run is counted any more: a program is being made, which is found a little later,
# or nothing else is to come, and shapes in use are known.
LONG_LEASE = 64
# How many shapes are counted.
MOST_COUNTED = 1024
# How many shapes have programs of their own, and the bytes that these take together, at most.
MOST_PROGRAMS, MOST_BYTES = 8, 256 << 20
# After so many programs in a row that were no faster, no others are made.
MOST_SLOWER = 3
# How many sessions of a process wait for their turn to have one made; in others the next run of the
# shape asks again.
MOST_WAITING = 4
# How far a program for one shape is put behind all else.
_NICE = 10


def step_back() -> None:
    """Put the thread that calls this behind all others of the machine."""
    with contextlib.suppress(OSError, AttributeError):  # a wish, which not every system grants
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, max(now, _NICE))


@dataclass(frozen=True, slots=True)
class Past:
    """Runs of a shape through one short way.

    Attributes:
        runs: How many there were.
        general: The least nanoseconds of a run of the program for all shapes; 0 if there was none.
        own: The same of the shape's own program.
    """

    runs: int = 0
    general: int = 0
    own: int = 0


@dataclass(slots=True)
class _Own(Generic[T]):
    """A program for one shape, the bytes that it takes, and whether it has been found faster."""

    value: T
    bytes: int
    judged: bool = False


@dataclass(slots=True)
class _Met:
    """How often a shape has run without a program of its own, and the least nanoseconds of it."""

    runs: int = 0
    least: int = 0
    refused: bool = False


class _Turns:
    """The threads of a process in which programs are made, one after the other."""

    def __init__(self) -> None:
        self.turn = Lock()
        self._lock = Lock()
        self._threads: list[threading.Thread] = []

    def begin(self, build: Callable[[Shapes], None], shapes: Shapes) -> threading.Thread | None:
        """Start a thread that builds; return None if enough are waiting already."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if len(self._threads) > MOST_WAITING:
                return None
            thread = threading.Thread(
                target=build, args=(shapes,), name="hagane-specialize", daemon=True
            )
            self._threads.append(thread)
            thread.start()
            return thread


_turns = _Turns()


@dataclass
class Repeats(Generic[T]):
    """Counts the runs of shapes, and has programs made for frequent ones.

    They are made one at a time in a process, in a thread that runs do not wait for. A program that
    is not faster than the one for all shapes, as the first runs of it show, is let go; after some
    in a row no others are made.

    Attributes:
        make: Returns a program for a shape and the bytes that it takes; None if there is none.
        logger: Where it is said that one failed; then no others are made.
        active: Whether programs are made.
    """

    make: Callable[[Shapes], tuple[T, int] | None]
    logger: logging.Logger
    active: bool = True
    _own: OrderedDict[Shapes, _Own[T]] = field(default_factory=OrderedDict)
    _met: OrderedDict[Shapes, _Met] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)
    _building: threading.Thread | None = None
    _slower: int = 0  # programs in a row that were

    def __contains__(self, shapes: Shapes) -> bool:
        return shapes in self._own

    def __iter__(self) -> Iterator[Shapes]:
        """Yield the shapes that have programs, the one that was not used for longest first."""
        return iter(tuple(self._own))

    def values(self) -> list[T]:
        """Return the programs."""
        return [own.value for own in self._own.values()]

    def find(self, shapes: Shapes, past: Past) -> T | None:
        """Return the program of a shape, if there is one; note runs without.

        Args:
            shapes: Of the inputs.
            past: The runs since the last time, the coming one included.
        """
        with self._lock:
            own = self._own.get(shapes)
            if own is not None and self._is_slower(own, shapes, past):
                del self._own[shapes]
                self._met[shapes].refused = True
                self.active = self._slower < MOST_SLOWER
                return None
            if own is not None:
                self._own.move_to_end(shapes)
                return own.value
            met = self._met.setdefault(shapes, _Met())
            self._met.move_to_end(shapes)
            met.runs += past.runs
            met.least = min(filter(None, (met.least, past.general)), default=0)
            self._forget()
            # (Another one is being built: the next run of this shape asks again.)
            if self.active and met.runs >= RUNS and not met.refused and self._building is None:
                self._building = _turns.begin(self._build, shapes)
        return None

    def lease(self, shapes: Shapes) -> int:
        """Return for how many runs a short way need not be asked for again."""
        with self._lock:
            if shapes in self._own:
                return LONG_LEASE if self._own[shapes].judged else LEASE
            met = self._met.get(shapes)
            counted = met is not None and (met.refused or met.runs >= RUNS)
            return LONG_LEASE if counted or not self.active else LEASE

    def _is_slower(self, own: _Own[T], shapes: Shapes, past: Past) -> bool:
        """Whether a program turns out to be no faster than the one for all shapes."""
        met = self._met.get(shapes)
        if met is not None and past.general:
            met.least = min(met.least or past.general, past.general)
        if own.judged or not past.own or met is None or not met.least:
            return False
        own.judged = True
        slower = past.own >= met.least
        self._slower = self._slower + 1 if slower else 0
        return slower

    def _forget(self) -> None:
        if len(self._met) > MOST_COUNTED:
            gone, _ = self._met.popitem(last=False)
            if gone in self._own:  # it is judged no more
                self._own[gone].judged = True

    def keep(self, shapes: Shapes, value: T, bytes_: int, *, judged: bool = True) -> None:
        """Keep the program of a shape, and let go of the one unused for longest."""
        with self._lock:
            self._own[shapes] = _Own(value, bytes_, judged)
            self._own.move_to_end(shapes)
            while len(self._own) > 1 and (
                len(self._own) > MOST_PROGRAMS
                or sum(own.bytes for own in self._own.values()) > MOST_BYTES
            ):
                self._own.popitem(last=False)

    def wait(self) -> None:
        """Wait until no program is being made beside the runs."""
        thread = self._building
        if thread is not None:
            thread.join()

    def _build(self, shapes: Shapes) -> None:
        step_back()
        try:
            with _turns.turn:
                made = self.make(shapes)
            if made is None:
                with self._lock:
                    self._met.setdefault(shapes, _Met()).refused = True
            else:
                self.keep(shapes, *made, judged=False)
        except Exception as error:  # the general program serves; nobody waits for this one
            self.active = False
            if "interpreter shutdown" not in str(error):  # (Python ends: no compiler starts then.)
                self.logger.warning("no program of its own for shapes %s", shapes, exc_info=True)
        finally:
            self._building = None
